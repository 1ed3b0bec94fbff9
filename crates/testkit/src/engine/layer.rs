//! An engine over another engine that changes some of its calls: for tests of the layers above, and of the suite itself.

use larimar_engine::queue::{
    Change, Message, MessageError, MessageHandle, MessagePlace, Messages, NewMessage, Placed, Updated,
};
use larimar_engine::{
    Beside, Budget, Changed, Compaction, EditError, Engine, Fault, Flow, Key, KeyRange, Moment, Op, Position,
    ReadError, Reads, Renamed, RowRef, Rows, Snapshot, Space, SpaceId, SpaceName, Spaces, Statistics, WriteError,
};
use larimar_model::Timestamp;
use std::time::{Duration, Instant};

/// The calls of an engine. Each goes to another engine unless the layer overrides it.
#[expect(missing_docs, reason = "the calls are those of `Engine`")]
pub trait Layer: Send + Sync + 'static {
    /// The engine below.
    type Below: Engine;
    /// As [`Rows::Snapshot`]; usually that of the engine below.
    type Snapshot: Snapshot;

    /// The engine below.
    fn below(&self) -> &Self::Below;

    fn snapshot(&self, reads: Reads, deadline: Instant) -> impl Future<Output = Result<Self::Snapshot, Fault>> + Send;

    fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> impl Future<Output = Result<R, ReadError>> + Send {
        self.below().get(key, visit)
    }

    fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> impl Future<Output = Result<Option<Position>, ReadError>> + Send {
        self.below().scan(space, range, budget, visit)
    }

    fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Timestamp>, WriteError>> + Send {
        self.below().apply_with(space, partition, ops, beside, now)
    }

    fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> impl Future<Output = Result<T, EditError<R>>> + Send {
        self.below().edit(key, now, edit)
    }

    fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> impl Future<Output = Result<(), WriteError>> + Send {
        self.below().restore(space, rows)
    }

    fn create_space(
        &self,
        name: SpaceName<'_>,
        meta: &[u8],
    ) -> impl Future<Output = Result<Option<SpaceId>, Fault>> + Send {
        self.below().create_space(name, meta)
    }

    fn change_space(
        &self,
        name: SpaceName<'_>,
        expected: &[u8],
        meta: &[u8],
    ) -> impl Future<Output = Result<Changed, Fault>> + Send {
        self.below().change_space(name, expected, meta)
    }

    fn drop_space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<bool, Fault>> + Send {
        self.below().drop_space(name)
    }

    fn space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<Option<Space>, Fault>> + Send {
        self.below().space(name)
    }

    fn recent_space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<Option<Space>, Fault>> + Send {
        self.below().recent_space(name)
    }

    fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Message>, WriteError>> + Send {
        self.below().claim(queue, max, hidden_for, now)
    }

    fn delete_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), MessageError>> + Send {
        self.below().delete_message(queue, handle, now)
    }

    fn restore_messages(
        &self,
        queue: SpaceId,
        messages: &[Message],
        now: Timestamp,
    ) -> impl Future<Output = Result<(), WriteError>> + Send {
        self.below().restore_messages(queue, messages, now)
    }

    fn statistics(&self) -> Statistics {
        self.below().statistics()
    }

    fn ready(&self) -> Result<(), Fault> {
        self.below().ready()
    }
}

/// A layer as an engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layered<L>(pub L);

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Messages for Layered<L> {
    async fn put_message(&self, queue: SpaceId, new: NewMessage<'_>, now: Timestamp) -> Result<Placed, WriteError> {
        self.0.below().put_message(queue, new, now).await
    }

    async fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        self.0.claim(queue, max, hidden_for, now).await
    }

    async fn peek(&self, queue: SpaceId, max: usize, now: Timestamp) -> Result<Vec<Message>, ReadError> {
        self.0.below().peek(queue, max, now).await
    }

    async fn update_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        now: Timestamp,
    ) -> Result<Updated, MessageError> {
        self.0.below().update_message(queue, handle, change, now).await
    }

    async fn delete_message(&self, queue: SpaceId, handle: MessageHandle, now: Timestamp) -> Result<(), MessageError> {
        self.0.delete_message(queue, handle, now).await
    }

    async fn clear_messages(&self, queue: SpaceId, now: Timestamp) -> Result<(), WriteError> {
        self.0.below().clear_messages(queue, now).await
    }

    async fn count_messages(&self, queue: SpaceId, now: Timestamp) -> Result<u64, ReadError> {
        self.0.below().count_messages(queue, now).await
    }

    async fn read_messages(
        &self,
        queue: SpaceId,
        after: Option<MessagePlace>,
        max: usize,
    ) -> Result<Vec<Message>, ReadError> {
        self.0.below().read_messages(queue, after, max).await
    }

    async fn restore_messages(&self, queue: SpaceId, messages: &[Message], now: Timestamp) -> Result<(), WriteError> {
        self.0.restore_messages(queue, messages, now).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Rows for Layered<L> {
    type Snapshot = L::Snapshot;

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<L::Snapshot, Fault> {
        self.0.snapshot(reads, deadline).await
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        self.0.get(key, visit).await
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.0.scan(space, range, budget, visit).await
    }

    async fn apply(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        self.0.apply_with(space, partition, ops, &[], now).await
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        self.0.apply_with(space, partition, ops, beside, now).await
    }

    async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        self.0.edit(key, now, edit).await
    }

    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        self.0.restore(space, rows).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Spaces for Layered<L> {
    async fn accounts(&self) -> Result<Vec<String>, Fault> {
        self.0.below().accounts().await
    }

    async fn create_space(&self, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        self.0.create_space(name, meta).await
    }

    async fn space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        self.0.space(name).await
    }

    async fn recent_space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        self.0.recent_space(name).await
    }

    async fn list_spaces(&self, from: SpaceName<'_>, max: usize) -> Result<Vec<(String, Space)>, Fault> {
        self.0.below().list_spaces(from, max).await
    }

    async fn change_space(&self, name: SpaceName<'_>, expected: &[u8], meta: &[u8]) -> Result<Changed, Fault> {
        self.0.change_space(name, expected, meta).await
    }

    async fn rename_space(&self, from: SpaceName<'_>, to: SpaceName<'_>, meta: &[u8]) -> Result<Renamed, Fault> {
        self.0.below().rename_space(from, to, meta).await
    }

    async fn drop_space(&self, name: SpaceName<'_>) -> Result<bool, Fault> {
        self.0.drop_space(name).await
    }

    async fn drop_space_if(&self, name: SpaceName<'_>, expected: &[u8]) -> Result<Changed, Fault> {
        self.0.below().drop_space_if(name, expected).await
    }

    async fn claim_dropped(&self, after: SpaceId) -> Result<Option<SpaceId>, Fault> {
        self.0.below().claim_dropped(after).await
    }

    async fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        visit: impl FnMut(RowRef<'_>) + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.0.below().read_dropped(space, from, visit).await
    }

    async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        self.0.below().forget_dropped(space).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Engine for Layered<L> {
    async fn now(&self, caller: Timestamp) -> Result<Moment, Fault> {
        self.0.below().now(caller).await
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    async fn compact(&self) -> Result<Option<Compaction>, Fault> {
        self.0.below().compact().await
    }

    fn ready(&self) -> Result<(), Fault> {
        self.0.ready()
    }
}
