//! Queues: messages have a table of their own, and their times are those of the database's clock.
//!
//! A claim locks the first visible messages that no other session has locked and hides them, in one statement, so
//! consumers on any number of servers get different messages and do not wait for each other. Puts and deletes of
//! concurrent requests share statements (`message_writes.rs`).

use crate::core::{LOCK_TIMEOUT, jittered, token};
use crate::engine::{Parts, PostgresEngine};
use crate::failure::Failure;
use crate::key;
use crate::message_writes::{Delete, MessageOutcome, MessageWrite, Put};
use crate::pool::SendError;
use crate::statements::messages::{
    ClaimMessages, ClearMessages, ConfirmMessages, CountMessages, ExplainMessage, LastMessage, MessageRow,
    PeekMessages, ReadMessages, RestoreMessages, UpdateMessage,
};
use crate::statements::spaces::HasSpace;
use larimar_engine::queue::{
    Change, Message, MessageError, MessageHandle, MessagePlace, Messages, NewMessage, Placed, Updated,
};
use larimar_engine::{Fault, ReadError, SpaceId, WriteError};
use larimar_model::Timestamp;
use larimar_model::queue::Receipt;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// The last counts of queues.
pub(crate) type Counts = Mutex<FxHashMap<SpaceId, CachedCount>>;

#[derive(Clone, Copy)]
pub(crate) struct CachedCount {
    count: u64,
    at: Instant,
    took: Duration,
}

impl Messages for PostgresEngine {
    async fn put_message(&self, queue: SpaceId, new: NewMessage<'_>, now: Timestamp) -> Result<Placed, WriteError> {
        let placed = self.parts.put(queue, new, now).await;
        self.noting_gone(queue, placed)
    }

    async fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        _now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        let claimed = self.parts.claim(queue, max, hidden_for).await;
        self.noting_gone(queue, claimed)
    }

    async fn peek(&self, queue: SpaceId, max: usize, _now: Timestamp) -> Result<Vec<Message>, ReadError> {
        let peeked = self.parts.peek(queue, max).await;
        self.noting_gone_reading(queue, peeked)
    }

    async fn update_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        _now: Timestamp,
    ) -> Result<Updated, MessageError> {
        self.parts.update(queue, handle, change).await
    }

    async fn delete_message(&self, queue: SpaceId, handle: MessageHandle, _now: Timestamp) -> Result<(), MessageError> {
        self.parts.delete(queue, handle).await
    }

    async fn clear_messages(&self, queue: SpaceId, _now: Timestamp) -> Result<(), WriteError> {
        let cleared = self.parts.clear(queue).await;
        self.noting_gone(queue, cleared)
    }

    async fn count_messages(&self, queue: SpaceId, _now: Timestamp) -> Result<u64, ReadError> {
        let counted = self.parts.count(queue).await;
        self.noting_gone_reading(queue, counted)
    }

    async fn read_messages(
        &self,
        queue: SpaceId,
        after: Option<MessagePlace>,
        max: usize,
    ) -> Result<Vec<Message>, ReadError> {
        let read = self.parts.read_messages(queue, after, max).await;
        self.noting_gone_reading(queue, read)
    }

    async fn restore_messages(&self, queue: SpaceId, messages: &[Message], _now: Timestamp) -> Result<(), WriteError> {
        let restored = self.parts.restore_messages(queue, messages).await;
        self.noting_gone(queue, restored)
    }
}

impl Parts {
    async fn put(&self, queue: SpaceId, new: NewMessage<'_>, now: Timestamp) -> Result<Placed, WriteError> {
        let number = key::number(queue).ok_or(WriteError::SpaceGone)?;
        let (id, receipt) = (self.ids.next(now), token());
        let put = Put {
            queue: number,
            id: id.0.to_vec(),
            hidden_for: ticks(new.hidden_for),
            lives_for: new.lives_for.map_or(-1, ticks),
            receipt,
            body: new.text.to_vec(),
        };
        let MessageOutcome::Put(times) = self.message_writes.request(MessageWrite::Put(put)).await? else {
            return Err(WriteError::SpaceGone);
        };
        // A cached count may be too high for a moment, but never leaves out a message that was put here.
        if let Some(known) = self.counts.lock().get_mut(&queue) {
            known.count += 1;
        }
        let visible_at = time(times.visible_at);
        Ok(Placed {
            id,
            inserted: time(times.inserted),
            expires: time(times.expires),
            receipt: Receipt { visible_at, nonce: receipt.cast_unsigned() },
            visible_at,
        })
    }

