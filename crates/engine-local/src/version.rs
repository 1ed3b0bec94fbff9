//! The clock that gives rows their versions: never behind the time, never twice the same.
//!
//! One clock for the whole engine, so a version cannot repeat for a row even over delete and insert. The
//! last version is stored with every commit, so it cannot repeat over a restart or a clock set back.

use std::sync::atomic::{AtomicU64, Ordering};

use larimar_model::Timestamp;

/// A clock whose readings only grow.
#[derive(Debug)]
pub(crate) struct VersionClock {
    last: AtomicU64,
}

impl VersionClock {
    /// A clock that continues after a version that was given before.
    pub(crate) fn after(last: u64) -> Self {
        Self { last: AtomicU64::new(last) }
    }

    /// The last version given to a row.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Takes note of a version that was given elsewhere.
    pub(crate) fn raise(&self, version: Timestamp) {
        self.last.fetch_max(version.ticks(), Ordering::AcqRel);
    }

    /// The next version: `now`, or just above the last one.
    pub(crate) fn next(&self, now: Timestamp) -> Timestamp {
        let step = |last: u64| Some(now.ticks().max(last + 1));
        let last = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).unwrap_or_else(|last| last);
        Timestamp::from_ticks(now.ticks().max(last + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_grow_when_the_clock_stands_jumps_back_or_ahead() {
        let clock = VersionClock::after(100);
        let given: Vec<_> =
            [50, 50, 200, 200, 150, 300].map(|now| clock.next(Timestamp::from_ticks(now)).ticks()).into();
        assert_eq!(given, [101, 102, 200, 201, 202, 300]);
    }
}
