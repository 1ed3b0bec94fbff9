//! Where the bytes of blobs live: the contract between the blob rows and the stores of bytes.
//!
//! A payload is written once, by one writer, and never changes; the row that points to it by its [`Extent`] is
//! committed after [`ByteWriter::finish`]. Bytes never pass through the engine's own storage. [`MemoryBytes`] is the
//! simplest store; files and objects are in the crate `larimar-bytes`. Every store passes the suite in `testkit`.

mod extent;
mod memory;

pub use bytes::Bytes;
pub use extent::Extent;
pub use memory::{MemoryBytes, MemoryWriter};

use crate::contract::SpaceId;
use crate::error::Fault;
use std::future::Future;
use std::ops::Range;

/// How many bytes a read returns at most.
pub const READ_BYTES_MAX: u64 = 1 << 20;

/// A store of payloads.
pub trait ByteStore: Send + Sync + 'static {
    /// What takes the bytes of one payload.
    type Writer: ByteWriter;

    /// Begins a payload of this owner; nothing of it can be read before it is finished. `expected` is how many bytes
    /// were announced, if any were: a hint for where to put them, not a promise.
    fn begin(
        &self,
        owner: Owner<'_>,
        expected: Option<u64>,
    ) -> impl Future<Output = Result<Self::Writer, Fault>> + Send;

    /// About how much memory a writer takes at most for a payload of so many bytes.
    fn writer_bytes(&self, expected: Option<u64>) -> u64 {
        expected.unwrap_or(u64::MAX).min(2 * READ_BYTES_MAX)
    }

    /// Reads bytes of a payload from the start of `range` on, checksums verified: what lies within the range and the
    /// payload, but not more than [`READ_BYTES_MAX`]. Returns nothing only where nothing is to be returned.
    fn read(&self, extent: &Extent, range: Range<u64>) -> impl Future<Output = Result<Bytes, Fault>> + Send;

    /// Nothing points to these payloads any more: they are removed in the background, after a time of grace for those
    /// who are reading. What a stop of the process leaves is found by the next [`ByteStore::reclaim`].
    fn discard(&self, extents: Vec<Extent>);

    /// Removes the payloads older than the time of grace that nothing points to: what crashes, dropped containers
    /// and writers who went away have left. Ages are told by the store's own clock. Asks `owners` about every payload;
    /// needs the same memory for any number.
    fn reclaim(&self, owners: &impl Owners) -> impl Future<Output = Result<Reclaimed, Fault>> + Send;

    /// Figures for the operator.
    fn statistics(&self) -> ByteStatistics;
}

/// Takes the bytes of one payload. Dropped before it is finished, it leaves nothing behind.
pub trait ByteWriter: Send + 'static {
    /// Appends bytes; waits while too much is on its way to the store. After an error the payload is lost.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Ends the payload; on `Ok` it is durable.
    fn finish(self) -> impl Future<Output = Result<Extent, Fault>> + Send;
}

/// Knows which payloads are in use: the rows of the blobs.
pub trait Owners: Send + Sync {
    /// Gives up payloads of this owner that no row of it points to; tells for each, in order, whether it was given up and
    /// may be removed. From the answer on no row ever points to it: a write that is still under way with it is refused. A
    /// payload belongs to one blob name in one container, with its snapshots and uncommitted blocks; rows of others never
    /// point to it.
    fn release(&self, owner: Owner<'_>, extents: &[Extent]) -> impl Future<Output = Result<Vec<bool>, Fault>> + Send;
}

/// Whom a payload was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner<'a> {
    /// The container.
    pub space: SpaceId,
    /// The name of the blob in it.
    pub blob: &'a str,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Payloads that were looked at.
    pub seen: u64,
    /// Payloads that nothing pointed to; they are removed like discarded ones.
    pub removed: u64,
    /// Their bytes.
    pub removed_bytes: u64,
}

/// Figures of a store of bytes, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteStatistics {
    /// Payloads that were finished.
    pub payloads_written: u64,
    /// Their bytes.
    pub bytes_written: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Payloads that are discarded but not removed yet.
    pub discarded: u64,
    /// Payloads that were removed.
    pub payloads_removed: u64,
}
