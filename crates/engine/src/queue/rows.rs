//! Queues on an engine in one process: messages are ordinary rows. One implementation of [`Messages`] serves every
//! engine that is [`MessagesInRows`].
//!
//! A message is two rows (`record.rs`): its content and its delivery, whose key begins with the time at which the message
//! becomes visible. A claim moves the delivery row and leaves the content as it is. Every move is conditional on the
//! version it moves, so the engine lets one of several concurrent moves win; `state.rs` keeps consumers from choosing the
//! same message in the first place. Scans begin at the cursor, so neither hidden nor deleted messages cost anything.
//! `reclaim.rs` removes expired messages.

mod copy;
mod reclaim;
mod record;
mod state;

pub use copy::{MessageRow, message_rows};

use super::ids::MessageIds;
use crate::contract::{
    Act, Budget, Change, Expect, Flow, Key, Message, MessageError, MessageHandle, MessagePlace, Messages, NewMessage,
    Op, Placed, RowRef, Rows, SpaceId, Spaces, Updated,
};
use crate::error::{ReadError, WriteError};
use larimar_model::queue::Receipt;
use larimar_model::{Guid, Timestamp};
use parking_lot::Mutex;
use reclaim::IdleQueues;
use record::{Content, Delivery, DeliveryKey, DeliveryRow, PARTITION, Steps, content_row, deliveries};
use state::{QueueState, Write};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An engine in one process that stores messages as ordinary rows. It implements [`Messages`] by being one.
pub trait MessagesInRows: Rows + Spaces {
    /// What the engine remembers of its queues.
    fn row_queues(&self) -> &RowQueues;
}

/// What an engine remembers of its queues while the process runs. It only saves work.
#[derive(Debug, Default)]
pub struct RowQueues {
    queues: Mutex<HashMap<SpaceId, Arc<QueueState>>>,
    ids: MessageIds,
    idle: Mutex<IdleQueues>,
}

impl RowQueues {
    /// Forgets a queue that was dropped.
    pub fn forget(&self, queue: SpaceId) {
        self.queues.lock().remove(&queue);
    }

    fn state(&self, queue: SpaceId) -> Arc<QueueState> {
        let mut queues = self.queues.lock();
        if queues.len() >= QUEUES_MAX && !queues.contains_key(&queue) {
            // The states in use stay: two consumers with different states could choose the same message.
            queues.retain(|_, state| Arc::strong_count(state) > 1);
        }
        Arc::clone(queues.entry(queue).or_default())
    }

    /// Returns a result and forgets the queue if the result shows that it was dropped.
    fn noting_gone<T>(&self, queue: SpaceId, result: Result<T, WriteError>) -> Result<T, WriteError> {
        if matches!(result, Err(WriteError::SpaceGone)) {
            self.forget(queue);
        }
        result
    }

    /// As [`RowQueues::noting_gone`], for reads.
    fn noting_gone_reading<T>(&self, queue: SpaceId, result: Result<T, ReadError>) -> Result<T, ReadError> {
        if matches!(result, Err(ReadError::SpaceGone)) {
            self.forget(queue);
        }
        result
    }
}

impl<E: MessagesInRows> Messages for E {
    async fn put_message(&self, queue: SpaceId, new: NewMessage<'_>, now: Timestamp) -> Result<Placed, WriteError> {
        self.row_queues().put(self, queue, new, now).await
    }

