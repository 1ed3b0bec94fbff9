//! Page blobs: created with a size, written in pages of 512 bytes.

use super::{Blob, BlobCondition, UploadOptions, properties, upload};
use crate::{ETag, Error, Result};
use bytes::Bytes;
use http::{HeaderName, Method};
use larimar_model::limits::{PAGE_BYTES, PUT_PAGE_BYTES_MAX};
use larimar_wire::xml::{Element, XmlError};
use std::ops::Range;

impl Blob {
    /// Makes a page blob of this many bytes, all zero, in the place of what was there. The size is a multiple of 512.
    ///
    /// # Errors
    /// A container that does not exist, a size that the service refuses, or a condition that does not hold
    /// ([`Error::is_conflict`]).
    pub async fn create_page(&self, size: u64, sequence_number: u64, options: &UploadOptions) -> Result<ETag> {
        let call = self
            .call("PutBlob", Method::PUT)
            .header(upload::X_MS_BLOB_TYPE, "PageBlob")
            .header_text(CONTENT_LENGTH, &size.to_string())?
            .header_text(SEQUENCE_NUMBER, &sequence_number.to_string())?;
        let call = options.condition.put_on(options.put_on(call)?)?;
        properties::etag(&self.send(call).await?.headers)
    }

    /// Writes pages of a page blob. The offset and the number of bytes are multiples of 512, and at most 4 MiB are
    /// written at once.
    ///
    /// # Errors
    /// A blob that does not exist, is not a page blob or is too small, or a number that is none of those above.
    pub async fn write_pages(&self, offset: u64, bytes: impl Into<Bytes>) -> Result<()> {
        let bytes = bytes.into();
        let length = bytes.len() as u64;
        if !offset.is_multiple_of(PAGE_BYTES) || !length.is_multiple_of(PAGE_BYTES) {
            return Err(Error::Invalid(format!("expected an offset and a length in pages of {PAGE_BYTES} bytes")));
        }
        if !(1..=PUT_PAGE_BYTES_MAX).contains(&length) {
            return Err(Error::Invalid(format!("expected from 1 to {PUT_PAGE_BYTES_MAX} bytes of pages")));
        }
        let range = format!("bytes={offset}-{}", offset.saturating_add(length) - 1);
        let call = self.call("PutPage", Method::PUT).parameter("comp", "page").header(PAGE_WRITE, "update");
        self.send(upload::with_content(call.header_text(X_MS_RANGE, &range)?, bytes, false)?).await?;
        Ok(())
    }

    /// The ranges of a page blob within this one that were written, in order; everything else reads as zeros.
    ///
    /// The response lists every range, so a large blob that was written here and there is read piece by piece.
    ///
    /// # Errors
    /// A blob that does not exist, is not a page blob or is smaller, or a condition that does not hold
    /// ([`Error::is_changed`]).
    pub async fn page_ranges(
        &self,
        within: Range<u64>,
        condition: impl Into<BlobCondition>,
    ) -> Result<Vec<Range<u64>>> {
        if within.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call("GetPageRanges", Method::GET).parameter("comp", "pagelist");
        let call = call.header_text(X_MS_RANGE, &format!("bytes={}-{}", within.start, within.end - 1))?;
        let reply = self.send(condition.into().put_on(call)?).await?;
        let not_understood = |error: XmlError| Error::Answer(error.to_string());
        let list = Element::parse_up_to(&reply.body, ELEMENTS_MAX).map_err(not_understood)?;
        let number = |range: &Element, name: &str| range.child_text(name).ok()??.parse::<u64>().ok();
        let read = |range: &Element| Some(number(range, "Start")?..number(range, "End")?.checked_add(1)?);
        let mut ranges = Vec::with_capacity(list.children.len());
        for range in list.children.iter().filter(|child| child.name == "PageRange") {
            let range = read(range).ok_or_else(|| Error::Answer("expected page ranges of numbers".to_owned()))?;
            let range = range.start.max(within.start)..range.end.min(within.end);
            if !range.is_empty() {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }
}

const CONTENT_LENGTH: HeaderName = HeaderName::from_static("x-ms-blob-content-length");
const SEQUENCE_NUMBER: HeaderName = HeaderName::from_static("x-ms-blob-sequence-number");
const PAGE_WRITE: HeaderName = HeaderName::from_static("x-ms-page-write");
const X_MS_RANGE: HeaderName = HeaderName::from_static("x-ms-range");
/// Elements of a response. Every other page of a range of 256 MiB makes 262,144 ranges of three elements.
const ELEMENTS_MAX: usize = 1 << 20;
