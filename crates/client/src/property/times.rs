//! Points in time as properties: our own, the standard library's, chrono's and time's.

use super::{Property, PropertyError};
use crate::{Timestamp, Value};
use std::time::SystemTime;

impl Property for Timestamp {
    type Scalar = Self;

    fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        if (Self::MIN..=Self::MAX).contains(self) {
            return Ok(Some(Value::DateTime(*self)));
        }
        Err(PropertyError::invalid("expected a time from 1601-01-01 to 9999-12-31"))
    }

    fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
        match value {
            Some(Value::DateTime(value)) => Ok(value),
            other => Err(PropertyError::unexpected("Edm.DateTime", other.as_ref())),
        }
    }
}

/// Types that stand for the same points in time; what they have below 100 ns is cut off.
macro_rules! time {
    ($($type:ty),+) => {$(
        impl Property for $type {
            type Scalar = Timestamp;

            fn to_value(&self) -> Result<Option<Value>, PropertyError> {
                Timestamp::from(*self).to_value()
            }

            fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
                Timestamp::from_value(value).map(Self::from)
            }
        }
    )+};
}

time!(SystemTime);
#[cfg(feature = "chrono")]
time!(chrono::DateTime<chrono::Utc>);
#[cfg(feature = "time")]
time!(time::OffsetDateTime);

/// A time before year 1 is year 1, which no property holds either.
#[cfg(feature = "chrono")]
impl<Zone: chrono::TimeZone> From<chrono::DateTime<Zone>> for Timestamp {
    fn from(time: chrono::DateTime<Zone>) -> Self {
        from_unix(time.timestamp(), time.timestamp_subsec_nanos())
    }
}

#[cfg(feature = "chrono")]
impl From<Timestamp> for chrono::DateTime<chrono::Utc> {
    fn from(time: Timestamp) -> Self {
        let (seconds, nanoseconds) = to_unix(time);
        Self::from_timestamp(seconds, nanoseconds).unwrap_or(Self::MAX_UTC)
    }
}

/// A time before year 1 is year 1, which no property holds either.
#[cfg(feature = "time")]
impl From<time::OffsetDateTime> for Timestamp {
    fn from(time: time::OffsetDateTime) -> Self {
        from_unix(time.unix_timestamp(), time.nanosecond())
    }
}

/// A time after year 9999 is the last moment of it.
#[cfg(feature = "time")]
impl From<Timestamp> for time::OffsetDateTime {
    fn from(time: Timestamp) -> Self {
        let (seconds, nanoseconds) = to_unix(time.min(Timestamp::MAX));
        let whole = Self::from_unix_timestamp(seconds).expect("years 1 to 9999 are within its range");
        whole + time::Duration::nanoseconds(nanoseconds.into())
    }
}

/// Seconds from 0001-01-01 to 1970-01-01.
#[cfg(any(feature = "chrono", feature = "time"))]
const UNIX_EPOCH: i64 = 62_135_596_800;
#[cfg(any(feature = "chrono", feature = "time"))]
const TICKS_PER_SECOND: u64 = 10_000_000;

/// The time of this many seconds since 1970, and nanoseconds; no earlier than year 1, and no later than ticks can tell.
#[cfg(any(feature = "chrono", feature = "time"))]
fn from_unix(seconds: i64, nanoseconds: u32) -> Timestamp {
    let Ok(seconds) = u64::try_from(seconds.saturating_add(UNIX_EPOCH)) else { return Timestamp::from_ticks(0) };
    // A leap second of chrono's has more than 10⁹ nanoseconds: it is the next second.
    Timestamp::from_ticks(seconds.saturating_mul(TICKS_PER_SECOND).saturating_add(u64::from(nanoseconds / 100)))
}

#[cfg(any(feature = "chrono", feature = "time"))]
fn to_unix(time: Timestamp) -> (i64, u32) {
    let seconds = i64::try_from(time.ticks() / TICKS_PER_SECOND).expect("fewer seconds than ticks");
    let ticks = u32::try_from(time.ticks() % TICKS_PER_SECOND).expect("ticks of a second");
    (seconds - UNIX_EPOCH, ticks * 100)
}
