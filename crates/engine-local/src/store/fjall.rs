//! The store on disk: fjall, an LSM tree with a journal, one keyspace for everything.
//!
//! What fjall gives: a batch is written to the journal and synced before it reaches the memtable, so
//! readers never see what is not durable; a failed write or background job stops all writing ("poisons")
//! while reads go on. What this file adds:
//!
//! - journals are inspected before fjall recovers them ([`super::journal`]), because its recovery cuts at
//!   the first entry it cannot read, whatever follows;
//! - the memtable is rotated here, by the current memory budget (fjall keeps the size of the day the
//!   store was made), and writes wait here for flushes (fjall's own wait never ends once a flush failed);
//! - reopening after a failed write cuts that write from the journal, so that it cannot come back;
//! - what the store should consist of is compared with what is there before fjall opens it ([`super::check`]), because
//!   fjall starts anew without the parts that are missing;
//! - a store is created under another name and renamed, so that a crash leaves none half made;
//! - a clean close flushes the memtable and empties the journal, so that the next start reads neither.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, LsmError, OwnedWriteBatch, PersistMode,
    Readable,
};

use parking_lot::Mutex;

use super::check::{Check, Depth, check};
use super::inventory::{Inventory, Tracker, Watermark};
use super::journal::{self, State};
use super::{Batch, Bytes, Mode, Reopen, Room, Rows, Snapshot, Store, StoreError, SyncTo};
use crate::budget::MemoryBudget;
use crate::catalogue::FORMAT;
use crate::reserve::{bytes_available, disk_bytes};

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// The data folder; the store makes its own folder inside.
    pub folder: PathBuf,
    /// How much memory to use.
    pub memory: MemoryBudget,
    /// Decides which rows compaction may drop.
    pub filter: Arc<dyn DeadRows>,
}

/// Decides which rows nothing will ever read again.
pub trait DeadRows: Send + Sync {
    /// Whether the row with this key is dead.
    fn is_dead(&self, key: &[u8]) -> bool;
}

/// No row is dead.
impl DeadRows for () {
    fn is_dead(&self, _: &[u8]) -> bool {
        false
    }
}

/// An open store.
pub struct FjallStore {
    rows: Keyspace,
    db: Database,
    options: Options,
    path: Arc<Path>,
    /// Batches from this number on were not acknowledged; `u64::MAX` while no commit has failed.
    failed_from: AtomicU64,
    tracker: Mutex<Tracker>,
    mode: Mode,
    disk: Disk,
    lock: File,
}

/// What is known of the disk.
struct Disk {
    bytes: u64,
    /// What was free and what the store needed when that was last asked: it takes a while on a file system in a network,
    /// or in a large store.
    free: Mutex<(Instant, u64)>,
    needed: Mutex<(Instant, Needed)>,
}

