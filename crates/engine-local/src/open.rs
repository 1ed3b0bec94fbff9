//! Opening and closing an engine: its settings, its store, its threads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::Duration;

use larimar_engine::queue::RowQueues;
use larimar_engine::{Clock, Fault, LogLimit, SystemClock};
use larimar_model::Timestamp;
use parking_lot::{Mutex, RwLock};

use crate::budget::MemoryBudget;
use crate::catalogue::{Catalogue, DeadSpaces};
use crate::commit_feed::{CommitFeed, LastCommit};
use crate::committer::{self, CommitQueue};
use crate::engine::LocalEngine;
use crate::latch::Latches;
use crate::published::Published;
use crate::reclaim;
use crate::recovery;
use crate::reserve::Reserve;
use crate::restoring;
use crate::shared::{Figures, Shared};
use crate::store::fjall::{DeadRows, FjallStore, Options, STORE};
use crate::store::memory::MemoryStore;
use crate::store::{Mode, Store, StoreError, SyncTo};

/// How to open an engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data directory; created if it does not exist.
    pub folder: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Bytes of memory to use; `None` for a share of the machine's memory.
    pub memory_bytes: Option<u64>,
    /// Bytes of disk to reserve, so that clients can delete when the disk is full; 0 for none.
    pub reserve_bytes: u64,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: it is synced to disk.
    #[default]
    Sync,
    /// The end of the process; a power failure may lose the last 100 ms.
    Async,
    /// Nothing: no file is written.
    Memory,
}

impl LocalEngine {
    /// Opens the engine in its data directory.
    pub fn open(settings: &Settings) -> Result<Self, StoreError> {
        restoring::refuse(&settings.folder)?;
        Self::open_for(settings, None)
    }

    /// Opens the engine in its data directory, and gives every commit to a feed.
    pub fn open_fed(settings: &Settings, feed: Arc<dyn CommitFeed>) -> Result<Self, StoreError> {
        restoring::refuse(&settings.folder)?;
        Self::open_for(settings, Some(feed))
    }

    fn open_for(settings: &Settings, feed: Option<Arc<dyn CommitFeed>>) -> Result<Self, StoreError> {
        let dead = Arc::new(DeadSpaces::default());
        let mut reserve = Arc::default();
        let mut mode = Mode::Normal;
        let store: Box<dyn Store> = match settings.durability {
            Durability::Memory => Box::new(MemoryStore::default()),
            Durability::Sync | Durability::Async => {
                let folder = &settings.folder;
                let io = |source| StoreError::io(folder, source);
                std::fs::create_dir_all(folder).map_err(io)?;
                reserve = Arc::new(Reserve::find(folder, settings.reserve_bytes).map_err(io)?);
                let options = Options {
                    folder: settings.folder.clone(),
                    memory: settings.memory_bytes.map_or_else(MemoryBudget::of_machine, MemoryBudget::divide),
                    filter: Arc::clone(&dead) as Arc<dyn DeadRows>,
                };
                let store;
                (store, mode) = open_store(options, &reserve)?;
                store
            }
        };
        let sync_to = match settings.durability {
            Durability::Sync | Durability::Memory => SyncTo::Disk,
            Durability::Async => SyncTo::System,
        };
        let engine = Self::start(store, mode, dead, sync_to, reserve, feed)?;
        engine.warn_of_versions_ahead();
        Ok(engine)
    }

    /// Warns of versions far ahead of the clock, which show that the clock was wrong before.
    fn warn_of_versions_ahead(&self) {
        let ahead = Timestamp::from_ticks(self.shared.versions.last()).to_unix();
        let ahead = ahead.saturating_sub(SystemClock.now().to_unix());
        if ahead > AHEAD_MAX {
            tracing::warn!(
                seconds = ahead.as_secs(),
                "versions run ahead of the clock, so new entities get Timestamps in the future; if the clock is right \
                 now, stop the server and run `larimar repair --reset-clock`"
            );
        }
    }

