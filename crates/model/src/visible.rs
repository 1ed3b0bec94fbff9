//! Texts of users in output: a key or a property may hold any character.

use std::fmt::Write as _;

/// The text without characters that a terminal obeys, or that are invisible: they are shown as escapes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            // Control characters, and those that change the direction of text or have no width.
            _ if character.is_control()
                || matches!(character, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
                || matches!(character, '\u{FEFF}' | '\u{AD}' | '\u{E0000}'..='\u{E007F}') =>
            {
                write!(escaped, "\\u{{{:x}}}", u32::from(character)).expect("a string takes every write");
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_invisible_ones_are_escaped() {
        assert_eq!(escape("Grüße, 世界\\"), "Grüße, 世界\\");
        assert_eq!(escape("a\n\r\t\u{1b}[0m\u{85}"), "a\\n\\r\\t\\u{1b}[0m\\u{85}");
        assert_eq!(escape("\u{202e}\u{feff}\u{200b}"), "\\u{202e}\\u{feff}\\u{200b}");
        assert_eq!(escape(&escape("\u{7}")), escape("\u{7}"));
    }
}
