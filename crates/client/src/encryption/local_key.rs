//! A key-encryption key that lives in this process.

use super::key::{ContentKey, KeyEncryptionKey, WrappedKey};
use crate::{BoxError, BoxFuture};
use aes_kw::KekAes256;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// A key-encryption key of 32 bytes that lives in this process. It wraps by AES key wrap (RFC 3394, `A256KW`), which
/// is authenticated and needs no nonce, so that one key serves for any number of entities.
pub struct LocalKey {
    id: String,
    key: KekAes256,
}

impl LocalKey {
    /// The key of these bytes, which should be random, under an id. Two keys must not share an id.
    #[must_use]
    pub fn new(id: impl Into<String>, mut bytes: [u8; 32]) -> Self {
        let key = KekAes256::from(bytes);
        bytes.zeroize();
        Self { id: id.into(), key }
    }
}

impl KeyEncryptionKey for LocalKey {
    fn id(&self) -> &str {
        &self.id
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> BoxFuture<'a, Result<WrappedKey, BoxError>> {
        Box::pin(async move {
            let mut wrapped = vec![0; WRAPPED_BYTES];
            self.key.wrap(key.as_bytes(), &mut wrapped).map_err(|error| error.to_string())?;
            Ok(WrappedKey::new(ALGORITHM, wrapped))
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> BoxFuture<'a, Result<ContentKey, BoxError>> {
        Box::pin(async move {
            if wrapped.algorithm != ALGORITHM || wrapped.bytes.len() != WRAPPED_BYTES {
                return Err("expected a key that A256KW has wrapped".into());
            }
            let mut key = Zeroizing::new([0; 32]);
            self.key.unwrap(&wrapped.bytes, &mut *key).map_err(|_| "expected a key that this key has wrapped")?;
            Ok(ContentKey::new(*key))
        })
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalKey({:?}, hidden)", self.id)
    }
}

const ALGORITHM: &str = "A256KW";
/// AES key wrap adds eight bytes.
const WRAPPED_BYTES: usize = 40;
