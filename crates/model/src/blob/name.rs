//! Names of containers and blobs: what they may look like.

use crate::resource_name::{ResourceNameError, check};
use crate::{limits, utf16};
use std::fmt;
use std::str::FromStr;

/// A container's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName(String);

impl ContainerName {
    /// The container of blobs whose address names none.
    pub const ROOT: &'static str = "$root";
    /// The container of storage analytics' logs.
    pub const LOGS: &'static str = "$logs";

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The container of blobs whose address names none, `$root`.
    #[must_use]
    pub fn root() -> Self {
        Self(Self::ROOT.to_owned())
    }

    /// The container of storage analytics' logs, `$logs`.
    #[must_use]
    pub fn logs() -> Self {
        Self(Self::LOGS.to_owned())
    }

    /// Whether it is `$root`, whose blobs have no slash in their names.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0 == Self::ROOT
    }
}

impl FromStr for ContainerName {
    type Err = ResourceNameError;

    fn from_str(text: &str) -> Result<Self, ResourceNameError> {
        if !SPECIAL.contains(&text) {
            check(text)?;
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A blob's name. Names are compared as they are spelled and listed by their UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlobName(String);

/// Why a text is not a valid blob name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobNameError {
    /// Empty or too long.
    #[error("expected 1 to 1024 characters")]
    Length,
    /// Too many slashes.
    #[error("expected at most 254 segments between slashes")]
    Segments,
}

impl BlobName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BlobName {
    type Err = BlobNameError;

    fn from_str(text: &str) -> Result<Self, BlobNameError> {
        if text.is_empty() || !utf16::fits(text, limits::BLOB_NAME_UTF16_MAX) {
            return Err(BlobNameError::Length);
        }
        if text.split('/').count() > limits::BLOB_NAME_SEGMENTS_MAX {
            return Err(BlobNameError::Segments);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names that the service gives a meaning, outside of the common rule.
const SPECIAL: [&str; 4] = [ContainerName::ROOT, ContainerName::LOGS, "$web", "$blobchangefeed"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_names_at_and_past_their_limits() {
        for name in ["abc", "1-2", "my-container", &"c".repeat(63), "$root", "$logs", "$web"] {
            assert_eq!(name.parse::<ContainerName>().map(|n| n.to_string()).as_deref(), Ok(name));
        }
        for name in ["", "ab", &"c".repeat(64)] {
            assert_eq!(name.parse::<ContainerName>(), Err(ResourceNameError::Length), "{name}");
        }
        for name in ["-abc", "abc-", "a--b", "Abc", "a_b", "$other", "$Root", "äbc"] {
            assert_eq!(name.parse::<ContainerName>(), Err(ResourceNameError::Characters), "{name}");
        }
        assert!(ContainerName::root().is_root());
    }

    #[test]
    fn blob_names_at_and_past_their_limits() {
        for name in ["a", "a/b c/ä.txt", &"b".repeat(1024), &"ä".repeat(1024), &"s/".repeat(253)] {
            assert_eq!(name.parse::<BlobName>().map(|n| n.to_string()).as_deref(), Ok(name));
        }
        for name in ["", &"b".repeat(1025), &"\u{1F600}".repeat(513)] {
            assert_eq!(name.parse::<BlobName>(), Err(BlobNameError::Length), "{name}");
        }
        assert_eq!("s/".repeat(254).parse::<BlobName>(), Err(BlobNameError::Segments));
    }
}
