//! Queues on an engine that is one process: messages are ordinary rows, and what is remembered of them in the process
//! only saves work.
//!
//! A message is two rows (`record.rs`): its content, and where it stands in the order of delivery. A claim moves the second
//! one and leaves the first as it is. Every move names the version it moves, so the engine lets one of several win;
//! `state.rs` keeps consumers from choosing the same message in the first place. A look begins at the cursor, so
//! neither hidden nor deleted messages cost anything. `sweep.rs` removes what has expired.

mod record;
mod state;
mod sweep;

use super::contract::{Change, Message, MessageError, MessageHandle, NewMessage, Placed, Updated};
use super::ids::MessageIds;
use crate::contract::{Act, Budget, Engine, Expect, Flow, Key, Op, RowRef, SpaceId};
use crate::error::{ReadError, WriteError};
use larimar_model::queue::Receipt;
use larimar_model::{Guid, Timestamp};
use parking_lot::Mutex;
use record::{Content, Delivery, Found, PARTITION, Place, Steps, content_row, deliveries};
use state::Queue;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sweep::Others;

/// The queues of an engine, for its implementation of [`Messages`](super::Messages).
#[derive(Debug, Default)]
pub struct RowQueues {
    queues: Mutex<HashMap<SpaceId, Arc<Queue>>>,
    ids: MessageIds,
    others: Mutex<Others>,
}

impl RowQueues {
    /// As [`Messages::put_message`](super::Messages::put_message).
    pub async fn put(
        &self,
        engine: &impl Engine,
        queue: SpaceId,
        new: NewMessage<'_>,
        now: Timestamp,
    ) -> Result<Placed, WriteError> {
        let state = self.queue(queue);
        settle(engine, queue, &state, DOUBTFUL_MANY, now).await;
        let id = self.ids.next(now);
        let visible_at = later(now, new.hidden_for);
        let expires = new.lives_for.map_or(Timestamp::MAX, |lives_for| later(now, lives_for));
        let place = Place { visible_at, id };
        let mut steps = Steps::default();
        steps.put(content_row(id), Content::body(now, expires, new.text));
        steps.put(place.row(), Delivery { expires, dequeue_count: 0 }.to_body());
        let write = state.write(vec![place], expires);
        let versions = engine.apply(queue, PARTITION, &steps.ops(), now).await;
        let versions = self.noting_gone(queue, versions)?;
        write.done(1);
        self.sweep_in_passing(engine, queue, &state, now).await;
        let receipt = Receipt { visible_at, nonce: versions[1].ticks() };
        Ok(Placed { id, inserted: now, expires, receipt, visible_at })
    }

    /// As [`Messages::claim`](super::Messages::claim).
    pub async fn claim(
        &self,
        engine: &impl Engine,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        let state = self.queue(queue);
        settle(engine, queue, &state, 1, now).await;
        let claimed = claim(engine, queue, &state, max, hidden_for, now).await;
        let claimed = self.noting_gone(queue, claimed)?;
        self.sweep_in_passing(engine, queue, &state, now).await;
        Ok(claimed)
    }

