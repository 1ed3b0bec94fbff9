//! What the engine's calls and its threads share.

use std::sync::Arc;

use larimar_engine::{Histogram, LogLimit};
use parking_lot::RwLock;

use crate::catalogue::Catalogue;
use crate::committer::Queue;
use crate::latch::Latches;
use crate::published::Published;
use crate::reserve::Reserve;
use crate::store::{Store, StoreError, SyncTo};
use crate::version::VersionClock;

/// The parts of an open engine.
pub(crate) struct Shared {
    pub(crate) latches: Latches,
    pub(crate) queue: Queue,
    pub(crate) published: Published,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) versions: VersionClock,
    pub(crate) reserve: Reserve,
    /// Lines about a store that cannot write.
    pub(crate) faults: LogLimit,
    pub(crate) figures: Figures,
    pub(crate) sync_to: SyncTo,
    /// Absent while it is being reopened and after the end.
    pub(crate) store: RwLock<Option<Box<dyn Store>>>,
}

/// What is counted for the operator.
pub(crate) struct Figures {
    pub(crate) commit_writes: Histogram,
    pub(crate) sync_seconds: Histogram,
}

impl Shared {
    /// Uses the store; fails while there is none.
    pub(crate) fn with_store<R>(&self, f: impl FnOnce(&dyn Store) -> Result<R, StoreError>) -> Result<R, StoreError> {
        match &*self.store.read() {
            Some(store) => f(store.as_ref()),
            None => Err(StoreError::Stopped { path: Default::default() }),
        }
    }
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self { commit_writes: Histogram::new(Histogram::COUNTS), sync_seconds: Histogram::new(Histogram::SECONDS) }
    }
}
