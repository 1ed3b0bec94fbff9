//! The engine itself: opening, the calls of the contract, closing.
//!
//! A write takes its partition's latch, looks at the rows it has conditions on, enqueues what it decided
//! and lets go of the latch; then it waits for the commit (`committer.rs`). A read takes the published
//! snapshot (`published.rs`) and does not wait.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use larimar_engine::queue::{MessagesInRows, RowQueues};
use larimar_engine::{
    Act, Beside, Budget, Changed, Clock, DiskRoom, EditError, Engine, Expect, Fault, Flow, Key, KeyRange, LogLimit, Op,
    Position, ReadError, Reads, RowRef, Rows, Space, SpaceId, SpaceName, Spaces, Statistics, SystemClock, WriteError,
};
use larimar_model::Timestamp;
use parking_lot::{Mutex, RwLock};

use crate::budget::MemoryBudget;
use crate::catalogue::{Catalogue, DeadSpaces};
use crate::committer::{self, Commit, CommitQueue, Writes};
use crate::key;
use crate::latch::{Latches, Stripe};
use crate::published::Published;
use crate::reclaim;
use crate::recovery::{self, fault};
use crate::reserve::Reserve;
use crate::shared::{Figures, Shared};
use crate::snapshot::{LocalSnapshot, look_up, read_dropped, split_value};
use crate::store::fjall::{DeadRows, FjallStore, Options};
use crate::store::memory::MemoryStore;
use crate::store::{Bytes, Mode, Snapshot, Store, StoreError, SyncTo};

/// An embedded engine on files of its own.
pub struct LocalEngine {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    queues: RowQueues,
}

/// How to open an engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data folder; made if it is not there.
    pub folder: PathBuf,
    /// What an acknowledged write has survived.
    pub durability: Durability,
    /// Bytes of memory to use, or as much as suits the machine.
    pub memory_bytes: Option<u64>,
    /// Bytes of disk to set aside, so that clients can delete when the disk is full; 0 for none.
    pub reserve_bytes: u64,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power: it is synced to disk.
    #[default]
    Sync,
    /// The end of the process; a loss of power may cost the last 100 ms.
    Async,
    /// Nothing: no file is written.
    Memory,
}

impl LocalEngine {
    /// Opens the engine in its data folder.
    pub fn open(settings: &Settings) -> Result<Self, StoreError> {
        let dead = Arc::new(DeadSpaces::default());
        let mut reserve = Reserve::default();
        let is_full = Reserve::finds_full_disk(&settings.folder, settings.reserve_bytes);
        let store: Box<dyn Store> = match settings.durability {
            Durability::Memory => Box::new(MemoryStore::default()),
            Durability::Sync | Durability::Async => {
                let options = Options {
                    folder: settings.folder.clone(),
                    memory: settings.memory_bytes.map_or_else(MemoryBudget::of_machine, MemoryBudget::divide),
                    filter: Arc::clone(&dead) as Arc<dyn DeadRows>,
                };
                Box::new(open_store(options, is_full)?)
            }
        };
        let sync_to = match settings.durability {
            Durability::Sync | Durability::Memory => SyncTo::Disk,
            Durability::Async => SyncTo::System,
        };
        if settings.durability != Durability::Memory {
            let folder = &settings.folder;
            reserve = Reserve::open(folder, settings.reserve_bytes).map_err(|source| StoreError::io(folder, source))?;
            if is_full {
                // If it is not so full, the store is opened again in a moment.
                reserve.release();
            }
        }
        let engine = Self::start(store, dead, sync_to, reserve)?;
        engine.warn_of_versions_ahead();
        Ok(engine)
    }

    /// Versions far ahead of the clock show that it was wrong once.
    fn warn_of_versions_ahead(&self) {
        let ahead = Timestamp::from_ticks(self.shared.versions.last()).to_unix();
        let ahead = ahead.saturating_sub(SystemClock.now().to_unix());
        if ahead > AHEAD_MAX {
            tracing::warn!(
                seconds = ahead.as_secs(),
                "versions run ahead of the clock, so new entities get Timestamps in the future; if the clock is right \
                 now, stop the server and run `larimar repair --reset-clock`"
            );
        }
    }

