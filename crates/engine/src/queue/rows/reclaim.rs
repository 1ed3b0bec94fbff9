//! Walks over all messages of a queue: the count, the clearing, and the removal of what has expired.
//!
//! Expired messages are reclaimed in slices, at most one a second, by calls on the queue. A pass over all messages begins
//! when the earliest expiry that the previous pass found is reached. Idle queues are served by calls on other queues.

use super::record::{DeliveryKey, DeliveryRow, PARTITION, Steps};
use super::state::QueueState;
use super::{RowQueues, walk};
use crate::contract::{Flow, Key, Rows, SpaceId, SpaceKind, SpaceName, Spaces};
use crate::error::{Fault, ReadError, WriteError};
use larimar_model::Timestamp;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

impl RowQueues {
    /// As [`Messages::clear_messages`](crate::queue::Messages::clear_messages).
    pub async fn clear(&self, engine: &impl Rows, queue: SpaceId, now: Timestamp) -> Result<(), WriteError> {
        let state = self.state(queue);
        let deadline = Instant::now() + CLEAR_TIME;
        while Instant::now() < deadline {
            let cleared = clear_once(engine, queue, &state, deadline, now).await;
            // A message that was changed meanwhile has a new key, perhaps one that this walk has passed.
            if self.noting_gone(queue, cleared)? {
                return Ok(());
            }
        }
        Err(Fault::Ambiguous("only part of the queue was cleared".to_owned()).into())
    }

    /// As [`Messages::count_messages`](crate::queue::Messages::count_messages).
    pub async fn count(&self, engine: &impl Rows, queue: SpaceId, now: Timestamp) -> Result<u64, ReadError> {
        let state = self.state(queue);
        // The remembered state does not show whether the queue still exists.
        let any = Key { space: queue, partition: PARTITION, row: "" };
        self.noting_gone_reading(queue, engine.get(any, |_| ()).await)?;
        let _ = reclaim(engine, queue, &state, COUNT_SLICES_MAX, now).await;
        if let Some(count) = state.count() {
            return Ok(count);
        }
        let counting = state.begin_count();
        let (mut from, mut found) = (DeliveryKey::FIRST, 0);
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

    /// Removes some expired messages of this queue and of one that may be idle, if a slice is due. A failure is ignored:
    /// a later call tries again.
    pub(super) async fn reclaim_in_passing(
        &self,
        engine: &(impl Rows + Spaces),
        queue: SpaceId,
        state: &QueueState,
        now: Timestamp,
    ) {
        let _ = reclaim(engine, queue, state, 1, now).await;
        let Some(mut round) = self.idle.lock().begin() else { return };
        if let Ok(Some(other)) = round.next(engine).await {
            let reclaimed = reclaim(engine, other, &self.state(other), 1, now).await;
            let _ = self.noting_gone(other, reclaimed);
        }
        self.idle.lock().round = round;
    }
}

/// The next queue to reclaim expired messages of, though it may be idle.
#[derive(Debug, Default)]
pub(super) struct IdleQueues {
    last: Option<Instant>,
    round: Round,
}

/// One round through the queues of all accounts.
#[derive(Debug, Default)]
struct Round {
    begun: Option<Instant>,
    accounts: VecDeque<String>,
    /// The first name of the next queues of the first account.
    from: String,
    queues: VecDeque<SpaceId>,
}

impl IdleQueues {
    /// Takes the round for one step, if a step is due.
    fn begin(&mut self) -> Option<Round> {
        if self.last.is_some_and(|last| last.elapsed() < IDLE_EVERY) {
            return None;
        }
        self.last = Some(Instant::now());
        Some(std::mem::take(&mut self.round))
    }
}

impl Round {
    async fn next(&mut self, engine: &impl Spaces) -> Result<Option<SpaceId>, Fault> {
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

/// Removes some expired messages, if a slice is due.
async fn reclaim(
    engine: &impl Rows,
    queue: SpaceId,
    state: &QueueState,
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
    engine: &impl Rows,
    queue: SpaceId,
    state: &QueueState,
    deadline: Instant,
    now: Timestamp,
) -> Result<bool, WriteError> {
    let (mut from, mut is_clear) = (DeliveryKey::FIRST, true);
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

/// Removes messages in one batch; `false` if some were changed meanwhile and therefore stay.
async fn remove(
    engine: &impl Rows,
    queue: SpaceId,
    state: &QueueState,
    mut all: Vec<DeliveryRow>,
    now: Timestamp,
) -> Result<bool, WriteError> {
    let asked = all.len();
    while !all.is_empty() {
        let mut steps = Steps::default();
        for found in &all {
            steps.remove(found.key, found.version);
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
/// Time that a call may take: clients wait for half a minute.
const CLEAR_TIME: Duration = Duration::from_secs(20);
/// Minimum time between two steps of a round through idle queues, and between the starts of two rounds.
const IDLE_EVERY: Duration = Duration::from_secs(1);
const ROUND_EVERY: Duration = Duration::from_secs(5);
const ROUND_QUEUES: usize = 100;
