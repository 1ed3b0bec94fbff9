//! An engine that counts rows, lets other callers run between its calls, and can fail at any call.

use crate::Dice;
use crate::engine::layer::Layer;
use larimar_engine::{
    Act, Beside, Budget, EditError, Engine, Fault, Flow, Key, KeyRange, Op, Position, ReadError, Reads, RowRef,
    Snapshot, SpaceId, WriteError,
};
use larimar_model::Timestamp;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Counts of written rows and bytes.
#[derive(Debug, Default)]
pub(super) struct WrittenRows {
    pub(super) rows: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// An engine that counts the rows it visits and writes, and yields before each of its calls, so that even an engine in
/// memory has concurrent callers. It can fail after a number of calls, as if the process stopped there.
pub struct Counting<E> {
    pub(super) engine: Arc<E>,
    pub(super) visited: Arc<AtomicU64>,
    pub(super) written: Arc<WrittenRows>,
    pub(super) calls_left: Arc<AtomicU64>,
    pub(super) dice: Mutex<Dice>,
    pub(super) interruptions: Mutex<VecDeque<Interruption>>,
}

/// Something that happens before an engine call: the number of calls before it, and the action.
pub(super) type Interruption = (u64, Pin<Box<dyn Future<Output = ()> + Send>>);

impl<E: std::fmt::Debug> std::fmt::Debug for Counting<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counting").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Calls of an engine that does not stop.
pub(super) const ENDLESS: u64 = u64::MAX;
/// Calls of an engine that stops after its next write.
pub(super) const UNTIL_WRITE: u64 = u64::MAX - 1;

impl WrittenRows {
    fn count(&self, ops: &[Op<'_>]) {
        for op in ops {
            let bytes = match op.act {
                Act::Put(body) => body.len() as u64,
                Act::Delete | Act::Edit(_) => 0,
                Act::Check => continue,
            };
            self.rows.fetch_add(1, SeqCst);
            self.bytes.fetch_add(bytes, SeqCst);
        }
    }
}

impl<E> Counting<E> {
    /// Yields a random number of times, so that callers interleave in many orders.
    async fn yield_some(&self) {
        self.interrupt().await;
        let yields = {
            let mut dice = self.dice.lock().expect("no panic while locked");
            if dice.below(16) == 0 { 60 } else { dice.below(4) }
        };
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }

    /// Runs the next interruption if its call is reached. The calls of the interruption itself do not count.
    async fn interrupt(&self) {
        let (due, mut later) = {
            let mut waiting = self.interruptions.lock().expect("no panic while locked");
            match waiting.front_mut() {
                Some((0, _)) => {}
                Some((calls, _)) => {
                    *calls -= 1;
                    return;
                }
                None => return,
            }
            (waiting.pop_front(), std::mem::take(&mut *waiting))
        };
        if let Some((_, due)) = due {
            due.await;
        }
        self.interruptions.lock().expect("no panic while locked").append(&mut later);
    }

    /// Counts a call, and fails if none is left. The last write may be applied and only its answer lost.
    fn take_call(&self) -> Result<(), Fault> {
        let take = |left: u64| if left >= UNTIL_WRITE { None } else { left.checked_sub(1) };
        match self.calls_left.fetch_update(SeqCst, SeqCst, take) {
            Ok(_) | Err(ENDLESS | UNTIL_WRITE) => Ok(()),
            Err(_) => Err(Fault::Unavailable("the engine has stopped".to_owned())),
        }
    }

    /// Loses the answer to a write if the engine has stopped meanwhile; otherwise stops the engine if it was the last write.
    fn end_write(&self) -> Result<(), Fault> {
        if self.loses_answer() {
            return Err(Fault::Ambiguous("the engine has stopped".to_owned()));
        }
        let _ = self.calls_left.compare_exchange(UNTIL_WRITE, 0, SeqCst, SeqCst);
        Ok(())
    }

    fn loses_answer(&self) -> bool {
        self.calls_left.load(SeqCst) == 0 && self.dice.lock().expect("no panic while locked").below(2) == 0
    }
}

impl<E: Engine> Layer for Counting<E> {
    type Below = E;
    type Snapshot = CountingSnapshot<E::Snapshot>;

    fn below(&self) -> &E {
        &self.engine
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<Self::Snapshot, Fault> {
        self.yield_some().await;
        self.take_call()?;
        let snapshot = self.engine.snapshot(reads, deadline).await?;
        Ok(CountingSnapshot { snapshot, visited: Arc::clone(&self.visited) })
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        self.yield_some().await;
        self.take_call()?;
        self.engine.get(key, visit).await
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        self.yield_some().await;
        self.take_call()?;
        self.written.count(ops);
        self.written.rows.fetch_add(beside.len() as u64, SeqCst);
        let applied = self.engine.apply_with(space, partition, ops, beside, now).await;
        self.end_write()?;
        applied
    }

    async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        self.yield_some().await;
        self.take_call()?;
        self.written.rows.fetch_add(1, SeqCst);
        let edited = self.engine.edit(key, now, edit).await;
        self.end_write()?;
        edited
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let counted = |row: RowRef<'_>| {
            self.visited.fetch_add(1, SeqCst);
            visit(row)
        };
        self.yield_some().await;
        self.take_call()?;
        self.engine.scan(space, range, budget, counted).await
    }
}

/// A snapshot that counts the rows it reads.
#[derive(Debug)]
pub struct CountingSnapshot<S> {
    snapshot: S,
    visited: Arc<AtomicU64>,
}

impl<S: Snapshot> Snapshot for CountingSnapshot<S> {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let visited = &self.visited;
        let counted = |row: RowRef<'_>| {
            visited.fetch_add(1, SeqCst);
            visit(row)
        };
        self.snapshot.scan(space, range, budget, counted).await
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        let visited = &self.visited;
        let counted = |row: RowRef<'_>| {
            visited.fetch_add(1, SeqCst);
            visit(row)
        };
        self.snapshot.get_many(space, keys, budget, counted).await
    }
}
