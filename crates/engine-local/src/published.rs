//! The snapshot that readers use: the committer replaces it after each commit.
//!
//! One snapshot is shared by all readers until the next commit, so a read costs no more than counting a
//! reference, shows whole commits only, and sees every write acknowledged before it began. While the store
//! is being reopened there is none, and readers wait. A page that takes several reads pins its snapshot; reopening the
//! store takes it away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larimar_engine::Fault;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::store::Snapshot;

/// Where readers find the current snapshot.
pub(crate) struct Published {
    slot: RwLock<Slot>,
    changed: Notify,
    /// How often the store was reopened.
    generation: AtomicU64,
    /// Snapshots that several reads share, by number.
    pins: Mutex<FxHashMap<u64, Arc<dyn Snapshot>>>,
    last_pin: AtomicU64,
}

enum Slot {
    Open(Arc<dyn Snapshot>),
    Reopening,
    Closed(Fault),
}

impl Published {
    pub(crate) fn new(snapshot: Arc<dyn Snapshot>) -> Self {
        Self {
            slot: RwLock::new(Slot::Open(snapshot)),
            changed: Notify::new(),
            generation: AtomicU64::new(0),
            pins: Mutex::default(),
            last_pin: AtomicU64::new(0),
        }
    }

    /// The current snapshot; waits while the store is being reopened. Do not hold it across an await.
    pub(crate) async fn get(&self) -> Result<Arc<dyn Snapshot>, Fault> {
        loop {
            let changed = self.changed.notified();
            match &*self.slot.read() {
                Slot::Open(snapshot) => return Ok(Arc::clone(snapshot)),
                Slot::Closed(fault) => return Err(fault.clone()),
                Slot::Reopening => {}
            }
            changed.await;
        }
    }

    /// Keeps the current snapshot for several reads and returns its number, to be given to [`Self::unpin`].
    pub(crate) async fn pin(&self) -> Result<u64, Fault> {
        loop {
            let changed = self.changed.notified();
            match &*self.slot.read() {
                Slot::Open(snapshot) => {
                    let number = self.last_pin.fetch_add(1, Ordering::Relaxed);
                    // Under the lock of the slot: `withdraw` finds it there.
                    self.pins.lock().insert(number, Arc::clone(snapshot));
                    return Ok(number);
                }
                Slot::Closed(fault) => return Err(fault.clone()),
                Slot::Reopening => {}
            }
            changed.await;
        }
    }

    /// A pinned snapshot. Do not hold it across an await.
    pub(crate) fn pinned(&self, number: u64) -> Result<Arc<dyn Snapshot>, Fault> {
        let snapshot = self.pins.lock().get(&number).cloned();
        snapshot.ok_or_else(|| Fault::Unavailable("the store was reopened while a page was read".to_owned()))
    }

    /// Releases a pinned snapshot.
    pub(crate) fn unpin(&self, number: u64) {
        // Dropped outside of the lock.
        let snapshot = self.pins.lock().remove(&number);
        drop(snapshot);
    }

    /// The current snapshot, if there is one at this moment.
    pub(crate) fn now(&self) -> Result<Arc<dyn Snapshot>, Fault> {
        match &*self.slot.read() {
            Slot::Open(snapshot) => Ok(Arc::clone(snapshot)),
            Slot::Closed(fault) => Err(fault.clone()),
            Slot::Reopening => Err(Fault::Unavailable("the store is being reopened".to_owned())),
        }
    }

    /// Changes whenever the store was reopened: iterators from before may miss their files.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Shows readers a newer snapshot.
    pub(crate) fn publish(&self, snapshot: Arc<dyn Snapshot>) {
        // The old one is dropped outside of the lock.
        let old = std::mem::replace(&mut *self.slot.write(), Slot::Open(snapshot));
        if !matches!(old, Slot::Open(_)) {
            self.changed.notify_waiters();
        }
    }

    /// Takes the snapshot and the pinned ones away and waits until no reader holds it; gives it back if one does not let
    /// go. The pinned ones are gone in any case.
    pub(crate) fn withdraw(&self, patience: Duration) -> bool {
        let old = std::mem::replace(&mut *self.slot.write(), Slot::Reopening);
        let pins = std::mem::take(&mut *self.pins.lock());
        drop(pins);
        let Slot::Open(snapshot) = old else { return true };
        let deadline = Instant::now() + patience;
        while Arc::strong_count(&snapshot) > 1 {
            if Instant::now() >= deadline {
                self.publish(snapshot);
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Makes readers fail: there is no published snapshot.
    pub(crate) fn close(&self, fault: Fault) {
        let old = std::mem::replace(&mut *self.slot.write(), Slot::Closed(fault));
        drop(old);
        self.changed.notify_waiters();
    }
}
