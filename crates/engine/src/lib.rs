//! What a storage engine promises, and everything of the Table service that needs one but not HTTP.
//!
//! [`Engine`] is the contract: ordered rows, conditional batches that are atomic and durable. All meaning
//! (write rules, filters, limits) lives above it in [`table`]. [`MemoryEngine`] is the specification that
//! the other engines are tested against.

mod backup_source;
pub mod blob;
mod clock;
mod contract;
mod error;
mod hidden;
mod histogram;
mod log_limit;
mod lookup;
mod memory;
pub mod migration;
pub mod queue;
mod reset;
mod seed;
pub mod settings;
mod snapshot;
pub mod table;

pub use backup_source::{BackupPoint, BackupSnapshot, BackupSource, HeldSpace, SLICE_BYTES, SLICE_ROWS};
pub use clock::{Clock, SystemClock};
pub use contract::{
    Act, Beside, BlockReads, Budget, Changed, Compaction, DiskRoom, Edit, Engine, Expect, Flow, Key, KeyRange,
    Messages, Moment, Op, OwnedRow, Position, Renamed, RowRef, Rows, Space, SpaceId, SpaceKind, SpaceName, Spaces,
    Statistics,
};
pub use error::{EditError, EngineError, Fault, ReadError, Reject, WriteError};
pub use hidden::{HiddenSpace, is_hidden, sweep_hidden};
pub use histogram::{Histogram, HistogramSnapshot};
pub use log_limit::LogLimit;
pub use lookup::decide_on_space;
pub use memory::{MemoryEngine, MemorySnapshot};
pub use reset::{Removed, reset_account};
pub use seed::{SeedRecord, load_seed_record, remove_seed_record, store_seed_record};
pub use snapshot::{Reads, Snapshot};
