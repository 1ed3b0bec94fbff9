//! The properties of a blob, from the headers of an answer.

use super::ContentHeaders;
use crate::{ETag, Error, Result, Timestamp, metadata};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, ETAG, LAST_MODIFIED};
use std::collections::BTreeMap;

/// The kinds of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlobKind {
    /// Written as a whole.
    Block,
    /// Grows at its end.
    Append,
    /// Written in pages, anywhere.
    Page,
}

/// What the service knows of a blob besides its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobProperties {
    /// Bytes of the content.
    pub size: u64,
    /// The version.
    pub etag: ETag,
    /// When content or metadata changed last.
    pub last_modified: Timestamp,
    /// The type of the content, such as `text/plain`.
    pub content_type: String,
    /// The MD5 of the content in base64, if the service keeps it.
    pub content_md5: Option<String>,
    /// The headers that the blob is served with, type and MD5 among them.
    pub content_headers: ContentHeaders,
    /// The kind of the blob.
    pub kind: BlobKind,
    /// Names in lower case, with their values.
    pub metadata: BTreeMap<String, String>,
}

impl BlobProperties {
    /// Reads the headers of an answer that is about the whole blob.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self> {
        let size = text(headers, CONTENT_LENGTH.as_str()).and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| Error::Answer("expected the size of a blob".to_owned()))?;
        Self::read_of_size(headers, size)
    }

    /// Reads the headers of an answer whose length is not the blob's.
    pub(super) fn read_of_size(headers: &HeaderMap, size: u64) -> Result<Self> {
        let last_modified = text(headers, LAST_MODIFIED.as_str()).and_then(time);
        let kind = text(headers, "x-ms-blob-type").and_then(BlobKind::parse);
        let content_headers = ContentHeaders::read(headers);
        Ok(Self {
            size,
            etag: etag(headers)?,
            last_modified: last_modified.ok_or_else(|| Error::Answer("expected the time of a blob".to_owned()))?,
            content_type: content_headers.content_type.clone().unwrap_or_default(),
            content_md5: content_headers.content_md5.clone(),
            content_headers,
            kind: kind.ok_or_else(|| Error::Answer("expected the kind of a blob".to_owned()))?,
            metadata: metadata::read(headers),
        })
    }
}

impl BlobKind {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "BlockBlob" => Some(Self::Block),
            "AppendBlob" => Some(Self::Append),
            "PageBlob" => Some(Self::Page),
            _ => None,
        }
    }
}

/// The ETag of an answer.
pub(super) fn etag(headers: &HeaderMap) -> Result<ETag> {
    let etag = text(headers, ETAG.as_str()).map(ETag::new);
    etag.ok_or_else(|| Error::Answer("expected the ETag of a blob".to_owned()))
}

pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

pub(super) fn time(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text).ok().map(Timestamp::from)
}
