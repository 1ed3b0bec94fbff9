//! Blobs: their rows in the container's space, and where their bytes are stored.
//!
//! [`Blobs`] has one method for each operation. A writer streams its bytes into the store of bytes first
//! ([`Blobs::begin`]); the operation then commits rows that point to them, all or nothing (`change.rs`), and reclaims
//! what it replaced (`reclaim.rs`). Every change of a blob writes or checks the blob's own row, so concurrent changes
//! are detected by its version. The names of the rows are in `keys.rs`, their stored forms in `row.rs` and `layout.rs`.

mod access;
mod append;
mod blocks;
pub mod bytes;
mod change;
mod codec;
mod conditions;
mod container;
mod copy;
mod delete;
mod find;
mod holds;
mod incremental;
mod keys;
mod layout;
mod lease;
mod list;
mod page_blob;
mod page_region;
mod page_runs;
mod properties;
mod put;
mod read;
mod reclaim;
mod reject;
mod released;
pub mod relocate;
mod row;
mod snapshot;
mod store;
mod tag_index;
mod tag_index_build;
mod tier;
mod work_slice;

pub use access::{BlobRef, Written};
pub use append::Appended;
pub use blocks::BlockList;
pub use container::{
    Container, ContainerPage, NewContainer, create_logs, find_container_acl, meta_without_lease, read_container_acl,
};
pub use copy::{CopyInspector, CopyRequest, CopySource};
pub use find::{FindFrom, FindIn, FindPage, FoundBlob};
pub use holds::Hold;
pub use incremental::IncrementalCopyRequest;
/// Types of the model that the methods of [`Blobs`] take and return.
pub use larimar_model::blob::{AccessConditions, BlobProperties, NewBlob};
pub use lease::Leased;
pub use list::{ListFrom, ListItem, ListPage, ListQuery, ListedBlob};
pub use page_blob::{PageBlobChange, PageList, PagesWritten};
pub use read::{Content, OpenBlob};
pub use reclaim::containers::{Compacted, ReclaimedRows, RowOwners};
pub use reclaim::dropped::Reclaimer;
pub use reject::{BlobReject, LeaseReject, SourceCondition};
pub use tier::TierSet;

use crate::contract::Engine;
use crate::error::Fault;
use bytes::{ByteStore, Owner};
use larimar_model::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The Blob service on an engine for the rows and a store for the bytes.
#[derive(Debug)]
pub struct Blobs<E, B> {
    engine: Arc<E>,
    bytes: Arc<B>,
    change_locks: change::ChangeLocks,
    holds: holds::Holds,
    rehydration_time: Duration,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// The service on this engine and this store of bytes.
    #[must_use]
    pub fn new(engine: Arc<E>, bytes: Arc<B>) -> Self {
        Self {
            engine,
            bytes,
            change_locks: change::ChangeLocks::default(),
            holds: holds::Holds::default(),
            rehydration_time: tier::REHYDRATION_TIME,
        }
    }

    /// Sets how long the rehydration of an archived blob takes.
    #[must_use]
    pub fn with_rehydration_time(self, rehydration_time: Duration) -> Self {
        Self { rehydration_time, ..self }
    }

    /// The engine that keeps the rows.
    #[must_use]
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The store that keeps the bytes.
    #[must_use]
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// The time that leases, conditions and new rows go by: the engine's clock, which all servers share. Every
    /// operation starts with it.
    pub(crate) async fn now(&self, caller: Timestamp) -> Result<Timestamp, Fault> {
        Ok(self.engine.now(caller).await?.earliest)
    }

    /// Keeps this process from reclaiming the payloads of a blob. A caller of [`Blobs::begin`] takes the hold first and
    /// drops it after the operation that uses the payload; without it, an operation that takes longer than the grace
    /// period may be refused with [`BlobReject::WriteTooLate`].
    #[must_use]
    pub fn hold(&self, at: BlobRef<'_>) -> Hold {
        self.holds.hold(at)
    }

    /// Begins a payload for a blob. A finished payload belongs to the operation that it is passed to, even if that is
    /// refused; `expected` is the announced length.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn begin(&self, at: BlobRef<'_>, expected: Option<u64>) -> Result<B::Writer, Fault> {
        self.bytes.begin(Owner { space: at.container, blob: at.name.as_str() }, expected).await
    }
}
