//! Continuation tokens: `1!{length}!{text}`, where the text is base64 of a key, safe in URLs and headers.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The token that names this key.
#[must_use]
pub fn encode_token(key: &str) -> String {
    let text: String = STANDARD.encode(key).chars().map(escape).collect();
    format!("1!{}!{text}", text.len())
}

/// The key that a token names. An empty token names the empty key: some clients send one.
///
/// # Errors
/// `InvalidInput` for anything else that this service never gave out.
pub fn decode_token(token: &str) -> Result<String, ErrorReply> {
    if token.is_empty() {
        return Ok(String::new());
    }
    let parts = || {
        let (length, text) = token.strip_prefix("1!")?.split_once('!')?;
        if length.parse() != Ok(text.len()) {
            return None;
        }
        let base64: String = text.chars().map(unescape).collect();
        String::from_utf8(STANDARD.decode(base64).ok()?).ok()
    };
    parts().ok_or(ErrorReply::new(ErrorCode::InvalidInput))
}

const fn escape(c: char) -> char {
    match c {
        '=' => '-',
        '+' => '*',
        '/' => '_',
        other => other,
    }
}

const fn unescape(c: char) -> char {
    match c {
        '-' => '=',
        '*' => '+',
        '_' => '/',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_recorded_token_names_its_row() {
        assert_eq!(encode_token("rkadca2e0d123"), "1!20!cmthZGNhMmUwZDEyMw--");
        assert_eq!(decode_token("1!20!cmthZGNhMmUwZDEyMw--").as_deref(), Ok("rkadca2e0d123"));
        assert_eq!(decode_token("1!0!").as_deref(), Ok(""));
        assert_eq!(decode_token("").as_deref(), Ok(""));
    }

    #[test]
    fn other_texts_are_refused() {
        for token in ["x", "1!", "1!3!YQ--", "2!4!YQ--", "1!4!????", "1!4!/w--"] {
            assert_eq!(decode_token(token).map_err(|e| e.code), Err(ErrorCode::InvalidInput), "{token}");
        }
    }

    proptest! {
        #[test]
        fn every_key_survives(key: String) {
            let token = encode_token(&key);
            prop_assert!(token.bytes().all(|b| b.is_ascii_graphic() && b != b'&' && b != b'+' && b != b'%'));
            prop_assert_eq!(decode_token(&token), Ok(key));
        }

        #[test]
        fn any_token_is_read_or_refused(token: String) {
            let _ = decode_token(&token);
        }
    }
}
