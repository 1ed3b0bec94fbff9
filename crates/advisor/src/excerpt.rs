//! Texts of users in findings: cut to a length, without characters that a terminal or a log obeys.

use larimar_model::escape;

/// The beginning of a text of at most [`EXCERPT_BYTES_MAX`] bytes, escaped; one that was cut ends with `…`.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    let mut buffer = [0; 4];
    for character in text.chars() {
        let piece = escape(character.encode_utf8(&mut buffer));
        if shown.len() + piece.len() + CUT.len_utf8() > EXCERPT_BYTES_MAX {
            shown.push(CUT);
            break;
        }
        shown.push_str(&piece);
    }
    shown
}

/// A key in quotes.
pub(crate) fn quoted(key: &str) -> String {
    format!("'{}'", excerpt(key))
}

/// Bytes of an excerpt at most.
pub(crate) const EXCERPT_BYTES_MAX: usize = 160;
const CUT: char = '…';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_control_characters_escaped() {
        assert_eq!(excerpt("plain"), "plain");
        assert_eq!(excerpt("a\u{1b}[31m\n\u{202e}"), "a\\u{1b}[31m\\n\\u{202e}");
        let cut = excerpt(&"ü".repeat(1000));
        assert!(cut.len() <= EXCERPT_BYTES_MAX && cut.ends_with('…'), "{cut}");
        let escaped = excerpt(&"\n".repeat(1000));
        assert!(escaped.len() <= EXCERPT_BYTES_MAX && escaped.ends_with("\\n…"), "{escaped}");
    }
}
