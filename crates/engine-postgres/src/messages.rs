//! Queues over PostgreSQL are yet to come: every call is refused.

use crate::engine::PostgresEngine;
use larimar_engine::queue::{Change, Message, MessageError, MessageHandle, Messages, NewMessage, Placed, Updated};
use larimar_engine::{Fault, ReadError, SpaceId, WriteError};
use larimar_model::Timestamp;
use std::time::Duration;

impl Messages for PostgresEngine {
    async fn put_message(&self, _queue: SpaceId, _new: NewMessage<'_>, _now: Timestamp) -> Result<Placed, WriteError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }

    async fn claim(
        &self,
        _queue: SpaceId,
        _max: usize,
        _hidden_for: Duration,
        _now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }

    async fn peek(&self, _queue: SpaceId, _max: usize, _now: Timestamp) -> Result<Vec<Message>, ReadError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }

    async fn update_message(
        &self,
        _queue: SpaceId,
        _handle: MessageHandle,
        _change: Change<'_>,
        _now: Timestamp,
    ) -> Result<Updated, MessageError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }

    async fn delete_message(
        &self,
        _queue: SpaceId,
        _handle: MessageHandle,
        _now: Timestamp,
    ) -> Result<(), MessageError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }

    async fn clear_messages(&self, _queue: SpaceId, _now: Timestamp) -> Result<(), WriteError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }

    async fn count_messages(&self, _queue: SpaceId, _now: Timestamp) -> Result<u64, ReadError> {
        Err(Fault::Unavailable("queues over PostgreSQL are yet to come".to_owned()).into())
    }
}
