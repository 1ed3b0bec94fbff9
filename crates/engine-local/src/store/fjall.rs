//! The store on disk: fjall, an LSM tree with a journal, one keyspace for everything.
//!
//! What fjall provides: a batch is written to the journal and synced before it reaches the memtable, so
//! readers never see what is not durable; a failed write or background job stops all writing ("poisons")
//! while reads continue. What this module adds:
//!
//! - journals are inspected before fjall recovers them ([`super::journal`]), because its recovery cuts at
//!   the first entry it cannot read, whatever follows;
//! - the memtable is rotated here, by the current memory budget (fjall keeps the size that it had when the
//!   store was created), and writes wait here for flushes (fjall's own wait never ends once a flush failed);
//! - reopening after a failed write cuts that write from the journal, so that it cannot come back;
//! - what the store should consist of is compared with what is there before fjall opens it ([`super::check`]), because
//!   fjall would start without the parts that are missing;
//! - a store is created under another name and renamed, so that a crash leaves no incomplete store;
//! - a clean close flushes the memtable and empties the journal, so that the next start reads neither.

mod database;
mod room;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fjall::{AbstractTree, Database, Keyspace, OwnedWriteBatch, PersistMode, Readable};
use larimar_engine::BlockReads;
use parking_lot::Mutex;

use self::database::{create, open_database, sort};
use self::room::{Disk, ROOM_POLL};
use super::check::{Check, Depth, check};
use super::inventory::{Inventory, Tracker, Watermark};
use super::journal::{self, State};
use super::{Batch, Bytes, Mode, Reopen, Room, Rows, Snapshot, Store, StoreError, SyncTo};
use crate::budget::MemoryBudget;
use crate::catalogue::FORMAT;
use crate::reserve::Reserve;

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// The data directory; the store creates its own directory inside.
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
    reserve: Arc<Reserve>,
    lock: File,
}

impl FjallStore {
    /// Opens the store in a data directory, or creates one.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let folder = options.folder.as_path();
        std::fs::create_dir_all(folder).map_err(|source| StoreError::io(folder, source))?;
        Self::open_for(options, Mode::Normal, Arc::default())
    }

    /// Opens the store in a data directory for all writes, or for those that free space.
    pub(crate) fn open_for(options: Options, mode: Mode, reserve: Arc<Reserve>) -> Result<Self, StoreError> {
        let lock = lock(&options.folder)?;
        Self::recover(options, lock, mode, reserve)
    }

    fn recover(options: Options, lock: File, mode: Mode, reserve: Arc<Reserve>) -> Result<Self, StoreError> {
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
        // It is empty, but fjall expects it.
        OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(io)?;
        let (db, rows) = open_database(&path, &options, mode).map_err(|error| sort(&path, error))?;
        let tracker = Mutex::new(track(folder, &path, &check).map_err(io)?);
        let disk = Disk::new(folder, &rows).map_err(io)?;
        Ok(Self { rows, db, options, path, failed_from: AtomicU64::new(u64::MAX), tracker, mode, disk, reserve, lock })
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

    /// Lets compaction drop the versions of rows that no open snapshot sees. fjall determines them only after a certain
    /// number of snapshots was closed.
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
        let size = |(key, value): &(Bytes, Option<Bytes>)| key.len() + value.as_ref().map_or(0, |value| value.len());
        let bytes = if self.mode == Mode::Freeing { batch.writes.iter().map(size).sum::<usize>() } else { 0 };
        let result = self.wait_for_room(bytes as u64).and_then(|_room| {
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

    fn load(&self, rows: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), StoreError> {
        drop(self.wait_for_room(0)?);
        let mut tables = self.rows.start_ingestion().map_err(|error| self.sort(error))?;
        for (key, value) in rows {
            tables.write(key, value).map_err(|error| self.sort(error))?;
        }
        tables.finish().map_err(|error| self.sort(error))
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
        let _room = self.lend(LIST_BYTES)?;
        self.rows.tree.drop_range(from..to).map_err(|error| self.sort(error.into()))
    }

    fn settle(&self) -> Result<(), StoreError> {
        if self.mode == Mode::Freeing {
            return self.flush();
        }
        drop(self.wait_for_room(0)?);
        self.forget_old_versions();
        self.rows.rotate_memtable().map_err(|error| self.sort(error))?;
        while self.rows.tree.sealed_memtable_count() > 0 {
            self.check_running()?;
            std::thread::sleep(ROOM_POLL);
        }
        Ok(())
    }

    fn compact(&self, bytes: u64) -> Result<bool, StoreError> {
        match self.settle() {
            // What is in memory has no room to go to yet; what is in tables may have it.
            Err(StoreError::Full { .. }) if self.mode == Mode::Freeing => {}
            settled => settled?,
        }
        // Rows become no larger by it, and those in lower tables are compressed.
        let bytes = bytes.min(self.rows.disk_space());
        let needed = bytes + bytes / 16 + (bytes / 4).clamp(COMPACTION_ROOM_MIN, COMPACTION_ROOM_MAX);
        let Some(_room) = self.lend(needed)? else {
            tracing::debug!(needed, "no room to compact the store");
            return Ok(self.mode == Mode::Freeing && self.journal_bytes() > JOURNAL_WORTH_CUTTING);
        };
        self.forget_old_versions();
        self.rows.major_compact().map_err(|error| self.sort(error))?;
        Ok(true)
    }

    fn disk_bytes(&self) -> u64 {
        self.journal_bytes() + self.rows.disk_space()
    }

    fn block_reads(&self) -> Vec<BlockReads> {
        let metrics = self.rows.metrics();
        let reads = |of, all: usize, hits: usize| BlockReads {
            of,
            hits: hits as u64,
            // Another thread may count between the two readings.
            misses: all.saturating_sub(hits) as u64,
        };
        vec![
            reads("rows", metrics.data_block_load_count(), metrics.data_block_load_cached_count()),
            reads("index", metrics.index_block_load_count(), metrics.index_block_load_cached_count()),
            reads("filter", metrics.filter_block_load_count(), metrics.filter_block_load_cached_count()),
        ]
    }

    fn room(&self) -> Option<Room> {
        self.disk.room(&self.rows, &self.path)
    }

    fn probe(&self) -> Result<(), StoreError> {
        let path = self.options.folder.join(PROBE);
        let io = |source: std::io::Error| match StoreError::io(&self.options.folder, source) {
            StoreError::Full { path, source } => {
                let text = format!("{source}; writes resume when {} MiB are free", PROBE_BYTES >> 20);
                StoreError::Full { path, source: std::io::Error::new(std::io::ErrorKind::StorageFull, text) }
            }
            other => other,
        };
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0xA5; PROBE_BYTES])?;
            file.sync_all()
        });
        let removed = std::fs::remove_file(&path);
        written.and(removed).map_err(io)
    }

    fn stop(self: Box<Self>) -> Box<dyn Reopen> {
        // Without background work nothing else removes journals whose rows are in tables.
        let is_flushed = self.mode == Mode::Freeing
            && (self.flush().is_ok() && self.memtables_empty()
                || self.flush_live().inspect_err(|error| tracing::debug!(%error, "no room for a flush")).is_ok());
        let Self { rows, db, options, path, failed_from, reserve, lock, tracker: _, mode: _, disk: _ } = *self;
        drop((rows, db));
        let failed_from = if is_flushed { 0 } else { failed_from.into_inner() };
        Box::new(Stopped { options, path, failed_from, reserve, lock })
    }

    fn finish(&self) -> Result<(), StoreError> {
        let settled = self.settle();
        // The last flush may have begun another journal; no commit will note it.
        let noted = self.tracker.lock().rotated();
        noted.map_err(|source| StoreError::io(&self.path, source))?;
        match settled {
            // There is no room to flush what is in memory; the journals have it.
            Err(StoreError::Full { .. }) if self.mode == Mode::Freeing => return Ok(()),
            settled => settled?,
        }
        if self.memtables_empty() {
            // Everything the journals hold is in tables that are synced.
            let io = |source| StoreError::io(&self.path, source);
            for path in journal::journal_files(&self.path).map_err(io)? {
                match cut(&path, 0) {
                    // fjall removed it meanwhile.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    cut => cut.map_err(io)?,
                }
            }
        }
        Ok(())
    }
}

