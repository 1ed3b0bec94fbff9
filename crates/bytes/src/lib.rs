//! Where the bytes of blobs live: [`FileBytes`] keeps them in files of one machine,
//! [`ObjectBytes`] as objects in a store that many servers share.
//!
//! Both kinds of store write the same record (`record.rs`, drawn in docs/format.md): a header that names the owner,
//! then frames with their checksums. The meaning of a payload is in the rows that point to it, in `larimar-engine`.

mod any;
mod discarded;
mod files;
mod objects;
mod record;
mod release;

pub use any::{AnyBytes, AnyWriter};
pub use files::{Admission, Durability, FileBytes, FileSettings, FileWriter};
pub use objects::{ObjectBytes, ObjectSettings, ObjectWriter, Removal};
