//! The requests that wait, which of them can be sent together, and what happens to them afterwards.

use super::timing::Timing;
use super::{RequestKind, Retry};
use crate::failure::Failure;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The requests of one kind that wait, and the turns of the groups under way.
pub(super) struct State<K: RequestKind> {
    waiting: VecDeque<Waiting<K>>,
    /// Bytes of all waiting requests.
    bytes: usize,
    /// Turns of the groups under way.
    busy: FxHashSet<u64>,
    /// Turns that met a lock: their requests are sent alone.
    locked: FxHashSet<u64>,
    /// Requests under way that met a lock before.
    alone: usize,
    /// How many of those there may be.
    alone_max: usize,
    pub(super) timing: Timing,
}

pub(super) struct Waiting<K: RequestKind> {
    pub(super) request: K::Request,
    pub(super) turn: Option<u64>,
    pub(super) since: Instant,
    pub(super) failed_attempts: u32,
    pub(super) reply: Reply<K::Answer>,
}

type Reply<A> = oneshot::Sender<Result<A, Failure>>;
/// Answers that are ready to be sent.
type Replies<A> = Vec<(Reply<A>, Result<A, Failure>)>;

/// What became of a group.
pub(super) enum Outcome<A> {
    Answered(Vec<Result<A, Failure>>),
    Failed(Failure, Retry),
}

