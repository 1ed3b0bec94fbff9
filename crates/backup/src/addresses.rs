//! Where the payloads of the store that was backed up are in the store that is being restored.
//!
//! Commits of the archive point to payloads by their old addresses, also to those that the backup has. There may be
//! hundreds of millions of them, so the map is on disk, in a store of its own that the restore removes at its end.

use crate::error::BackupError;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::Extent;
use larimar_engine_local::budget::MemoryBudget;
use larimar_engine_local::store::fjall::{FjallStore, Options};
use larimar_engine_local::store::{Batch, Snapshot, Store as _, StoreError, SyncTo};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A map from old addresses to new ones.
pub(crate) struct Addresses {
    folder: PathBuf,
    /// What is not in the store yet.
    recent: HashMap<Extent, Extent>,
    snapshot: Arc<dyn Snapshot>,
    store: FjallStore,
}

impl Addresses {
    /// Creates an empty map in a directory that does not exist.
    pub(crate) fn create(folder: &Path) -> Result<Self, BackupError> {
        let options = Options { folder: folder.to_owned(), memory: MemoryBudget::smallest(), filter: Arc::new(()) };
        let store = FjallStore::open(options).map_err(failed)?;
        Ok(Self { folder: folder.to_owned(), recent: HashMap::new(), snapshot: store.snapshot(), store })
    }

    pub(crate) fn insert(&mut self, old: Extent, new: Extent) -> Result<(), BackupError> {
        self.recent.insert(old, new);
        if self.recent.len() >= RECENT_MAX {
            let mut batch = Batch::default();
            for (old, new) in self.recent.drain() {
                batch.put(encoded(&old), encoded(&new));
            }
            batch.writes.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.store.commit(batch, SyncTo::System).map_err(failed)?;
            self.snapshot = self.store.snapshot();
        }
        Ok(())
    }

    /// The new address of a payload.
    pub(crate) fn get(&self, old: &Extent) -> Result<Option<Extent>, BackupError> {
        if let Some(new) = self.recent.get(old) {
            return Ok(Some(*new));
        }
        let found = self.snapshot.get(&encoded(old)).map_err(failed)?;
        Ok(found.and_then(|bytes| Extent::decode(&mut &bytes[..])))
    }

    /// Removes the map.
    pub(crate) fn remove(self) -> Result<(), BackupError> {
        let Self { folder, snapshot, store, .. } = self;
        drop((snapshot, store));
        std::fs::remove_dir_all(&folder)
            .map_err(|error| BackupError::Place { what: folder.display().to_string(), reason: error.to_string() })
    }
}

fn encoded(extent: &Extent) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(36);
    extent.encode(&mut bytes);
    bytes
}

fn failed(error: StoreError) -> BackupError {
    let reason = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
    Fault::Unavailable(format!("{error}{reason}")).into()
}

/// A few MiB of addresses.
const RECENT_MAX: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_memory_and_on_disk_and_the_map_is_removed() {
        let folder = larimar_testkit::memory_directory();
        let mut addresses = Addresses::create(&folder.path().join("map")).expect("a map");
        let extent = |file: u8, offset: usize| Extent { file: [file; 16], offset: offset as u64, length: 7 };
        for number in 0..RECENT_MAX + 2 {
            addresses.insert(extent(1, number), extent(2, number)).expect("room");
        }
        for number in [0, 1, RECENT_MAX - 1, RECENT_MAX, RECENT_MAX + 1] {
            assert_eq!(addresses.get(&extent(1, number)).expect("a read"), Some(extent(2, number)), "{number}");
        }
        assert_eq!(addresses.recent.len(), 2);
        assert_eq!(addresses.get(&extent(3, 0)).expect("a read"), None);
        addresses.remove().expect("removed");
        assert_eq!(folder.path().read_dir().expect("a directory").count(), 0);
    }
}