    async fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        self.row_queues().claim(self, queue, max, hidden_for, now).await
    }

    async fn peek(&self, queue: SpaceId, max: usize, now: Timestamp) -> Result<Vec<Message>, ReadError> {
        self.row_queues().peek(self, queue, max, now).await
    }

    async fn update_message(
        &self,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        now: Timestamp,
    ) -> Result<Updated, MessageError> {
        self.row_queues().update(self, queue, handle, change, now).await
    }

    async fn delete_message(&self, queue: SpaceId, handle: MessageHandle, now: Timestamp) -> Result<(), MessageError> {
        self.row_queues().delete(self, queue, handle, now).await
    }

    async fn clear_messages(&self, queue: SpaceId, now: Timestamp) -> Result<(), WriteError> {
        self.row_queues().clear(self, queue, now).await
    }

    async fn count_messages(&self, queue: SpaceId, now: Timestamp) -> Result<u64, ReadError> {
        self.row_queues().count(self, queue, now).await
    }

    async fn read_messages(
        &self,
        queue: SpaceId,
        after: Option<MessagePlace>,
        max: usize,
    ) -> Result<Vec<Message>, ReadError> {
        self.row_queues().read(self, queue, after, max).await
    }

    async fn restore_messages(&self, queue: SpaceId, messages: &[Message], now: Timestamp) -> Result<(), WriteError> {
        self.row_queues().restore(self, queue, messages, now).await
    }
}

impl RowQueues {
    /// As [`Messages::put_message`].
    pub async fn put(
        &self,
        engine: &(impl Rows + Spaces),
        queue: SpaceId,
        new: NewMessage<'_>,
        now: Timestamp,
    ) -> Result<Placed, WriteError> {
        let state = self.state(queue);
        settle(engine, queue, &state, UNSETTLED_MANY, now).await;
        let id = self.ids.next(now);
        let visible_at = later(now, new.hidden_for);
        let expires = new.lives_for.map_or(Timestamp::MAX, |lives_for| later(now, lives_for));
        let key = DeliveryKey { visible_at, id };
        let mut steps = Steps::default();
        steps.put(content_row(id), Content::body(now, expires, new.text));
        steps.put(key.row(), Delivery { expires, dequeue_count: 0, nonce: None }.to_body());
        let write = state.write(vec![key], expires);
        let versions = engine.apply(queue, PARTITION, &steps.ops(), now).await;
        let versions = self.noting_gone(queue, versions)?;
        write.done(1);
        self.reclaim_in_passing(engine, queue, &state, now).await;
        let receipt = Receipt { visible_at, nonce: versions[1].ticks() };
        Ok(Placed { id, inserted: now, expires, receipt, visible_at })
    }

    /// As [`Messages::claim`].
    pub async fn claim(
        &self,
        engine: &(impl Rows + Spaces),
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        let state = self.state(queue);
        settle(engine, queue, &state, 1, now).await;
        let claimed = claim(engine, queue, &state, max, hidden_for, now).await;
        let claimed = self.noting_gone(queue, claimed)?;
        self.reclaim_in_passing(engine, queue, &state, now).await;
        Ok(claimed)
    }

    /// As [`Messages::peek`].
    pub async fn peek(
        &self,
        engine: &impl Rows,
        queue: SpaceId,
        max: usize,
        now: Timestamp,
    ) -> Result<Vec<Message>, ReadError> {
        let state = self.state(queue);
        let mut messages = Vec::new();
        let mut from = None;
        for _ in 0..PAGES_MAX {
            let mut live: Vec<DeliveryRow> = Vec::new();
            let wanted = max - messages.len();
            let next = look(engine, queue, &state, from, now, |found| {
                if live.len() == wanted {
                    return Flow::StopHere;
                }
                if !found.is_expired(now) {
                    live.push(found);
                }
                Flow::Continue
            });
            let next = self.noting_gone_reading(queue, next.await)?;
            for found in live {
                // A message that was deleted meanwhile is left out.
                if let Some(content) = content(engine, queue, found.key.id).await? {
                    messages.push(message(&found, content, found.delivery.dequeue_count, found.nonce()));
                }
            }
            match next {
                Some(next) if messages.len() < max => from = Some(next),
                _ => break,
            }
        }
        Ok(messages)
    }

