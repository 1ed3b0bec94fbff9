//! A client for Azure Table Storage and everything that speaks its protocol: Larimar, Azurite, Cosmos DB for Table
//! and the service itself.

mod column;
mod dynamic;
mod entity;
mod etag;
mod filter;
mod guid;
pub mod keys;
mod property;
mod random;
pub mod sas;
mod timestamp;
mod value;

pub use column::{Column, ColumnError, IntoLiteral};
pub use dynamic::DynamicEntity;
pub use entity::{EncryptedProperty, Entity, EntityError};
pub use etag::{ETag, IfMatch};
pub use filter::Filter;
pub use guid::{Guid, GuidError};
pub use property::{Property, PropertyError};
pub use sas::{InvalidKey, SharedKey};
pub use timestamp::{Timestamp, TimestampError};
pub use value::Value;
