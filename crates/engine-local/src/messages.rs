//! Queues: their messages are ordinary rows, kept by `larimar_engine::queue::RowQueues`.

use crate::engine::LocalEngine;
use larimar_engine::queue::{Change, Message, MessageError, MessageHandle, Messages, NewMessage, Placed, Updated};
use larimar_engine::{ReadError, SpaceId, WriteError};
use larimar_model::Timestamp;
use std::time::Duration;

impl Messages for LocalEngine {
    async fn put_message(&self, queue: SpaceId, new: NewMessage<'_>, now: Timestamp) -> Result<Placed, WriteError> {
        self.queues.put(self, queue, new, now).await
    }

    async fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        self.queues.claim(self, queue, max, hidden_for, now).await
    }

    async fn peek(&self, queue: SpaceId, max: usize, now: Timestamp) -> Result<Vec<Message>, ReadError> {
        self.queues.peek(self, queue, max, now).await
    }

    async fn update_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        now: Timestamp,
    ) -> Result<Updated, MessageError> {
        self.queues.update(self, queue, handle, change, now).await
    }

    async fn delete_message(&self, queue: SpaceId, handle: MessageHandle, now: Timestamp) -> Result<(), MessageError> {
        self.queues.delete(self, queue, handle, now).await
    }

    async fn clear_messages(&self, queue: SpaceId, now: Timestamp) -> Result<(), WriteError> {
        self.queues.clear(self, queue, now).await
    }

    async fn count_messages(&self, queue: SpaceId, now: Timestamp) -> Result<u64, ReadError> {
        self.queues.count(self, queue, now).await
    }
}
