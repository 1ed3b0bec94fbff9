//! Room: how much the disk has and the store needs, and how writes wait for flushes and compactions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fjall::{AbstractTree, Keyspace};
use lsm_tree::{InternalValue, ValueType};
use parking_lot::Mutex;

use super::{FjallStore, cut};
use crate::budget::MemoryBudget;
use crate::reserve::{Lent, bytes_available, disk_bytes};
use crate::store::{Bytes, Mode, Room, StoreError, journal};

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
    /// Waits until background work leaves room for a batch of so many bytes; what it returns is for the time of the batch.
    pub(super) fn wait_for_room(&self, bytes: u64) -> Result<Option<Lent<'_>>, StoreError> {
        let tree = &self.rows.tree;
        if self.mode == Mode::Freeing {
            return self.make_room(bytes).map(Some);
        }
        while tree.sealed_memtable_count() >= SEALED_MEMTABLES_MAX || tree.l0_run_count() >= L0_RUNS_MAX {
            self.check_running()?;
            std::thread::sleep(ROOM_POLL);
        }
        Ok(None)
    }

    /// Flushes before fjall would wait for its own flushes, which do not run in this mode.
    fn make_room(&self, bytes: u64) -> Result<Lent<'_>, StoreError> {
        // What is committed now frees space, so the rest may use the reserve.
        self.reserve.set_lendable(true);
        let tree = &self.rows.tree;
        let memtable_bytes = self.memtable_bytes_when_short();
        let must_flush = tree.sealed_memtable_count() >= SEALED_MEMTABLES_HALT;
        if must_flush || tree.active_memtable().size() > memtable_bytes {
            match self.flush() {
                // A drop may be what makes room, and memory takes no more than the journal has room for.
                Err(StoreError::Full { .. }) if !must_flush => {}
                flushed => flushed?,
            }
        }
        if tree.l0_run_count() >= L0_RUNS_HALT {
            return Err(self.full("too many tables wait for a compaction"));
        }
        // A write that fails stops the store until it is opened again.
        self.lend(bytes + JOURNAL_BYTES)?.ok_or_else(|| self.full("no room for the journal"))
    }

    /// Makes so many bytes free for a step that frees space, out of the reserve if the disk is full.
    pub(super) fn lend(&self, bytes: u64) -> Result<Option<Lent<'_>>, StoreError> {
        let lent = match self.mode {
            Mode::Freeing => self.reserve.lend(&self.path, bytes),
            Mode::Normal => Lent::of_free(&self.path, bytes),
        };
        lent.map_err(|source| StoreError::io(&self.path, source))
    }

    fn full(&self, reason: &str) -> StoreError {
        let source = std::io::Error::new(std::io::ErrorKind::StorageFull, reason);
        StoreError::Full { path: self.path.to_path_buf(), source }
    }

    /// Moves the memtable to a table, in this thread.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        // A flush that fails leaves a file, which would use the remaining space until the store is opened again.
        let bytes = self.rows.tree.version_memtable_size_sum();
        let _room = self.lend(bytes + bytes / 8)?.ok_or_else(|| self.full("no room for what is in memory"))?;
        self.rows.tree.flush_active_memtable(0).map_err(|error| self.sort(error.into()))?;
        self.cut_sealed().map_err(|source| StoreError::io(&self.path, source))
    }

    /// Moves what is in memory to a table before the store is closed, but for rows of dropped spaces and replaced or
    /// deleted versions: no snapshot is open that could show them. Where [`Self::flush`] has no room, this may have.
    ///
    /// Memtables that are being flushed cannot be read, but the journals have the same rows.
    pub(super) fn flush_live(&self) -> Result<(), StoreError> {
        let tree = &self.rows.tree;
        let mut rows: BTreeMap<Bytes, (u64, Option<Bytes>)> = BTreeMap::new();
        let io = |source| StoreError::io(&self.path, source);
        let failed_from = self.failed_from.load(Ordering::Acquire);
        let persisted = tree.get_highest_persisted_seqno();
        let mut last = None;
        for journal in journal::inspect(&self.path).map_err(io)?.journals {
            journal::read_writes(&journal, |seqno, keyspace, key, value| {
                if Some(seqno) <= persisted || seqno >= failed_from || keyspace != self.rows.id() {
                    return;
                }
                last = Some(seqno);
                if !self.options.filter.is_dead(key) {
                    rows.insert(key.into(), (seqno, value.map(Bytes::from)));
                }
            })
            .map_err(io)?;
        }
        if last < tree.get_highest_memtable_seqno() {
            return Err(StoreError::io(&self.path, std::io::Error::other("the journals end before what is in memory")));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let size = |(key, (_, value)): (&Bytes, &(u64, Option<Bytes>))| {
            (key.len() + value.as_ref().map_or(0, |value| value.len()) + ROW_OVERHEAD) as u64
        };
        let bytes: u64 = rows.iter().map(size).sum();
        let _room =
            self.lend(bytes + bytes / 8 + TABLE_OVERHEAD)?.ok_or_else(|| self.full("no room for rows in memory"))?;
        let rows = rows.into_iter().map(|(key, (seqno, value))| {
            Ok(match value {
                Some(value) => InternalValue::from_components(key, value, seqno, ValueType::Value),
                None => InternalValue::new_tombstone(key, seqno),
            })
        });
        let sort = |error: lsm_tree::Error| self.sort(error.into());
        let Some((tables, _)) = tree.flush_to_tables(rows).map_err(sort)? else { return Ok(()) };
        tree.register_tables(&tables, None, None, &[], 0).map_err(sort)
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
/// What a table needs beside a row's key and value, about, and beside all rows.
const ROW_OVERHEAD: usize = 32;
const TABLE_OVERHEAD: u64 = 64 << 10;
/// What the journal and its inventory need beside a batch.
const JOURNAL_BYTES: u64 = 128 << 10;
const SEALED_MEMTABLES_HALT: usize = 4;
/// From thirty on fjall makes writers wait for a compaction.
const L0_RUNS_HALT: usize = 29;
pub(super) const ROOM_POLL: Duration = Duration::from_millis(1);
