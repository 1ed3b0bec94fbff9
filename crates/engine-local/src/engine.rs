//! The calls of the contract. Opening and closing are in `open.rs`.
//!
//! A write decides under its partition's latch (`write.rs`) and waits for the commit (`committer.rs`). A read uses the
//! published snapshot (`published.rs`) and does not wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

use larimar_engine::queue::{MessagesInRows, RowQueues};
use larimar_engine::{
    Beside, Budget, Changed, Compaction, DiskRoom, EditError, Engine, Fault, Flow, Key, KeyRange, Op, Position,
    ReadError, Reads, Renamed, RowRef, Rows, Space, SpaceId, SpaceName, Spaces, Statistics, WriteError,
};
use larimar_model::Timestamp;
use parking_lot::Mutex;

use crate::committer::{Commit, Writes};
use crate::key;
use crate::reclaim;
use crate::recovery::fault;
use crate::shared::Shared;
use crate::snapshot::{LocalSnapshot, look_up, read_dropped, split_value};
use crate::write::join_value;

/// An embedded engine on files of its own.
pub struct LocalEngine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) queues: RowQueues,
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
        let decided = self.shared.decide(space, partition, now, |plan, key| {
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
        let decided = self.shared.decide(key.space, key.partition, now, |plan, key| plan.edit(key, row, &edit))?;
        let (value, _) = decided.wait().await?;
        Ok(value)
    }

    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        let mut writes = Writes::None;
        for row in rows {
            let mut key = Vec::with_capacity(16 + row.partition.len() + row.row.len());
            key::put_partition(&mut key, space, row.partition);
            key::put_row(&mut key, row.row);
            self.shared.versions.raise(row.version);
            writes.push((key.as_slice().into(), Some(join_value(row.version, row.body))));
        }
        let outcome = {
            // A drop waits until the write is in the queue: no row is stored after it.
            let live = self.shared.catalogue.live.read();
            if !live.contains(&space) {
                return Err(WriteError::SpaceGone);
            }
            self.shared.queue.push(Commit { writes, ..Commit::default() })?.1
        };
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

    async fn rename_space(&self, from: SpaceName<'_>, to: SpaceName<'_>, meta: &[u8]) -> Result<Renamed, Fault> {
        self.shared.catalogue.rename(&self.shared.queue, from, to, meta).await
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
            reclaimable_bytes: self.shared.garbage_bytes.load(Ordering::Relaxed),
            disk: self
                .shared
                .room()
                .map(|room| DiskRoom { free: room.free, needed: self.shared.needed_for_all_writes(&room) }),
            last_version: Some(Timestamp::from_ticks(self.shared.versions.last())),
            block_reads: self.shared.with_store(|store| Ok(store.block_reads())).unwrap_or_default(),
        }
    }

    async fn compact(&self) -> Result<Option<Compaction>, Fault> {
        let shared = Arc::clone(&self.shared);
        let (done, outcome) = tokio::sync::oneshot::channel();
        // A thread of its own: a compaction takes as long as the store is large, and a caller that goes away leaves it.
        let compaction = move || drop(done.send(reclaim::compact_now(&shared)));
        let spawned = std::thread::Builder::new().name("larimar-compact".to_owned()).spawn(compaction);
        spawned.map_err(|error| Fault::Unavailable(format!("a thread cannot be started: {error}")))?;
        outcome.await.unwrap_or_else(|_| Err(Fault::Unavailable("the compaction ended early".to_owned()))).map(Some)
    }

    fn ready(&self) -> Result<(), Fault> {
        self.shared.queue.check()
    }
}
