//! A clock that only the test turns, forward or back.

use larimar_engine::Clock;
use larimar_model::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A clock that stands still until it is turned.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.ticks()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().after(span));
    }

    /// Moves the clock back.
    pub fn turn_back(&self, span: Duration) {
        self.set(self.now().before(span));
    }

    /// Sets the clock.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.ticks(), SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.load(SeqCst))
    }
}
