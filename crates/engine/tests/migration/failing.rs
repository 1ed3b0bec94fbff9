//! An engine on which the write of a certain number fails, sometimes after it was done.

use larimar_engine::queue::Message;
use larimar_engine::{
    Beside, Changed, EditError, Fault, Key, MemoryEngine, MemorySnapshot, Op, Reads, RowRef, Rows as _, SpaceId,
    SpaceName, Spaces as _, WriteError,
};
use larimar_model::Timestamp;
use larimar_testkit::engine::layer::{Layer, Layered};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The engine as tests use it.
pub(crate) type Failing = Layered<FailingWrites>;

pub(crate) struct FailingWrites {
    pub(crate) inner: MemoryEngine,
    /// Writes until the failure; 0 for none.
    pub(crate) writes: AtomicU64,
    /// Rows and messages that were restored.
    pub(crate) rows: AtomicU64,
    /// The name of a space that another process creates and fills just before this one creates it.
    overtaken: Mutex<Option<&'static str>>,
}

/// What tests do with the engine besides calling it.
pub(crate) trait Control {
    fn after(writes: u64) -> Self;
    fn overtake(&self, name: &'static str);
}

impl Control for Failing {
    fn after(writes: u64) -> Self {
        Self(FailingWrites {
            inner: MemoryEngine::new(),
            writes: writes.into(),
            rows: AtomicU64::new(0),
            overtaken: Mutex::default(),
        })
    }

    fn overtake(&self, name: &'static str) {
        *self.0.overtaken.lock().expect("no panic") = Some(name);
    }
}

impl FailingWrites {
    async fn write<T, X: From<Fault>>(&self, write: impl Future<Output = Result<T, X>>) -> Result<T, X> {
        let left = self.writes.load(Ordering::Relaxed);
        self.writes.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 1 {
            if self.rows.load(Ordering::Relaxed).is_multiple_of(2) {
                write.await?;
            }
            return Err(Fault::Unavailable("interrupted".to_owned()).into());
        }
        write.await
    }
}

impl Layer for FailingWrites {
    type Below = MemoryEngine;
    type Snapshot = MemorySnapshot;

    fn below(&self) -> &MemoryEngine {
        &self.inner
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<MemorySnapshot, Fault> {
        self.inner.snapshot(reads, deadline).await
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        self.write(self.inner.apply_with(space, partition, ops, beside, now)).await
    }

    async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        self.write(self.inner.edit(key, now, edit)).await
    }

    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        self.write(self.inner.restore(space, rows)).await
    }

    async fn restore_messages(&self, queue: SpaceId, messages: &[Message], now: Timestamp) -> Result<(), WriteError> {
        use larimar_engine::Messages as _;
        self.rows.fetch_add(messages.len() as u64, Ordering::Relaxed);
        self.write(self.inner.restore_messages(queue, messages, now)).await
    }

    async fn create_space(&self, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        let is_overtaken = self.overtaken.lock().expect("no panic").take_if(|other| *other == name.name).is_some();
        if is_overtaken {
            let space = self.inner.create_space(name, meta).await?.expect("nobody else creates it");
            super::put(&self.inner, space, "p", "r", b"of another run").await;
        }
        self.write(self.inner.create_space(name, meta)).await
    }

    async fn change_space(&self, name: SpaceName<'_>, expected: &[u8], meta: &[u8]) -> Result<Changed, Fault> {
        self.write(self.inner.change_space(name, expected, meta)).await
    }

    async fn drop_space(&self, name: SpaceName<'_>) -> Result<bool, Fault> {
        self.write(self.inner.drop_space(name)).await
    }
}
