//! The clock that gives rows their versions: never behind the time, never twice the same.
//!
//! One clock for the whole engine, so a version cannot repeat for a row even over delete and insert. The
//! last version is stored with every commit, so it cannot repeat over a restart or a clock set back. So one wrong
//! reading of the machine's clock stays: it is warned of here, shown by `/metrics`, and taken back by
//! `larimar repair --reset-clock`. From then on rows may have versions above the clock ([`VersionClock::is_below_rows`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larimar_engine::{Fault, LogLimit};
use larimar_model::Timestamp;

/// A clock whose readings only grow.
#[derive(Debug)]
pub(crate) struct VersionClock {
    last: AtomicU64,
    /// Rows may have versions up to this one, though the clock was set back.
    rows_max: u64,
    steps: Steps,
}

impl VersionClock {
    /// A clock that continues after a version that was given before; rows may have versions up to `rows_max`.
    pub(crate) fn after(last: u64, rows_max: u64) -> Self {
        Self { last: AtomicU64::new(last), rows_max, steps: Steps::new() }
    }

    /// The last version given to a row.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Whether a row may have a version above the clock: then a write has to look at the row it replaces.
    pub(crate) fn is_below_rows(&self) -> bool {
        self.last() < self.rows_max
    }

    /// Takes note of a version that was given elsewhere.
    pub(crate) fn raise(&self, version: Timestamp) {
        self.last.fetch_max(version.ticks(), Ordering::AcqRel);
    }

    /// The next version: `now`, or just above the last one.
    pub(crate) fn next(&self, now: Timestamp) -> Result<Timestamp, Fault> {
        self.steps.see(now);
        let now = now.min(Timestamp::CLOCK_MAX).ticks();
        let next = |last: u64| now.max(last.saturating_add(1));
        // A version beyond the last date could not be distinguished from its neighbours as an etag.
        let step = |last: u64| (next(last) <= Timestamp::MAX.ticks()).then_some(next(last));
        let stepped = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        stepped.map(|last| Timestamp::from_ticks(next(last))).map_err(|_| {
            let text = "no version is left before the end of the year 9999: the clock was wrong; \
                        `larimar repair --reset-clock` takes it back";
            Fault::Unavailable(text.to_owned())
        })
    }
}

/// Watches the machine's clock for steps.
#[derive(Debug)]
struct Steps {
    start: Instant,
    /// The last reading, in ticks; 0 before the first.
    reading: AtomicU64,
    /// When that was, in ticks since `start`.
    at: AtomicU64,
    limit: LogLimit,
}

impl Steps {
    fn new() -> Self {
        Self { start: Instant::now(), reading: AtomicU64::new(0), at: AtomicU64::new(0), limit: LogLimit::new() }
    }

    /// Compares a reading with the one before and the time between them.
    fn see(&self, now: Timestamp) {
        let elapsed = u64::try_from(self.start.elapsed().as_nanos() / 100).unwrap_or(u64::MAX);
        // Other threads may come between the two; they differ by far less than what is a step.
        let at = self.at.swap(elapsed, Ordering::Relaxed);
        let before = self.reading.swap(now.ticks(), Ordering::Relaxed);
        let Some((is_ahead, span)) = step(before, elapsed.saturating_sub(at), now.ticks()) else { return };
        if let Some(left_out) = self.limit.admit() {
            let direction = if is_ahead { "ahead" } else { "back" };
            tracing::warn!(
                seconds = span.as_secs(),
                left_out,
                "the machine's clock jumped {direction}; Timestamps of entities never go back, see the metric \
                 larimar_versions_ahead_seconds and `larimar repair --reset-clock`"
            );
        }
    }
}

/// By how much a clock that read `before` jumped, if it did, given that `elapsed` ticks have passed.
fn step(before: u64, elapsed: u64, now: u64) -> Option<(bool, Duration)> {
    let expected = before.saturating_add(elapsed);
    let span = Duration::from_nanos(now.abs_diff(expected).saturating_mul(100));
    (before > 0 && span > STEP_MIN).then_some((now > expected, span))
}

/// A clock that is corrected in smaller steps is not worth a word.
const STEP_MIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_grow_when_the_clock_stands_jumps_back_or_ahead() {
        let clock = VersionClock::after(100, 0);
        let next = |now| clock.next(Timestamp::from_ticks(now)).expect("a version").ticks();
        assert_eq!([50, 50, 200, 200, 150, 300].map(next), [101, 102, 200, 201, 202, 300]);
    }

    #[test]
    fn a_clock_past_the_year_9999_gives_versions_that_can_be_written_or_none() {
        let last = Timestamp::CLOCK_MAX.ticks();
        let clock = VersionClock::after(0, 0);
        for (reading, version) in [(last - 1, last - 1), (last + 5, last), (u64::MAX, last + 1), (0, last + 2)] {
            assert_eq!(clock.next(Timestamp::from_ticks(reading)).expect("a version").ticks(), version);
        }
        let clock = VersionClock::after(Timestamp::MAX.ticks() - 1, 0);
        assert_eq!(clock.next(Timestamp::EDM_MIN).expect("the last one"), Timestamp::MAX);
        for last in [Timestamp::MAX.ticks(), u64::MAX - 1, u64::MAX] {
            let clock = VersionClock::after(last, 0);
            for reading in [0, Timestamp::MAX.ticks(), u64::MAX] {
                let fault = clock.next(Timestamp::from_ticks(reading)).expect_err("none is left");
                assert!(fault.to_string().contains("repair --reset-clock"), "{fault}");
            }
        }
    }

    #[test]
    fn a_step_is_more_than_a_minute_in_either_direction() {
        let (minute, second) = (600_000_000, 10_000_000);
        let start = Timestamp::EDM_MIN.ticks();
        assert_eq!(step(0, 0, start), None, "nothing was read before");
        assert_eq!(step(start, minute * 60, start + minute * 60), None, "an hour in an hour");
        assert_eq!(step(start, 0, start + minute), None);
        assert_eq!(step(start, minute, start), None);
        assert_eq!(step(start, 0, start + minute + second), Some((true, Duration::from_secs(61))));
        assert_eq!(step(start, minute + second, start), Some((false, Duration::from_secs(61))));
        assert!(step(start, u64::MAX, 0).is_some() && step(u64::MAX, u64::MAX, u64::MAX).is_none());
    }
}