    /// An engine that keeps everything in memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::on_store(Box::new(MemoryStore::default()))
    }

    /// An engine on a store of the caller's; for tests that make a store fail.
    pub fn on_store(store: Box<dyn Store>) -> Result<Self, StoreError> {
        Self::start(store, Arc::default(), SyncTo::Disk, Reserve::default())
    }

    fn start(
        store: Box<dyn Store>,
        dead: Arc<DeadSpaces>,
        sync_to: SyncTo,
        reserve: Reserve,
    ) -> Result<Self, StoreError> {
        let (catalogue, versions) = Catalogue::load(store.as_ref(), dead)?;
        let shared = Arc::new(Shared {
            latches: Latches::new(),
            queue: CommitQueue::new(),
            published: Published::new(store.snapshot()),
            catalogue: Arc::new(catalogue),
            versions,
            reserve,
            faults: LogLimit::new(),
            figures: Figures::new(),
            sync_to,
            store: RwLock::new(Some(store)),
        });
        if shared.reserve.is_released() {
            recovery::take_freeing_only(&shared);
        }
        shared.watch_room();
        let threads =
            vec![spawn("larimar-commit", &shared, committer::run)?, spawn("larimar-reclaim", &shared, reclaim::run)?];
        Ok(Self { shared, threads: Mutex::new(threads), queues: RowQueues::default() })
    }

    /// Finishes what is enqueued and prepares the store for a quick start. Dropping the engine afterwards
    /// also waits for background work to end; a process that is about to exit need not do that.
    pub fn close(&self) -> Result<(), StoreError> {
        self.stop();
        match &*self.shared.store.read() {
            Some(store) => store.finish(),
            None => Ok(()),
        }
    }

    /// Notes that the bytes of blobs are in the data folder too: without them it does not open any more.
    pub fn record_blobs(&self) -> Result<(), StoreError> {
        self.shared.with_store(|store| store.record_blobs())
    }

    /// Asks whether the disk has room for bytes beside the store, such as those of blobs. It refuses them while only
    /// writes that free space are taken.
    pub fn admission(&self) -> Arc<dyn Fn() -> Result<(), Fault> + Send + Sync> {
        let shared = Arc::clone(&self.shared);
        Arc::new(move || shared.admit_bytes())
    }

    /// Ends the threads once everything enqueued is answered; readers find the engine closed.
    fn stop(&self) {
        self.shared.queue.stop();
        self.shared.catalogue.dead.wake();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the engine panicked");
            }
        }
        self.shared.published.withdraw(CLOSE_PATIENCE);
        self.shared.published.close(committer::closed());
    }

    /// Decides by the rows of a partition and enqueues the writes, all under the partition's latch. The buffer given to
    /// `decide` holds the encoded partition.
    fn decide<T, X>(
        &self,
        space: SpaceId,
        partition: &str,
        now: Timestamp,
        decide: impl FnOnce(&mut Plan<'_>, &mut Vec<u8>) -> Result<T, X>,
    ) -> Result<Decided<T, X>, ReadError> {
        KEY.with_borrow_mut(|key| {
            key.clear();
            key::put_partition(key, space, partition);
            let stripe_index = Latches::stripe_of(key);
            let mut stripe = self.shared.latches.lock(stripe_index);
            let live = self.shared.catalogue.live.read();
            if !live.contains(&space) {
                return Err(ReadError::SpaceGone);
            }
            let snapshot = self.shared.published.now()?;
            let version = self.shared.versions.next(now)?;
            let is_below_rows = self.shared.versions.is_below_rows();
            let mut plan = Plan::new(&stripe, snapshot.as_ref(), version, is_below_rows);
            let decision = decide(&mut plan, key);
            let Plan { version, mut writes, mut pending, saw_pending, growth, .. } = plan;
            if decision.is_err() {
                (writes, pending) = (Writes::None, Writes::None);
            }
            let has_writes = !writes.as_slice().is_empty();
            if !has_writes && !saw_pending {
                // Decided by committed rows alone, and nothing to write: no need to wait for a commit.
                return Ok(Decided { outcome: None, version, decision });
            }
            let stripe_of_writes = has_writes.then_some(stripe_index);
            let commit = Commit { writes, stripe: stripe_of_writes, is_small: growth.is_small(), ..Commit::default() };
            let (ticket, outcome) = self.shared.queue.push(commit)?;
            for (key, value) in pending.as_slice() {
                stripe.insert(key.clone(), value.clone(), ticket);
            }
            Ok(Decided { outcome: Some(outcome), version, decision })
        })
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        self.stop();
    }
}

