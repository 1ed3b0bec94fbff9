//! The vocabulary of the services: names, keys, values, entities, etags, filters, metadata, leases, limits.
//!
//! Everything here is pure: no clock, no network, no disk. A value of one of these types is proof
//! that the service's rules hold for it, so the other crates never check twice.

pub mod blob;
mod entity;
mod entity_body;
mod etag;
pub mod filter;
mod guid;
mod key;
pub mod limits;
mod metadata;
mod property;
pub mod queue;
mod resource_name;
mod table_name;
mod timestamp;
pub mod utf16;
mod value;

pub use entity::Entity;
pub use entity_body::{BodyBuilder, BodyError, EntityBody, Lookup};
pub use etag::{ETag, IfMatch, IfMatchError};
pub use filter::{Filter, FilterError};
pub use guid::Guid;
pub use key::{EntityKey, KeyError, PartitionKey, RowKey};
pub use metadata::{Metadata, MetadataError};
pub use property::{PropertyError, is_system_property};
pub use resource_name::ResourceNameError;
pub use table_name::{TableName, TableNameError};
pub use timestamp::{Timestamp, TimestampError};
pub use value::{EdmType, Value, ValueRef};
