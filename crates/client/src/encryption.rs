//! Client-side encryption: chosen text properties are encrypted before they leave this machine, and decrypted when
//! they come back. The service stores bytes that it cannot read.
//!
//! Every write makes a fresh content key (AES-256-GCM), which encrypts the chosen properties of that one entity. The
//! content key is wrapped by a [`KeyEncryptionKey`], which may live in a key vault, and stored with the entity in the
//! property [`METADATA`]. A [`KeyRing`] has the key for writes and older ones for reads, so that keys can be rotated:
//! [`Table::rewrap_all`](crate::Table::rewrap_all) moves entities to the current key without touching their properties.
//!
//! Properties are chosen by their type (`#[entity(encrypt)]`), by a [resolver](Encryption::choose), or by both. Only
//! text can be encrypted; it is stored as Binary. A keyed hash in a companion property
//! (`#[entity(encrypt, hashed = "EmailHash")]`) makes it possible to look entities up by an encrypted value: compare the
//! companion with [`Encryption::lookup_hash`].
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = larimar_embedded::Larimar::ephemeral().await?;
//! # let account = larimar_client::Account::connect(&server.connection_string())?;
//! # account.table("Employees").create().await?;
//! # let (key, hash_key) = ([1; 32], [2; 32]);
//! use larimar_client::Entity;
//! use larimar_client::encryption::{Encryption, HashKey, KeyRing, LocalKey};
//! use std::sync::Arc;
//!
//! #[derive(Debug, PartialEq, Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     number: String,
//!     #[entity(encrypt, hashed = "EmailHash")]
//!     email: String,
//! }
//!
//! let keys = KeyRing::new(LocalKey::new("2025", key));
//! let encryption = Arc::new(Encryption::new(keys).with_hash_key(HashKey::new(hash_key)));
//! let table = account.table("Employees").encrypted(Arc::clone(&encryption));
//!
//! let don = Employee { department: "Sales".into(), number: "1".into(), email: "don@contoso.com".into() };
//! table.insert(&don).await?;
//! assert_eq!(table.get("Sales", "1").await?, Some(don));
//!
//! let hash = encryption.lookup_hash("Employees", "Email", "don@contoso.com")?;
//! let found = table.query::<Employee>().filter(Employee::email_hash().eq(hash)).all().await?;
//! assert_eq!(found.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Filters are evaluated by the service, which sees bytes: a filter that compares an encrypted property finds nothing.
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
//! - An entity without metadata and without any property that is to be encrypted is taken for one that never had
//!   them, where properties are chosen by a resolver alone, and where entities are read without their type or as an
//!   enum of types. A struct with encrypted properties insists on the metadata.
//! - The service sees keys, names of properties, how long encrypted texts are, when they change, and by the companion
//!   hash which entities of a table have equal values.
//!
//! # What is refused
//! Merges: the content key is fresh for each write, and a merge would leave properties behind that an older key
//! encrypted. Insert, replace and insert-or-replace work.
//!
//! A type with encrypted properties is refused by tables without encryption, and so is a [`DynamicEntity`] that was read
//! with decrypted properties: what was to be encrypted is never sent as plain text.

mod cipher;
mod hash;
mod key;
mod key_ring;
mod local_key;
mod metadata;
mod policy;
mod rewrap;
#[cfg(test)]
mod tests;

pub use crate::encryption_error::EncryptionError;
pub use hash::HashKey;
pub use key::{ContentKey, KeyEncryptionKey, WrappedKey};
pub use key_ring::KeyRing;
pub use local_key::LocalKey;
pub use policy::Encryption;
pub use rewrap::Rewrapped;

use crate::marks::{Mark, Marks};

#[cfg(doc)]
use crate::DynamicEntity;

/// The property that holds an entity's wrapped content key and the list of its encrypted properties.
pub const METADATA: &str = crate::marks::METADATA;