impl LocalEngine {
    /// Drops a space, if its meta bytes are the expected ones or none are expected.
    async fn remove_space(&self, name: SpaceName<'_>, expected: Option<&[u8]>) -> Result<Changed, Fault> {
        let space = self.shared.catalogue.get(name);
        let dropped = self.shared.catalogue.drop(&self.shared.queue, name, expected).await?;
        if let Some(space) = space.filter(|_| dropped == Changed::Yes) {
            self.queues.forget(space.id);
        }
        Ok(dropped)
    }
}

impl Rows for LocalEngine {
    type Snapshot = LocalSnapshot;

    async fn snapshot(&self, _: Reads, _: Instant) -> Result<LocalSnapshot, Fault> {
        LocalSnapshot::open(&self.shared).await
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        if !self.shared.catalogue.is_live(key.space) {
            return Err(ReadError::SpaceGone);
        }
        let snapshot = self.shared.published.get().await?;
        let found = look_up(snapshot.as_ref(), key);
        drop(snapshot);
        let Some(value) = found.map_err(|error| fault(&error))? else { return Ok(visit(None)) };
        let (version, body) = split_value(&value)?;
        Ok(visit(Some(RowRef { partition: key.partition, row: key.row, version, body })))
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let snapshot = self.shared.published.get().await?;
        self.shared.scan(snapshot, space, range, budget, visit).await
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let decided = self.decide(space, partition, now, |plan, key| {
            plan.apply(key, ops)?;
            plan.put_beside(space, beside);
            Ok::<_, WriteError>(())
        })?;
        let ((), version) = decided.wait().await?;
        Ok(vec![version; ops.len()])
    }

    async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        let row = key.row;
        let decided = self.decide(key.space, key.partition, now, |plan, key| plan.edit(key, row, &edit))?;
        let (value, _) = decided.wait().await?;
        Ok(value)
    }

    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        if !self.shared.catalogue.is_live(space) {
            return Err(WriteError::SpaceGone);
        }
        let mut writes = Writes::None;
        for row in rows {
            let mut key = Vec::with_capacity(16 + row.partition.len() + row.row.len());
            key::put_partition(&mut key, space, row.partition);
            key::put_row(&mut key, row.row);
            self.shared.versions.raise(row.version);
            writes.push((key.as_slice().into(), Some(join_value(row.version, row.body))));
        }
        let (_, outcome) = self.shared.queue.push(Commit { writes, ..Commit::default() })?;
        Ok(outcome.wait().await?)
    }
}

impl Spaces for LocalEngine {
    async fn accounts(&self) -> Result<Vec<String>, Fault> {
        Ok(self.shared.catalogue.accounts())
    }

    async fn create_space(&self, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        self.shared.catalogue.create(&self.shared.queue, name, meta).await
    }

    async fn space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        Ok(self.shared.catalogue.get(name))
    }

    async fn list_spaces(&self, from: SpaceName<'_>, max: usize) -> Result<Vec<(String, Space)>, Fault> {
        Ok(self.shared.catalogue.list(from, max))
    }

    async fn change_space(&self, name: SpaceName<'_>, expected: &[u8], meta: &[u8]) -> Result<Changed, Fault> {
        self.shared.catalogue.change(&self.shared.queue, name, expected, meta).await
    }

    async fn drop_space(&self, name: SpaceName<'_>) -> Result<bool, Fault> {
        Ok(self.remove_space(name, None).await? == Changed::Yes)
    }

    async fn drop_space_if(&self, name: SpaceName<'_>, expected: &[u8]) -> Result<Changed, Fault> {
        self.remove_space(name, Some(expected)).await
    }

    async fn claim_dropped(&self, after: SpaceId) -> Result<Option<SpaceId>, Fault> {
        Ok(self.shared.catalogue.dead.kept_after(after))
    }

    async fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        visit: impl FnMut(RowRef<'_>) + Send,
    ) -> Result<Option<Position>, ReadError> {
        if !self.shared.catalogue.dead.is_kept(space) {
            return Err(ReadError::SpaceGone);
        }
        let snapshot = self.shared.published.get().await?;
        read_dropped(snapshot.as_ref(), space, from, visit)
    }

    async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        self.shared.catalogue.release(&self.shared.queue, space).await
    }
}

impl MessagesInRows for LocalEngine {
    fn row_queues(&self) -> &RowQueues {
        &self.queues
    }
}

