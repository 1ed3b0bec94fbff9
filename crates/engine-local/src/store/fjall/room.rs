//! Room: how much the disk has and the store needs, and how writes wait for flushes and compactions.

use std::path::Path;
use std::time::{Duration, Instant};

use fjall::{AbstractTree, Keyspace};
use parking_lot::Mutex;

use super::{FjallStore, cut};
use crate::budget::MemoryBudget;
use crate::reserve::{bytes_available, disk_bytes};
use crate::store::{Mode, Room, StoreError, journal};

/// What is known about the disk.
pub(super) struct Disk {
    bytes: u64,
    /// The free bytes, and when they were asked for: that takes a while on a network file system.
    free: Mutex<(Instant, u64)>,
    /// What the store needs, and when it was computed: that takes a while in a large store.
    needed: Mutex<(Instant, Needed)>,
}

impl Disk {
    pub(super) fn new(folder: &Path, rows: &Keyspace) -> std::io::Result<Self> {
        let bytes = disk_bytes(folder)?;
        Ok(Self {
            bytes,
            free: Mutex::new((Instant::now(), bytes_available(folder)?)),
            needed: Mutex::new((Instant::now(), Needed::of(rows, bytes))),
        })
    }

    /// How much room the disk has and the store needs; `None` if the file system does not answer.
    pub(super) fn room(&self, rows: &Keyspace, path: &Path) -> Option<Room> {
        let mut free = self.free.lock();
        if free.0.elapsed() > FREE_AGE_MAX {
            *free = (Instant::now(), bytes_available(path).ok()?);
        }
        let free = free.1;
        let mut known = self.needed.lock();
        if known.0.elapsed() > NEEDED_AGE_MAX {
            *known = (Instant::now(), Needed::of(rows, self.bytes));
        }
        let Needed { all, flush, is_for_whole } = known.1;
        Some(Room { free, needed: all, flush, is_for_whole })
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

impl FjallStore {
    /// Waits until background work leaves room for one more batch.
    pub(super) fn wait_for_room(&self) -> Result<(), StoreError> {
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

    /// Flushes before fjall would wait for its own flushes, which do not run in this mode.
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
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        // A flush that fails leaves a file, which would use the remaining space until the store is opened again.
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
    pub(super) fn memtable_bytes(&self) -> u64 {
        let memtable_bytes = self.options.memory.memtable_bytes;
        match bytes_available(&self.path) {
            Ok(room) if room < MEMTABLES_IN_ROOM * memtable_bytes => self.memtable_bytes_when_short(),
            _ => memtable_bytes,
        }
    }

    pub(super) fn memtable_bytes_when_short(&self) -> u64 {
        let memtable_bytes = self.options.memory.memtable_bytes;
        (memtable_bytes / 4).min(self.disk.bytes / MEMTABLES_IN_DISK).max(MemoryBudget::smallest().memtable_bytes)
    }
}

/// fjall stops writers at four and never resumes them; the engine's own flushes may add one.
const SEALED_MEMTABLES_MAX: usize = 2;
/// fjall slows writers at twenty and stops them at thirty.
const L0_RUNS_MAX: usize = 20;
/// Room that is kept for compactions: a small store is compacted as a whole, a large one in parts.
const COMPACTION_BYTES_MAX: u64 = 1 << 30;
/// Room that is kept for deletes, at most; less on a small disk.
const DELETES_BYTES: u64 = 16 << 20;
/// With less room than for so many memtables, they become smaller.
const MEMTABLES_IN_ROOM: u64 = 24;
/// The part of a disk that a memtable then takes at most. Three of them are in memory at most.
const MEMTABLES_IN_DISK: u64 = 32;
/// How long the number of free bytes is cached.
const FREE_AGE_MAX: Duration = Duration::from_millis(5);
/// How long the number of needed bytes is cached.
const NEEDED_AGE_MAX: Duration = Duration::from_millis(50);
const SEALED_MEMTABLES_HALT: usize = 4;
/// From thirty on fjall makes writers wait for a compaction.
const L0_RUNS_HALT: usize = 29;
pub(super) const ROOM_POLL: Duration = Duration::from_millis(1);