    /// As [`Messages::update_message`].
    pub async fn update(
        &self,
        engine: &impl Rows,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        now: Timestamp,
    ) -> Result<Updated, MessageError> {
        let state = self.state(queue);
        let found = delivered(engine, queue, handle, now).await?;
        let visible_at = later(now, change.hidden_for);
        if visible_at > found.delivery.expires {
            return Err(MessageError::ExpiresBefore);
        }
        let key = DeliveryKey { visible_at, id: handle.id };
        let mut steps = Steps::default();
        steps.relocate(found.key, found.version, key, found.delivery);
        let nonce_at = steps.len() - 1;
        if let Some(text) = change.text {
            // The content changes only together with the delivery row, so this content is current if the move succeeds.
            let old = content(engine, queue, handle.id).await?.ok_or(MessageError::NotFound)?;
            steps.put(content_row(handle.id), Content::body(old.inserted, old.expires, text));
        }
        let write = state.write(vec![key], found.delivery.expires);
        let versions = apply_by_receipt(engine, queue, handle, &steps, (write, 0), now).await?;
        Ok(Updated { receipt: Receipt { visible_at, nonce: versions[nonce_at].ticks() }, visible_at })
    }

    /// As [`Messages::delete_message`].
    pub async fn delete(
        &self,
        engine: &impl Rows,
        queue: SpaceId,
        handle: MessageHandle,
        now: Timestamp,
    ) -> Result<(), MessageError> {
        let state = self.state(queue);
        let found = delivered(engine, queue, handle, now).await?;
        let mut steps = Steps::default();
        steps.remove(found.key, found.version);
        let write = state.write(Vec::new(), Timestamp::MAX);
        apply_by_receipt(engine, queue, handle, &steps, (write, -1), now).await.map(drop)
    }
}