impl<K: RequestKind> State<K> {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            busy: FxHashSet::default(),
            locked: FxHashSet::default(),
            alone: 0,
            alone_max: (workers / 2).max(1),
            timing: Timing::new(K::LIMITS.running_freely, K::LIMITS.enough),
        }
    }

    /// Whether no further request may wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= K::LIMITS.waiting_max || self.bytes >= K::LIMITS.waiting_bytes_max
    }

    /// Removes the waiting requests that meet a condition.
    pub(super) fn remove(&mut self, is_removed: impl Fn(&Waiting<K>) -> bool) -> Vec<Waiting<K>> {
        let all = std::mem::take(&mut self.waiting);
        let (removed, waiting): (Vec<_>, Vec<_>) = all.into_iter().partition(is_removed);
        self.waiting = waiting.into();
        self.bytes -= removed.iter().map(|one| K::bytes(&one.request)).sum::<usize>();
        removed
    }

    pub(super) fn push_back(&mut self, one: Waiting<K>) {
        self.bytes += K::bytes(&one.request);
        self.waiting.push_back(one);
    }

    fn push_front(&mut self, one: Waiting<K>) {
        self.bytes += K::bytes(&one.request);
        self.waiting.push_front(one);
    }

    /// Since when the request waits that came first.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.waiting.iter().map(|one| one.since).min()
    }

    /// Whether to send another group now. If so, [`Self::take`] has requests for it.
    pub(super) fn is_due(&self) -> bool {
        let mut ready = self.ready();
        let Some(first) = ready.next() else { return false };
        let count = 1 + ready.take(self.timing.enough()).count();
        self.timing.is_due(count, first.since, Instant::now())
    }

    pub(super) fn has_ready(&self) -> bool {
        self.ready().next().is_some()
    }

    /// The requests that can be sent, in their order. A request waits for those of its turn that came before it.
    fn ready(&self) -> impl Iterator<Item = &Waiting<K>> {
        // Turns with a request that waits for something else than its turn.
        let mut held_turns = FxHashSet::default();
        self.waiting.iter().filter(move |one| {
            if !self.has_turn(one) || one.turn.is_some_and(|turn| held_turns.contains(&turn)) {
                return false;
            }
            let has_worker = self.has_worker(one);
            if !has_worker {
                held_turns.extend(one.turn);
            }
            has_worker
        })
    }

    /// Whether no request of the same turn is under way.
    fn has_turn(&self, one: &Waiting<K>) -> bool {
        one.turn.is_none_or(|turn| !self.busy.contains(&turn))
    }

    /// Whether a worker may send the request: some are kept free of requests that met a lock.
    fn has_worker(&self, one: &Waiting<K>) -> bool {
        self.alone < self.alone_max || !self.met_lock(one)
    }

    fn met_lock(&self, one: &Waiting<K>) -> bool {
        K::met_lock(&one.request) || one.turn.is_some_and(|turn| self.locked.contains(&turn))
    }

    /// Takes requests that can share a group with the first that is ready, in the order they came; or one that met a
    /// lock, alone, which is the second value.
    pub(super) fn take(&mut self) -> (Vec<Waiting<K>>, bool) {
        let (mut group, mut skipped): (Vec<Waiting<K>>, Vec<_>) = (Vec::new(), Vec::new());
        // A request that is skipped must not be overtaken by the next one of its turn.
        let mut skipped_turns = FxHashSet::default();
        let (mut bytes, mut is_alone) = (0, false);
        while !is_alone
            && group.len() < K::LIMITS.group_max
            && bytes < K::LIMITS.group_bytes_max
            && let Some(next) = self.waiting.pop_front()
        {
            let met_lock = self.met_lock(&next);
            let fits = group.first().is_none_or(|first| !met_lock && K::shares_group(&first.request, &next.request));
            let is_overtaking = next.turn.is_some_and(|turn| skipped_turns.contains(&turn));
            if fits && !is_overtaking && self.has_turn(&next) && self.has_worker(&next) {
                bytes += K::bytes(&next.request);
                is_alone = met_lock;
                self.busy.extend(next.turn);
                group.push(next);
            } else {
                skipped_turns.extend(next.turn);
                skipped.push(next);
            }
        }
        for one in skipped.into_iter().rev() {
            self.waiting.push_front(one);
        }
        self.bytes -= bytes;
        (group, is_alone)
    }

    /// Notes that a group is sent.
    pub(super) fn begin_group(&mut self, started: Instant, is_alone: bool) {
        self.timing.begin(started);
        self.alone += usize::from(is_alone);
    }

    /// Notes that a group is not under way any more and frees the turns of its requests. Those that succeeded are not
    /// locked.
    pub(super) fn end_group(&mut self, requests: &[Waiting<K>], started: Instant, is_alone: bool, is_done: bool) {
        self.timing.end(started, Instant::now());
        self.alone -= usize::from(is_alone);
        self.release(requests, is_done);
    }

    fn release(&mut self, requests: &[Waiting<K>], is_done: bool) {
        for turn in requests.iter().filter_map(|one| one.turn) {
            self.busy.remove(&turn);
            if is_done {
                self.locked.remove(&turn);
            }
        }
    }

    /// Puts requests back that are sent again. Returns the answers of the others.
    pub(super) fn settle(
        &mut self,
        requests: Vec<Waiting<K>>,
        outcome: Outcome<K::Answer>,
        lock_wait_max: Duration,
    ) -> Replies<K::Answer> {
        let (failure, retry) = match outcome {
            Outcome::Answered(answers) => {
                return requests.into_iter().map(|one| one.reply).zip(answers).collect();
            }
            Outcome::Failed(failure, retry) => (failure, retry),
        };
        let is_group = requests.len() > 1;
        if self.locked.len() > LOCKED_MAX {
            self.locked.clear();
        }
        let mut replies = Vec::new();
        for mut one in requests.into_iter().rev() {
            let is_over = match retry {
                Retry::No | Retry::Find => true,
                Retry::Again { attempts_max } => {
                    one.failed_attempts += u32::from(!failure.ends_connection());
                    one.failed_attempts >= attempts_max
                }
                Retry::Alone => {
                    self.locked.extend(one.turn);
                    one.since.elapsed() > lock_wait_max
                }
            };
            match (is_over, retry) {
                (true, _) => replies.push((one.reply, Err(failure.clone()))),
                // Most rows of a group are not locked, so its requests go first. One that met a lock alone goes last.
                (false, Retry::Alone) if !is_group => self.push_back(one),
                (false, _) => self.push_front(one),
            }
        }
        replies
    }
}

/// Turns remembered as locked. Beyond that all are forgotten, and those that are still locked are found again.
const LOCKED_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
