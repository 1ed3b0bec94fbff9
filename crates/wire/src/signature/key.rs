//! An account's key, ready to sign, and the codes it makes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// The account of development set-ups.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";

/// Its key, public by design: every emulator of the service has it, so that tools need no configuration.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A secret key of an account. Its HMAC state is made once and copied for each signature.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

/// A text that is not an account key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an account key in base64")]
pub struct AccountKeyError;

impl AccountKey {
    /// Takes a key in base64.
    ///
    /// # Errors
    /// A text that is not base64, or empty.
    pub fn from_base64(text: &str) -> Result<Self, AccountKeyError> {
        let key = STANDARD.decode(text.trim()).map_err(|_| AccountKeyError)?;
        if key.is_empty() {
            return Err(AccountKeyError);
        }
        Ok(Self(Hmac::new_from_slice(&key).expect("HMAC takes keys of any length")))
    }

    /// Whether this is [`DEVELOPMENT_KEY`], which is public.
    #[must_use]
    pub fn is_well_known(&self) -> bool {
        let well_known = Self::from_base64(DEVELOPMENT_KEY).expect("the constant is base64");
        self.mac_of("").equals(&well_known.mac_of(""))
    }

    /// The code of the bytes that `feed` hands over.
    pub(crate) fn mac(&self, feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Mac {
        let mut state = self.0.clone();
        feed(&mut |bytes| state.update(bytes));
        Mac(state.finalize().into_bytes().into())
    }

    /// The code of a text.
    #[must_use]
    pub fn mac_of(&self, text: &str) -> Mac {
        self.mac(|feed| feed(text.as_bytes()))
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(hidden)")
    }
}

/// An HMAC-SHA256 code. Comparison is in constant time, so there is no `==`.
#[derive(Clone, Copy)]
pub struct Mac([u8; 32]);

impl Mac {
    /// Reads a code in base64.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        // 32 bytes are 44 characters; the decoder wants room for a whole number of quartets.
        let mut bytes = [0; 33];
        if text.len() != 44 || STANDARD.decode_slice(text, &mut bytes) != Ok(32) {
            return None;
        }
        bytes.first_chunk().copied().map(Self)
    }

    /// The code in base64.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Compares in constant time.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mac(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_rfc_4231() {
        // Test cases 1 and 2, key and code in base64.
        for (key, text, code) in [
            ("CwsLCwsLCwsLCwsLCwsLCwsLCws=", "Hi There", "sDRMYdjbOFNcqK/OrwvxK4gdwgDJgz2nJuk3bC4yz/c="),
            ("SmVmZQ==", "what do ya want for nothing?", "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="),
        ] {
            let key = AccountKey::from_base64(key).expect("a key");
            assert_eq!(key.mac_of(text).to_base64(), code);
            assert!(Mac::from_base64(code).expect("a code").equals(&key.mac_of(text)));
        }
    }

    #[test]
    fn other_texts_are_no_keys_and_no_codes() {
        for text in ["", "not base64!", "YQ", "  "] {
            assert!(AccountKey::from_base64(text).is_err(), "{text}");
        }
        let (short, long) = ("A".repeat(40), format!("{}=", "A".repeat(47)));
        for text in ["", &*short, &*long, &"!".repeat(44), &"A".repeat(44)] {
            assert!(Mac::from_base64(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_well_known_key_is_known_in_any_spelling() {
        for (key, expected) in [
            (DEVELOPMENT_KEY.to_owned(), true),
            (format!(" {DEVELOPMENT_KEY}\n"), true),
            ("SmVmZQ==".to_owned(), false),
            (DEVELOPMENT_KEY.replace("GMGw==", "GMGg=="), false),
        ] {
            assert_eq!(AccountKey::from_base64(&key).expect("a key").is_well_known(), expected, "{key}");
        }
    }

    #[test]
    fn secrets_stay_out_of_logs() {
        let key = AccountKey::from_base64("SmVmZQ==").expect("a key");
        assert_eq!(format!("{key:?} {:?}", key.mac_of("")), "AccountKey(hidden) Mac(hidden)");
    }
}
