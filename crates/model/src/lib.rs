//! The vocabulary of the services: names, keys, values, entities, etags, filters, metadata, leases, limits.
//!
//! Everything here is pure: no clock, no network, no disk. A value of one of these types is proof
//! that the service's rules hold for it, so the other crates never check twice.

pub mod blob;
mod guid;
pub mod limits;
mod metadata;
pub mod queue;
mod resource_name;
mod service;
pub mod table;
mod timestamp;
pub mod utf16;
pub mod varint;
mod visible;

pub use guid::Guid;
pub use metadata::{Metadata, MetadataError};
pub use resource_name::ResourceNameError;
pub use service::Service;
pub use table::{
    BodyBuilder, BodyError, ETag, EdmType, Entity, EntityBody, EntityKey, Filter, FilterError, IfMatch, IfMatchError,
    KeyError, Lookup, PartitionKey, PropertyError, RowKey, TableName, TableNameError, Value, ValueRef, column, filter,
    is_system_property,
};
pub use timestamp::{Timestamp, TimestampError};
pub use visible::escape;