/// A closed store, and which batches must not reappear when it opens.
struct Stopped {
    options: Options,
    path: Arc<Path>,
    failed_from: u64,
    reserve: Arc<Reserve>,
    lock: File,
}

impl Reopen for Stopped {
    fn reopen(&mut self, mode: Mode) -> Result<Box<dyn Store>, StoreError> {
        self.cut_failed()?;
        // What the journals had is for the reserve, before anything else takes it.
        self.reserve.take_back(0);
        let lock = self.lock.try_clone().map_err(|source| StoreError::io(&self.path, source))?;
        Ok(Box::new(FjallStore::recover(self.options.clone(), lock, mode, Arc::clone(&self.reserve))?))
    }
}

impl Stopped {
    /// Removes batches that were answered with an error, or are in tables, from the journals.
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
    // Journals are created with their full length and empty; what counts is what they occupy.
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    #[cfg(not(unix))]
    metadata.len()
}

/// What the files below a directory occupy.
pub(crate) fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    if !folder.is_dir() {
        return Ok(0);
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        // Journals are made long and empty; what counts is what they occupy.
        bytes += if is_folder { folder_bytes(&entry.path())? } else { bytes_on_disk(&entry.path()) };
    }
    Ok(bytes)
}

/// The store's directory below the data directory.
pub(crate) const STORE: &str = "store";
const LOCK: &str = "lock";
const PROBE: &str = "probe";
/// Enough for the tables that a flush writes first.
const PROBE_BYTES: usize = 16 << 20;
/// What a new list of tables takes, about.
const LIST_BYTES: u64 = 128 << 10;
/// After this many closed snapshots fjall checks which versions are still visible.
const SNAPSHOTS_PER_GC: usize = 10_000;
/// What must be free beside the rows that a compaction writes.
const COMPACTION_ROOM_MIN: u64 = 256 << 10;
const COMPACTION_ROOM_MAX: u64 = 2 << 20;
/// Journals of a full disk that are worth opening the store again.
const JOURNAL_WORTH_CUTTING: u64 = 2 << 20;
