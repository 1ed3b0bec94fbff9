//! Where the bytes of blobs live: [`FileBytes`] keeps them in files of one machine,
//! [`ObjectBytes`] as objects in a store that many servers share.
//!
//! Both kinds of store write the same record (`record.rs`, drawn in docs/format.md): a header that names the owner,
//! then frames with their checksums. What a payload means is in the rows that point to it, in `larimar-engine`.

mod any;
mod files;
mod objects;
mod record;
mod release;

pub use any::{AnyBytes, AnyWriter};
pub use files::{Admission, Durability, FileBytes, FileSettings, FileWriter};
pub use objects::{ObjectBytes, ObjectSettings, ObjectWriter};

/// Discarded payloads that wait for their removal; what is beyond is left to the next sweep.
const DISCARDED_MAX: u64 = 1 << 20;
