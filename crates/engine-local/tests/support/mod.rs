//! What the tests of this crate share: short ways to read, and a store that fails on demand.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use larimar_engine::{Budget, Engine, Flow, Key, KeyRange, SpaceId, SpaceKind, SpaceName};
use larimar_engine_local::store::memory::MemoryStore;
use larimar_engine_local::store::{Batch, Mode, Reopen, Snapshot, Store, StoreError, SyncTo};
use larimar_engine_local::{Durability, Settings};
use parking_lot::Mutex;

pub(crate) fn name(table: &str) -> SpaceName<'_> {
    SpaceName { account: "account", kind: SpaceKind::Table, name: table }
}

pub(crate) fn budget(rows_max: usize) -> Budget {
    Budget { rows_max, deadline: Instant::now() + Duration::from_secs(60) }
}

pub(crate) async fn read(engine: &impl Engine, space: SpaceId, partition: &str, row: &str) -> Option<(u64, Vec<u8>)> {
    let key = Key { space, partition, row };
    engine.get(key, |row| row.map(|row| (row.version.ticks(), row.body.to_vec()))).await.unwrap()
}

/// The row keys of a space, in order.
pub(crate) async fn keys(engine: &impl Engine, space: SpaceId) -> Vec<String> {
    let mut keys = Vec::new();
    let mut rest = KeyRange::all();
    // A scan ends early when the store is opened again meanwhile.
    loop {
        let visit = |row: larimar_engine::RowRef<'_>| {
            keys.push(row.row.to_owned());
            Flow::Continue
        };
        let Some(next) = engine.scan(space, &rest, budget(usize::MAX), visit).await.unwrap() else { return keys };
        rest.start = next;
    }
}

/// Waits for something that happens in the background.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A store in memory whose commits fail between `fail` and `heal`, and after a failure until it is reopened.
#[derive(Clone, Default)]
pub(crate) struct FailingStore {
    inner: Arc<Mutex<Option<MemoryStore>>>,
    failing: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    panicking: Arc<AtomicBool>,
}

impl FailingStore {
    pub(crate) fn fail(&self) {
        self.failing.store(true, Ordering::SeqCst);
    }

    pub(crate) fn heal(&self) {
        self.failing.store(false, Ordering::SeqCst);
    }

    pub(crate) fn panic(&self) {
        self.panicking.store(true, Ordering::SeqCst);
    }

    fn with<R>(&self, f: impl FnOnce(&MemoryStore) -> R) -> R {
        f(self.inner.lock().get_or_insert_default())
    }

    fn check(&self) -> Result<(), StoreError> {
        if !self.failing.load(Ordering::SeqCst) {
            return Ok(());
        }
        let source = std::io::ErrorKind::StorageFull.into();
        Err(StoreError::Full { path: "memory".into(), source })
    }
}

impl Store for FailingStore {
    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.with(|store| store.snapshot())
    }

    fn commit(&self, batch: Batch, sync: SyncTo) -> Result<(), StoreError> {
        assert!(!self.panicking.load(Ordering::SeqCst), "as the test asked");
        if self.stopped.load(Ordering::SeqCst) {
            return Err(StoreError::Stopped { path: "memory".into() });
        }
        self.check().inspect_err(|_| self.stopped.store(true, Ordering::SeqCst))?;
        self.with(|store| store.commit(batch, sync))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.check()
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
        0
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.check()
    }

    fn stop(self: Box<Self>) -> Box<dyn Reopen> {
        self
    }

    fn finish(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Reopen for FailingStore {
    fn reopen(&mut self, _: Mode) -> Result<Box<dyn Store>, StoreError> {
        self.check()?;
        self.stopped.store(false, Ordering::SeqCst);
        Ok(Box::new(self.clone()))
    }
}

/// Settings for an engine in a folder, with little memory.
pub(crate) fn settings(folder: &Path) -> Settings {
    Settings { folder: folder.to_owned(), durability: Durability::Sync, memory_bytes: Some(64 << 20), reserve_bytes: 0 }
}
