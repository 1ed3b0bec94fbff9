//! Sets of permission letters, as shared access signatures and stored policies have them.

use std::fmt;

/// A set of the letters `a` to `z`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Permissions(u32);

impl Permissions {
    /// Reads letters in any order. `None` if one is not a lower-case letter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.bytes().try_fold(Self(0), |set, letter| Some(Self(set.0 | bit(letter)?)))
    }

    /// Reads letters in any order. `None` if one is not among `known`, or comes twice.
    #[must_use]
    pub fn parse_strict(text: &str, known: &str) -> Option<Self> {
        let set = Self::parse(text)?;
        (text.bytes().all(|letter| known.as_bytes().contains(&letter)) && set.0.count_ones() as usize == text.len())
            .then_some(set)
    }

    /// Whether there is no letter.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this letter is in the set.
    #[must_use]
    pub fn contains(self, letter: u8) -> bool {
        bit(letter).is_some_and(|bit| self.0 & bit != 0)
    }

    /// The letters in the order that `known` has them; others are left out.
    #[must_use]
    pub fn to_text(self, known: &str) -> String {
        known.chars().filter(|&letter| u8::try_from(letter).is_ok_and(|letter| self.contains(letter))).collect()
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permissions({})", self.to_text("abcdefghijklmnopqrstuvwxyz"))
    }
}

const fn bit(letter: u8) -> Option<u32> {
    if letter.is_ascii_lowercase() { Some(1 << (letter - b'a')) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_a_set() {
        let set = Permissions::parse("dura").expect("letters");
        assert_eq!(set.to_text("raud"), "raud");
        assert_eq!(format!("{set:?}"), "Permissions(adru)");
        assert!(set.contains(b'u') && !set.contains(b'x') && !set.contains(b'!'));
        assert!(Permissions::parse("").is_some_and(Permissions::is_empty));
        for text in ["R", "r ", "é", "r,a"] {
            assert_eq!(Permissions::parse(text), None, "{text}");
        }
    }

    #[test]
    fn strict_reading_refuses_unknown_and_repeated_letters() {
        assert_eq!(Permissions::parse_strict("udar", "raud"), Permissions::parse("raud"));
        for text in ["rx", "rr", "r a"] {
            assert_eq!(Permissions::parse_strict(text, "raud"), None, "{text}");
        }
    }
}
