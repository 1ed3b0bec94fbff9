//! The key of the hashes that tell texts apart.
//!
//! Without a secret, a client could make up keys whose hashes equal that of another client's key: its requests would then
//! count for the other key, and the estimates of different keys could be driven to any figure. All servers over one store
//! use the same key, so that their figures can be added; `rows.rs` stores it.

use siphasher::sip::SipHasher13;
use std::fmt;

/// Keyed hashes: SipHash-1-3, whose results are the same on every machine and in every release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HashKey(pub(crate) [u8; Self::BYTES]);

impl HashKey {
    pub(crate) const BYTES: usize = 16;

    /// The hash of a text.
    pub(crate) fn hash(self, text: &str) -> u64 {
        SipHasher13::new_with_key(&self.0).hash(text.as_bytes())
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_key_and_not_on_the_release() {
        let key = HashKey(std::array::from_fn(|place| place as u8));
        assert_ne!(key.hash("a"), HashKey([0; 16]).hash("a"));
        assert_ne!(key.hash("a"), key.hash("b"));
        assert_eq!(format!("{key:?}"), "HashKey(..)");
        // Stored figures have hashes: another function would need another format.
        assert_eq!(key.hash(""), 0xABAC_0158_050F_C4DC);
    }
}
