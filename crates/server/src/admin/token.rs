//! The admin token: a secret text that opens every admin request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use larimar_wire::signature::{AccountKey, Mac};
use std::fmt;

/// The secret that admin requests prove themselves with. Only its code is kept, so that it cannot be shown by mistake.
#[derive(Clone)]
pub struct AdminToken {
    key: AccountKey,
    code: Mac,
}

/// A text that is not an admin token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an admin token: {} to {} printable ASCII characters without spaces", CHARS_MIN, CHARS_MAX)]
pub struct AdminTokenError;

impl AdminToken {
    /// Takes a token as it is sent in the header `Authorization: Bearer TOKEN`.
    ///
    /// # Errors
    /// A text that is too short, too long, or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, AdminTokenError> {
        if !(CHARS_MIN..=CHARS_MAX).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AdminTokenError);
        }
        let key = AccountKey::from_base64(CODE_KEY).expect("the constant is Base64");
        let code = key.mac_of(text);
        Ok(Self { key, code })
    }

    /// The text of a new token, which cannot be guessed.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    #[expect(clippy::disallowed_methods, reason = "this is the source of tokens")]
    pub fn generate() -> std::io::Result<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Whether a text is the token. Takes the same time for every text of a length.
    pub(super) fn is(&self, text: &str) -> bool {
        text.len() <= CHARS_MAX && self.key.mac_of(text).equals(&self.code)
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(hidden)")
    }
}

/// "admin token". Codes have to be of one length, not secret: they never leave the process.
const CODE_KEY: &str = "YWRtaW4gdG9rZW4=";
const CHARS_MIN: usize = 16;
const CHARS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_it() {
        let token = AdminToken::new("0123456789abcdef").expect("a token");
        assert!(token.is("0123456789abcdef"));
        for other in ["", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF", "0123456789abcdef "] {
            assert!(!token.is(other), "{other:?}");
        }
        assert!(!token.is(&"0123456789abcdef".repeat(10_000)));
        assert_eq!(format!("{token:?}"), "AdminToken(hidden)");
    }

    #[test]
    fn generated_tokens_are_tokens_and_differ() {
        let (one, other) = (AdminToken::generate().expect("a token"), AdminToken::generate().expect("a token"));
        assert!(AdminToken::new(&one).is_ok_and(|token| token.is(&one) && !token.is(&other)));
    }

    #[test]
    fn short_long_and_unsendable_texts_are_refused() {
        for text in ["", "short", "with a space in it", "0123456789abcdeü", "0123456789abcdef\n"] {
            assert_eq!(AdminToken::new(text).err(), Some(AdminTokenError), "{text:?}");
        }
        assert!(AdminToken::new(&"x".repeat(256)).is_ok() && AdminToken::new(&"x".repeat(257)).is_err());
    }
}
