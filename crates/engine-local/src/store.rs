//! The ordered key-value store below the engine: a small trait, so that another store could take its place.
//!
//! Everything the engine needs from a store is here: read a snapshot, commit a batch whole or not at all,
//! sync, return its size. Two stores implement it: [`mod@fjall`] on disk and
//! [`memory`] for the durability mode of that name. One thread commits; any number
//! read. What a store does after damage is shown by `tests/store_faults.rs`.

pub mod check;
pub mod fjall;
pub(crate) mod inventory;
pub mod journal;
pub(crate) mod manifest;
pub mod memory;

use larimar_engine::BlockReads;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Immutable bytes that are cheap to clone; short ones need no allocation.
pub type Bytes = ::fjall::Slice;

/// An ordered key-value store with atomic batches and snapshots.
pub trait Store: Send + Sync + 'static {
    /// The store as it is now. Taken by the committing thread between two commits, it shows whole batches.
    fn snapshot(&self) -> Arc<dyn Snapshot>;

    /// Applies a batch whole or not at all. After an error nothing of it is visible, every later commit
    /// fails too, reads continue, and the store has to be closed and opened again.
    fn commit(&self, batch: Batch, sync: SyncTo) -> Result<(), StoreError>;

    /// Adds rows in the order of their keys, each key once; they are durable when it returns. For a store that is being
    /// filled: nothing reads it or commits to it meanwhile.
    fn load(&self, rows: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), StoreError> {
        let writes = rows.map(|(key, value)| (key, Some(value))).collect();
        self.commit(Batch { writes }, SyncTo::Disk)
    }

    /// Brings every commit so far to stable storage.
    fn sync(&self) -> Result<(), StoreError>;

    /// Removes what can be removed of a range at once, without reading it: a hint. Rows may remain, and
    /// older versions of rows in the range may appear again, so nothing may read the range any more.
    fn discard(&self, from: &[u8], to: &[u8]) -> Result<(), StoreError>;

    /// Moves what is in memory to its final place and frees the files that no snapshot needs.
    fn settle(&self) -> Result<(), StoreError>;

    /// Removes deleted rows from disk. It writes up to `bytes` before it removes anything, and does nothing if the disk
    /// has no room for that; whether it did.
    fn compact(&self, bytes: u64) -> Result<bool, StoreError>;

    /// Approximate bytes on disk.
    fn disk_bytes(&self) -> u64;

    /// How often blocks were found in the store's cache, if it has one.
    fn block_reads(&self) -> Vec<BlockReads> {
        Vec::new()
    }

    /// Records that the data directory also contains bytes of blobs, so that it does not open without them any more.
    fn record_blobs(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether a commit may succeed again after one failed, for example because a full disk has room.
    fn probe(&self) -> Result<(), StoreError>;

    /// How much room the disk has and the store needs; `None` if it is not on a disk.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Closes a store whose commit failed. Its snapshots must be gone.
    fn stop(self: Box<Self>) -> Box<dyn Reopen>;

    /// Prepares for a quick start next time; nothing may be committed afterwards. Without it nothing is lost.
    fn finish(&self) -> Result<(), StoreError>;
}

/// A store that was closed because a commit failed.
pub trait Reopen: Send {
    /// Opens the store with exactly what was committed: the failed commit does not come back.
    fn reopen(&mut self, mode: Mode) -> Result<Box<dyn Store>, StoreError>;
}

/// Room on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that must stay free for work that needs no more writes to happen: flushing what is in memory, compacting,
    /// and the journal of some deletes.
    pub needed: u64,
    /// How much of that is for flushing what is in memory.
    pub flush: u64,
    /// Whether the rest is enough to compact the whole store; of a large one only parts are compacted.
    pub is_for_whole: bool,
}