    /// If the answer is lost, the claimed messages stay hidden for their time, so no consumer gets them twice, and
    /// other messages are claimed.
    async fn claim(&self, queue: SpaceId, max: usize, hidden_for: Duration) -> Result<Vec<Message>, WriteError> {
        let number = key::number(queue).ok_or(WriteError::SpaceGone)?;
        let claim = ClaimMessages {
            queue: number,
            count: i64::try_from(max).unwrap_or(i64::MAX),
            hidden_for: ticks(hidden_for),
            receipt: token(),
            from: self.claim_starts.from(queue),
        };
        let rows = self.pool.ask(&claim).await?;
        if let Some(row) = rows.first() {
            self.claim_starts.learn(queue, rows.iter().filter_map(|row| row.was_visible_at).min(), row.now);
        }
        let rows = rows.into_iter().map(|row| (row.was_visible_at.unwrap_or_default(), row.message));
        in_order(rows.collect())?.ok_or(WriteError::SpaceGone)
    }

    async fn peek(&self, queue: SpaceId, max: usize) -> Result<Vec<Message>, ReadError> {
        let number = key::number(queue).ok_or(ReadError::SpaceGone)?;
        let count = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = self.pool.ask(&PeekMessages { queue: number, count }).await?;
        let rows = rows.into_iter().map(|row| (row.visible_at(), row));
        in_order(rows.collect())?.ok_or(ReadError::SpaceGone)
    }

    async fn read_messages(
        &self,
        queue: SpaceId,
        after: Option<MessagePlace>,
        max: usize,
    ) -> Result<Vec<Message>, ReadError> {
        let number = key::number(queue).ok_or(ReadError::SpaceGone)?;
        let count = i64::try_from(max).unwrap_or(i64::MAX);
        let (visible_at, id) = after.map_or((-1, Vec::new()), |(at, id)| (at.ticks().cast_signed(), id.0.to_vec()));
        let rows = self.pool.ask(&ReadMessages { queue: number, visible_at, id: &id, count }).await?;
        let rows = rows.into_iter().map(|row| (row.visible_at(), row));
        in_order(rows.collect())?.ok_or(ReadError::SpaceGone)
    }

    async fn restore_messages(&self, queue: SpaceId, messages: &[Message]) -> Result<(), WriteError> {
        let number = key::number(queue).ok_or(WriteError::SpaceGone)?;
        let ticks = |time: &Timestamp| time.ticks().cast_signed();
        let restore = RestoreMessages {
            queue: number,
            ids: messages.iter().map(|message| message.id.0.as_slice()).collect(),
            visible_at: messages.iter().map(|message| ticks(&message.visible_at)).collect(),
            expires: messages.iter().map(|message| ticks(&message.expires)).collect(),
            dequeue_counts: messages.iter().map(|message| i64::from(message.dequeue_count)).collect(),
            receipts: messages.iter().map(|message| message.receipt.nonce.cast_signed()).collect(),
            inserted: messages.iter().map(|message| ticks(&message.inserted)).collect(),
            bodies: messages.iter().map(|message| message.text.as_slice()).collect(),
        };
        self.counts.lock().remove(&queue);
        self.restore_with(number, &restore, messages.len() as u64).await
    }

    async fn update(&self, queue: SpaceId, handle: MessageHandle, change: Change<'_>) -> Result<Updated, MessageError> {
        let mut lost = None;
        let updated = self.try_update(queue, handle, change, &mut lost).await;
        // An attempt whose answer was lost may be why the receipt is not valid any more.
        updated.map_err(|error| lost.map_or(error, |reason| Fault::Ambiguous(reason).into()))
    }

