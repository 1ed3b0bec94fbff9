//! Tags of blobs: pairs that are kept apart from metadata.

use crate::limits;

/// At most ten pairs, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

/// Why a pair is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagsError {
    /// There are ten already.
    #[error("expected at most 10 tags")]
    Count,
    /// A key is empty, too long or has another character.
    #[error("expected a key of 1 to 128 letters, digits, spaces and + - . / : = _")]
    Key,
    /// A value is too long or has another character.
    #[error("expected a value of at most 256 letters, digits, spaces and + - . / : = _")]
    Value,
    /// A key was given before.
    #[error("expected each key once")]
    Duplicate,
}

impl Tags {
    /// No tags.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a tag.
    ///
    /// # Errors
    /// The rule that the tag breaks; the tags are then unchanged.
    pub fn insert(&mut self, key: &str, value: &str) -> Result<(), TagsError> {
        if key.is_empty() || key.len() > limits::TAG_KEY_CHARS_MAX || !key.bytes().all(is_allowed) {
            return Err(TagsError::Key);
        }
        if value.len() > limits::TAG_VALUE_CHARS_MAX || !value.bytes().all(is_allowed) {
            return Err(TagsError::Value);
        }
        let Err(at) = self.0.binary_search_by(|(other, _)| other.as_str().cmp(key)) else {
            return Err(TagsError::Duplicate);
        };
        if self.0.len() == limits::TAGS_MAX {
            return Err(TagsError::Count);
        }
        self.0.insert(at, (key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// The tags, in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The value of a tag.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(other, _)| other.as_str().cmp(key)).ok()?;
        Some(self.0[at].1.as_str())
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

const fn is_allowed(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b' ' | b'+' | b'-' | b'.' | b'/' | b':' | b'=' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Result<Tags, TagsError> {
        let mut tags = Tags::new();
        pairs.iter().try_for_each(|(key, value)| tags.insert(key, value))?;
        Ok(tags)
    }

    #[test]
    fn tags_are_in_the_order_of_their_keys() {
        let tags = tags(&[("b", "2"), ("a", ""), ("B", "a b+c-d.e/f:g=h_i")]).expect("three tags");
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("B", "a b+c-d.e/f:g=h_i"), ("a", ""), ("b", "2")]);
        assert_eq!(tags.len(), 3);
    }

    #[test]
    fn each_rule_has_its_error() {
        let (key, value) = ("k".repeat(128), "v".repeat(256));
        assert!(tags(&[(&key, &value)]).is_ok());
        for (pairs, error) in [
            (vec![("", "v")], TagsError::Key),
            (vec![("a&b", "v")], TagsError::Key),
            (vec![(value.as_str(), "v")], TagsError::Key),
            (vec![("a", "ä")], TagsError::Value),
            (vec![("a", &"v".repeat(257))], TagsError::Value),
            (vec![("a", "1"), ("a", "2")], TagsError::Duplicate),
        ] {
            assert_eq!(tags(&pairs), Err(error), "{pairs:?}");
        }
        let keys: Vec<String> = (0..11).map(|n| format!("k{n}")).collect();
        let pairs: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "")).collect();
        assert!(tags(&pairs[..10]).is_ok());
        assert_eq!(tags(&pairs), Err(TagsError::Count));
    }
}
