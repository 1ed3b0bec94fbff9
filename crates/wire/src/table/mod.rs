//! The Table service's own wire format.
//!
//! A request becomes a [`TableRequest`] (`request.rs`), its body an entity (`entity_json.rs`) or a
//! transaction (`batch.rs`). Answers are written by `entity_writer.rs`, `table_json.rs` and
//! `batch_response.rs`.

pub mod batch;
pub mod batch_response;
mod content;
mod continuation;
pub mod entity_json;
mod entity_writer;
mod json_text;
mod key_predicate;
mod options;
mod request;
mod schema;
mod table_json;

pub use content::{MetadataLevel, Prefer};
pub use continuation::{decode_token, encode_token};
pub use entity_writer::{EntityWriter, Link};
pub use options::{QueryOptions, Select};
pub use request::{GetEntity, QueryEntities, TableOperation, TableRequest, WriteEntity, WriteKind};
pub use schema::write_schema;
pub use table_json::{TableWriter, parse_table_name};
