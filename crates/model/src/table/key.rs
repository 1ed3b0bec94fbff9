//! PartitionKey and RowKey: their rules and their order.

use crate::{limits, utf16};
use std::cmp::Ordering;
use std::fmt;

/// Why a text is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// More than 1 KiB in UTF-16.
    #[error("expected at most 512 UTF-16 code units")]
    TooLong,
    /// One of `/ \ # ?` or a control character.
    #[error("expected no '/', '\\', '#', '?' or control character")]
    Forbidden,
}

macro_rules! key_type {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes a text that follows the rules of keys.
            ///
            /// # Errors
            /// A text that is too long, or has forbidden characters.
            pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
                let text = text.into();
                check(&text)?;
                Ok(Self(text))
            }

            /// The key's text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                utf16::compare(&self.0, &other.0)
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    };
}

key_type!(PartitionKey, "The key that tells an entity's partition. Orders by UTF-16 code units.");
key_type!(RowKey, "The key that tells an entity within its partition. Orders by UTF-16 code units.");

/// The two keys of an entity; their order is the order of a scan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    /// The partition.
    pub partition: PartitionKey,
    /// The row within it.
    pub row: RowKey,
}

fn check(text: &str) -> Result<(), KeyError> {
    if text.chars().any(|c| matches!(c, '/' | '\\' | '#' | '?') || c.is_control()) {
        return Err(KeyError::Forbidden);
    }
    if !utf16::fits(text, limits::KEY_UTF16_MAX) {
        return Err(KeyError::TooLong);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d5_keys_at_and_past_their_limits() {
        for text in ["", "a'b", "100%", "a b+c&d", "日本", &"k".repeat(512), &"\u{1F600}".repeat(256)] {
            assert_eq!(RowKey::new(text).map(|k| k.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(RowKey::new("k".repeat(513)), Err(KeyError::TooLong));
        assert_eq!(PartitionKey::new("\u{1F600}".repeat(257)), Err(KeyError::TooLong));
        for text in ["a/b", "a\\b", "a#b", "a?b", "\u{0}", "\u{1f}", "\u{7f}", "\u{9f}", "\t"] {
            assert_eq!(RowKey::new(text), Err(KeyError::Forbidden), "{text:?}");
        }
    }
}
