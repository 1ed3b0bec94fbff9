//! Where the texts end that start with a prefix, in the order of the service: by UTF-16 code units.

/// The least text that is greater than every text with this prefix; none, if there is no greater text.
///
/// Characters beyond U+FFFF are two code units from D800 to DFFF, so they come after U+D7FF and before U+E000.
pub(super) fn end(prefix: &str) -> Option<String> {
    // Nothing with the prefix `a\u{FFFF}` is as great as `b`, and nothing lies between: no unit is greater than FFFF.
    let prefix = prefix.trim_end_matches('\u{FFFF}');
    let last = prefix.chars().next_back()?;
    let mut end = prefix[..prefix.len() - last.len_utf8()].to_owned();
    end.push(match last {
        '\u{D7FF}' => '\u{10000}',
        '\u{10FFFF}' => '\u{E000}',
        _ => char::from_u32(u32::from(last) + 1).expect("the character before a gap was handled"),
    });
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_step_over_what_is_no_character() {
        for (prefix, expected) in [
            ("a", Some("b")),
            ("ab", Some("ac")),
            ("", None),
            ("\u{D7FF}", Some("\u{10000}")),
            ("\u{FFFE}", Some("\u{FFFF}")),
            ("\u{10FFFF}", Some("\u{E000}")),
            ("a\u{FFFF}", Some("b")),
            ("a\u{FFFF}\u{FFFF}", Some("b")),
            ("\u{FFFF}", None),
            ("\u{1F600}", Some("\u{1F601}")),
            ("\u{103FF}", Some("\u{10400}")),
        ] {
            assert_eq!(end(prefix).as_deref(), expected, "{prefix:?}");
        }
    }
}