impl Engine for LocalEngine {
    fn statistics(&self) -> Statistics {
        Statistics {
            commit_writes: self.shared.figures.commit_writes.snapshot(),
            sync_seconds: self.shared.figures.sync_seconds.snapshot(),
            store_bytes: self.shared.with_store(|store| Ok(store.disk_bytes())).unwrap_or(0),
            dropped_spaces: self.shared.catalogue.dead.all() as u64,
            disk: self
                .shared
                .room()
                .map(|room| DiskRoom { free: room.free, needed: self.shared.needed_for_all_writes(&room) }),
            last_version: Some(Timestamp::from_ticks(self.shared.versions.last())),
        }
    }

    fn ready(&self) -> Result<(), Fault> {
        self.shared.queue.check()
    }
}

/// A decision, which counts once the writes it rests on are durable.
struct Decided<T, X> {
    outcome: Option<committer::Outcome>,
    version: Timestamp,
    decision: Result<T, X>,
}

impl<T, X: From<Fault>> Decided<T, X> {
    /// Waits for the commit; returns the decision's value and the version of the rows it put.
    async fn wait(self) -> Result<(T, Timestamp), X> {
        if let Some(outcome) = self.outcome {
            outcome.wait().await?;
        }
        self.decision.map(|value| (value, self.version))
    }
}

/// The rows as a decision finds them, pending writes before committed ones, and the writes it makes.
struct Plan<'a> {
    stripe: &'a Stripe,
    snapshot: &'a dyn Snapshot,
    version: Timestamp,
    /// Whether rows may have versions above those of the clock.
    is_below_rows: bool,
    writes: Writes,
    /// Those of the writes that later decisions must see before they are committed.
    pending: Writes,
    /// Whether the decision rests on a pending write: then the answer has to wait for it.
    saw_pending: bool,
    growth: Growth,
}

/// How much larger a batch makes the stored data, as far as it looked at the rows before.
#[derive(Default)]
struct Growth {
    bytes: i64,
    has_deletes: bool,
}

impl Growth {
    fn add(&mut self, key_bytes: usize, old_body: Option<usize>, new_value: Option<usize>) {
        let size = |bytes: Option<usize>| bytes.map_or(0, |bytes| (key_bytes + bytes) as i64);
        self.bytes += size(new_value) - size(old_body.map(|body| body + VERSION_BYTES));
        self.has_deletes |= new_value.is_none();
    }

    /// Whether the batch may run on a full disk: it makes the data smaller, or deletes and adds next to nothing, as the
    /// deletion of a snapshot does, or a message that is taken from a queue.
    fn is_small(&self) -> bool {
        self.bytes < 0 || self.has_deletes && self.bytes <= GROWTH_MAX
    }
}

impl<'a> Plan<'a> {
    fn new(stripe: &'a Stripe, snapshot: &'a dyn Snapshot, version: Timestamp, is_below_rows: bool) -> Self {
        let (writes, pending) = (Writes::None, Writes::None);
        Self {
            stripe,
            snapshot,
            version,
            is_below_rows,
            writes,
            pending,
            saw_pending: false,
            growth: Growth::default(),
        }
    }

