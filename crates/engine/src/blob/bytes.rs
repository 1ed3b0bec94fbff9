//! Where the bytes of blobs live: the contract between the blob rows and the stores of bytes.
//!
//! A payload is written once, by one writer, and never changes; the row that points to it by its [`Extent`] is
//! committed after [`ByteWriter::finish`]. Bytes never pass through the engine's own storage. [`MemoryBytes`] is the
//! simplest store; files and objects are in the crate `larimar-bytes`. Every store passes the suite in `testkit`.

mod extent;
mod hold;
mod memory;

pub use bytes::Bytes;
pub use extent::Extent;
pub use hold::{PayloadHold, PayloadHolds};
pub use memory::{MemoryBytes, MemoryWriter};

use crate::contract::SpaceId;
use crate::error::Fault;
use std::future::Future;
use std::ops::Range;

/// The most bytes that a read returns.
pub const READ_BYTES_MAX: u64 = 1 << 20;

/// A store of payloads.
pub trait ByteStore: Send + Sync + 'static {
    /// The writer of one payload.
    type Writer: ByteWriter;

    /// Begins a payload of this owner; it cannot be read before it is finished. `expected` is the announced length, if
    /// there is one: a hint for where to put the bytes, not a promise.
    fn begin(
        &self,
        owner: Owner<'_>,
        expected: Option<u64>,
    ) -> impl Future<Output = Result<Self::Writer, Fault>> + Send;

    /// About how much memory a writer takes at most for a payload of the expected length.
    fn writer_bytes(&self, expected: Option<u64>) -> u64 {
        expected.unwrap_or(u64::MAX).min(2 * READ_BYTES_MAX)
    }

    /// Reads bytes of a payload from the start of `range` on, checksums verified: what is within the range and the
    /// payload, but not more than [`READ_BYTES_MAX`]. Returns no bytes only if the range holds none.
    fn read(&self, extent: &Extent, range: Range<u64>) -> impl Future<Output = Result<Bytes, Fault>> + Send;

    /// Removes payloads that nothing points to, in the background, after the grace period for reads that are under way.
    /// If the process stops first, the next [`ByteStore::reclaim`] finds them.
    fn discard(&self, extents: Vec<Extent>);

    /// Keeps payloads that are discarded from now on until the hold is dropped.
    fn hold(&self) -> PayloadHold;

    /// Removes the payloads older than the grace period that nothing points to: leftovers of crashes, of dropped
    /// containers and of writers that were cancelled. Ages are measured by the store's own clock. Asks `owners` about
    /// every payload, in pages, so the memory needed does not depend on their number.
    fn reclaim(&self, owners: &impl Owners) -> impl Future<Output = Result<Reclaimed, Fault>> + Send;

    /// Figures for the operator.
    fn statistics(&self) -> ByteStatistics;
}

/// Writes one payload. A writer that is dropped before it is finished leaves nothing behind.
pub trait ByteWriter: Send + 'static {
    /// Appends bytes; waits while too many bytes are queued for the store. After an error the payload is lost.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Ends the payload; on `Ok` it is durable.
    fn finish(self) -> impl Future<Output = Result<Extent, Fault>> + Send;
}

/// Looks up which payloads rows point to.
pub trait Owners: Send + Sync {
    /// Releases those payloads of this owner that no row points to. Returns for each, in order, whether it was released
    /// and may be removed. No row ever points to a released payload: a write that still holds one is refused. A payload
    /// belongs to one blob name in one container, with its snapshots and uncommitted blocks; rows of others never point
    /// to it.
    fn release(&self, owner: Owner<'_>, extents: &[Extent]) -> impl Future<Output = Result<Vec<bool>, Fault>> + Send;
}

/// The blob that a payload was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner<'a> {
    /// The container.
    pub space: SpaceId,
    /// The name of the blob in it.
    pub blob: &'a str,
}

/// What a pass over the payloads found and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Payloads that were checked.
    pub seen: u64,
    /// Payloads that nothing pointed to; they are removed after the grace period.
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
    /// Their bytes.
    pub discarded_bytes: u64,
    /// Payloads that were removed.
    pub payloads_removed: u64,
    /// Bytes that all payloads take on disk, also those of earlier times, if the store knows.
    pub stored_bytes: Option<u64>,
}