impl FjallStore {
    /// Opens the store in a data folder, or makes one.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        Self::open_for(options, Mode::Normal)
    }

    /// Opens the store in a data folder for all writes, or for those that free space.
    pub fn open_for(options: Options, mode: Mode) -> Result<Self, StoreError> {
        let folder = options.folder.as_path();
        std::fs::create_dir_all(folder).map_err(|source| StoreError::io(folder, source))?;
        let lock = lock(folder)?;
        Self::recover(options, lock, mode)
    }

    fn recover(options: Options, lock: File, mode: Mode) -> Result<Self, StoreError> {
        let folder = options.folder.as_path();
        let path: Arc<Path> = folder.join(STORE).into();
        let io = |source| StoreError::io(&path, source);
        let mut check = check(folder, Depth::Start).map_err(io)?;
        if !check.findings.is_empty() {
            return Err(StoreError::Refused { path: folder.to_owned(), findings: check.findings });
        }
        match check.journals.state {
            State::Intact | State::Torn => {}
            State::DamagedTail(damage) => return Err(StoreError::DamagedTail(damage)),
            State::DamagedMiddle(damage) => return Err(StoreError::DamagedMiddle(damage)),
        }
        if mode == Mode::Freeing {
            cut_flushed(&check).map_err(io)?;
        }
        if check.is_new {
            create(folder, &path)?;
            check.journals = journal::inspect(&path).map_err(io)?;
        }
        // Holds nothing, and fjall asks for it.
        OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(io)?;
        let (db, rows) = open_database(&path, &options, mode).map_err(|error| sort(&path, error))?;
        let tracker = Mutex::new(track(folder, &path, &check).map_err(io)?);
        let bytes = disk_bytes(folder).map_err(io)?;
        let disk = Disk {
            bytes,
            free: Mutex::new((Instant::now(), bytes_available(folder).map_err(io)?)),
            needed: Mutex::new((Instant::now(), Needed::of(&rows, bytes))),
        };
        Ok(Self { rows, db, options, path, failed_from: AtomicU64::new(u64::MAX), tracker, mode, disk, lock })
    }

    /// Waits until background work leaves room for one more batch.
    fn wait_for_room(&self) -> Result<(), StoreError> {
        let tree = &self.rows.tree;
        if self.mode == Mode::Freeing {
            return self.make_room();
        }
        while tree.sealed_memtable_count() >= SEALED_MEMTABLES_MAX || tree.l0_run_count() >= L0_RUNS_MAX {
            self.check_running()?;
            std::thread::sleep(ROOM_POLL);
        }
        Ok(())
    }

    /// Flushes what would make fjall wait for its own flushes, of which there are none now.
    fn make_room(&self) -> Result<(), StoreError> {
        let tree = &self.rows.tree;
        let memtable_bytes = self.memtable_bytes_when_short();
        if tree.sealed_memtable_count() >= SEALED_MEMTABLES_HALT || tree.active_memtable().size() > memtable_bytes {
            self.flush()?;
        }
        if tree.l0_run_count() < L0_RUNS_HALT {
            return Ok(());
        }
        let source = std::io::Error::new(std::io::ErrorKind::StorageFull, "too many tables wait for a compaction");
        Err(StoreError::Full { path: self.path.to_path_buf(), source })
    }

    /// Moves the memtable to a table, in this thread.
    fn flush(&self) -> Result<(), StoreError> {
        // A flush that fails leaves a file, which would take what is left of the room until the store is opened again.
        let bytes = self.rows.tree.version_memtable_size_sum();
        let room = bytes_available(&self.path).map_err(|source| StoreError::io(&self.path, source))?;
        if room < bytes + bytes / 8 {
            let source = std::io::Error::new(std::io::ErrorKind::StorageFull, "no room for what is in memory");
            return Err(StoreError::Full { path: self.path.to_path_buf(), source });
        }
        self.rows.tree.flush_active_memtable(0).map_err(|error| self.sort(error.into()))?;
        self.cut_sealed().map_err(|source| StoreError::io(&self.path, source))
    }

    /// Empties the journals but the newest: without background work none is sealed while the store is open, so all of
    /// them are older than what was just flushed.
    fn cut_sealed(&self) -> std::io::Result<()> {
        let mut journals = journal::journal_files(&self.path)?;
        journals.pop();
        journals.iter().try_for_each(|path| cut(path, 0))
    }

    /// How large the memtable becomes. On a disk with little room it is small, so that what is in memory can still be
    /// flushed when something else takes that room.
    fn memtable_bytes(&self) -> u64 {
        let memtable_bytes = self.options.memory.memtable_bytes;
        match bytes_available(&self.path) {
            Ok(room) if room < MEMTABLES_IN_ROOM * memtable_bytes => self.memtable_bytes_when_short(),
            _ => memtable_bytes,
        }
    }

    fn memtable_bytes_when_short(&self) -> u64 {
        let memtable_bytes = self.options.memory.memtable_bytes;
        (memtable_bytes / 4).min(self.disk.bytes / MEMTABLES_IN_DISK).max(MemoryBudget::smallest().memtable_bytes)
    }

    fn check_running(&self) -> Result<(), StoreError> {
        self.db.persist(PersistMode::Buffer).map_err(|error| self.sort(error))
    }

    fn sort(&self, error: fjall::Error) -> StoreError {
        sort(&self.path, error)
    }

    fn rotate(&self) {
        // The batch is committed; what can fail here is the removal of an old journal.
        if let Err(error) = self.rows.rotate_memtable() {
            tracing::warn!(%error, "housekeeping after a commit failed");
        }
    }

    fn track_commit(&self, seqno: u64, sync: SyncTo) {
        let mut tracker = self.tracker.lock();
        // The commit itself is durable; what could not be noted now is noted with the next one.
        if let Err(error) = tracker.committed(seqno) {
            tracing::warn!(%error, "the inventory of the store could not be written");
        }
        if sync == SyncTo::Disk {
            tracker.write_watermark();
        }
    }

    /// Lets compaction drop the versions of rows that no open snapshot sees. fjall finds out which those are after every
    /// so many snapshots that were closed, and not otherwise.
    fn forget_old_versions(&self) {
        for _ in 0..SNAPSHOTS_PER_GC {
            drop(self.db.snapshot());
        }
    }

    fn journal_bytes(&self) -> u64 {
        let journals = journal::journal_files(&self.path).unwrap_or_default();
        journals.iter().map(|path| bytes_on_disk(path)).sum()
    }

    fn memtables_empty(&self) -> bool {
        let tree = &self.rows.tree;
        tree.sealed_memtable_count() == 0 && tree.active_memtable().is_empty()
    }
}