    /// Turns operations into writes.
    fn apply(&mut self, key: &mut Vec<u8>, ops: &[Op<'_>]) -> Result<(), WriteError> {
        let puts = ops.iter().filter(|op| matches!(op.act, Act::Put(_) | Act::Edit(_)));
        self.raise_version(key, puts.map(|op| op.row))?;
        let partition_bytes = key.len();
        for (index, op) in ops.iter().enumerate() {
            key.truncate(partition_bytes);
            key::put_row(key, op.row);
            let is_blind = op.expect == Expect::Any && !matches!(op.act, Act::Edit(_));
            let current = if is_blind { None } else { self.find(key)? };
            let current = current.as_deref().map(split_value).transpose()?;
            if !op.expect.admits(current.map(|(version, _)| version)) {
                return Err(WriteError::Condition { op: index, found: current.map(|(version, _)| version) });
            }
            let old_bytes = current.map(|(_, body)| body.len());
            match op.act {
                Act::Put(body) => self.write(key, old_bytes, Some(body)),
                Act::Edit(edit) => {
                    let body = edit(current.map(|(_, body)| body));
                    let body = body.map_err(|reason| WriteError::Refused { op: index, reason })?;
                    self.write(key, old_bytes, Some(&body));
                }
                Act::Delete => self.write(key, old_bytes, None),
                Act::Check => {}
            }
        }
        self.pending = self.writes.clone();
        Ok(())
    }

    /// Edits one row; returns the value that the edit computed.
    fn edit<T, R>(
        &mut self,
        key: &mut Vec<u8>,
        row: &str,
        edit: impl FnOnce(Option<&[u8]>) -> Result<(Vec<u8>, T), R>,
    ) -> Result<T, EditError<R>> {
        self.raise_version(key, std::iter::once(row))?;
        key::put_row(key, row);
        let current = self.find(key)?;
        let current = current.as_deref().map(split_value).transpose()?.map(|(_, body)| body);
        let (body, value) = edit(current).map_err(EditError::Refused)?;
        self.write(key, current.map(<[u8]>::len), Some(&body));
        self.pending = self.writes.clone();
        Ok(value)
    }

    /// Adds a write of a row of the partition.
    fn write(&mut self, key: &[u8], old_body: Option<usize>, new_body: Option<&[u8]>) {
        let value = new_body.map(|body| join_value(self.version, body));
        self.growth.add(key.len(), old_body, value.as_ref().map(|value| value.len()));
        self.writes.push((key.into(), value));
    }

    /// Adds rows beside the partition. No decision reads them, so they need not be found among the pending writes.
    fn put_beside(&mut self, space: SpaceId, beside: &[Beside<'_>]) {
        for row in beside {
            let mut key = Vec::with_capacity(16 + row.partition.len() + row.row.len());
            key::put_partition(&mut key, space, row.partition);
            key::put_row(&mut key, row.row);
            self.write(&key, None, row.body);
        }
    }

    /// Raises the version above those of the rows to put, which may be ahead of a clock that was reset.
    fn raise_version<'r>(&mut self, key: &mut Vec<u8>, rows: impl Iterator<Item = &'r str>) -> Result<(), Fault> {
        if !self.is_below_rows {
            return Ok(());
        }
        let partition_bytes = key.len();
        for row in rows {
            key.truncate(partition_bytes);
            key::put_row(key, row);
            if let Some(row) = self.find(key)? {
                let above = split_value(&row)?.0.ticks().saturating_add(1);
                self.version = self.version.max(Timestamp::from_ticks(above));
            }
        }
        key.truncate(partition_bytes);
        Ok(())
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        if let Some(pending) = self.stripe.pending(key) {
            self.saw_pending = true;
            return Ok(pending.cloned());
        }
        self.snapshot.get(key).map_err(|error| fault(&error))
    }
}

/// A stored value is the version, eight bytes big-endian, and the body.
fn join_value(version: Timestamp, body: &[u8]) -> Bytes {
    byteview::ByteView::fused(&version.ticks().to_be_bytes(), body).into()
}

/// Opens the store; on a disk that is too full for that, out of the reserve.
fn open_store(options: Options, is_full: bool) -> Result<FjallStore, StoreError> {
    let mode = if is_full { Mode::Freeing } else { Mode::Normal };
    match FjallStore::open_for(options.clone(), mode) {
        Err(StoreError::Full { .. }) if Reserve::give_up(&options.folder) => {
            FjallStore::open_for(options, Mode::Freeing)
        }
        opened => opened,
    }
}

fn spawn(name: &str, shared: &Arc<Shared>, run: fn(&Arc<Shared>)) -> Result<JoinHandle<()>, StoreError> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&shared))
        .map_err(|source| StoreError::Io { path: PathBuf::new(), source })
}

thread_local! {
    /// Where keys are put together.
    pub(crate) static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Many writes in one tick of the clock put versions a little ahead; this is more than that.
const AHEAD_MAX: Duration = Duration::from_secs(60);
const VERSION_BYTES: usize = 8;
/// What a batch with deletes may add on a full disk.
const GROWTH_MAX: i64 = 256;
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_full_disk_batches_are_taken_that_do_not_grow() {
        let grown = |rows: &[(Option<usize>, Option<usize>)]| {
            let mut growth = Growth::default();
            for (old_body, new_value) in rows {
                growth.add(10, *old_body, *new_value);
            }
            growth.is_small()
        };
        // A row is deleted, whether it was looked at or not.
        assert!(grown(&[(Some(100), None)]));
        assert!(grown(&[(None, None)]));
        // One goes and another of its size comes.
        assert!(grown(&[(Some(100), None), (None, Some(108))]));
        // A row becomes smaller; one that stays as it is would take room for nothing.
        assert!(grown(&[(Some(100), Some(100))]));
        assert!(!grown(&[(Some(100), Some(108))]));
        assert!(!grown(&[(None, Some(1))]));
        assert!(!grown(&[(Some(100), None), (None, Some(1000))]));
    }
}
