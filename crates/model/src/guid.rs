//! Guids: 16 bytes, spelled 8-4-4-4-12 in lower case.

use std::fmt;

/// A Guid. Orders by its spelling, which is the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Reads the form 8-4-4-4-12 in either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 36 {
            return None;
        }
        let mut bytes = [0; 16];
        let mut filled = 0;
        let mut rest = text;
        while let [first, tail @ ..] = rest {
            if DASHES.contains(&(36 - rest.len())) {
                (*first == b'-').then_some(())?;
                rest = tail;
                continue;
            }
            let [second, tail @ ..] = tail else { return None };
            bytes[filled] = hex(*first)? << 4 | hex(*second)?;
            filled += 1;
            rest = tail;
        }
        Some(Self(bytes))
    }

    /// Appends the Guid's text.
    pub fn write(self, out: &mut Vec<u8>) {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(36);
        self.write(&mut out);
        f.write_str(std::str::from_utf8(&out).expect("the text is ASCII"))
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
