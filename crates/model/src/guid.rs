//! Guids: 16 bytes, spelled 8-4-4-4-12 in lower case.

use std::fmt;

/// A Guid. Orders by its spelling, which is the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Reads the form 8-4-4-4-12 in either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 16];
        for (byte, place) in bytes.iter_mut().zip(PLACES) {
            *byte = hex(text[place])? << 4 | hex(text[place + 1])?;
        }
        DASHES.iter().all(|place| text[*place] == b'-').then_some(Self(bytes))
    }

    /// Appends the Guid's text.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text());
    }

    fn text(self) -> [u8; 36] {
        let mut text = [b'-'; 36];
        for (byte, place) in self.0.into_iter().zip(PLACES) {
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).expect("the text is ASCII"))
    }
}

/// The value of a hexadecimal digit.
pub(crate) const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// Where the digits of each byte stand in the text.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
/// Where the dashes stand in the text.
const DASHES: [usize; 4] = [8, 13, 18, 23];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn upper_case_is_read_and_lower_case_written() {
        let guid = Guid::parse("C9DA6455-213D-42C9-9A79-3E9149A57833").expect("a guid");
        assert_eq!(guid.to_string(), "c9da6455-213d-42c9-9a79-3e9149a57833");
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "c9da6455213d42c99a793e9149a57833",
            "{c9da6455-213d-42c9-9a79-3e9149a57833}",
            "c9da6455-213d-42c9-9a79-3e9149a5783g",
        ] {
            assert_eq!(Guid::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes: [u8; 16]) {
            prop_assert_eq!(Guid::parse(&Guid(bytes).to_string()), Some(Guid(bytes)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = Guid::parse(&text);
        }
    }
}
