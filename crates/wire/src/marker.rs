//! Markers of listings: where the next page begins. To clients they are opaque, so any text has a marker in
//! letters that need no escape.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The marker of a text.
#[must_use]
pub fn encode(text: &str) -> String {
    format!("{START}{}", URL_SAFE_NO_PAD.encode(text))
}

/// The text of a marker.
///
/// # Errors
/// 400 `OutOfRangeInput` (recorded) for a marker that this server did not write.
pub fn decode(marker: &str) -> Result<String, ErrorReply> {
    let text = marker.strip_prefix(START).and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
    text.and_then(|text| String::from_utf8(text).ok()).ok_or(ErrorReply::new(ErrorCode::OutOfRangeInput))
}

/// What every marker begins with: the version of this form.
const START: &str = "1!";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_texts_are_no_markers() {
        for marker in ["", "1", "1!*", "2!YQ", "1!YQ==", "1!_w", "YQ"] {
            assert_eq!(decode(marker).map_err(|error| error.code), Err(ErrorCode::OutOfRangeInput), "{marker}");
        }
        assert_eq!(decode("1!YQ").as_deref(), Ok("a"));
    }

    proptest! {
        #[test]
        fn a_marker_is_read_as_it_was_written(text: String) {
            let marker = encode(&text);
            prop_assert!(marker.bytes().all(|byte| byte == b'!' || crate::uri::is_unreserved(byte)));
            prop_assert_eq!(decode(&marker), Ok(text));
        }

        #[test]
        fn any_text_is_read_or_refused(marker in "(1!)?[A-Za-z0-9_+/= é-]{0,16}") {
            if let Ok(text) = decode(&marker) {
                prop_assert_eq!(encode(&text), marker);
            }
        }
    }
}
