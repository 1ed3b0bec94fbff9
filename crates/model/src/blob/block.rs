//! Ids of blocks, and the lists that make a blob of them.

use crate::limits;
use std::fmt;

/// The id of a block, as base64 of at most 64 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(String);

/// Why a text is not a valid block id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockIdError {
    /// The text is not base64.
    #[error("expected base64")]
    Base64,
    /// The text is empty or stands for too many bytes.
    #[error("expected base64 of 1 to 64 bytes")]
    Length,
}

impl BlockId {
    /// Takes the base64 text.
    ///
    /// # Errors
    /// Refuses what is not base64, and what stands for no bytes or more than 64.
    pub fn parse(text: &str) -> Result<Self, BlockIdError> {
        let digits = text.trim_end_matches('=');
        let padding = text.len() - digits.len();
        let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
        if !text.len().is_multiple_of(4) || padding > 2 || !digits.bytes().all(is_digit) {
            return Err(BlockIdError::Base64);
        }
        if digits.is_empty() || text.len() / 4 * 3 - padding > limits::BLOCK_ID_BYTES_MAX {
            return Err(BlockIdError::Length);
        }
        Ok(Self(text.to_owned()))
    }

    /// The base64 text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of the list that Put Block List makes a blob of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockListEntry {
    /// A block of the blob as it is.
    Committed(BlockId),
    /// A block that was put and not committed yet.
    Uncommitted(BlockId),
    /// The uncommitted block of this id, or else the committed one.
    Latest(BlockId),
}

impl BlockListEntry {
    /// The block's id.
    #[must_use]
    pub const fn id(&self) -> &BlockId {
        match self {
            Self::Committed(id) | Self::Uncommitted(id) | Self::Latest(id) => id,
        }
    }
}

/// Which blocks Get Block List returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockListKind {
    /// Those that make up the blob.
    #[default]
    Committed,
    /// Those that were put since.
    Uncommitted,
    /// Both.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_at_and_past_their_limits() {
        for text in ["AA==", "AAA=", "AAAA", "a+/9", &format!("{}==", "A".repeat(86))] {
            assert_eq!(BlockId::parse(text).map(|id| id.to_string()).as_deref(), Ok(text));
        }
        for text in ["A", "AA", "AA=", "A===", "A=AA", "ä===", "AA-_", "AA A", "=AAA"] {
            assert_eq!(BlockId::parse(text), Err(BlockIdError::Base64), "{text}");
        }
        for text in ["", &format!("{}=", "A".repeat(87)), &"A".repeat(88), &"A".repeat(400)] {
            assert_eq!(BlockId::parse(text), Err(BlockIdError::Length), "{text}");
        }
    }
}
