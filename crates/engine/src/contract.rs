//! The contract between the services and the engines, in three traits: [`Rows`], [`Spaces`] and [`Messages`].
//!
//! An engine stores spaces (a table, a queue or a container is one) of rows in key order and applies conditional batches
//! to one partition of one space: all or nothing, durable when acknowledged. Keys are text in the order of their UTF-16
//! code units; each engine chooses the encoding. Nothing is locked between calls. A page reads from one
//! [`Snapshot`](crate::Snapshot). Every engine passes the suite in `testkit`.

mod messages;
mod rows;
mod spaces;

pub use messages::{Change, Message, MessageError, MessageHandle, MessagePlace, Messages, NewMessage, Placed, Updated};
pub(crate) use rows::successor;
pub use rows::{Act, Beside, Budget, Edit, Expect, Flow, Key, KeyRange, Op, OwnedRow, Position, RowRef, Rows};
pub use spaces::{Changed, Renamed, Space, SpaceId, SpaceKind, SpaceName, Spaces};

use crate::error::Fault;
use crate::histogram::HistogramSnapshot;
use larimar_model::Timestamp;
use std::future::Future;

/// A storage engine: rows, spaces, messages, and what belongs to all of them.
pub trait Engine: Rows + Spaces + Messages {
    /// The store's time at some moment of the call. Everything that two servers must agree on, such as leases, uses
    /// it. An engine in one process uses `caller`, the caller's clock; a shared engine uses the clock of its database, which
    /// it asks so rarely that a call usually costs no round trip.
    fn now(&self, caller: Timestamp) -> impl Future<Output = Result<Moment, Fault>> + Send {
        async move { Ok(Moment::exactly(caller)) }
    }

    /// Figures for the operator.
    fn statistics(&self) -> Statistics;

    /// Gives the room of deleted rows back to the disk, as far as that is possible now, while other calls go on. One call
    /// at a time; another one is refused. `None` if the engine's database does that by itself.
    fn compact(&self) -> impl Future<Output = Result<Option<Compaction>, Fault>> + Send {
        async { Ok(None) }
    }

    /// `Ok` while the engine accepts writes.
    fn ready(&self) -> Result<(), Fault>;
}

/// A time of the store's clock, as precisely as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The clock shows at least this. Use it to decide whether something has ended: nothing ends too early.
    pub earliest: Timestamp,
    /// The clock shows at most this. Spans that begin now are counted from it: no span is too short.
    pub latest: Timestamp,
}

impl Moment {
    /// A time that is known exactly.
    #[must_use]
    pub const fn exactly(time: Timestamp) -> Self {
        Self { earliest: time, latest: time }
    }
}

/// Figures of an engine.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Writes per commit.
    pub commit_writes: HistogramSnapshot,
    /// Seconds per sync.
    pub sync_seconds: HistogramSnapshot,
    /// Approximate bytes on disk.
    pub store_bytes: u64,
    /// Dropped spaces whose storage is not reclaimed yet.
    pub dropped_spaces: u64,
    /// Bytes of deleted rows that still take room on disk, about, as far as the engine knows of them.
    pub reclaimable_bytes: u64,
    /// Room on the disk, if the engine has a disk of its own.
    pub disk: Option<DiskRoom>,
    /// The last version given to a row, if all versions of the engine come from one clock.
    pub last_version: Option<Timestamp>,
    /// Reads of blocks of the store, if the engine has a cache for them.
    pub block_reads: Vec<BlockReads>,
}

/// How often a kind of blocks was read since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockReads {
    /// What is in the blocks: a word of the engine.
    pub of: &'static str,
    /// Reads that the cache served.
    pub hits: u64,
    /// Reads from disk, or from the system's cache of it.
    pub misses: u64,
}

/// What a compaction of an engine's store changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Bytes on disk before it.
    pub bytes_before: u64,
    /// Bytes on disk after it.
    pub bytes_after: u64,
}

/// Room on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that must stay free: with fewer, only writes that free space are accepted.
    pub needed: u64,
}
