//! What wraps content keys: the trait of key-encryption keys, and the keys that it speaks of.

use crate::{BoxError, BoxFuture};
use std::fmt;
use zeroize::Zeroizing;

/// A key that wraps content keys. It may live in a key vault: only the wrapped and the unwrapped key come and go.
///
/// The wrap must be authenticated by a secret (AES key wrap and the like). With a public key, as of RSA, everyone can
/// wrap content keys, so that anyone who can write to the table can also insert entities that decrypt: then only
/// changes of existing ciphertexts are detected.
///
/// [`LocalKey`](super::LocalKey) is one that lives in this process.
pub trait KeyEncryptionKey: Send + Sync {
    /// The name of this key and version, which is stored with each entity that it is used for.
    fn id(&self) -> &str;

    /// Wraps a content key.
    fn wrap<'a>(&'a self, key: &'a ContentKey) -> BoxFuture<'a, Result<WrappedKey, BoxError>>;

    /// Unwraps a content key that this key has wrapped.
    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> BoxFuture<'a, Result<ContentKey, BoxError>>;
}

/// A content key: 32 bytes that encrypt the properties of one entity. They are wiped when it goes out of scope.
#[derive(Clone)]
pub struct ContentKey(Zeroizing<[u8; 32]>);

impl ContentKey {
    /// The key of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A fresh key.
    pub(super) fn random() -> Self {
        Self::new(crate::random::bytes())
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey(hidden)")
    }
}

/// A wrapped content key, as it is stored with the entity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrappedKey {
    /// How it was wrapped, such as `A256KW`.
    pub algorithm: String,
    /// The wrapped key.
    pub bytes: Vec<u8>,
}

impl WrappedKey {
    /// These bytes, wrapped in this way.
    #[must_use]
    pub fn new(algorithm: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { algorithm: algorithm.into(), bytes }
    }
}
