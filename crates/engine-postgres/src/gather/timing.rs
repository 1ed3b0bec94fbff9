//! When a group is sent: at once while few groups are under way; otherwise when enough requests wait, since one large
//! statement costs less than many small ones, or when the first of them has waited long enough.
//!
//! A statement that takes much longer than usual is stuck, for example behind a lock. It does not count as running, so
//! that requests do not wait for it.

use std::time::{Duration, Instant};

/// The groups under way, and how long groups usually take.
#[derive(Debug)]
pub(super) struct Timing {
    /// While fewer groups than this run, one request is enough to send another.
    running_freely: usize,
    /// This many waiting requests are sent however many groups run.
    enough: usize,
    /// When each group under way was sent.
    running: Vec<Instant>,
    /// How long recent groups took, as a moving average.
    usual: Duration,
}

impl Timing {
    pub(super) const fn new(running_freely: usize, enough: usize) -> Self {
        Self { running_freely, enough, running: Vec::new(), usual: WAIT_MIN }
    }

    /// Whether to send a group when `waiting` requests are ready, the first of them since `since`.
    pub(super) fn is_due(&self, waiting: usize, since: Instant, now: Instant) -> bool {
        let wait_max = self.wait_max();
        let is_running = |started: &&Instant| now.saturating_duration_since(**started) < wait_max;
        waiting > 0
            && (waiting >= self.enough
                || now.saturating_duration_since(since) >= wait_max
                || self.running.iter().filter(is_running).count() < self.running_freely)
    }

    /// The number of waiting requests beyond which more make no difference to [`Self::is_due`].
    pub(super) const fn enough(&self) -> usize {
        self.enough
    }

    /// How long requests wait for others to join them: about until one of the running groups should end.
    pub(super) fn wait_max(&self) -> Duration {
        (self.usual * 2).clamp(WAIT_MIN, WAIT_MAX)
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.running.push(now);
    }

    /// Notes the end of a group that was sent at `started`.
    pub(super) fn end(&mut self, started: Instant, now: Instant) {
        if let Some(index) = self.running.iter().position(|other| *other == started) {
            self.running.swap_remove(index);
        }
        // A stuck group is no measure for the next one.
        let took = now.saturating_duration_since(started).min(WAIT_MAX);
        self.usual = (self.usual * 7 + took) / 8;
    }
}

const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_group_is_sent_at_once_while_few_run_and_later_for_many_requests() {
        let start = Instant::now();
        let mut timing = Timing::new(2, 16);
        assert!(!timing.is_due(0, start, start));
        for _ in 0..2 {
            assert!(timing.is_due(1, start, start));
            timing.begin(start);
        }
        assert!(!timing.is_due(15, start, start));
        assert!(timing.is_due(16, start, start));
        timing.end(start, start);
        assert!(timing.is_due(1, start, start));
    }

    #[test]
    fn requests_wait_no_longer_than_groups_take() {
        let start = Instant::now();
        let mut timing = Timing::new(0, 16);
        assert!(!timing.is_due(1, start, start + MILLISECOND / 2));
        assert!(timing.is_due(1, start, start + timing.wait_max()));
        for _ in 0..100 {
            timing.begin(start);
            timing.end(start, start + 5 * MILLISECOND);
        }
        assert!((9 * MILLISECOND..=10 * MILLISECOND).contains(&timing.wait_max()), "{:?}", timing.wait_max());
        timing.begin(start);
        timing.end(start, start + Duration::from_secs(60));
        assert!(timing.wait_max() <= WAIT_MAX);
    }

    #[test]
    fn a_stuck_group_does_not_count() {
        let start = Instant::now();
        let mut timing = Timing::new(2, 16);
        timing.begin(start);
        timing.begin(start);
        let later = start + Duration::from_secs(1);
        assert!(timing.is_due(1, later, later));
    }
}
