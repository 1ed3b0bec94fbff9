//! Blobs: what they mean, in rows of the container's space, and where their bytes live.
//!
//! [`Blobs`] has one method for each operation. A writer streams its bytes into the store first ([`Blobs::begin`]); the
//! operation then commits a row that points to them, whole or not at all, and what a change leaves without an owner is
//! discarded after its commit. Every change of a blob goes through its own row: whoever else changes it meanwhile is seen
//! by the row's version. The names of the rows are in `keys.rs`, their bytes in `row.rs` and `layout.rs`.

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
pub use container::{Container, ContainerPage, NewContainer, create_logs, find_container_acl, read_container_acl};
pub use copy::{CopyInspector, CopyRequest, CopySource};
pub use find::{FindFrom, FindIn, FindPage, FoundBlob};
pub use holds::Hold;
pub use incremental::IncrementalCopyRequest;
/// Types of the model that the methods of [`Blobs`] take and return.
pub use larimar_model::blob::{Access, BlobProperties, NewBlob};
pub use lease::Leased;
pub use list::{ListFrom, ListItem, ListPage, ListQuery, ListedBlob};
pub use page_blob::{PageBlobChange, PageList, PagesWritten};
pub use read::{Content, OpenBlob};
pub use reclaim::containers::{ReclaimedRows, RowOwners};
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
    /// The service over these two.
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

    /// How long it takes until a blob of the archive has the tier that it was given.
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

    /// The time by which everything is judged that servers must judge alike: the store's. Every operation begins with it.
    pub(crate) async fn now(&self, caller: Timestamp) -> Result<Timestamp, Fault> {
        Ok(self.engine.now(caller).await?.earliest)
    }

    /// Keeps sweeps of this process away from the payloads of a blob. Whoever calls [`Blobs::begin`] takes it before and
    /// keeps it until the operation that the payload is for has ended; otherwise one that takes longer than the time of
    /// grace may be refused with [`BlobReject::WriteTooLate`].
    #[must_use]
    pub fn hold(&self, at: BlobRef<'_>) -> Hold {
        self.holds.hold(at)
    }

    /// Begins to take bytes for a blob. What is finished belongs to the operation that it is handed to, also if that
    /// refuses it; `expected` is how many bytes were announced.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn begin(&self, at: BlobRef<'_>, expected: Option<u64>) -> Result<B::Writer, Fault> {
        self.bytes.begin(Owner { space: at.container, blob: at.name.as_str() }, expected).await
    }
}
