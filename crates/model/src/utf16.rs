//! Order and length of text as the service counts them: in UTF-16 code units.
//!
//! Keys and strings compare by UTF-16 code unit (.NET's ordinal order). UTF-8 bytes give the same order
//! except where a character beyond U+FFFF (lead byte F0–F4) meets one of U+E000–U+FFFF (lead byte EE or
//! EF): in UTF-16 the former is written with surrogates (D800–DFFF) and comes first. Ranking the lead
//! bytes EE and EF after F4 therefore turns byte order into UTF-16 order.

use std::cmp::Ordering;

/// Compares two strings by UTF-16 code units.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    // Long common beginnings are passed over in words.
    while let (Some((x, rest_a)), Some((y, rest_b))) = (a.split_first_chunk::<8>(), b.split_first_chunk::<8>())
        && x == y
    {
        (a, b) = (rest_a, rest_b);
    }
    match a.iter().zip(b).find(|(x, y)| x != y) {
        Some((&x, &y)) => rank(x).cmp(&rank(y)),
        None => a.len().cmp(&b.len()),
    }
}

/// Maps a byte of UTF-8 so that mapped bytes compare in UTF-16 order.
const fn rank(byte: u8) -> u8 {
    match byte {
        0xEE | 0xEF => byte | 0x10,
        _ => byte,
    }
}

/// The number of UTF-16 code units in a string.
#[must_use]
pub fn len(text: &str) -> usize {
    // One unit for each character, and a second one for each beyond U+FFFF (four bytes in UTF-8).
    text.bytes().filter(|b| b & 0xC0 != 0x80).count() + text.bytes().filter(|b| *b >= 0xF0).count()
}

/// Whether `len(text) <= max`, without counting if the byte length already decides.
#[must_use]
pub fn fits(text: &str, max: usize) -> bool {
    text.len() <= max || len(text) <= max
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn astral_characters_sort_before_the_private_use_area() {
        assert_eq!(compare("\u{1F600}", "\u{E000}"), Ordering::Less);
        assert_eq!(compare("\u{FFFF}", "\u{10000}"), Ordering::Greater);
        assert_eq!(compare("\u{D7FF}", "\u{10000}"), Ordering::Less);
    }

    proptest! {
        #[test]
        fn compares_as_utf16_code_units_do(a: String, b: String) {
            prop_assert_eq!(compare(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }

        #[test]
        fn counts_as_utf16_code_units_do(a: String) {
            prop_assert_eq!(len(&a), a.encode_utf16().count());
        }
    }
}
