//! Downloads: whole blobs or ranges of them, in several requests if they are large.

use super::{Blob, BlobCondition, BlobProperties};
use crate::pipeline::{Call, Reply};
use crate::{ETag, Error, Result, Timestamp};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::header::CONTENT_RANGE;
use http::{HeaderName, Method};
use std::collections::BTreeMap;
use std::ops::{Bound, Range, RangeBounds};

/// The content of a blob, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Download {
    /// The bytes that were asked for, as far as there are so many.
    pub bytes: Bytes,
    /// Bytes of the whole blob.
    pub blob_size: u64,
    /// The version.
    pub etag: ETag,
    /// When content or metadata changed last.
    pub last_modified: Timestamp,
    /// The type of the content, such as `text/plain`.
    pub content_type: String,
    /// Names in lower case, with their values.
    pub metadata: BTreeMap<String, String>,
}

impl Blob {
    /// The whole blob; `None` if it does not exist.
    ///
    /// A large blob is read in several requests, all of them of one version.
    ///
    /// # Errors
    /// A container that does not exist, a blob larger than [the limit](Self::with_download_max), or one that others
    /// change all the time ([`Error::is_changed`]).
    pub async fn download(&self) -> Result<Option<Download>> {
        self.download_within(WHOLE).await
    }

    /// The bytes of a range, as far as the blob has them; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of [`Blob::download`]; an empty range, or one that begins beyond the last byte (status 416, code
    /// `InvalidRange`).
    pub async fn download_range(&self, range: impl RangeBounds<u64>) -> Result<Option<Download>> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        if start >= end {
            return Err(Error::Invalid("expected a range of at least one byte".to_owned()));
        }
        self.download_within(start..end).await
    }

    /// The bytes of a range of one version of the blob, in one request.
    ///
    /// # Errors
    /// A blob that does not exist, a version that is not the current one ([`Error::is_changed`]), or a range that is
    /// empty or reaches beyond the last byte.
    pub async fn download_part(&self, range: Range<u64>, version: &ETag) -> Result<Bytes> {
        if range.is_empty() {
            return Err(Error::Invalid("expected a range of at least one byte".to_owned()));
        }
        let bytes = self.part(range.clone(), BlobCondition::ETag(version.clone())).await?.bytes;
        let expected = range.end - range.start;
        if bytes.len() as u64 != expected {
            return Err(Error::Answer(format!("expected {expected} bytes of a blob, found {}", bytes.len())));
        }
        Ok(bytes)
    }

    async fn download_within(&self, range: Range<u64>) -> Result<Option<Download>> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.download_once(&range).await {
                Err(error) if error.is_changed() && tries < TRIES_MAX => {}
                // An empty blob has no range at all, not even that of the whole.
                Err(error) if error.status() == Some(416) && range == WHOLE => match self.properties().await? {
                    None => return Ok(None),
                    Some(properties) if properties.size == 0 => {
                        return Ok(Some(Download::new(properties, Bytes::new())));
                    }
                    Some(_) if tries < TRIES_MAX => {}
                    Some(_) => return Err(error),
                },
                other => return other,
            }
        }
    }

    /// Downloads a range, if the blob does not change meanwhile.
    async fn download_once(&self, range: &Range<u64>) -> Result<Option<Download>> {
        let bytes_max = self.download_bytes_max.max(1);
        let first_end = range.end.min(range.start.saturating_add(PART_BYTES.min(bytes_max)));
        let first = match self.part(range.start..first_end, BlobCondition::Always).await {
            Err(error) if error.code() == Some("BlobNotFound") => return Ok(None),
            other => other?,
        };
        let end = range.end.min(first.properties.size);
        if end.saturating_sub(range.start) > bytes_max {
            return Err(Error::Invalid(format!(
                "the blob has more than the {bytes_max} bytes that a download may have"
            )));
        }
        let etag = first.properties.etag.clone();
        let starts = (first_end..end).step_by(PART_BYTES as usize);
        let parts = starts.map(|start| {
            let (blob, condition) = (self.clone(), BlobCondition::ETag(etag.clone()));
            async move { blob.part(start..end.min(start + PART_BYTES), condition).await.map(|part| part.bytes) }
        });
        let rest: Vec<Bytes> = stream::iter(parts).buffered(PARTS_AT_ONCE).try_collect().await?;
        let bytes = match rest.is_empty() {
            true => first.bytes,
            false => std::iter::once(first.bytes).chain(rest).collect::<Vec<_>>().concat().into(),
        };
        if bytes.len() as u64 != end - range.start {
            return Err(Error::Answer(format!(
                "expected {} bytes of a blob, found {}",
                end - range.start,
                bytes.len()
            )));
        }
        Ok(Some(Download::new(first.properties, bytes)))
    }

    /// Reads a range that is not empty in one request.
    async fn part(&self, range: Range<u64>, condition: BlobCondition) -> Result<Part> {
        Part::read(self.send(condition.put_on(self.part_call(&range)?)?).await?)
    }

    /// The same from the primary, after a write: a secondary may not have heard of it yet.
    pub(super) async fn part_after_write(&self, range: Range<u64>) -> Result<Part> {
        Part::read(self.send(self.part_call(&range)?.changing()).await?)
    }

    fn part_call(&self, range: &Range<u64>) -> Result<Call> {
        let text = format!("bytes={}-{}", range.start, range.end - 1);
        self.call("GetBlob", Method::GET).header_text(X_MS_RANGE, &text)
    }
}

/// A part of a blob.
pub(super) struct Part {
    properties: BlobProperties,
    pub(super) bytes: Bytes,
}

impl Part {
    fn read(reply: Reply) -> Result<Self> {
        let size = match reply.headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok()) {
            Some(range) => range.rsplit_once('/').and_then(|(_, size)| size.parse().ok()),
            // The whole blob.
            None => Some(reply.body.len() as u64),
        };
        let size = size.ok_or_else(|| Error::Answer("expected the size of a blob after a range".to_owned()))?;
        Ok(Self { properties: BlobProperties::read_of_size(&reply.headers, size)?, bytes: reply.body })
    }
}

impl Download {
    fn new(properties: BlobProperties, bytes: Bytes) -> Self {
        let BlobProperties { size, etag, last_modified, content_type, metadata, .. } = properties;
        Self { bytes, blob_size: size, etag, last_modified, content_type, metadata }
    }
}

const WHOLE: Range<u64> = 0..u64::MAX;
const X_MS_RANGE: HeaderName = HeaderName::from_static("x-ms-range");
/// Bytes of one request, so that it is answered within the time of an attempt also over a slow line.
const PART_BYTES: u64 = 8 << 20;
const PARTS_AT_ONCE: usize = 4;
/// How often a blob may change while it is read.
const TRIES_MAX: u32 = 4;
