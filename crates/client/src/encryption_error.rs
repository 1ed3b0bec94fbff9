//! Why an entity is not encrypted or not decrypted. Without the feature there is but one reason: it would have to be.

use crate::BoxError;

/// Why an entity is not encrypted or not decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionError {
    /// The entity has a property that is to be encrypted, but the table has no keys.
    #[error("expected a table with encryption, as property '{property}' is to be encrypted")]
    NotConfigured {
        /// The property's name.
        property: String,
    },
    /// A merge, which would leave properties behind that an older content key encrypted.
    #[error("expected an insert or a replace: a merge would mix properties of two content keys")]
    Merge,
    /// A property that is to be encrypted, but is not text.
    #[error("expected text to encrypt in property '{property}', found {found}")]
    NotText {
        /// The property's name.
        property: String,
        /// The type it has.
        found: &'static str,
    },
    /// A property that is too large once it is encrypted: 64 KiB less 28 bytes, in UTF-8, is the most.
    #[error("expected property '{property}' to fit into 64 KiB when encrypted")]
    TooLarge {
        /// The property's name.
        property: String,
    },
    /// The entity already has a property of the name that the metadata or a companion hash needs.
    #[error("expected no property '{property}', which encryption sets")]
    NameTaken {
        /// The property's name.
        property: String,
    },
    /// A companion hash is asked for, but there is no key for it.
    #[error("expected a hash key, as property '{property}' has a companion hash")]
    NoHashKey {
        /// The encrypted property's name.
        property: String,
    },
    /// The stored entity has no metadata, though its type has encrypted properties.
    #[error("expected encryption metadata in the stored entity")]
    MetadataMissing,
    /// The stored metadata cannot be read.
    #[error("expected encryption metadata of version 1: {0}")]
    Metadata(&'static str),
    /// The stored entity's metadata is not what was written, or belongs to another entity.
    #[error("expected the encryption metadata that was written with this entity")]
    MetadataTampered,
    /// A stored property is not what was written, or belongs to another property or entity.
    #[error("expected property '{property}' as it was encrypted")]
    Tampered {
        /// The property's name.
        property: String,
    },
    /// A stored property that was encrypted is gone.
    #[error("expected encrypted property '{property}', found none")]
    Missing {
        /// The property's name.
        property: String,
    },
    /// A stored property is to be encrypted, but is not.
    #[error("expected property '{property}' to be encrypted, found it plain")]
    Plain {
        /// The property's name.
        property: String,
    },
    /// The key ring does not have the key that wrapped the entity's content key.
    #[error("expected the key '{id}' in the key ring")]
    UnknownKey {
        /// The key's id.
        id: String,
    },
    /// A key-encryption key did not wrap or unwrap.
    #[error("expected the key '{id}' to wrap or unwrap the content key")]
    Key {
        /// The key's id.
        id: String,
        /// What went wrong.
        source: BoxError,
    },
}
