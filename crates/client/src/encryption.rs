//! Client-side encryption: chosen text properties are encrypted before they leave this machine, and decrypted when
//! they come back. The service stores bytes that it cannot read.
//!
//! Every write makes a fresh content key (AES-256-GCM), which encrypts the chosen properties of that one entity. The
//! content key is wrapped by a [`KeyEncryptionKey`], which may live in a key vault, and stored with the entity in the
//! property [`METADATA`]. A [`KeyRing`] has the key for writes and older ones for reads, so that keys can be rotated:
//! [`Encryption::rewrap`] moves an entity to the current key without touching its properties.
//!
//! Properties are chosen by their type (`#[entity(encrypt)]`), by a [resolver](Encryption::choose), or by both. Only
//! text can be encrypted; it is stored as Binary. A keyed hash in a companion property
//! (`#[entity(encrypt(hash = "..."))]` or [`EncryptedProperty::hashed_as`](crate::EncryptedProperty)) makes it possible
//! to look entities up by an encrypted value: compare the companion with [`Encryption::lookup_hash`].
//!
//! # What is detected
//! Reads fail with [`EncryptionError`] if anyone without the keys
//! - changed a ciphertext, the metadata, or the companion hash,
//! - moved a ciphertext to another property, entity or table (names and keys are bound into it), so that a table's
//!   rows cannot be copied to another table or key except by reading and writing them through this client,
//! - removed an encrypted property, or put in one that was not encrypted by the holder of the key,
//! - replaced a property that is to be encrypted by plain text.
//!
//! # What is not
//! - Rollback: an older version of a whole entity is as genuine as it was when it was written, and a deleted entity
//!   can be brought back. An entity that is gone leaves no trace.
//! - Properties that are not encrypted are not protected in any way, nor is `Timestamp`.
//! - Where properties are chosen by a resolver alone, an entity without metadata and without any chosen property
//!   is taken for one that never had them. Types with encrypted properties do insist on the metadata.
//! - The service sees keys, names of properties, how long encrypted texts are, when they change, and by the companion
//!   hash which entities of a table have equal values.
//!
//! # What is refused
//! Merges: the content key is fresh for each write, and a merge would leave properties behind that an older key
//! encrypted. Insert, replace and insert-or-replace work. A type with encrypted properties is also refused by tables
//! without encryption, and so is a [`DynamicEntity`](crate::DynamicEntity) that was read with decrypted properties: nothing that was to be
//! encrypted is ever sent as plain text.

#[cfg(feature = "encryption")]
mod cipher;
mod error;
#[cfg(feature = "encryption")]
mod hash;
#[cfg(feature = "encryption")]
mod key;
#[cfg(feature = "encryption")]
mod key_ring;
#[cfg(feature = "encryption")]
mod local_key;
#[cfg(feature = "encryption")]
mod metadata;
#[cfg(feature = "encryption")]
mod policy;
#[cfg(all(test, feature = "encryption"))]
mod tests;

pub use error::EncryptionError;
#[cfg(feature = "encryption")]
pub use hash::HashKey;
#[cfg(feature = "encryption")]
pub use key::{ContentKey, KeyEncryptionKey, WrappedKey};
#[cfg(feature = "encryption")]
pub use key_ring::KeyRing;
#[cfg(feature = "encryption")]
pub use local_key::LocalKey;
#[cfg(feature = "encryption")]
pub use policy::Encryption;

use crate::EncryptedProperty;

/// The property that holds an entity's wrapped content key and the list of its encrypted properties.
pub const METADATA: &str = "_ClientEncryptionMetadata1";

/// The properties of an entity that are to be encrypted when it is written: those that its type names, and those that
/// were decrypted when it was read. Two entities are equal no matter how they are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Vec<Mark>);

/// A property that is to be encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) hashed_as: Option<String>,
}

impl Marks {
    /// Marks the properties that a type names.
    pub(crate) fn add(&mut self, properties: &[EncryptedProperty]) {
        for EncryptedProperty { name, hashed_as } in properties {
            self.0.retain(|mark| mark.name != *name);
            self.0.push(Mark { name: (*name).to_owned(), hashed_as: hashed_as.map(str::to_owned) });
        }
    }

    /// Refuses to write an entity as it is if some of it is to be encrypted.
    pub(crate) fn check_plain(&self) -> Result<(), EncryptionError> {
        match self.0.first() {
            None => Ok(()),
            Some(mark) => Err(EncryptionError::NotConfigured { property: mark.name.clone() }),
        }
    }
}

impl PartialEq for Marks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
