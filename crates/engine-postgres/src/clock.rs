//! The clock that gives rows their versions: the database's, so that all servers share one.
//!
//! Each server asks the database for its time now and then and counts on from there with a clock that cannot be set, so
//! it does not matter what time a server thinks it is. Readings only grow. A row that is overwritten takes at least one
//! more than it had, in the statement itself.

use larimar_model::Timestamp;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock in step with the database's.
#[derive(Debug, Default)]
pub(crate) struct DatabaseClock {
    anchor: RwLock<Option<Anchor>>,
    last: AtomicU64,
}

/// A moment of which both times are known.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    here: Instant,
    there: Timestamp,
}

impl DatabaseClock {
    /// Takes note of the database's time, asked at one moment and answered at another. An answer that took so long
    /// that it tells nothing is left out.
    pub(crate) fn learn(&self, asked: Instant, answered: Instant, there: Timestamp) {
        let took = answered - asked;
        let mut anchor = self.anchor.write();
        if took <= ANSWER_TIME_MAX || anchor.is_none() {
            *anchor = Some(Anchor { here: asked + took / 2, there });
        }
    }

    /// The time, at least one tick after the last reading.
    pub(crate) fn stamp(&self) -> Timestamp {
        self.stamp_at(Instant::now())
    }

    fn stamp_at(&self, here: Instant) -> Timestamp {
        let now = match *self.anchor.read() {
            Some(anchor) => anchor.there.after(here.saturating_duration_since(anchor.here)).ticks(),
            None => 0,
        };
        let step = |last: u64| Some(now.max(last + 1));
        let last = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).unwrap_or_else(|last| last);
        Timestamp::from_ticks(now.max(last + 1))
    }
}

/// The database's time in microseconds since 1970.
pub(crate) const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// The time that [`TIME`] tells.
pub(crate) fn time_of(microseconds: i64) -> Timestamp {
    Timestamp::from_unix(Duration::from_micros(u64::try_from(microseconds).unwrap_or(0)))
}

/// Half of this is how wrong the clock may be.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_follow_the_database_and_never_go_back() {
        let clock = DatabaseClock::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let time = |ms| time_of(1_700_000_000_000_000).after(Duration::from_millis(ms));
        clock.learn(at(0), at(2), time(0));
        assert_eq!(clock.stamp_at(at(1)), time(0));
        assert_eq!(clock.stamp_at(at(11)), time(10));
        assert_eq!(clock.stamp_at(at(11)).ticks(), time(10).ticks() + 1);
        // The database's clock was set back: readings go on from where they are.
        clock.learn(at(20), at(20), time(5));
        assert_eq!(clock.stamp_at(at(20)).ticks(), time(10).ticks() + 2);
        assert_eq!(clock.stamp_at(at(30)), time(15));
    }

    #[test]
    fn two_servers_whose_own_clocks_differ_read_the_same() {
        let (one, two) = (DatabaseClock::default(), DatabaseClock::default());
        let start = Instant::now();
        one.learn(start, start, time_of(5_000_000));
        two.learn(start, start, time_of(5_000_000));
        let later = start + Duration::from_secs(3);
        assert_eq!(one.stamp_at(later), two.stamp_at(later));
    }

    #[test]
    fn a_slow_answer_does_not_move_the_clock() {
        let clock = DatabaseClock::default();
        let start = Instant::now();
        clock.learn(start, start, time_of(5_000_000));
        clock.learn(start, start + Duration::from_secs(5), time_of(9_000_000));
        assert_eq!(clock.stamp_at(start), time_of(5_000_000));
    }
}
