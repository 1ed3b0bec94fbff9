//! A store that lives in memory only, for the durability mode `memory` and for tests.
//!
//! A sorted map from key to its versions. A version stays until no open snapshot can see it: every batch
//! has a number, a snapshot remembers the number of the last batch it shows, and each commit clears what
//! the oldest open snapshot no longer needs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{Batch, Bytes, Mode, Reopen, Rows, Snapshot, Store, StoreError, SyncTo};

/// A store without files.
#[derive(Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    map: RwLock<Map>,
    /// Open snapshots: batch number and how many show it.
    open: Mutex<BTreeMap<u64, usize>>,
}

#[derive(Debug, Default)]
struct Map {
    /// The number of the last batch.
    last: u64,
    rows: BTreeMap<Bytes, Vec<Version>>,
    /// Keys with a version that can go once no snapshot older than the batch is open.
    garbage: VecDeque<(u64, Bytes)>,
    bytes: u64,
}

/// The value a key has from a batch on; oldest first in the map.
#[derive(Debug)]
struct Version {
    batch: u64,
    value: Option<Bytes>,
}

impl Store for MemoryStore {
    fn snapshot(&self) -> Arc<dyn Snapshot> {
        let map = self.shared.map.read();
        *self.shared.open.lock().entry(map.last).or_default() += 1;
        Arc::new(MemorySnapshot { shared: Arc::clone(&self.shared), batch: map.last })
    }

    fn commit(&self, batch: Batch, _: SyncTo) -> Result<(), StoreError> {
        let mut map = self.shared.map.write();
        map.last += 1;
        for (key, value) in batch.writes {
            map.write(key, value);
        }
        let oldest = self.shared.open.lock().keys().next().copied().unwrap_or(map.last);
        map.clear(oldest);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn discard(&self, _: &[u8], _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn compact(&self, _: u64) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn disk_bytes(&self) -> u64 {
        self.shared.map.read().bytes
    }

    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn stop(self: Box<Self>) -> Box<dyn Reopen> {
        self
    }

    fn finish(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Reopen for MemoryStore {
    fn reopen(&mut self, _: Mode) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(Self { shared: Arc::clone(&self.shared) }))
    }
}

impl Map {
    fn write(&mut self, key: Bytes, value: Option<Bytes>) {
        let batch = self.last;
        self.bytes += value.as_ref().map_or(0, |value| key.len() + value.len()) as u64;
        let versions = self.rows.entry(key.clone()).or_default();
        if versions.last().is_some_and(|version| version.batch == batch) {
            let replaced = versions.pop().and_then(|version| version.value);
            self.bytes -= replaced.map_or(0, |value| key.len() + value.len()) as u64;
        }
        let leaves_garbage = !versions.is_empty() || value.is_none();
        versions.push(Version { batch, value });
        if leaves_garbage {
            self.garbage.push_back((batch, key));
        }
    }

    /// Forgets versions that a snapshot of batch `oldest` or later cannot see.
    fn clear(&mut self, oldest: u64) {
        while self.garbage.front().is_some_and(|(batch, _)| *batch <= oldest) {
            let Some((batch, key)) = self.garbage.pop_front() else { return };
            let Some(versions) = self.rows.get_mut(&key) else { continue };
            let keep_from = versions.iter().rposition(|version| version.batch <= batch).unwrap_or(0);
            for version in versions.drain(..keep_from) {
                self.bytes -= version.value.map_or(0, |value| key.len() + value.len()) as u64;
            }
            if let [Version { value: None, batch: dead }] = versions.as_slice()
                && *dead <= oldest
            {
                self.rows.remove(&key);
            }
        }
    }
}

#[derive(Debug)]
struct MemorySnapshot {
    shared: Arc<Shared>,
    batch: u64,
}

impl Snapshot for MemorySnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let map = self.shared.map.read();
        Ok(map.rows.get(key).and_then(|versions| visible(versions, self.batch)))
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Rows {
        *self.shared.open.lock().entry(self.batch).or_default() += 1;
        Box::new(MemoryRows {
            snapshot: Self { shared: Arc::clone(&self.shared), batch: self.batch },
            from: from.map(Bytes::from),
            to: to.map(Bytes::from),
            ready: VecDeque::new(),
        })
    }
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock();
        if let Some(count) = open.get_mut(&self.batch) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.batch);
            }
        }
    }
}