impl Store for FjallStore {
    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::new(FjallSnapshot { snapshot: self.db.snapshot(), rows: self.rows.clone(), path: Arc::clone(&self.path) })
    }

    fn commit(&self, batch: Batch, sync: SyncTo) -> Result<(), StoreError> {
        let seqno = self.db.seqno();
        let result = self.wait_for_room().and_then(|()| {
            let mode = match sync {
                SyncTo::Disk => PersistMode::SyncData,
                SyncTo::System => PersistMode::Buffer,
            };
            let mut writes = OwnedWriteBatch::with_capacity(self.db.clone(), batch.writes.len()).durability(Some(mode));
            for (key, value) in batch.writes {
                match value {
                    Some(value) => writes.insert(&self.rows, key, value),
                    None => writes.remove(&self.rows, key),
                }
            }
            writes.commit().map_err(|error| self.sort(error))
        });
        match result {
            Ok(()) => {
                self.track_commit(seqno, sync);
                let size = self.rows.tree.active_memtable().size();
                if self.mode == Mode::Normal && size > self.memtable_bytes_when_short() && size > self.memtable_bytes()
                {
                    self.rotate();
                }
                Ok(())
            }
            Err(error) => {
                self.failed_from.fetch_min(seqno, Ordering::AcqRel);
                Err(error)
            }
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.db.persist(PersistMode::SyncData).map_err(|error| self.sort(error))?;
        self.tracker.lock().write_watermark();
        Ok(())
    }

    fn record_blobs(&self) -> Result<(), StoreError> {
        self.tracker.lock().record_blobs().map_err(|source| StoreError::io(&self.path, source))
    }

    fn discard(&self, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        self.rows.tree.drop_range(from..to).map_err(|error| self.sort(error.into()))
    }

    fn settle(&self) -> Result<(), StoreError> {
        if self.mode == Mode::Freeing {
            return self.flush();
        }
        self.wait_for_room()?;
        self.forget_old_versions();
        self.rows.rotate_memtable().map_err(|error| self.sort(error))?;
        while self.rows.tree.sealed_memtable_count() > 0 {
            self.check_running()?;
            std::thread::sleep(ROOM_POLL);
        }
        Ok(())
    }

    fn compact(&self, bytes: u64) -> Result<bool, StoreError> {
        self.settle()?;
        let room = bytes_available(&self.path).map_err(|source| StoreError::io(&self.path, source))?;
        // Rows become no larger by it, and those in lower tables are compressed.
        let bytes = bytes.min(self.rows.disk_space());
        if room < bytes + bytes / 16 + COMPACTION_ROOM {
            tracing::debug!(bytes, room, "no room to compact the store");
            return Ok(self.mode == Mode::Freeing && self.journal_bytes() > JOURNAL_WORTH_CUTTING);
        }
        self.forget_old_versions();
        self.rows.major_compact().map_err(|error| self.sort(error))?;
        Ok(true)
    }

    fn disk_bytes(&self) -> u64 {
        self.journal_bytes() + self.rows.disk_space()
    }

    fn room(&self) -> Option<Room> {
        let mut free = self.disk.free.lock();
        if free.0.elapsed() > FREE_AGE_MAX {
            *free = (Instant::now(), bytes_available(&self.path).ok()?);
        }
        let free = free.1;
        let mut known = self.disk.needed.lock();
        if known.0.elapsed() > NEEDED_AGE_MAX {
            *known = (Instant::now(), Needed::of(&self.rows, self.disk.bytes));
        }
        let Needed { all, flush, is_for_whole } = known.1;
        Some(Room { free, needed: all, flush, is_for_whole })
    }

    fn probe(&self) -> Result<(), StoreError> {
        let path = self.options.folder.join(PROBE);
        let io = |source| StoreError::io(&self.options.folder, source);
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0xA5; PROBE_BYTES])?;
            file.sync_all()
        });
        let removed = std::fs::remove_file(&path);
        written.and(removed).map_err(io)
    }

    fn stop(self: Box<Self>) -> Box<dyn Reopen> {
        // Without background work nothing else takes away journals whose rows are in tables.
        let is_flushed = self.mode == Mode::Freeing && self.flush().is_ok() && self.memtables_empty();
        let Self { rows, db, options, path, failed_from, lock, tracker: _, mode: _, disk: _ } = *self;
        drop((rows, db));
        let failed_from = if is_flushed { 0 } else { failed_from.into_inner() };
        Box::new(Stopped { options, path, failed_from, lock })
    }

    fn finish(&self) -> Result<(), StoreError> {
        match self.settle() {
            // What is in memory has no room to go to; the journals have it.
            Err(StoreError::Full { .. }) if self.mode == Mode::Freeing => return Ok(()),
            settled => settled?,
        }
        if self.memtables_empty() {
            // Everything the journals hold is in tables that are synced.
            let io = |source| StoreError::io(&self.path, source);
            for path in journal::journal_files(&self.path).map_err(io)? {
                cut(&path, 0).map_err(io)?;
            }
        }
        Ok(())
    }
}