/// Applies a change that names the delivery it was decided by; `added` is how many messages the queue has more then.
async fn apply_by_receipt(
    engine: &impl Rows,
    queue: SpaceId,
    handle: MessageHandle,
    steps: &Steps,
    (write, added): (Write<'_>, i64),
    now: Timestamp,
) -> Result<Vec<Timestamp>, MessageError> {
    match engine.apply(queue, PARTITION, &steps.ops(), now).await {
        Ok(versions) => {
            write.done(added);
            Ok(versions)
        }
        Err(WriteError::Condition { .. } | WriteError::Refused { .. }) => {
            write.done(0);
            Err(stale(engine, queue, handle.id, now).await)
        }
        Err(WriteError::SpaceGone) => Err(MessageError::SpaceGone),
        Err(WriteError::Fault(fault)) => Err(MessageError::Fault(fault)),
    }
}

/// Claims messages, page after page of those that are visible.
async fn claim(
    engine: &impl Rows,
    queue: SpaceId,
    state: &QueueState,
    max: usize,
    hidden_for: Duration,
    now: Timestamp,
) -> Result<Vec<Message>, WriteError> {
    let mut claimed = Vec::new();
    let mut from = None;
    for _ in 0..PAGES_MAX {
        let mut held = state.hold();
        let (mut live, mut expired) = (Vec::new(), Vec::new());
        let wanted = max - claimed.len();
        let next = look(engine, queue, state, from, now, |found| {
            if found.is_expired(now) {
                if expired.len() < EXPIRED_MAX && held.take(found.key.id) {
                    expired.push(found);
                }
                return Flow::Continue;
            }
            if live.len() == wanted {
                return Flow::StopHere;
            }
            if held.take(found.key.id) {
                live.push(found);
            }
            Flow::Continue
        });
        let next = match next.await {
            Ok(next) => next,
            // The messages claimed so far belong to the caller.
            Err(_) if !claimed.is_empty() => break,
            Err(error) => return Err(error.into()),
        };
        match deliver(engine, queue, state, live, expired, hidden_for, now).await {
            Ok(messages) => claimed.extend(messages),
            Err(_) if !claimed.is_empty() => break,
            Err(error) => return Err(error),
        }
        match next {
            Some(next) if claimed.len() < max => from = Some(next),
            _ => break,
        }
    }
    Ok(claimed)
}

/// Hides live messages and removes expired ones in one batch; messages that another call changed meanwhile are left out.
async fn deliver(
    engine: &impl Rows,
    queue: SpaceId,
    state: &QueueState,
    live: Vec<DeliveryRow>,
    expired: Vec<DeliveryRow>,
    hidden_for: Duration,
    now: Timestamp,
) -> Result<Vec<Message>, WriteError> {
    let mut items = Vec::with_capacity(live.len() + expired.len());
    for found in live {
        // Without content the message was deleted just now, which its version will show, or it can never be delivered.
        items.push((found, content(engine, queue, found.key.id).await?));
    }
    items.extend(expired.into_iter().map(|found| (found, None)));
    let visible_at = later(now, hidden_for);
    while !items.is_empty() {
        let mut steps = Steps::default();
        let mut ends = Vec::with_capacity(items.len());
        let (mut keys, mut expires, mut removed) = (Vec::new(), Timestamp::MAX, 0);
        for (found, content) in &items {
            let DeliveryRow { key, version, delivery } = *found;
            if content.is_some() {
                let to = DeliveryKey { visible_at, ..key };
                let dequeue_count = delivery.dequeue_count.saturating_add(1);
                steps.relocate(key, version, to, Delivery { dequeue_count, ..delivery });
                keys.push(to);
                expires = expires.min(delivery.expires);
            } else {
                steps.remove(key, version);
                removed += 1;
            }
            ends.push(steps.len());
        }
        let write = state.write(keys, expires);
        match engine.apply(queue, PARTITION, &steps.ops(), now).await {
            Ok(versions) => {
                write.done(-removed);
                let delivered = items.into_iter().zip(ends).filter_map(|((found, content), end)| {
                    let found = DeliveryRow { key: DeliveryKey { visible_at, ..found.key }, ..found };
                    let count = found.delivery.dequeue_count.saturating_add(1);
                    Some(message(&found, content?, count, versions[end - 1].ticks()))
                });
                return Ok(delivered.collect());
            }
            Err(WriteError::Condition { op, .. } | WriteError::Refused { op, .. }) => {
                write.done(0);
                items.remove(ends.partition_point(|end| *end <= op));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

/// Passes visible deliveries to `visit` in order, starting at the cursor or at `from`; returns where to resume.
async fn look(
    engine: &impl Rows,
    queue: SpaceId,
    state: &QueueState,
    from: Option<DeliveryKey>,
    now: Timestamp,
    visit: impl FnMut(DeliveryRow) -> Flow + Send,
) -> Result<Option<DeliveryKey>, ReadError> {
    let after_last = DeliveryKey::since(Timestamp::from_ticks(now.ticks() + 1));
    match from {
        Some(from) => walk(engine, queue, (from, Some(after_last)), visit).await.map(|(_, next)| next),
        None => {
            let look = state.look();
            let (first, next) = walk(engine, queue, (look.from, Some(after_last)), visit).await?;
            look.found_first(first.or(next).unwrap_or(after_last));
            Ok(next)
        }
    }
}

/// Passes deliveries between two keys to `visit`; returns the first key found and where to resume.
async fn walk(
    engine: &impl Rows,
    queue: SpaceId,
    (from, to): (DeliveryKey, Option<DeliveryKey>),
    mut visit: impl FnMut(DeliveryRow) -> Flow + Send,
) -> Result<(Option<DeliveryKey>, Option<DeliveryKey>), ReadError> {
    let budget = Budget { rows_max: PAGE_ROWS, deadline: Instant::now() + PAGE_TIME };
    let (mut first, mut damage) = (None, None);
    let range = deliveries(from, to);
    let next = engine.scan(queue, &range, budget, |row| match DeliveryRow::parse(row) {
        Ok(found) => {
            first.get_or_insert(found.key);
            visit(found)
        }
        Err(fault) => {
            damage = Some(fault);
            Flow::StopHere
        }
    });
    let next = next.await?;
    if let Some(fault) = damage {
        return Err(fault.into());
    }
    let next = next.map(|next| DeliveryKey::parse(&next.row)).transpose()?;
    Ok((first, next))
}

/// The delivery that a consumer's receipt names.
async fn delivered(
    engine: &impl Rows,
    queue: SpaceId,
    handle: MessageHandle,
    now: Timestamp,
) -> Result<DeliveryRow, MessageError> {
    let MessageHandle { id, receipt } = handle;
    let row = DeliveryKey { visible_at: receipt.visible_at, id }.row();
    let key = Key { space: queue, partition: PARTITION, row: &row };
    let found = engine.get(key, |row| row.map(DeliveryRow::parse).transpose()).await??;
    match found.filter(|found| found.nonce() == receipt.nonce) {
        Some(found) if found.is_expired(now) => Err(MessageError::NotFound),
        Some(found) => Ok(found),
        None => Err(stale(engine, queue, id, now).await),
    }
}

/// The error for a receipt that does not match a delivery.
async fn stale(engine: &impl Rows, queue: SpaceId, id: Guid, now: Timestamp) -> MessageError {
    match content(engine, queue, id).await {
        Ok(Some(content)) if content.expires > now => MessageError::ReceiptMismatch,
        Ok(_) => MessageError::NotFound,
        Err(error) => error.into(),
    }
}

async fn content(engine: &impl Rows, queue: SpaceId, id: Guid) -> Result<Option<Content>, ReadError> {
    let row = content_row(id);
    let key = Key { space: queue, partition: PARTITION, row: &row };
    let parse = |row: Option<RowRef<'_>>| row.map(|row| Content::parse(row.body)).transpose();
    Ok(engine.get(key, parse).await??)
}

/// Settles writes whose callers did not wait for the outcome, if there are enough of them. The engine checks a condition
/// after all earlier writes to the row, so its answer proves that those are visible.
async fn settle(engine: &impl Rows, queue: SpaceId, state: &QueueState, least: usize, now: Timestamp) {
    for unsettled in state.unsettled(least, SETTLED_MAX) {
        let row = unsettled.0.row();
        let question = Op { row: &row, expect: Expect::Present, act: Act::Check };
        match engine.apply(queue, PARTITION, &[question], now).await {
            Ok(_) | Err(WriteError::Condition { .. }) => state.settled(unsettled),
            Err(_) => return,
        }
    }
}

fn message(found: &DeliveryRow, content: Content, dequeue_count: u32, nonce: u64) -> Message {
    let visible_at = found.key.visible_at;
    Message {
        id: found.key.id,
        inserted: content.inserted,
        expires: found.delivery.expires,
        dequeue_count,
        receipt: Receipt { visible_at, nonce },
        visible_at,
        text: content.text,
    }
}

/// A time plus a span, at most [`Timestamp::MAX`].
fn later(now: Timestamp, span: Duration) -> Timestamp {
    let left = Timestamp::MAX.ticks().saturating_sub(now.ticks());
    let ticks = u64::try_from(span.as_nanos() / 100).unwrap_or(u64::MAX);
    Timestamp::from_ticks(now.ticks() + ticks.min(left))
}

/// Deliveries read by one scan.
const PAGE_ROWS: usize = 4096;
const PAGE_TIME: Duration = Duration::from_secs(2);
/// Scans of one call: a claim that found only expired messages in all of them returns without a message.
const PAGES_MAX: usize = 64;
/// Expired messages that a claim removes with each scan.
const EXPIRED_MAX: usize = 500;
/// Unsettled writes that a put settles too, not only a claim.
const UNSETTLED_MANY: usize = 64;
const SETTLED_MAX: usize = 100;
const QUEUES_MAX: usize = 100_000;
