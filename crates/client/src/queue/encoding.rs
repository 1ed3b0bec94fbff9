//! How the text of a message stands on the wire.

use crate::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_model::limits::MESSAGE_BYTES_MAX;
use std::borrow::Cow;

/// The text of messages as it is, or in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Base64,
}

impl Encoding {
    /// A text as it is sent.
    pub(super) fn encode(self, text: &str) -> Result<Cow<'_, str>> {
        let encoded = match self {
            Self::Plain => Cow::Borrowed(text),
            Self::Base64 => Cow::Owned(STANDARD.encode(text)),
        };
        if encoded.len() > MESSAGE_BYTES_MAX {
            let found = encoded.len();
            return Err(Error::Invalid(format!(
                "a message has at most {MESSAGE_BYTES_MAX} bytes, and this has {found}"
            )));
        }
        if !encoded.chars().all(larimar_wire::xml::is_xml_char) {
            return Err(Error::Invalid("a message of plain text has only the characters of XML".to_owned()));
        }
        Ok(encoded)
    }

    /// A text as it was put, or as it came if it is not of this encoding.
    pub(super) fn decode(self, text: String) -> Result<String, String> {
        match self {
            Self::Plain => Ok(text),
            Self::Base64 => {
                STANDARD.decode(text.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_texts_are_bounded_as_they_stand_on_the_wire() {
        let longest = "a".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(Encoding::Plain.encode(&longest).expect("it fits").len(), MESSAGE_BYTES_MAX);
        assert!(Encoding::Plain.encode(&format!("{longest}a")).is_err());
        assert!(Encoding::Base64.encode(&"a".repeat(48 * 1024)).is_ok());
        assert!(Encoding::Base64.encode(&"a".repeat(48 * 1024 + 1)).is_err());
    }

    #[test]
    fn x1_what_is_not_of_the_encoding_is_left_as_it_is() {
        assert!(matches!(Encoding::Plain.encode("\u{1}"), Err(Error::Invalid(_))));
        let sent = Encoding::Base64.encode("\u{1}ü").expect("any character").into_owned();
        assert_eq!(Encoding::Base64.decode(sent), Ok("\u{1}ü".to_owned()));
        for other in ["plain text", "/w=="] {
            assert_eq!(Encoding::Base64.decode(other.to_owned()), Err(other.to_owned()));
        }
    }
}
