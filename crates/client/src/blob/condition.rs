//! The conditions of requests on blobs.

use crate::pipeline::Call;
use crate::{ETag, IfMatch, Result};
use http::header::{IF_MATCH, IF_NONE_MATCH};

/// The condition under which a blob is written or deleted.
///
/// ```
/// use larimar_client::{BlobCondition, ETag};
/// let unchanged: BlobCondition = ETag::new("\"0x8DC0FFEE\"").into();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlobCondition {
    /// None.
    #[default]
    Always,
    /// The blob does not exist yet.
    Missing,
    /// The blob exists, in any version.
    Exists,
    /// The blob is unchanged since it had this ETag.
    ETag(ETag),
}

impl BlobCondition {
    pub(super) fn put_on(&self, call: Call) -> Result<Call> {
        match self {
            Self::Always => Ok(call),
            Self::Missing => Ok(call.header(IF_NONE_MATCH, "*")),
            Self::Exists => Ok(call.header(IF_MATCH, "*")),
            Self::ETag(etag) => call.header_text(IF_MATCH, etag.as_str()),
        }
    }
}

impl From<ETag> for BlobCondition {
    fn from(etag: ETag) -> Self {
        Self::ETag(etag)
    }
}

impl From<&ETag> for BlobCondition {
    fn from(etag: &ETag) -> Self {
        Self::ETag(etag.clone())
    }
}

impl From<IfMatch> for BlobCondition {
    fn from(condition: IfMatch) -> Self {
        match condition {
            IfMatch::Any => Self::Exists,
            IfMatch::ETag(etag) => Self::ETag(etag),
        }
    }
}
