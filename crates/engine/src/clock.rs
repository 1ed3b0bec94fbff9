//! Where the time comes from. It is passed in, so that tests can set it.

use larimar_model::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// The current time. It may jump in either direction.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock of the machine")]
    fn now(&self) -> Timestamp {
        // A clock before 1970 is broken; the epoch keeps the service going and versions still increase. One in the year
        // 9999 or later is too, and versions must be able to count up from it.
        let reading = Timestamp::from_unix(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        reading.min(Timestamp::CLOCK_MAX)
    }
}
