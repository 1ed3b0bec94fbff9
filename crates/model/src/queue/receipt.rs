//! Pop receipts: what a consumer shows to change or delete the message that it was given.
//!
//! To clients a receipt is opaque. It names one delivery of the message: when that delivery ends, which is also where
//! an engine finds the message, and a number that no other delivery has. The text is base64 of the alphabet that needs
//! no escape in a URL.

use crate::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;

/// A pop receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// When the message is visible to others.
    pub visible_at: Timestamp,
    /// A number that distinguishes this delivery from others that end at the same time.
    pub nonce: u64,
}

/// Why a text is not a valid pop receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a pop receipt as the service wrote it")]
pub struct ReceiptError;

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.visible_at.ticks().to_be_bytes());
        bytes[8..].copy_from_slice(&self.nonce.to_be_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Receipt {
    type Err = ReceiptError;

    fn from_str(text: &str) -> Result<Self, ReceiptError> {
        let mut bytes = [0; 16];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(16) => {
                let number = u128::from_be_bytes(bytes);
                Ok(Self { visible_at: Timestamp::from_ticks((number >> 64) as u64), nonce: number as u64 })
            }
            Ok(_) | Err(_) => Err(ReceiptError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAA+AAAAAAAAAAA", "é"]
        {
            assert_eq!(text.parse::<Receipt>(), Err(ReceiptError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ticks: u64, nonce: u64) {
            let receipt = Receipt { visible_at: Timestamp::from_ticks(ticks), nonce };
            prop_assert_eq!(receipt.to_string().parse(), Ok(receipt));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = text.parse::<Receipt>();
        }
    }
}