    /// Updates a message. If the answer to an attempt is lost, `lost` has the reason: the outcome of an error is then
    /// unknown.
    async fn try_update(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        lost: &mut Option<String>,
    ) -> Result<Updated, MessageError> {
        let number = key::number(queue).ok_or(MessageError::SpaceGone)?;
        let (id, receipt, visible_at) = parts_of(handle);
        let (hidden_for, new_receipt) = (ticks(change.hidden_for), token());
        let update =
            UpdateMessage { queue: number, id: &id, receipt, visible_at, hidden_for, new_receipt, body: change.text };
        let started = Instant::now();
        for attempt in 0.. {
            let visible_at = match self.pool.send(&update).await {
                Ok(rows) => rows.first().map(|(visible_at,)| *visible_at),
                Err(SendError::Unknown(reason)) => {
                    *lost = Some(reason);
                    self.updated(number, &id, new_receipt).await
                }
                Err(SendError::NotDone(fault)) => return Err(fault.into()),
            };
            if let Some(visible_at) = visible_at.map(time) {
                return Ok(Updated { receipt: Receipt { visible_at, nonce: new_receipt.cast_unsigned() }, visible_at });
            }
            self.explain(number, handle, Some(hidden_for)).await?;
            self.pause_for_message(attempt, started).await?;
        }
        unreachable!("the attempts end with an error")
    }

    /// When a message becomes visible, if the update with this receipt took effect although its answer was lost.
    async fn updated(&self, queue: i64, id: &[u8], receipt: i64) -> Option<i64> {
        let rows = self.pool.ask(&ConfirmMessages { queues: vec![queue], ids: vec![id] }).await.ok()?;
        let (_, _, visible_at, _, found) = *rows.first()?;
        (found == receipt).then_some(visible_at)
    }

    async fn delete(&self, queue: SpaceId, handle: MessageHandle) -> Result<(), MessageError> {
        let mut lost = None;
        let deleted = self.try_delete(queue, handle, &mut lost).await;
        deleted.map_err(|error| match (error, lost) {
            // The message exists and has another receipt, so no attempt has deleted it.
            (MessageError::ReceiptMismatch, _) => MessageError::ReceiptMismatch,
            (_, Some(reason)) => Fault::Ambiguous(reason).into(),
            (error, None) => error,
        })
    }

    /// Deletes a message; `lost` as in [`Self::try_update`].
    async fn try_delete(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        lost: &mut Option<String>,
    ) -> Result<(), MessageError> {
        let number = key::number(queue).ok_or(MessageError::SpaceGone)?;
        let (id, receipt, visible_at) = parts_of(handle);
        let started = Instant::now();
        for attempt in 0.. {
            let delete = MessageWrite::Delete(Delete { queue: number, id: id.clone(), receipt, visible_at });
            let outcome = match self.message_writes.request(delete).await {
                Err(Failure::Unknown(reason)) => {
                    *lost = Some(reason);
                    MessageOutcome::Missed
                }
                other => other?,
            };
            if outcome == MessageOutcome::Deleted {
                if let Some(known) = self.counts.lock().get_mut(&queue) {
                    known.count = known.count.saturating_sub(1);
                }
                return Ok(());
            }
            self.explain(number, handle, None).await?;
            self.pause_for_message(attempt, started).await?;
        }
        unreachable!("the attempts end with an error")
    }

    /// Waits before another attempt on a message that another session has locked, unless the time is up.
    async fn pause_for_message(&self, attempt: u32, started: Instant) -> Result<(), Fault> {
        if started.elapsed() > LOCK_TIMEOUT.min(self.core.target.timeout) {
            return Err(Fault::Unavailable("another session has locked the message".to_owned()));
        }
        tokio::time::sleep(jittered(Duration::from_millis(1 << attempt.min(7)))).await;
        Ok(())
    }

    /// Why a receipt was not accepted; `Ok` if it is valid by now.
    async fn explain(&self, queue: i64, handle: MessageHandle, hidden_for: Option<i64>) -> Result<(), MessageError> {
        let (id, receipt, visible_at) = parts_of(handle);
        let rows = self.pool.ask(&ExplainMessage { queue, id: &id, receipt, visible_at }).await?;
        match *rows.first().ok_or_else(no_answer)? {
            (false, ..) => {
                self.catalogue.forget(SpaceId(queue.cast_unsigned()));
                Err(MessageError::SpaceGone)
            }
            (true, None, _) | (true, _, None | Some(..=0)) => Err(MessageError::NotFound),
            (true, Some(false), _) => Err(MessageError::ReceiptMismatch),
            (true, Some(true), Some(left)) if hidden_for.is_some_and(|span| span > left) => {
                Err(MessageError::ExpiresBefore)
            }
            (true, Some(true), Some(_)) => Ok(()),
        }
    }