/// A closed store, and what is not to come back when it opens.
struct Stopped {
    options: Options,
    path: Arc<Path>,
    failed_from: u64,
    lock: File,
}

impl Reopen for Stopped {
    fn reopen(&mut self, mode: Mode) -> Result<Box<dyn Store>, StoreError> {
        self.cut_failed()?;
        let lock = self.lock.try_clone().map_err(|source| StoreError::io(&self.path, source))?;
        Ok(Box::new(FjallStore::recover(self.options.clone(), lock, mode)?))
    }
}

impl Stopped {
    /// Takes batches that were answered with an error, or are in tables, out of the journals.
    fn cut_failed(&self) -> Result<(), StoreError> {
        if self.failed_from == u64::MAX {
            return Ok(());
        }
        let io = |source| StoreError::io(&self.path, source);
        for path in journal::journal_files(&self.path).map_err(io)? {
            let end = journal::end_before(&path, self.failed_from).map_err(io)?;
            cut(&path, end).map_err(io)?;
        }
        Ok(())
    }
}

struct FjallSnapshot {
    snapshot: fjall::Snapshot,
    rows: Keyspace,
    path: Arc<Path>,
}

impl Snapshot for FjallSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.snapshot.get(&self.rows, key).map_err(|error| sort(&self.path, error))
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Rows {
        let path = Arc::clone(&self.path);
        let rows = self.snapshot.range::<&[u8], _>(&self.rows, (from, to));
        Box::new(rows.map(move |row| row.into_inner().map_err(|error| sort(&path, error))))
    }
}

