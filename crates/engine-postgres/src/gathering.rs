//! When a statement for gathered requests begins: at once while few statements run; otherwise when enough requests have
//! gathered, since one large statement costs less than many small ones, or when they have waited long enough.
//!
//! A statement that takes much longer than others do is stuck, behind a lock for example. It does not count as running,
//! so it does not keep idle connections idle.

use std::time::{Duration, Instant};

/// The statements under way, and how long they take.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Statements that begin as soon as one request waits.
    freely: usize,
    /// Requests that have to wait for a further one to begin.
    enough: usize,
    /// When each statement under way began.
    running: Vec<Instant>,
    /// How long statements took of late.
    usual: Duration,
}

impl Gathering {
    pub(crate) const fn new(freely: usize, enough: usize) -> Self {
        Self { freely, enough, running: Vec::new(), usual: PATIENCE_MIN }
    }

    /// Whether a statement is to begin for so many requests, of which the first has waited since a moment.
    pub(crate) fn is_due(&self, waiting: usize, since: Instant, now: Instant) -> bool {
        let patience = self.patience();
        let running = self.running.iter().filter(|started| now.saturating_duration_since(**started) < patience).count();
        waiting > 0
            && (running < self.freely || waiting >= self.enough || now.saturating_duration_since(since) >= patience)
    }

    /// How many requests are as good as any number.
    pub(crate) const fn enough(&self) -> usize {
        self.enough
    }

    /// How long requests gather at most: about as long as it should take until one of the running statements ends.
    pub(crate) fn patience(&self) -> Duration {
        (self.usual * 2).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }

    /// A statement begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.running.push(now);
    }

    /// A statement ends that began at a moment.
    pub(crate) fn end(&mut self, started: Instant, now: Instant) {
        if let Some(index) = self.running.iter().position(|other| *other == started) {
            self.running.swap_remove(index);
        }
        // One that was stuck says nothing about the next.
        let took = now.saturating_duration_since(started).min(PATIENCE_MAX);
        self.usual = (self.usual * 7 + took) / 8;
    }
}

const PATIENCE_MIN: Duration = Duration::from_millis(1);
const PATIENCE_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_statement_begins_at_once_while_few_run_and_later_for_many_requests() {
        let start = Instant::now();
        let mut gathering = Gathering::new(2, 16);
        assert!(!gathering.is_due(0, start, start));
        for _ in 0..2 {
            assert!(gathering.is_due(1, start, start));
            gathering.begin(start);
        }
        assert!(!gathering.is_due(15, start, start));
        assert!(gathering.is_due(16, start, start));
        gathering.end(start, start);
        assert!(gathering.is_due(1, start, start));
    }

    #[test]
    fn requests_gather_no_longer_than_statements_take() {
        let start = Instant::now();
        let mut gathering = Gathering::new(0, 16);
        assert!(!gathering.is_due(1, start, start + MILLISECOND / 2));
        assert!(gathering.is_due(1, start, start + gathering.patience()));
        for _ in 0..100 {
            gathering.begin(start);
            gathering.end(start, start + 5 * MILLISECOND);
        }
        assert!((9 * MILLISECOND..=10 * MILLISECOND).contains(&gathering.patience()), "{:?}", gathering.patience());
        gathering.begin(start);
        gathering.end(start, start + Duration::from_secs(60));
        assert!(gathering.patience() <= PATIENCE_MAX);
    }

    #[test]
    fn a_statement_that_is_stuck_does_not_count() {
        let start = Instant::now();
        let mut gathering = Gathering::new(2, 16);
        gathering.begin(start);
        gathering.begin(start);
        let later = start + Duration::from_secs(1);
        assert!(gathering.is_due(1, later, later));
    }
}