    /// Deletes the messages that exist when it begins, in slices. It is idempotent, so it is repeated when an answer is
    /// lost.
    async fn clear(&self, queue: SpaceId) -> Result<(), WriteError> {
        let number = key::number(queue).ok_or(WriteError::SpaceGone)?;
        if self.pool.ask(&HasSpace { space: number }).await?.is_empty() {
            return Err(WriteError::SpaceGone);
        }
        let last = self.pool.ask(&LastMessage { queue: number }).await?;
        let Some((last_id,)) = last.first() else { return Ok(()) };
        let deadline = Instant::now() + CLEAR_TIME;
        while Instant::now() < deadline {
            let removed = self.pool.ask(&ClearMessages { queue: number, last_id, count: CLEAR_MAX }).await?;
            // A message that changed while it was being deleted still exists, and the next round finds it.
            if removed.first() == Some(&(0,)) {
                self.counts.lock().remove(&queue);
                return Ok(());
            }
        }
        Err(Fault::Ambiguous("only part of the queue was cleared".to_owned()).into())
    }

    /// The number of messages, perhaps from a cache: the longer counting takes, the longer a count is used.
    async fn count(&self, queue: SpaceId) -> Result<u64, ReadError> {
        let number = key::number(queue).ok_or(ReadError::SpaceGone)?;
        let known = self.counts.lock().get(&queue).copied();
        if let Some(known) = known.filter(|known| known.at.elapsed() < COUNT_LASTS.max(known.took * 20)) {
            let found = self.pool.ask(&HasSpace { space: number }).await?;
            return if found.is_empty() { Err(ReadError::SpaceGone) } else { Ok(known.count) };
        }
        let started = Instant::now();
        let rows = self.pool.ask(&CountMessages { queue: number }).await?;
        let (has_queue, count) = *rows.first().ok_or_else(no_answer)?;
        let count = has_queue.then_some(count).ok_or(ReadError::SpaceGone)?.cast_unsigned();
        let mut counts = self.counts.lock();
        if counts.len() >= COUNTS_MAX {
            counts.retain(|_, known| known.at.elapsed() < COUNT_LASTS.max(known.took * 20));
        }
        counts.insert(queue, CachedCount { count, at: Instant::now(), took: started.elapsed() });
        Ok(count)
    }
}

/// The messages of an answer in the order of delivery; `None` if the queue does not exist.
fn in_order(mut rows: Vec<(i64, MessageRow)>) -> Result<Option<Vec<Message>>, Failure> {
    if !rows.first().ok_or_else(no_answer)?.1.has_queue {
        return Ok(None);
    }
    rows.sort_by_key(|(visible_at, row)| (*visible_at, row.message.as_ref().map(|message| message.id)));
    Ok(Some(rows.into_iter().filter_map(|(_, row)| row.message).collect()))
}

fn no_answer() -> Failure {
    Failure::Refused("the answer has no row".to_owned())
}

/// A message's id, its receipt and when it becomes visible, as the database stores them.
fn parts_of(handle: MessageHandle) -> (Vec<u8>, i64, i64) {
    let MessageHandle { id, receipt } = handle;
    (id.0.to_vec(), receipt.nonce.cast_signed(), receipt.visible_at.ticks().cast_signed())
}

fn time(ticks: i64) -> Timestamp {
    Timestamp::from_ticks(ticks.cast_unsigned())
}

/// A duration in ticks, at most the largest timestamp.
fn ticks(span: Duration) -> i64 {
    let most = Timestamp::MAX.ticks().cast_signed();
    i64::try_from(span.as_nanos() / 100).unwrap_or(most).min(most)
}

const COUNT_LASTS: Duration = Duration::from_secs(1);
const COUNTS_MAX: usize = 10_000;
const CLEAR_MAX: i64 = 1000;
/// Clients time out after half a minute.
const CLEAR_TIME: Duration = Duration::from_secs(20);