/// Hands the engine's verdict on dead rows to compaction.
struct Filters(std::panic::AssertUnwindSafe<Arc<dyn DeadRows>>);

impl Factory for Filters {
    fn name(&self) -> &str {
        "dead rows"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter(Arc::clone(&self.0.0)))
    }
}

struct Filter(Arc<dyn DeadRows>);

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        // Nothing reads a dead row, so an older version below may as well appear again.
        Ok(if self.0.is_dead(item.key()) { Verdict::Destroy } else { Verdict::Keep })
    }
}

/// What must stay free.
#[derive(Clone, Copy)]
struct Needed {
    /// For flushing what is in memory, for a compaction, and for the journal of some deletes.
    all: u64,
    flush: u64,
    /// Whether the compaction is one of the whole store.
    is_for_whole: bool,
}

impl Needed {
    fn of(rows: &Keyspace, disk_bytes: u64) -> Self {
        let memory = rows.tree.version_memtable_size_sum();
        let tables = rows.disk_space();
        let compaction = tables.min(COMPACTION_BYTES_MAX);
        let flush = memory + memory / 8;
        let all = flush + compaction + compaction / 16 + (disk_bytes / 16).min(DELETES_BYTES);
        Self { all, flush, is_for_whole: tables <= COMPACTION_BYTES_MAX }
    }
}

/// Empties journals whose rows are all in tables: fjall removes them only with background work.
fn cut_flushed(check: &Check) -> std::io::Result<()> {
    let Some((_, sealed)) = check.journals.journals.split_last() else { return Ok(()) };
    let is_flushed = |journal: &&journal::Journal| journal.last_seqno <= check.persisted;
    sealed.iter().filter(is_flushed).try_for_each(|journal| cut(&journal.path, 0))
}

/// Begins to keep the inventory of a store that was just opened.
fn track(folder: &Path, store: &Path, check: &Check) -> std::io::Result<Tracker> {
    let journals = &check.journals.journals;
    let (number, commits, seqno) =
        journals.last().map_or((0, 0, None), |journal| (journal.number, journal.batches, journal.last_seqno));
    let sealed = journals.iter().filter(|journal| journal.number < number);
    let inventory = Inventory {
        format: FORMAT,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        journal: number,
        sealed: sealed.map(|journal| (journal.number, journal.last_seqno.unwrap_or(0))).collect(),
        has_blobs: check.has_blobs,
    };
    let watermark = Watermark { journal: number, commits, seqno: seqno.unwrap_or(0) };
    Tracker::start(folder, store, inventory, watermark)
}

fn open_database(path: &Path, options: &Options, mode: Mode) -> fjall::Result<(Database, Keyspace)> {
    let filter = Arc::clone(&options.filter);
    let db = Database::builder(path)
        .cache_size(options.memory.cache_bytes)
        .journal_compression(CompressionType::None)
        .worker_threads_unchecked(if mode == Mode::Normal { workers() } else { 0 })
        .with_compaction_filter_factories(Arc::new(move |_| {
            let filter = std::panic::AssertUnwindSafe(Arc::clone(&filter));
            Some(Arc::new(Filters(filter)))
        }))
        .open()?;
    let rows = db.keyspace(ROWS, keyspace_options)?;
    Ok((db, rows))
}

fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        // Rotation is ours; see the head of this file.
        .max_memtable_size(u64::MAX)
        .manual_journal_persist(true)
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0))))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}

/// Threads for flushes and compaction: one of them keeps free for flushes.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4)
}

