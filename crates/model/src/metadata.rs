//! The name-value pairs that users keep with queues, containers and blobs.

use crate::limits;
use std::collections::BTreeMap;

/// Pairs in the order in which they were given. Names keep their spelling and compare without case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pairs: Vec<(String, String)>,
    bytes: usize,
    /// Where each name is, in lower case, once there are many.
    places: BTreeMap<String, usize>,
}

/// Pairs that are looked through one by one.
const FEW_PAIRS: usize = 16;

/// Why a pair is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A name has no characters.
    #[error("expected a name of at least one character")]
    EmptyName,
    /// A name is not a C# identifier.
    #[error("expected a name of letters, digits and underscores, no digit first")]
    Name,
    /// A name was given before, perhaps in another spelling.
    #[error("expected each name once")]
    Duplicate,
    /// A value holds what a header cannot.
    #[error("expected a value of printable ASCII characters")]
    Value,
    /// The pairs are too large together.
    #[error("expected at most 8 KiB of names and values")]
    TooLarge,
}

impl Metadata {
    /// No pairs.
    #[must_use]
    pub const fn new() -> Self {
        Self { pairs: Vec::new(), bytes: 0, places: BTreeMap::new() }
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// The rule that the pair breaks; the metadata is then unchanged.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), MetadataError> {
        if name.is_empty() {
            return Err(MetadataError::EmptyName);
        }
        if !is_identifier(name) {
            return Err(MetadataError::Name);
        }
        if self.get(name).is_some() {
            return Err(MetadataError::Duplicate);
        }
        if !value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~')) {
            return Err(MetadataError::Value);
        }
        let bytes = self.bytes + name.len() + value.len();
        if bytes > limits::METADATA_BYTES_MAX {
            return Err(MetadataError::TooLarge);
        }
        self.bytes = bytes;
        self.pairs.push((name.to_owned(), value.to_owned()));
        if self.pairs.len() > FEW_PAIRS {
            let known = self.places.len();
            let new = self.pairs.iter().enumerate().skip(known);
            self.places.extend(new.map(|(place, (name, _))| (name.to_ascii_lowercase(), place)));
        }
        Ok(())
    }

    /// The value of a name in any spelling.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = if self.places.is_empty() {
            self.pairs.iter().find(|(other, _)| other.eq_ignore_ascii_case(name))
        } else {
            self.places.get(&name.to_ascii_lowercase()).map(|place| &self.pairs[*place])
        };
        found.map(|(_, value)| value.as_str())
    }

    /// The pairs, in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The bytes of all names and values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are no pairs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Whether both hold the same pairs, in whatever order and with names in whatever spelling.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.pairs.len() == other.pairs.len() && self.iter().all(|(name, value)| other.get(name) == Some(value))
    }
}

/// Whether a text is a C# identifier. Only ASCII can come in a header's name.
fn is_identifier(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.bytes().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_bounded_and_pairs_are_not() {
        let mut metadata = Metadata::new();
        for number in 0..1300 {
            assert_eq!(metadata.insert(&format!("n{number:04}"), "v"), Ok(()), "{number}");
        }
        assert_eq!((metadata.get("N0007"), metadata.get("n1299"), metadata.get("n1300")), (Some("v"), Some("v"), None));
        assert_eq!(metadata.insert("N0007", "w"), Err(MetadataError::Duplicate));
        assert_eq!(metadata.iter().len(), 1300);
        assert_eq!(metadata.insert("long", &"v".repeat(400)), Err(MetadataError::TooLarge));
        assert!(metadata.is_same(&metadata.clone()));
    }

    fn metadata(pairs: &[(&str, &str)]) -> Result<Metadata, MetadataError> {
        let mut metadata = Metadata::new();
        pairs.iter().try_for_each(|(name, value)| metadata.insert(name, value))?;
        Ok(metadata)
    }

    #[test]
    fn names_keep_their_spelling_and_compare_without_case() {
        let metadata = metadata(&[("Owner", "me"), ("a_1", "")]).expect("two pairs");
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("Owner", "me"), ("a_1", "")]);
        assert_eq!(metadata.get("OWNER"), Some("me"));
        assert_eq!(metadata.get("other"), None);
    }

    #[test]
    fn each_rule_has_its_error() {
        for (pairs, error) in [
            (vec![("", "v")], MetadataError::EmptyName),
            (vec![("1a", "v")], MetadataError::Name),
            (vec![("a-b", "v")], MetadataError::Name),
            (vec![("ä", "v")], MetadataError::Name),
            (vec![("a", "1"), ("A", "2")], MetadataError::Duplicate),
            (vec![("a", "\u{7f}")], MetadataError::Value),
            (vec![("a", "ü")], MetadataError::Value),
        ] {
            assert_eq!(metadata(&pairs), Err(error), "{pairs:?}");
        }
    }

    #[test]
    fn eight_kibibytes_fit_and_a_byte_more_does_not() {
        let value = "v".repeat(limits::METADATA_BYTES_MAX - 1);
        assert!(metadata(&[("a", &value)]).is_ok());
        assert_eq!(metadata(&[("ab", &value)]), Err(MetadataError::TooLarge));
        assert_eq!(metadata(&[("a", &value), ("b", "")]), Err(MetadataError::TooLarge));
    }

    #[test]
    fn order_and_spelling_do_not_make_a_difference() {
        let one = metadata(&[("a", "1"), ("b", "2")]).expect("two pairs");
        assert!(one.is_same(&metadata(&[("B", "2"), ("a", "1")]).expect("two pairs")));
        assert!(!one.is_same(&metadata(&[("a", "1"), ("b", "3")]).expect("two pairs")));
        assert!(!one.is_same(&metadata(&[("a", "1")]).expect("a pair")));
    }
}
