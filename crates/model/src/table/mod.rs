//! The vocabulary of the Table service: names, keys, values, entities, etags, filters.

pub mod column;
mod entity;
mod entity_body;
mod etag;
pub mod filter;
mod key;
mod name;
mod property;
mod value;
mod write;

pub use entity::Entity;
pub use entity_body::{BodyBuilder, BodyError, EntityBody, Lookup};
pub use etag::{ETag, IfMatch, IfMatchError};
pub use filter::{Filter, FilterError};
pub use key::{EntityKey, KeyError, PartitionKey, RowKey};
pub use name::{TableName, TableNameError};
pub use property::{PropertyError, is_system_property};
pub use value::{EdmType, Value, ValueRef};
pub use write::{Transaction, TransactionError, Write};
