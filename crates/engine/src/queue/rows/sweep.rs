//! Walks over all messages of a queue: the count, the clearing, and the removal of what has expired.
//!
//! A sweep is cut into slices, one a second at most, which calls on the queue carry out in passing. A pass begins
//! when the first message expires that the pass before met. Queues that nobody calls on are swept by calls on others.

use super::record::{Found, PARTITION, Place, Steps};
use super::state::Queue;
use super::{RowQueues, walk};
use crate::contract::{Engine, Flow, Key, SpaceId, SpaceKind, SpaceName};
use crate::error::{Fault, ReadError, WriteError};
use larimar_model::Timestamp;
use std::collections::VecDeque;
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
        let _ = sweep(engine, queue, &state, COUNT_SLICES_MAX, now).await;
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

    /// Removes some expired messages in passing, of a queue and of another one that may be idle, if it is time. A failure
    /// is left to the next time.
    pub(super) async fn sweep_in_passing(&self, engine: &impl Engine, queue: SpaceId, state: &Queue, now: Timestamp) {
        let _ = sweep(engine, queue, state, 1, now).await;
        let Some(mut round) = self.others.lock().begin() else { return };
        if let Ok(Some(other)) = round.next(engine).await {
            let swept = sweep(engine, other, &self.queue(other), 1, now).await;
            let _ = self.noting_gone(other, swept);
        }
        self.others.lock().round = round;
    }
}

/// Which queue has its turn to be swept though nobody calls on it.
#[derive(Debug, Default)]
pub(super) struct Others {
    last: Option<Instant>,
    round: Round,
}

/// One way through the queues of all accounts.
#[derive(Debug, Default)]
struct Round {
    begun: Option<Instant>,
    accounts: VecDeque<String>,
    /// The first name of the next queues of the first account.
    from: String,
    queues: VecDeque<SpaceId>,
}

impl Others {
    /// Whoever gets the round has the turn.
    fn begin(&mut self) -> Option<Round> {
        if self.last.is_some_and(|last| last.elapsed() < OTHERS_EVERY) {
            return None;
        }
        self.last = Some(Instant::now());
        Some(std::mem::take(&mut self.round))
    }
}

impl Round {
    async fn next(&mut self, engine: &impl Engine) -> Result<Option<SpaceId>, Fault> {
        if self.queues.is_empty() && self.accounts.is_empty() {
            if self.begun.is_some_and(|begun| begun.elapsed() < ROUND_EVERY) {
                return Ok(None);
            }
            self.begun = Some(Instant::now());
            self.accounts = engine.accounts().await?.into();
        }
        if self.queues.is_empty()
            && let Some(account) = self.accounts.front()
        {
            let from = SpaceName { account, kind: SpaceKind::Queue, name: &self.from };
            let found = engine.list_spaces(from, ROUND_QUEUES).await?;
            match found.last() {
                Some((name, _)) if found.len() == ROUND_QUEUES => self.from = format!("{name}\0"),
                _ => {
                    self.accounts.pop_front();
                    self.from.clear();
                }
            }
            self.queues.extend(found.into_iter().map(|(_, space)| space.id));
        }
        Ok(self.queues.pop_front())
    }
}

/// Removes some expired messages, if it is time. A failure is left to the next time.
async fn sweep(
    engine: &impl Engine,
    queue: SpaceId,
    state: &Queue,
    slices_max: usize,
    now: Timestamp,
) -> Result<(), WriteError> {
    let Some(slice) = state.slice(now) else { return Ok(()) };
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
        let (_, next) = page.await?;
        remove(engine, queue, state, expired, now).await?;
        if slice.end(least, next) {
            break;
        }
    }
    Ok(())
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
/// How often a queue that nobody may call on has its turn, and how long a round through all of them takes at least.
const OTHERS_EVERY: Duration = Duration::from_secs(1);
const ROUND_EVERY: Duration = Duration::from_secs(5);
const ROUND_QUEUES: usize = 100;