    /// An engine that keeps everything in memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::on_store(Box::new(MemoryStore::default()))
    }

    /// An engine on the caller's store; for tests that make a store fail.
    pub fn on_store(store: Box<dyn Store>) -> Result<Self, StoreError> {
        Self::start(store, Mode::Normal, Arc::default(), SyncTo::Disk, Arc::default(), None)
    }

    fn start(
        store: Box<dyn Store>,
        mode: Mode,
        dead: Arc<DeadSpaces>,
        sync_to: SyncTo,
        reserve: Arc<Reserve>,
        feed: Option<Arc<dyn CommitFeed>>,
    ) -> Result<Self, StoreError> {
        let (catalogue, versions, last_commit) = Catalogue::load(store.as_ref(), dead)?;
        let last_commit = LastCommit::new(last_commit, feed, store.snapshot().as_ref())?;
        let shared = Arc::new(Shared {
            latches: Latches::new(),
            queue: CommitQueue::new(),
            published: Published::new(store.snapshot()),
            catalogue: Arc::new(catalogue),
            versions,
            last_commit: Mutex::new(last_commit),
            reserve,
            faults: LogLimit::new(),
            figures: Figures::new(),
            sync_to,
            garbage_bytes: AtomicU64::new(0),
            compacting: Mutex::new(()),
            is_store_freeing: AtomicBool::new(mode == Mode::Freeing),
            store: RwLock::new(Some(store)),
        });
        if mode == Mode::Freeing {
            recovery::take_freeing_only(&shared);
        }
        shared.watch_room();
        let threads =
            vec![spawn("larimar-commit", &shared, committer::run)?, spawn("larimar-reclaim", &shared, reclaim::run)?];
        Ok(Self { shared, threads: Mutex::new(threads), queues: RowQueues::default() })
    }

    /// Commits what is enqueued and prepares the store for a quick start. Dropping the engine afterwards
    /// also waits for background work to end; a process that is about to exit need not do that.
    pub fn close(&self) -> Result<(), StoreError> {
        self.stop();
        match &*self.shared.store.read() {
            Some(store) => store.finish(),
            None => Ok(()),
        }
    }

    /// Records that the data directory also contains the bytes of blobs: without them it does not open any more.
    pub fn record_blobs(&self) -> Result<(), StoreError> {
        self.shared.with_store(|store| store.record_blobs())
    }

    /// Returns a check whether the disk has room for bytes beside the store, such as those of blobs. It refuses them
    /// while only writes that free space are accepted.
    pub fn admission(&self) -> Arc<dyn Fn() -> Result<(), Fault> + Send + Sync> {
        let shared = Arc::clone(&self.shared);
        Arc::new(move || shared.admit_bytes())
    }

    /// The same for the commits that the archive spools: the last ones are written when the engine is closed already.
    pub fn spool_admission(&self) -> Arc<dyn Fn() -> Result<(), Fault> + Send + Sync> {
        let admit = self.admission();
        Arc::new(move || admit().or_else(|fault| if fault == committer::closed() { Ok(()) } else { Err(fault) }))
    }

    /// Ends the threads once everything enqueued is answered; readers find the engine closed.
    fn stop(&self) {
        self.shared.queue.stop();
        self.shared.catalogue.dead.wake();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the engine panicked");
            }
        }
        self.shared.published.withdraw(CLOSE_PATIENCE);
        self.shared.published.close(committer::closed());
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Opens the store in the mode that suits the disk; on a disk that is too full for that, frees the reserve first.
fn open_store(options: Options, reserve: &Arc<Reserve>) -> Result<(Box<dyn Store>, Mode), StoreError> {
    let folder = options.folder.clone();
    let open = |mode| FjallStore::open_for(options.clone(), mode, Arc::clone(reserve));
    let may_be_full = reserve.finds_little_room(&folder, &folder.join(STORE));
    let (store, mode) = match open(if may_be_full { Mode::Freeing } else { Mode::Normal }) {
        Err(StoreError::Full { .. }) if reserve.give_up() => (open(Mode::Freeing)?, Mode::Freeing),
        opened => (opened?, if may_be_full { Mode::Freeing } else { Mode::Normal }),
    };
    reserve.set_up(&folder).map_err(|source| StoreError::io(&folder, source))?;
    let needed = store.room().map_or(0, |room| room.needed);
    if mode == Mode::Normal || !reserve.take_back(needed) {
        return Ok((Box::new(store), mode));
    }
    // Now it is known how much the store needs, and there is room for that.
    let mut stopped = Box::new(store).stop();
    match stopped.reopen(Mode::Normal) {
        Err(StoreError::Full { .. }) => Ok((stopped.reopen(Mode::Freeing)?, Mode::Freeing)),
        opened => Ok((opened?, Mode::Normal)),
    }
}

fn spawn(name: &str, shared: &Arc<Shared>, run: fn(&Arc<Shared>)) -> Result<JoinHandle<()>, StoreError> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&shared))
        .map_err(|source| StoreError::Io { path: PathBuf::new(), source })
}

/// Many writes in one tick of the clock give versions a little ahead of it, but less than this.
const AHEAD_MAX: Duration = Duration::from_secs(60);
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);