impl Room {
    /// Whether writes that need space have to stop.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.free < self.needed
    }

    /// Whether there is room for such writes again, and for some time.
    #[must_use]
    pub fn is_ample(&self) -> bool {
        self.free >= self.with_margin()
    }

    /// Whether not even what is in memory can be flushed: background work fails.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.missing_to_flush(0) > 0
    }

    /// How much is missing to flush what is in memory, with so many bytes of the reserve.
    pub(crate) fn missing_to_flush(&self, reserve: u64) -> u64 {
        (self.flush + ROOM_MARGIN / 4).saturating_sub(self.free + reserve)
    }

    /// What is needed and some more, so that the next write is not the last one again.
    pub(crate) fn with_margin(&self) -> u64 {
        self.needed + self.needed / 8 + ROOM_MARGIN
    }
}

const ROOM_MARGIN: u64 = 4 << 20;

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For all writes.
    Normal,
    /// For deletes on a full disk: nothing is flushed or compacted but when asked for, as that takes room.
    Freeing,
}

/// A store at one moment.
pub trait Snapshot: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The keys within the bounds and their values, in ascending order.
    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Rows;
}

/// An iterator over keys and values.
pub type Rows = Box<dyn Iterator<Item = Result<(Bytes, Bytes), StoreError>> + Send>;

/// What to write in one go: keys with their new values, or without one to delete them.
#[derive(Debug, Default)]
pub struct Batch {
    /// Writes in order; a later one to the same key wins.
    pub writes: Vec<(Bytes, Option<Bytes>)>,
}

impl Batch {
    /// Sets a key.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.writes.push((key.into(), Some(value.into())));
    }

    /// Deletes a key; one that is absent stays so.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.writes.push((key.into(), None));
    }
}

/// How far a commit has come when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncTo {
    /// On stable storage: it survives a loss of power.
    Disk,
    /// In the operating system: it survives the end of the process.
    System,
}

/// What can go wrong in a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space left for writing.
    #[error("the disk is full at {}", path.display())]
    Full {
        /// The store's directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Reading or writing failed.
    #[error("input or output failed at {}", path.display())]
    Io {
        /// The store's directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// An earlier commit failed; the store has to be opened again before it can write.
    #[error("an earlier write failed and the store at {} has not been reopened", path.display())]
    Stopped {
        /// The store's directory.
        path: PathBuf,
    },
    /// Another process has the store open.
    #[error("another process uses {}", path.display())]
    Locked {
        /// The store's directory.
        path: PathBuf,
    },
    /// The last batch of a journal is damaged; `larimar repair` can cut it.
    #[error("the end of a journal is damaged: {0}; `larimar repair` shows and mends it")]
    DamagedTail(journal::Damage),
    /// A journal is damaged and intact writes follow.
    #[error("a journal is damaged before intact writes: {0}; `larimar repair` shows what would be lost")]
    DamagedMiddle(journal::Damage),
    /// Files are missing, damaged or too new. Nothing was changed.
    #[error("{}", refusal(path, findings))]
    Refused {
        /// The data directory.
        path: PathBuf,
        /// What is wrong with it.
        findings: Vec<check::Finding>,
    },
    /// Another file of the store is damaged or was written by something else.
    #[error("the store at {} cannot be read: {reason}; `larimar repair` shows what is damaged", path.display())]
    Damaged {
        /// The store's directory.
        path: PathBuf,
        /// What the store said.
        reason: String,
    },
}

/// Why a data directory is not opened, and what to do.
fn refusal(folder: &Path, findings: &[check::Finding]) -> String {
    let is_newer = findings.iter().any(|finding| finding.kind == check::Kind::Newer);
    let advice = if is_newer {
        "open it with that release or a later one"
    } else {
        "restore the folder from a backup, or run `larimar repair`, which shows what can be saved"
    };
    let list: Vec<String> = findings.iter().take(FINDINGS_SHOWN).map(ToString::to_string).collect();
    let more = findings.len().saturating_sub(FINDINGS_SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{} is not opened: {}{more}. Nothing was changed; {advice}", folder.display(), list.join("; "))
}

/// Findings that an error lists; `larimar repair` lists all.
const FINDINGS_SHOWN: usize = 3;

impl StoreError {
    /// Sorts an error of the operating system.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull, WriteZero};
        let path = path.to_owned();
        match source.kind() {
            StorageFull | QuotaExceeded | WriteZero => Self::Full { path, source },
            _ => Self::Io { path, source },
        }
    }
}
