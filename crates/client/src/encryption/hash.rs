//! Keyed hashes of encrypted values, stored beside them, so that entities can be looked up by equality.

use super::cipher::Framed;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::fmt;
use zeroize::Zeroizing;

/// The secret of the companion hashes (HMAC-SHA-256): without it, values cannot be tried.
///
/// Unlike content keys it is the same for all entities, and it cannot be rotated without writing them again. It must
/// be another key than those that wrap content keys.
#[derive(Clone)]
pub struct HashKey(Zeroizing<[u8; 32]>);

impl HashKey {
    /// The key of these bytes, which should be random.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The hash of a value of a property. Equal values have equal hashes in one property of one table only.
    pub(super) fn hash(&self, table: &str, property: &str, value: &str) -> [u8; 32] {
        let mut text = Framed::new("larimar companion hash 1");
        text.add(table.to_ascii_lowercase().as_bytes());
        text.add(property.as_bytes());
        text.add(value.as_bytes());
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.0).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(hidden)")
    }
}
