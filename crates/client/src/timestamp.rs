//! Points in time as the service stores them, in ticks of 100 ns.

use larimar_model::Timestamp as Inner;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time with the precision of the service: 100 ns.
///
/// Properties hold times from 1601-01-01 to 9999-12-31.
///
/// ```
/// use larimar_client::Timestamp;
/// let time: Timestamp = "2024-02-29T12:30:00.5Z".parse()?;
/// assert_eq!(time.to_string(), "2024-02-29T12:30:00.5Z");
/// # Ok::<(), larimar_client::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(Inner);

/// A text that is not a time, or a time that the service does not store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time from 1601-01-01 to 9999-12-31 such as 2008-07-10T00:00:00Z, found '{0}'")]
pub struct TimestampError(String);

impl Timestamp {
    /// The earliest time that a property holds: 1601-01-01T00:00:00Z.
    pub const MIN: Self = Self(Inner::EDM_MIN);
    /// The latest time that a property holds: 9999-12-31T23:59:59.9999999Z.
    pub const MAX: Self = Self(Inner::MAX);

    /// Now, by the clock of this machine.
    #[must_use]
    pub fn now() -> Self {
        Self::from(system_time())
    }

    /// The time that lies this many ticks of 100 ns after 0001-01-01T00:00:00Z, as .NET counts them.
    #[must_use]
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(Inner::from_ticks(ticks))
    }

    /// Ticks of 100 ns since 0001-01-01T00:00:00Z, as .NET counts them.
    #[must_use]
    pub const fn ticks(self) -> u64 {
        self.0.ticks()
    }

    /// This time moved forward. Beyond [`Self::MAX`] it is a time that no property holds.
    #[must_use]
    pub const fn after(self, span: Duration) -> Self {
        let ticks = span.as_secs().saturating_mul(10_000_000).saturating_add((span.subsec_nanos() / 100) as u64);
        Self::from_ticks(self.ticks().saturating_add(ticks))
    }

    /// This time moved back.
    #[must_use]
    pub const fn before(self, span: Duration) -> Self {
        Self(self.0.before(span))
    }

    /// How long this time lies after another; zero if it lies before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        let ticks = self.ticks().saturating_sub(earlier.ticks());
        Duration::new(ticks / 10_000_000, (ticks % 10_000_000) as u32 * 100)
    }

    pub(crate) const fn inner(self) -> Inner {
        self.0
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        // Ticks tell far fewer times than the type: what lies beyond stays out of the range of properties.
        let epoch = Self(Inner::from_unix(Duration::ZERO));
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => epoch.after(since),
            Err(error) => epoch.before(error.duration()),
        }
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        let epoch = Timestamp(Inner::from_unix(Duration::ZERO));
        if time >= epoch { UNIX_EPOCH + time.since(epoch) } else { UNIX_EPOCH - epoch.since(time) }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Inner::parse(text).map(Self).map_err(|_| TimestampError(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The time of this machine.
#[expect(clippy::disallowed_methods, reason = "the one place where the client reads the clock")]
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_survive_the_way_through_system_time() {
        for text in
            ["1601-01-01T00:00:00Z", "1969-12-31T23:59:59.9999999Z", "1970-01-01T00:00:00Z", "2262-01-01T00:00:00.1Z"]
        {
            let time: Timestamp = text.parse().expect("a time");
            assert_eq!(Timestamp::from(SystemTime::from(time)), time, "{text}");
        }
    }

    #[test]
    fn times_beyond_all_ticks_are_out_of_range_and_no_panic() {
        let span = Duration::from_secs(i64::MAX as u64 / 2);
        assert!(Timestamp::from(UNIX_EPOCH + span) > Timestamp::MAX);
        assert!(Timestamp::from(UNIX_EPOCH - span) < Timestamp::MIN);
    }
}
