//! Guids: 16 bytes, spelled 8-4-4-4-12 in lower case.

use std::fmt;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// A Guid. Orders by its spelling, which is the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Reads the form 8-4-4-4-12 in either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // The other forms that `uuid` reads, such as braces or no dashes, have other lengths.
        let uuid = Uuid::try_parse(text).ok().filter(|_| text.len() == Hyphenated::LENGTH)?;
        Some(Self(uuid.into_bytes()))
    }

    /// Appends the Guid's text.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    }

    const fn hyphenated(self) -> Hyphenated {
        Uuid::from_bytes(self.0).hyphenated()
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hyphenated().fmt(f)
    }
}

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
            "urn:uuid:c9da6455-213d-42c9-9a79-3e9149a57833",
            "c9da6455-213d42c9-9a79-3e91-49a57833",
            "c9da6455213d-42c9-9a79-3e9149a57833-",
            "c9da6455-213d-42c9-9a79-3e9149a5783é",
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
