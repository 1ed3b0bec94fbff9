//! Walks over all messages of a queue: the count, the clearing, and the removal of what has expired.
//!
//! A sweep is cut into slices, one a second at most, which calls on the queue carry out in passing. A pass begins
//! when the first message expires that the pass before met.

use super::record::{Found, PARTITION, Place, Steps};
use super::state::Queue;
use super::{RowQueues, walk};
use crate::contract::{Engine, Flow, Key, SpaceId};
use crate::error::{Fault, ReadError, WriteError};
use larimar_model::Timestamp;
use std::time::{Duration, Instant};

impl RowQueues {
    /// As [`Messages::clear_messages`](crate::queue::Messages::clear_messages).
    pub async fn clear(&self, engine: &impl Engine, queue: SpaceId, now: Timestamp) -> Result<(), WriteError> {
        let state = self.queue(queue);
        let deadline = Instant::now() + CLEAR_TIME;
        while Instant::now() < deadline {
            let cleared = clear_once(engine, queue, &state, deadline, now).await;
            // A message that was changed meanwhile stands elsewhere, perhaps where this walk has been.
            if self.noting_gone(queue, cleared)? {
                return Ok(());
            }
        }
        Err(Fault::Ambiguous("only part of the queue is cleared".to_owned()).into())
    }

    /// As [`Messages::count_messages`](crate::queue::Messages::count_messages).
    pub async fn count(&self, engine: &impl Engine, queue: SpaceId, now: Timestamp) -> Result<u64, ReadError> {
        let state = self.queue(queue);
        // What is remembered does not tell whether the queue is still there.
        let any = Key { space: queue, partition: PARTITION, row: "" };
        self.noting_gone_reading(queue, engine.get(any, |_| ()).await)?;
        sweep(engine, queue, &state, COUNT_SLICES_MAX, now).await;
        if let Some(count) = state.count() {
            return Ok(count);
        }
        let counting = state.begin_count();
        let (mut from, mut found) = (Place::FIRST, 0);
        loop {
            let page = walk(engine, queue, (from, None), |_| {
                found += 1;
                Flow::Continue
            });
            match self.noting_gone_reading(queue, page.await)?.1 {
                Some(next) => from = next,
                None => return Ok(state.end_count(&counting, found)),
            }
        }
    }
}

/// Removes some expired messages, if it is time. A failure is left to the next time.
pub(super) async fn sweep(engine: &impl Engine, queue: SpaceId, state: &Queue, slices_max: usize, now: Timestamp) {
    let Some(slice) = state.slice(now) else { return };
    for _ in 0..slices_max {
        let (mut expired, mut least) = (Vec::new(), Timestamp::MAX);
        let page = walk(engine, queue, (slice.begin(), None), |found| {
            if expired.len() == SLICE_MAX {
                return Flow::StopHere;
            }
            if found.is_expired(now) {
                expired.push(found);
            } else {
                least = least.min(found.delivery.expires);
            }
            Flow::Continue
        });
        let Ok((_, next)) = page.await else { return };
        if remove(engine, queue, state, expired, now).await.is_err() || slice.end(least, next) {
            return;
        }
    }
}

/// Removes every message that a walk meets; `false` if some were changed meanwhile.
async fn clear_once(
    engine: &impl Engine,
    queue: SpaceId,
    state: &Queue,
    deadline: Instant,
    now: Timestamp,
) -> Result<bool, WriteError> {
    let (mut from, mut is_clear) = (Place::FIRST, true);
    loop {
        let mut all = Vec::new();
        let page = walk(engine, queue, (from, None), |found| {
            if all.len() == CLEAR_MAX {
                return Flow::StopHere;
            }
            all.push(found);
            Flow::Continue
        });
        let (_, next) = page.await?;
        is_clear &= remove(engine, queue, state, all, now).await?;
        let Some(next) = next else { return Ok(is_clear) };
        if Instant::now() >= deadline {
            return Ok(false);
        }
        from = next;
    }
}

/// Removes messages at once; those that were changed meanwhile stay, and `false` tells so.
async fn remove(
    engine: &impl Engine,
    queue: SpaceId,
    state: &Queue,
    mut all: Vec<Found>,
    now: Timestamp,
) -> Result<bool, WriteError> {
    let asked = all.len();
    while !all.is_empty() {
        let mut steps = Steps::default();
        for found in &all {
            steps.remove(found.place, found.version);
        }
        let write = state.write(Vec::new(), Timestamp::MAX);
        match engine.apply(queue, PARTITION, &steps.ops(), now).await {
            Ok(_) => {
                write.done(-i64::try_from(all.len()).unwrap_or(i64::MAX));
                break;
            }
            Err(WriteError::Condition { op, .. } | WriteError::Refused { op, .. }) => {
                write.done(0);
                // Each message is two operations.
                all.remove(op / 2);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all.len() == asked)
}

/// Expired messages removed by one slice.
const SLICE_MAX: usize = 500;
/// Slices that a count carries out.
const COUNT_SLICES_MAX: usize = 8;
/// Messages cleared by one commit.
const CLEAR_MAX: usize = 1000;
/// Clients wait half a minute.
const CLEAR_TIME: Duration = Duration::from_secs(20);
