//! Where a claim begins to look for messages, so that it need not pass over the index entries of deleted ones.
//!
//! The index keeps the entries of claimed and deleted messages until the database has vacuumed it, which it cannot
//! while any session holds an old snapshot. A claim begins at the first message that the last claim found. A slow
//! commit may add a message before that point; it is found by a claim that looks at all messages, one every few
//! seconds.

use larimar_engine::SpaceId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// The starts of the queues that were claimed from.
#[derive(Default)]
pub(crate) struct ClaimStarts(Mutex<FxHashMap<SpaceId, Start>>);

/// No visible message became visible before `from`, according to the last claim that scanned all messages.
#[derive(Clone, Copy, Debug)]
struct Start {
    from: i64,
    looked: Instant,
    /// Whether a claim is looking at all messages now.
    is_due: bool,
}

impl ClaimStarts {
    /// The time from which on a claim looks for messages; 0 for all.
    pub(crate) fn from(&self, queue: SpaceId) -> i64 {
        let mut starts = self.0.lock();
        let Some(start) = starts.get_mut(&queue) else { return 0 };
        if start.looked.elapsed() < LOOK_EVERY {
            return start.from;
        }
        // This claim looks at all messages; concurrent ones do not.
        start.looked = Instant::now();
        start.is_due = true;
        0
    }

    /// Learns from the first message that a claim found, if any, and the database's time.
    pub(crate) fn learn(&self, queue: SpaceId, first: Option<i64>, now: i64) {
        let from = first.unwrap_or(now).min(now - MARGIN);
        let mut starts = self.0.lock();
        if starts.len() >= QUEUES_MAX && !starts.contains_key(&queue) {
            starts.retain(|_, start| start.looked.elapsed() < LOOK_EVERY);
        }
        let start = starts.entry(queue).or_insert_with(|| Start { from, looked: Instant::now(), is_due: false });
        // A claim that scanned all messages may also move the start back.
        start.from = if start.is_due { from } else { start.from.max(from) };
        start.is_due = false;
    }
}

/// A put that takes up to this many ticks from reading the clock to its commit is found at once.
const MARGIN: i64 = 20_000_000;
const LOOK_EVERY: Duration = Duration::from_secs(5);
const QUEUES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_begins_where_the_last_one_found_messages_but_not_in_the_last_moments() {
        let (starts, queue, now) = (ClaimStarts::default(), SpaceId(1), 1_000_000_000);
        assert_eq!(starts.from(queue), 0);
        starts.learn(queue, Some(500), now);
        assert_eq!(starts.from(queue), 500);
        starts.learn(queue, None, now);
        assert_eq!(starts.from(queue), now - MARGIN);
        starts.learn(queue, Some(now), now + 1);
        assert_eq!(starts.from(queue), now + 1 - MARGIN);
        assert_eq!(starts.from(SpaceId(2)), 0);
    }
}
