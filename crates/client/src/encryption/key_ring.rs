//! The keys that a program has: one for writes, and older ones for reads.

use super::key::{ContentKey, KeyEncryptionKey, WrappedKey};
use super::{EncryptionError, metadata};
use std::fmt;
use std::sync::Arc;

/// The key-encryption keys that a program has: the current one for writes, and older ones for reads.
///
/// To rotate, make a new key current and keep the old one for reads until every entity has been written again or
/// [rewrapped](crate::Table::rewrap_all).
///
/// ```
/// use larimar_client::encryption::{KeyRing, LocalKey};
/// # let (this_year, last_year) = ([1; 32], [2; 32]);
/// let keys = KeyRing::new(LocalKey::new("2025", this_year)).with_older(LocalKey::new("2024", last_year));
/// assert_eq!(keys.current_id(), "2025");
/// ```
#[derive(Clone)]
pub struct KeyRing {
    current: Arc<dyn KeyEncryptionKey>,
    older: Vec<Arc<dyn KeyEncryptionKey>>,
}

impl KeyRing {
    /// A ring of one key, for reads and writes.
    #[must_use]
    pub fn new(current: impl KeyEncryptionKey + 'static) -> Self {
        Self { current: Arc::new(current), older: Vec::new() }
    }

    /// This ring with one more key for reads. If two keys have the same id, the first one is used.
    #[must_use]
    pub fn with_older(mut self, key: impl KeyEncryptionKey + 'static) -> Self {
        self.older.push(Arc::new(key));
        self
    }

    /// The id of the key for writes.
    #[must_use]
    pub fn current_id(&self) -> &str {
        self.current.id()
    }

    /// Wraps a content key by the current key, whose id comes with it.
    pub(super) async fn wrap(&self, key: &ContentKey) -> Result<(String, WrappedKey), EncryptionError> {
        let id = self.current.id().to_owned();
        match self.current.wrap(key).await {
            Ok(wrapped) if metadata::fits(&id, &wrapped) => Ok((id, wrapped)),
            Ok(_) => Err(EncryptionError::Key { id, source: "expected a shorter id or a shorter wrapped key".into() }),
            Err(source) => Err(EncryptionError::Key { id, source }),
        }
    }

    /// Unwraps a content key by the key that wrapped it.
    pub(super) async fn unwrap(&self, id: &str, wrapped: &WrappedKey) -> Result<ContentKey, EncryptionError> {
        let key = std::iter::once(&self.current).chain(&self.older).find(|key| key.id() == id);
        let key = key.ok_or_else(|| EncryptionError::UnknownKey { id: id.to_owned() })?;
        key.unwrap(wrapped).await.map_err(|source| EncryptionError::Key { id: id.to_owned(), source })
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older: Vec<&str> = self.older.iter().map(|key| key.id()).collect();
        f.debug_struct("KeyRing").field("current", &self.current.id()).field("older", &older).finish()
    }
}
