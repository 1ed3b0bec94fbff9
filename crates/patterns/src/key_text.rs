//! Text as part of a key: any text can be written so that the service takes it, and sorts as it did.
//!
//! The service refuses `/`, `\`, `#`, `?` and control characters in keys, and compares keys by UTF-16 code units. A key
//! of several parts also needs a sign that ends a part and sorts before everything that could go on with it. [`escape`]
//! provides both: it writes what is refused, space, `!` and a few neighbours by a sign and two digits, chosen so
//! that the order stays the same.
//!
//! ```text
//! written        as            because
//! U+0000 … #     "00 … "23     refused; and `!` is then free to end a part
//! . and /        .. and .2f    `/` is refused, and has to stay between `.` and `0`
//! > and ?        >3e and >3f   `?` is refused
//! [ and \        [5b and [5c   `\` is refused
//! ~ … U+009F     ~7e … ~9f     control characters are refused
//! ```

/// The longest key that the service takes, in UTF-16 code units: 1 KiB.
pub const KEY_UTF16_MAX: usize = 512;

/// Why a text is not a key, or no key of the kind asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The service refuses this character in keys.
    #[error("a key cannot hold {0:?}")]
    Forbidden(char),
    /// The key is longer than the service takes.
    #[error("a key has at most 512 UTF-16 code units, found {0}")]
    TooLong(usize),
    /// The number has more digits than its part of the key.
    #[error("expected a number of at most {digits} digits, found {value}")]
    TooLarge {
        /// How many digits there is room for.
        digits: usize,
        /// The number.
        value: u64,
    },
    /// The key was not made by what now reads it.
    #[error("expected {expected} in the key '{key}'")]
    Malformed {
        /// What should be there.
        expected: &'static str,
        /// The whole key.
        key: String,
    },
}

impl KeyError {
    pub(crate) fn malformed(expected: &'static str, key: &str) -> Self {
        Self::Malformed { expected, key: key.chars().take(KEY_UTF16_MAX).collect() }
    }
}

/// Checks that the service takes a text as PartitionKey or RowKey.
///
/// ```
/// use larimar_patterns::key_text::{KeyError, check};
/// assert_eq!(check("000123_2012"), Ok(()));
/// assert_eq!(check("R&D/Labs"), Err(KeyError::Forbidden('/')));
/// ```
///
/// # Errors
/// A character that the service refuses, or more than 512 UTF-16 code units.
pub fn check(key: &str) -> Result<(), KeyError> {
    if let Some(refused) = key.chars().find(|c| is_forbidden(*c)) {
        return Err(KeyError::Forbidden(refused));
    }
    match key.encode_utf16().count() {
        0..=KEY_UTF16_MAX => Ok(()),
        units => Err(KeyError::TooLong(units)),
    }
}

/// Writes any text with characters that keys may hold, in a way that keeps the order of texts.
///
/// ```
/// use larimar_patterns::key_text::{escape, unescape};
/// assert_eq!(escape("Sales"), "Sales");
/// assert_eq!(escape("R&D/Labs v2.1"), "R&D.2fLabs\"20v2..1");
/// assert_eq!(unescape("R&D.2fLabs\"20v2..1").as_deref(), Ok("R&D/Labs v2.1"));
/// ```
#[must_use]
pub fn escape(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    escape_into(&mut key, text);
    key
}

pub(crate) fn escape_into(key: &mut String, text: &str) {
    for c in text.chars() {
        match (sign(c), c) {
            (None, _) => key.push(c),
            (Some(_), '.') => key.push_str(".."),
            (Some(sign), _) => {
                key.push(sign);
                let code = u32::from(c);
                key.extend([code >> 4, code & 15].map(|digit| char::from_digit(digit, 16).unwrap_or('0')));
            }
        }
    }
}

/// Reads what [`escape`] wrote.
///
/// # Errors
/// A text that [`escape`] does not write.
pub fn unescape(key: &str) -> Result<String, KeyError> {
    let mut text = String::with_capacity(key.len());
    let mut rest = key.chars();
    let malformed = || KeyError::malformed("escaped text", key);
    while let Some(c) = rest.next() {
        if !SIGNS.contains(c) {
            if sign(c).is_some() {
                return Err(malformed());
            }
            text.push(c);
            continue;
        }
        let first = rest.next().ok_or_else(malformed)?;
        if (c, first) == ('.', '.') {
            text.push('.');
            continue;
        }
        let digits: String = [Some(first), rest.next()].into_iter().flatten().collect();
        let code = u32::from_str_radix(&digits, 16).map_err(|_| malformed())?;
        let found =
            char::from_u32(code).filter(|found| *found != '.' && sign(*found) == Some(c)).ok_or_else(malformed)?;
        // Only what is written in lower case and without a sign.
        if digits != format!("{code:02x}") {
            return Err(malformed());
        }
        text.push(found);
    }
    Ok(text)
}

/// Writes any text as a segment of a blob's name. Segments of dots have a meaning for proxies between a client and
/// a service, and the service would rather have none that ends in one: `.` is written by its code.
pub(crate) fn segment(text: &str) -> String {
    escape(text).replace("..", ".2e")
}

/// Reads what [`segment`] wrote.
pub(crate) fn from_segment(segment: &str) -> Option<String> {
    unescape(&segment.replace(".2e", "..")).ok().filter(|text| self::segment(text) == segment)
}

/// The sign that stands before a character's code, if it is not written as itself.
const fn sign(c: char) -> Option<char> {
    match c {
        '\0'..='#' => Some('"'),
        '.' | '/' => Some('.'),
        '>' | '?' => Some('>'),
        '[' | '\\' => Some('['),
        '~'..='\u{9f}' => Some('~'),
        _ => None,
    }
}

const SIGNS: &str = "\".>[~";

const fn is_forbidden(c: char) -> bool {
    matches!(c, '/' | '\\' | '#' | '?' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t11_segments_of_blob_names_have_no_trailing_dots_and_are_read_again() {
        for text in ["", ".", "..", "...", "a.", ".2e", "..2e", "./", "/.", ".2f", "a/b", "e.2", "ü.\u{10FFFD}"] {
            let segment = segment(text);
            assert!(!segment.ends_with('.') && !segment.contains('/'), "{segment}");
            assert_eq!(from_segment(&segment).as_deref(), Some(text), "{segment}");
        }
        for other in ["..", "a..", "a/b", ".2E", ".2"] {
            assert_eq!(from_segment(other), None, "{other}");
        }
    }
}
