//! ETags, and the conditions of writes on an existing entity.

use std::fmt;

/// The version of an entity as the service spells it. It is opaque: only equality means something.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ETag(String);

impl ETag {
    /// The ETag of this text, as the service gave it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The condition of a write on an existing entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// The entity exists, in any version: the last writer wins.
    Any,
    /// The entity is unchanged since it had this ETag.
    ETag(ETag),
}

impl IfMatch {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::ETag(etag) => etag.as_str(),
        }
    }
}

impl From<ETag> for IfMatch {
    fn from(etag: ETag) -> Self {
        Self::ETag(etag)
    }
}

impl From<&ETag> for IfMatch {
    fn from(etag: &ETag) -> Self {
        Self::ETag(etag.clone())
    }
}
