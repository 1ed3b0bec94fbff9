//! Which texts are names of properties that a filter may speak of.

/// A text that is not a name of a property in a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a property name of at most 255 letters, digits and underscores, no digit first, found '{0}'")]
pub struct ColumnError(String);

/// Words that mean something else in a filter.
const WORDS: [&str; 20] = [
    "and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le", "true", "false", "null", "add", "sub", "mul", "div", "mod",
    "NaN", "INF", "in",
];

const UTF16_MAX: usize = 255;

pub(super) fn check(name: &str) -> Result<(), ColumnError> {
    let mut chars = name.chars();
    let starts_well = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    let fits = name.len() <= UTF16_MAX || name.encode_utf16().count() <= UTF16_MAX;
    if starts_well && fits && chars.all(|c| c == '_' || c.is_alphanumeric()) && !is_word(name) {
        return Ok(());
    }
    Err(ColumnError(name.chars().take(64).collect()))
}

/// The same for names in ASCII, in a form that constants may call.
pub(super) const fn is_plain(name: &str) -> bool {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > UTF16_MAX || bytes[0].is_ascii_digit() || is_word(name) {
        return false;
    }
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'_' && !bytes[at].is_ascii_alphanumeric() {
            return false;
        }
        at += 1;
    }
    true
}

const fn is_word(name: &str) -> bool {
    let mut at = 0;
    while at < WORDS.len() {
        if is_same(WORDS[at], name) {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether two texts are equal, for use in constants.
pub(crate) const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_names_are_identifiers_and_no_words_of_the_language() {
        for name in ["a", "_x1", "LastName", "inn", "Not", &"n".repeat(255)] {
            assert!(check(name).is_ok() && is_plain(name), "{name}");
        }
        for name in ["", "1a", "a-b", "a b", "a.b", "@x", "a'", "not", "INF", "in", &"n".repeat(256)] {
            assert!(check(name).is_err() && !is_plain(name), "{name}");
        }
        for name in ["Größe", "名前", &"ü".repeat(255)] {
            assert!(check(name).is_ok() && !is_plain(name), "{name}");
        }
    }
}