/// Makes an empty store under another name, then renames it into place.
fn create(folder: &Path, path: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::io(folder, source);
    let unfinished = folder.join(UNFINISHED);
    if unfinished.try_exists().map_err(io)? {
        std::fs::remove_dir_all(&unfinished).map_err(io)?;
    }
    let options = Options { folder: folder.to_owned(), memory: MemoryBudget::smallest(), filter: Arc::new(()) };
    drop(open_database(&unfinished, &options, Mode::Normal).map_err(|error| sort(&unfinished, error))?);
    std::fs::rename(&unfinished, path).map_err(io)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)
}

pub(crate) fn lock(folder: &Path) -> Result<File, StoreError> {
    let io = |source| StoreError::io(folder, source);
    let path = folder.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Shortens a journal, never lengthens it.
pub(crate) fn cut(path: &Path, end: u64) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.len() > end {
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(())
}

pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    let Ok(metadata) = path.metadata() else { return 0 };
    // Journals are made long and empty; what counts is what they occupy.
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    #[cfg(not(unix))]
    metadata.len()
}

fn sort(path: &Path, error: fjall::Error) -> StoreError {
    use fjall::Error;
    let path = path.to_owned();
    match error {
        Error::Io(source) | Error::Storage(LsmError::Io(source)) => StoreError::io(&path, source),
        Error::Poisoned => StoreError::Stopped { path },
        Error::Locked => StoreError::Locked { path },
        Error::Storage(damage) => StoreError::Damaged { path, reason: describe(&damage) },
        other => StoreError::Damaged { path, reason: other.to_string() },
    }
}

/// Damage in words; the library names its types.
fn describe(damage: &LsmError) -> String {
    match damage {
        LsmError::ChecksumMismatch { .. } => "the checksum of a block is wrong".to_owned(),
        LsmError::Decompress(_) => "a block cannot be decompressed".to_owned(),
        LsmError::Unrecoverable => "its files do not belong together".to_owned(),
        LsmError::InvalidTag(_) | LsmError::InvalidTrailer | LsmError::InvalidHeader(_) => {
            "a file has other contents than a table has".to_owned()
        }
        other => other.to_string(),
    }
}

/// The store's folder below the data folder.
pub(crate) const STORE: &str = "store";
const UNFINISHED: &str = "store.unfinished";
const LOCK: &str = "lock";
const ROWS: &str = "rows";
const PROBE: &str = "probe";
/// Enough for the tables that a flush writes first.
const PROBE_BYTES: usize = 16 << 20;
/// fjall stops writers for good at four; the engine's own flushes may add one.
const SEALED_MEMTABLES_MAX: usize = 2;
/// fjall slows writers at twenty and stops them at thirty.
const L0_RUNS_MAX: usize = 20;
/// After as many closed snapshots fjall looks which versions are still seen.
const SNAPSHOTS_PER_GC: usize = 10_000;
/// What must be free beside the rows that a compaction writes.
const COMPACTION_ROOM: u64 = 2 << 20;
/// Room that is kept for compactions: a small store is compacted whole, of a large one parts are.
const COMPACTION_BYTES_MAX: u64 = 1 << 30;
/// Room that is kept for deletes, at most; less on a small disk.
const DELETES_BYTES: u64 = 16 << 20;
/// With less room than for so many memtables, they become smaller.
const MEMTABLES_IN_ROOM: u64 = 24;
/// The part of a disk that a memtable then takes at most. Three of them are in memory at most.
const MEMTABLES_IN_DISK: u64 = 32;
/// How long it is known what is free.
const FREE_AGE_MAX: Duration = Duration::from_millis(5);
/// How long it is known what the store needs.
const NEEDED_AGE_MAX: Duration = Duration::from_millis(50);
/// Journals of a full disk that are worth opening the store again.
const JOURNAL_WORTH_CUTTING: u64 = 8 << 20;
const SEALED_MEMTABLES_HALT: usize = 4;
/// From thirty on fjall makes writers wait for a compaction.
const L0_RUNS_HALT: usize = 29;
const ROOM_POLL: Duration = Duration::from_millis(1);
