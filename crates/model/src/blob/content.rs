//! What a blob says about its bytes, and where they came from.

use crate::{Guid, Timestamp};

/// The headers that a reader of a blob is given with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders {
    /// `Content-Type`; readers are told [`ContentHeaders::TYPE_DEFAULT`] where there is none.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub encoding: Option<String>,
    /// `Content-Language`.
    pub language: Option<String>,
    /// `Content-MD5`: of the whole blob as its writer said or, for Put Blob, as it was computed.
    pub md5: Option<[u8; 16]>,
    /// `Content-Disposition`.
    pub disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
}

impl ContentHeaders {
    /// What a blob without a `Content-Type` is said to be.
    pub const TYPE_DEFAULT: &'static str = "application/octet-stream";
}

/// The last copy that made a blob's content. Copies within the server end before they are answered, so each
/// of them succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyInfo {
    /// The copy's id.
    pub id: Guid,
    /// The address it was copied from.
    pub source: String,
    /// Bytes that were copied, which are all.
    pub length: u64,
    /// When it ended.
    pub completed: Timestamp,
}

impl CopyInfo {
    /// How every copy ended.
    pub const STATUS: &'static str = "success";
}