/// Walks a range in chunks, so that the map is locked for short times only.
struct MemoryRows {
    snapshot: MemorySnapshot,
    from: Bound<Bytes>,
    to: Bound<Bytes>,
    ready: VecDeque<(Bytes, Bytes)>,
}

impl Iterator for MemoryRows {
    type Item = Result<(Bytes, Bytes), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && !is_empty(&self.from, &self.to) {
            self.fill();
        }
        self.ready.pop_front().map(Ok)
    }
}

impl MemoryRows {
    fn fill(&mut self) {
        let map = self.snapshot.shared.map.read();
        let mut next = None;
        for (key, versions) in map.rows.range::<Bytes, _>((self.from.as_ref(), self.to.as_ref())) {
            if self.ready.len() == CHUNK_ROWS {
                next = Some(key.clone());
                break;
            }
            if let Some(value) = visible(versions, self.snapshot.batch) {
                self.ready.push_back((key.clone(), value));
            }
        }
        drop(map);
        match next {
            Some(key) => self.from = Bound::Included(key),
            None => (self.from, self.to) = (Bound::Excluded(Bytes::default()), Bound::Excluded(Bytes::default())),
        }
    }
}

fn visible(versions: &[Version], batch: u64) -> Option<Bytes> {
    versions.iter().rev().find(|version| version.batch <= batch)?.value.clone()
}

fn is_empty(from: &Bound<Bytes>, to: &Bound<Bytes>) -> bool {
    use Bound::{Excluded, Included};
    match (from, to) {
        (Included(from), Included(to)) => from > to,
        (Included(from) | Excluded(from), Included(to) | Excluded(to)) => from >= to,
        _ => false,
    }
}

const CHUNK_ROWS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &MemoryStore, key: &str, value: &str) {
        let mut batch = Batch::default();
        batch.put(key, value);
        store.commit(batch, SyncTo::Disk).expect("memory cannot fail");
    }

    fn delete(store: &MemoryStore, key: &str) {
        let mut batch = Batch::default();
        batch.delete(key);
        store.commit(batch, SyncTo::Disk).expect("memory cannot fail");
    }

    #[test]
    fn a_snapshot_keeps_what_later_batches_change() {
        let store = MemoryStore::default();
        put(&store, "a", "1");
        put(&store, "b", "1");
        let before = store.snapshot();
        put(&store, "a", "2");
        delete(&store, "b");
        put(&store, "c", "2");
        let rows: Vec<_> = before.range(Bound::Unbounded, Bound::Unbounded).map(|row| row.expect("row")).collect();
        assert_eq!(rows, [("a".into(), "1".into()), ("b".into(), "1".into())]);
        assert_eq!(store.snapshot().get(b"b").expect("get"), None);
    }

    #[test]
    fn versions_that_no_snapshot_sees_are_forgotten() {
        let store = MemoryStore::default();
        let held = store.snapshot();
        for round in 0..10 {
            put(&store, "a", &round.to_string());
        }
        delete(&store, "a");
        drop(held);
        put(&store, "b", "1");
        let map = store.shared.map.read();
        assert_eq!(map.rows.len(), 1);
        assert!(map.garbage.is_empty());
        assert_eq!(map.bytes, 2);
    }

    #[test]
    fn a_range_longer_than_a_chunk_is_walked_to_its_end() {
        let store = MemoryStore::default();
        for number in 0..CHUNK_ROWS * 3 {
            put(&store, &format!("{number:05}"), "x");
        }
        let rows = store.snapshot().range(Bound::Excluded(b"00000"), Bound::Excluded(b"00700"));
        assert_eq!(rows.count(), 699);
    }
}
