//! The contract of queues: a message goes to one consumer at a time, and is never lost before it is deleted or expires.
//!
//! A message is visible exactly when its time has come and it has not expired. A claim hides it for a while and gives a
//! receipt; the receipt holds until the message is claimed again, changed, deleted or expired, also after the message
//! became visible again. Messages come about in the order in which they became visible, those of one moment in the order
//! of their insertion; consumers that run at once may see it disturbed.
//!
//! Callers pass durations and get timestamps: an engine that is shared uses the clock of its database,
//! every other one by `now`.

use super::spaces::SpaceId;
use crate::error::{Fault, ReadError, WriteError};
use larimar_model::queue::Receipt;
use larimar_model::{Guid, Timestamp};
use std::future::Future;
use std::time::Duration;

/// The messages of queues. A queue is a space, and used for nothing else.
pub trait Messages: Send + Sync + 'static {
    /// Adds a message, durable on `Ok`.
    fn put_message(
        &self,
        queue: SpaceId,
        new: NewMessage<'_>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Placed, WriteError>> + Send;

    /// Takes visible messages, at most `max`, and hides them from others for a while. No other caller gets them meanwhile.
    fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Message>, WriteError>> + Send;

    /// Reads visible messages, at most `max`, and leaves them as they are. Their receipts are good for nothing that a
    /// consumer may do.
    fn peek(
        &self,
        queue: SpaceId,
        max: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Message>, ReadError>> + Send;

    /// Changes a message and hides it for a while. Its dequeue count and its expiry stay.
    fn update_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Updated, MessageError>> + Send;

    /// Removes a message.
    fn delete_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), MessageError>> + Send;

    /// Removes the messages that were there when the call began, hidden ones too. After an `Ambiguous` fault some of a
    /// large queue may be left.
    fn clear_messages(&self, queue: SpaceId, now: Timestamp) -> impl Future<Output = Result<(), WriteError>> + Send;

    /// About how many messages there are, hidden ones too; expired ones count until they are removed, which is soon.
    fn count_messages(&self, queue: SpaceId, now: Timestamp) -> impl Future<Output = Result<u64, ReadError>> + Send;

    /// Reads stored messages as they are, hidden and expired ones too, in the order of [`MessagePlace`] from after a place
    /// on, at most `max`. Returns none only at the end. Their receipts are the valid ones. Only for copies of a store.
    fn read_messages(
        &self,
        queue: SpaceId,
        after: Option<MessagePlace>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<Message>, ReadError>> + Send;

    /// Stores messages exactly as they are, with their receipts, replacing those of the same place; durable on `Ok`, and
    /// all or none of them. Only for copies of a store: nothing else may write to the queue meanwhile.
    fn restore_messages(
        &self,
        queue: SpaceId,
        messages: &[Message],
        now: Timestamp,
    ) -> impl Future<Output = Result<(), WriteError>> + Send;
}

/// Where a message stands in its queue: when it is visible, then its id.
pub type MessagePlace = (Timestamp, Guid);

/// A message to add.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// Any bytes.
    pub text: &'a [u8],
    /// How long it is not visible yet.
    pub hidden_for: Duration,
    /// How long it lives; `None` for ever.
    pub lives_for: Option<Duration>,
}

/// A message that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub id: Guid,
    /// When it was added.
    pub inserted: Timestamp,
    /// When it expires; [`Timestamp::MAX`] for never.
    pub expires: Timestamp,
    /// Good for a change or a deletion at once.
    pub receipt: Receipt,
    /// When it is visible.
    pub visible_at: Timestamp,
}

/// A message that was claimed or peeked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub id: Guid,
    /// When it was added.
    pub inserted: Timestamp,
    /// When it expires; [`Timestamp::MAX`] for never.
    pub expires: Timestamp,
    /// How often it was claimed, this time included.
    pub dequeue_count: u32,
    /// Names this delivery.
    pub receipt: Receipt,
    /// When it is visible again.
    pub visible_at: Timestamp,
    /// Its bytes.
    pub text: Vec<u8>,
}

/// What a consumer has of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageHandle {
    /// The message's name.
    pub id: Guid,
    /// The receipt of the last delivery, insertion or change.
    pub receipt: Receipt,
}

/// What a change of a message does.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The new bytes; the old ones stay if there are none.
    pub text: Option<&'a [u8]>,
    /// How long the message is hidden from now on.
    pub hidden_for: Duration,
}

/// A message that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The receipt that holds from now on.
    pub receipt: Receipt,
    /// When the message is visible again.
    pub visible_at: Timestamp,
}

/// Why a message was not changed or deleted. Nothing happened, except perhaps after a `Fault`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// There is no such message, or it has expired.
    #[error("the message does not exist")]
    NotFound,
    /// The message was claimed or changed since the receipt was given.
    #[error("the receipt is not the message's last one")]
    ReceiptMismatch,
    /// The message would be hidden beyond its end.
    #[error("the message expires before it would be visible")]
    ExpiresBefore,
    /// The queue was dropped.
    #[error("the space does not exist")]
    SpaceGone,
    /// The engine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<ReadError> for MessageError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SpaceGone => Self::SpaceGone,
            ReadError::Fault(fault) => Self::Fault(fault),
        }
    }
}