    /// As [`Messages::peek`](super::Messages::peek).
    pub async fn peek(
        &self,
        engine: &impl Engine,
        queue: SpaceId,
        max: usize,
        now: Timestamp,
    ) -> Result<Vec<Message>, ReadError> {
        let state = self.queue(queue);
        let mut messages = Vec::new();
        let mut from = None;
        for _ in 0..PAGES_MAX {
            let mut live: Vec<Found> = Vec::new();
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
                // A message that is gone by now need not be shown.
                if let Some(content) = content(engine, queue, found.place.id).await? {
                    messages.push(message(&found, content, found.delivery.dequeue_count, found.version));
                }
            }
            match next {
                Some(next) if messages.len() < max => from = Some(next),
                _ => break,
            }
        }
        Ok(messages)
    }

    /// As [`Messages::update_message`](super::Messages::update_message).
    pub async fn update(
        &self,
        engine: &impl Engine,
        queue: SpaceId,
        handle: MessageHandle,
        change: Change<'_>,
        now: Timestamp,
    ) -> Result<Updated, MessageError> {
        let state = self.queue(queue);
        let found = delivered(engine, queue, handle, now).await?;
        let visible_at = later(now, change.hidden_for);
        if visible_at > found.delivery.expires {
            return Err(MessageError::ExpiresBefore);
        }
        let place = Place { visible_at, id: handle.id };
        let mut steps = Steps::default();
        steps.relocate(found.place, found.version, place, found.delivery);
        let nonce_at = steps.len() - 1;
        if let Some(text) = change.text {
            // Nobody changes the content without moving the message, so what is read here holds if the move succeeds.
            let old = content(engine, queue, handle.id).await?.ok_or(MessageError::NotFound)?;
            steps.put(content_row(handle.id), Content::body(old.inserted, old.expires, text));
        }
        let write = state.write(vec![place], found.delivery.expires);
        match engine.apply(queue, PARTITION, &steps.ops(), now).await {
            Ok(versions) => {
                write.done(0);
                Ok(Updated { receipt: Receipt { visible_at, nonce: versions[nonce_at].ticks() }, visible_at })
            }
            Err(WriteError::Condition { .. } | WriteError::Refused { .. }) => {
                write.done(0);
                Err(stale(engine, queue, handle.id, now).await)
            }
            Err(WriteError::SpaceGone) => Err(MessageError::SpaceGone),
            Err(WriteError::Fault(fault)) => Err(MessageError::Fault(fault)),
        }
    }

    /// As [`Messages::delete_message`](super::Messages::delete_message).
    pub async fn delete(
        &self,
        engine: &impl Engine,
        queue: SpaceId,
        handle: MessageHandle,
        now: Timestamp,
    ) -> Result<(), MessageError> {
        let state = self.queue(queue);
        let found = delivered(engine, queue, handle, now).await?;
        let mut steps = Steps::default();
        steps.remove(found.place, found.version);
        let write = state.write(Vec::new(), Timestamp::MAX);
        match engine.apply(queue, PARTITION, &steps.ops(), now).await {
            Ok(_) => {
                write.done(-1);
                Ok(())
            }
            Err(WriteError::Condition { .. } | WriteError::Refused { .. }) => {
                write.done(0);
                Err(stale(engine, queue, handle.id, now).await)
            }
            Err(WriteError::SpaceGone) => Err(MessageError::SpaceGone),
            Err(WriteError::Fault(fault)) => Err(MessageError::Fault(fault)),
        }
    }

    /// Forgets a queue that was dropped.
    pub fn forget(&self, queue: SpaceId) {
        self.queues.lock().remove(&queue);
    }

    fn queue(&self, queue: SpaceId) -> Arc<Queue> {
        let mut queues = self.queues.lock();
        if queues.len() >= QUEUES_MAX && !queues.contains_key(&queue) {
            // Those in use go on being remembered: nobody may claim with another memory meanwhile.
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(queues.entry(queue).or_default())
    }

    fn noting_gone<T>(&self, queue: SpaceId, result: Result<T, WriteError>) -> Result<T, WriteError> {
        if matches!(result, Err(WriteError::SpaceGone)) {
            self.forget(queue);
        }
        result
    }

    fn noting_gone_reading<T>(&self, queue: SpaceId, result: Result<T, ReadError>) -> Result<T, ReadError> {
        if matches!(result, Err(ReadError::SpaceGone)) {
            self.forget(queue);
        }
        result
    }
}

