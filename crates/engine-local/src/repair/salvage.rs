//! Builds a new store of what can be read of a damaged one, and keeps the damaged one.
//!
//! ```text
//! repaired/store        the new store while it is being written
//! repaired/done         it is whole
//! damaged-<n>/store     the old store, moved there
//! ```
//!
//! A repair that was interrupted continues where it stopped: before `done` the new store is removed, after it the
//! two are exchanged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::rows::RawRows;
use crate::budget::MemoryBudget;
use crate::catalogue::{CommitPoint, FORMAT, FORMAT_KEY, NAMES, NEXT_KEY, VERSION_KEY, commit_record};
use crate::key;
use crate::store::check::Check;
use crate::store::fjall::{FjallStore, Options, STORE, folder_bytes};
use crate::store::inventory::{self, INVENTORY};
use crate::store::{Batch, Bytes, Store, StoreError, SyncTo};

/// What was saved of a damaged store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// Rows and records in the new store.
    pub rows: u64,
    /// Blocks of table files that could not be read.
    pub blocks_lost: u64,
    /// Table files of which nothing could be read.
    pub tables_lost: u64,
    /// Rows whose table, queue or container is not known any more: they are stored and nothing shows them.
    pub rows_without_space: u64,
    /// Where the damaged store was moved.
    pub original: PathBuf,
}

/// Builds the new store and puts it in the place of the old one.
pub(super) fn salvage(folder: &Path, check: &Check) -> Result<Salvage, StoreError> {
    let io = |source| StoreError::io(folder, source);
    let store = folder.join(STORE);
    check_room(folder, &store)?;
    let building = folder.join(REPAIRED);
    let mut rows = RawRows::open(&store, &check.journals).map_err(io)?;
    let (count, rows_without_space) = build(&building, &mut rows, check.has_blobs)?;
    inventory::replace(&building.join(DONE), b"").map_err(io)?;
    let original = exchange(folder)?;
    let RawRows { blocks_lost, tables_lost, .. } = rows;
    Ok(Salvage { rows: count, blocks_lost, tables_lost, rows_without_space, original })
}

/// Finishes or undoes a repair that was interrupted.
pub(super) fn resume(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::io(folder, source);
    let building = folder.join(REPAIRED);
    if !building.try_exists().map_err(io)? {
        return Ok(());
    }
    if building.join(DONE).try_exists().map_err(io)? {
        exchange(folder)?;
        return Ok(());
    }
    std::fs::remove_dir_all(&building).map_err(io)
}

/// Moves the old store away and the new one into its place; each step may already be done.
fn exchange(folder: &Path) -> Result<PathBuf, StoreError> {
    let io = |source| StoreError::io(folder, source);
    let (store, building) = (folder.join(STORE), folder.join(REPAIRED));
    let built = building.join(STORE);
    let original = super::fresh_folder(folder).map_err(io)?;
    if built.try_exists().map_err(io)? {
        if store.try_exists().map_err(io)? {
            std::fs::rename(&store, original.join(STORE)).map_err(io)?;
            inventory::sync_folder(&original).map_err(io)?;
        }
        inventory::forget_watermark(folder).map_err(io)?;
        if building.join(INVENTORY).try_exists().map_err(io)? {
            std::fs::rename(building.join(INVENTORY), folder.join(INVENTORY)).map_err(io)?;
        }
        std::fs::rename(&built, &store).map_err(io)?;
        inventory::sync_folder(folder).map_err(io)?;
    }
    std::fs::remove_dir_all(&building).map_err(io)?;
    Ok(original)
}

/// The new store may become as large as the old one.
fn check_room(folder: &Path, store: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::io(folder, source);
    let needed = folder_bytes(store).map_err(io)? + SPARE_BYTES;
    let room = crate::reserve::bytes_available(folder).map_err(io)?;
    if room >= needed {
        return Ok(());
    }
    let text =
        format!("a repair writes a new store of up to {needed} bytes, and {room} bytes are free; nothing was changed");
    Err(StoreError::Full {
        path: folder.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::StorageFull, text),
    })
}

/// Writes the rows to a new store; returns how many there are, and how many of them belong to no known space.
fn build(building: &Path, rows: &mut RawRows, has_blobs: bool) -> Result<(u64, u64), StoreError> {
    let options = Options { folder: building.to_owned(), memory: MemoryBudget::smallest(), filter: Arc::new(()) };
    let store = FjallStore::open(options)?;
    let mut records = Records::default();
    let mut batch = Batch::default();
    let (mut count, mut bytes) = (0, 0);
    for (key, value) in rows {
        records.see(&key, &value);
        bytes += key.len() + value.len();
        count += 1;
        batch.put(key, value);
        if bytes > BATCH_BYTES_MAX {
            bytes = 0;
            store.commit(std::mem::take(&mut batch), SyncTo::System)?;
        }
    }
    records.complete(&mut batch);
    store.commit(batch, SyncTo::Disk)?;
    if has_blobs {
        store.record_blobs()?;
    }
    store.finish()?;
    Ok((count, records.orphans))
}

/// What the engine's own records must say, seen from the rows.
#[derive(Default)]
struct Records {
    version_max: u64,
    last_commit: CommitPoint,
    space_max: u64,
    spaces: FxHashSet<u64>,
    orphans: u64,
}

impl Records {
    fn see(&mut self, key: &[u8], value: &[u8]) {
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        if key.starts_with(NAMES) {
            self.spaces.insert(number(value));
        } else if key == VERSION_KEY {
            self.version_max = self.version_max.max(number(value));
            self.last_commit = CommitPoint::of_record(value);
        } else if key == NEXT_KEY {
            self.space_max = self.space_max.max(number(value).saturating_sub(1));
        } else if let Some((space, _)) = key::split_space(key) {
            // Records come before rows in the order of keys, so all names are known by now.
            self.version_max = self.version_max.max(number(value));
            self.space_max = self.space_max.max(space.0);
            self.orphans += u64::from(space.0 != 0 && !self.spaces.contains(&space.0));
        }
    }

    /// No version and no number of a space is given twice, even if their records are lost.
    fn complete(&self, batch: &mut Batch) {
        batch.put(FORMAT_KEY, [FORMAT]);
        batch.writes.push(commit_record(self.version_max, self.last_commit));
        batch.put(NEXT_KEY, Bytes::from((self.space_max + 1).to_be_bytes()));
    }
}

/// A name that users do not choose for a directory: what it contains is removed when a repair starts again.
pub(super) const REPAIRED: &str = "repair.unfinished";
const DONE: &str = "done";
const BATCH_BYTES_MAX: usize = 1 << 20;
/// For the journal of the new store.
const SPARE_BYTES: u64 = 16 << 20;
