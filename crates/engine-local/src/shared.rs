//! What the engine's calls and its threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larimar_engine::{Fault, Histogram, LogLimit};
use parking_lot::{Mutex, RwLock};

use crate::catalogue::Catalogue;
use crate::commit_feed::LastCommit;
use crate::committer::CommitQueue;
use crate::latch::Latches;
use crate::published::Published;
use crate::recovery;
use crate::reserve::Reserve;
use crate::store::{Room, Store, StoreError, SyncTo};
use crate::version::VersionClock;

/// The parts of an open engine.
pub(crate) struct Shared {
    pub(crate) latches: Latches,
    pub(crate) queue: CommitQueue,
    pub(crate) published: Published,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) versions: VersionClock,
    /// Locked by the committer for the length of a commit.
    pub(crate) last_commit: Mutex<LastCommit>,
    pub(crate) reserve: Arc<Reserve>,
    /// Lines about a store that cannot write.
    pub(crate) faults: LogLimit,
    pub(crate) figures: Figures,
    pub(crate) sync_to: SyncTo,
    /// Bytes of deleted rows of dropped spaces that are still on disk.
    pub(crate) garbage_bytes: AtomicU64,
    /// Held while a compaction runs.
    pub(crate) compacting: Mutex<()>,
    /// Whether the store is open for deletes only, without background work
    /// ([`Mode::Freeing`](crate::store::Mode::Freeing)).
    pub(crate) is_store_freeing: AtomicBool,
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

impl Shared {
    /// How much room the disk has and the store needs.
    pub(crate) fn room(&self) -> Option<Room> {
        self.with_store(|store| Ok(store.room())).ok().flatten()
    }

    /// How much has to be free for all writes to be taken, as an operator sees it: on a full disk also what is given back
    /// to the reserve.
    pub(crate) fn needed_for_all_writes(&self, room: &Room) -> u64 {
        if self.is_full() { room.with_margin() + self.reserve.missing_bytes() } else { room.needed }
    }

    /// Whether only writes that free space are taken, or the store runs without background work.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.is_freeing() || self.is_store_freeing()
    }

    pub(crate) fn is_store_freeing(&self) -> bool {
        self.is_store_freeing.load(Ordering::Acquire)
    }

    /// Stops writes that need space while there is still room for everything that the store does by itself: flushing,
    /// compacting, deleting.
    pub(crate) fn watch_room(&self) {
        if self.reserve.is_wanted()
            && let Some(room) = self.room()
            && room.is_short()
        {
            recovery::refuse_growth(self, room);
        }
    }

    /// Whether bytes of blobs may be written beside the store. Never waits for it.
    pub(crate) fn admit_bytes(&self) -> Result<(), Fault> {
        if !self.reserve.is_wanted() {
            return Ok(());
        }
        let room = self.store.try_read().and_then(|store| store.as_ref().and_then(|store| store.room()));
        if let Some(room) = room
            && room.is_short()
        {
            recovery::refuse_growth(self, room);
        }
        self.queue.check()
    }
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self { commit_writes: Histogram::new(Histogram::COUNTS), sync_seconds: Histogram::new(Histogram::SECONDS) }
    }
}