/// Claims messages, page after page of those that are visible.
async fn claim(
    engine: &impl Engine,
    queue: SpaceId,
    state: &Queue,
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
                if expired.len() < EXPIRED_MAX && held.take(found.place.id) {
                    expired.push(found);
                }
                return Flow::Continue;
            }
            if live.len() == wanted {
                return Flow::StopHere;
            }
            if held.take(found.place.id) {
                live.push(found);
            }
            Flow::Continue
        });
        let next = match next.await {
            Ok(next) => next,
            // What was claimed before is the caller's.
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

/// Moves messages to where they are hidden and removes others, all at once; those that somebody else changed meanwhile
/// are left out.
async fn deliver(
    engine: &impl Engine,
    queue: SpaceId,
    state: &Queue,
    live: Vec<Found>,
    expired: Vec<Found>,
    hidden_for: Duration,
    now: Timestamp,
) -> Result<Vec<Message>, WriteError> {
    let mut items = Vec::with_capacity(live.len() + expired.len());
    for found in live {
        // Without a content it was deleted just now, which its version tells, or it can never be delivered.
        items.push((found, content(engine, queue, found.place.id).await?));
    }
    items.extend(expired.into_iter().map(|found| (found, None)));
    let visible_at = later(now, hidden_for);
    while !items.is_empty() {
        let mut steps = Steps::default();
        let mut ends = Vec::with_capacity(items.len());
        let (mut places, mut expires, mut removed) = (Vec::new(), Timestamp::MAX, 0);
        for (found, content) in &items {
            let Found { place, version, delivery } = *found;
            if content.is_some() {
                let to = Place { visible_at, ..place };
                let dequeue_count = delivery.dequeue_count.saturating_add(1);
                steps.relocate(place, version, to, Delivery { dequeue_count, ..delivery });
                places.push(to);
                expires = expires.min(delivery.expires);
            } else {
                steps.remove(place, version);
                removed += 1;
            }
            ends.push(steps.len());
        }
        let write = state.write(places, expires);
        match engine.apply(queue, PARTITION, &steps.ops(), now).await {
            Ok(versions) => {
                write.done(-removed);
                let delivered = items.into_iter().zip(ends).filter_map(|((found, content), end)| {
                    let found = Found { place: Place { visible_at, ..found.place }, ..found };
                    let count = found.delivery.dequeue_count.saturating_add(1);
                    Some(message(&found, content?, count, versions[end - 1]))
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

/// Hands visible deliveries to `visit` in order, from the cursor or from a place on; returns where to resume.
async fn look(
    engine: &impl Engine,
    queue: SpaceId,
    state: &Queue,
    from: Option<Place>,
    now: Timestamp,
    visit: impl FnMut(Found) -> Flow + Send,
) -> Result<Option<Place>, ReadError> {
    let after_last = Place::since(Timestamp::from_ticks(now.ticks() + 1));
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

/// Hands deliveries between two places to `visit`; returns the first of them and where to resume.
async fn walk(
    engine: &impl Engine,
    queue: SpaceId,
    (from, to): (Place, Option<Place>),
    mut visit: impl FnMut(Found) -> Flow + Send,
) -> Result<(Option<Place>, Option<Place>), ReadError> {
    let budget = Budget { rows_max: PAGE_ROWS, deadline: Instant::now() + PAGE_TIME };
    let (mut first, mut damage) = (None, None);
    let range = deliveries(from, to);
    let next = engine.scan(queue, &range, budget, |row| match Found::parse(row) {
        Ok(found) => {
            first.get_or_insert(found.place);
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
    let next = next.map(|next| Place::parse(&next.row)).transpose()?;
    Ok((first, next))
}

/// The delivery that a consumer's receipt names.
async fn delivered(
    engine: &impl Engine,
    queue: SpaceId,
    handle: MessageHandle,
    now: Timestamp,
) -> Result<Found, MessageError> {
    let MessageHandle { id, receipt } = handle;
    let row = Place { visible_at: receipt.visible_at, id }.row();
    let key = Key { space: queue, partition: PARTITION, row: &row };
    let found = engine.get(key, |row| row.map(Found::parse).transpose()).await??;
    match found.filter(|found| found.version.ticks() == receipt.nonce) {
        Some(found) if found.is_expired(now) => Err(MessageError::NotFound),
        Some(found) => Ok(found),
        None => Err(stale(engine, queue, id, now).await),
    }
}

/// What a receipt that does not hold means.
async fn stale(engine: &impl Engine, queue: SpaceId, id: Guid, now: Timestamp) -> MessageError {
    match content(engine, queue, id).await {
        Ok(Some(content)) if content.expires > now => MessageError::ReceiptMismatch,
        Ok(_) => MessageError::NotFound,
        Err(error) => error.into(),
    }
}

async fn content(engine: &impl Engine, queue: SpaceId, id: Guid) -> Result<Option<Content>, ReadError> {
    let row = content_row(id);
    let key = Key { space: queue, partition: PARTITION, row: &row };
    let parse = |row: Option<RowRef<'_>>| row.map(|row| Content::parse(row.body)).transpose();
    Ok(engine.get(key, parse).await??)
}

/// Finds out what became of writes that nobody waited for, if there are enough of them. The engine's answer to a
/// question about a row comes after all writes to it that began before.
async fn settle(engine: &impl Engine, queue: SpaceId, state: &Queue, least: usize, now: Timestamp) {
    for doubtful in state.doubtful(least, SETTLED_MAX) {
        let row = doubtful.0.row();
        let question = Op { row: &row, expect: Expect::Present, act: Act::Check };
        match engine.apply(queue, PARTITION, &[question], now).await {
            Ok(_) | Err(WriteError::Condition { .. }) => state.settled(doubtful),
            Err(_) => return,
        }
    }
}

fn message(found: &Found, content: Content, dequeue_count: u32, version: Timestamp) -> Message {
    let visible_at = found.place.visible_at;
    Message {
        id: found.place.id,
        inserted: content.inserted,
        expires: found.delivery.expires,
        dequeue_count,
        receipt: Receipt { visible_at, nonce: version.ticks() },
        visible_at,
        text: content.text,
    }
}

/// A point in time, moved forward as far as there is time.
fn later(now: Timestamp, span: Duration) -> Timestamp {
    let left = Timestamp::MAX.ticks().saturating_sub(now.ticks());
    let ticks = u64::try_from(span.as_nanos() / 100).unwrap_or(u64::MAX);
    Timestamp::from_ticks(now.ticks() + ticks.min(left))
}

/// Deliveries of one page of a look.
const PAGE_ROWS: usize = 4096;
const PAGE_TIME: Duration = Duration::from_secs(2);
/// Pages of one call: with nothing but expired messages in them, a claim gives up for now.
const PAGES_MAX: usize = 64;
/// Expired messages that a claim removes in passing, with each page.
const EXPIRED_MAX: usize = 500;
/// Writes in doubt that even a put looks after.
const DOUBTFUL_MANY: usize = 64;
const SETTLED_MAX: usize = 100;
const QUEUES_MAX: usize = 100_000;
