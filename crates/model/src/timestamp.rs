//! Points in time as the service stores them: 100-nanosecond ticks since 0001-01-01T00:00:00Z.
//!
//! A `Timestamp` is the value of a DateTime property, the version of a row, and through [`crate::ETag`]
//! its etag.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::time::Duration;
use time::{Date, Month};

/// Ticks of 100 ns since 0001-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// Why a text is not a valid DateTime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// The text has another form.
    #[error("expected a date and time such as 2008-07-10T00:00:00Z")]
    Syntax,
    /// The text has the right form but lies outside of what the service stores.
    #[error("expected a time from 1601-01-01 to 9999-12-31")]
    OutOfRange(Timestamp),
}

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
/// Days from 0001-01-01 to 1970-01-01.
const UNIX_EPOCH_DAYS: u64 = 719_162;
/// Days of 400 years.
const CYCLE_DAYS: i32 = 146_097;
/// The Julian day of 0001-01-01.
const FIRST_JULIAN_DAY: i32 = 1_721_426;
const UNIX_EPOCH_TICKS: u64 = UNIX_EPOCH_DAYS * SECONDS_PER_DAY * TICKS_PER_SECOND;

impl Timestamp {
    /// The earliest DateTime the service stores: 1601-01-01T00:00:00Z.
    pub const EDM_MIN: Self = Self(504_911_232_000_000_000);
    /// The latest DateTime there is: 9999-12-31T23:59:59.9999999Z.
    pub const MAX: Self = Self(3_155_378_975_999_999_999);

    /// The latest reading of a clock that is believed: a day before [`Self::MAX`], so that versions can still count up
    /// from it and be written as dates of four-digit years.
    pub const CLOCK_MAX: Self = Self(Self::MAX.0 - SECONDS_PER_DAY * TICKS_PER_SECOND);

    /// The point that lies this many ticks after 0001-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// The point that lies this long after 1970-01-01T00:00:00Z, no later than [`Self::MAX`].
    #[must_use]
    pub const fn from_unix(since_epoch: Duration) -> Self {
        Self(UNIX_EPOCH_TICKS).after(since_epoch)
    }

    /// Ticks since 0001-01-01T00:00:00Z.
    #[must_use]
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Time since 1970-01-01T00:00:00Z; zero for earlier points.
    #[must_use]
    pub const fn to_unix(self) -> Duration {
        let ticks = self.0.saturating_sub(UNIX_EPOCH_TICKS);
        Duration::new(ticks / TICKS_PER_SECOND, (ticks % TICKS_PER_SECOND) as u32 * 100)
    }

    /// This point moved forward, no further than [`Self::MAX`].
    #[must_use]
    pub const fn after(self, span: Duration) -> Self {
        let ticks = self.0.saturating_add(ticks(span));
        if ticks > Self::MAX.0 { Self::MAX } else { Self(ticks) }
    }

    /// This point moved back, no further than 0001-01-01.
    #[must_use]
    pub const fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(ticks(span)))
    }

    /// Reads `YYYY-MM-DD` or `YYYY-MM-DDThh:mm[:ss[.f…]]`, then nothing, `Z` or `±hh:mm`; without a suffix
    /// the time is UTC. A fraction finer than a tick is cut off. The range is that of DateTime properties.
    ///
    /// # Errors
    /// `Syntax` for a malformed text, `OutOfRange` for a time that the service does not store.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let point = Reader(text.as_bytes()).timestamp().ok_or(TimestampError::Syntax)?;
        if point < Self::EDM_MIN || point > Self::MAX {
            return Err(TimestampError::OutOfRange(point));
        }
        Ok(point)
    }

    /// Appends the form of entity properties: `2022-05-06T00:31:05.07Z`, the fraction without its
    /// trailing zeros.
    pub fn write_trimmed(self, out: &mut Vec<u8>) {
        self.write(out, b":", false);
    }

    /// Appends the trimmed form with `%3A` for each colon, as etags have it.
    pub(crate) fn write_escaped(self, out: &mut Vec<u8>) {
        self.write(out, b"%3A", false);
    }

    /// The form with exactly seven digits of fraction, as error messages and ACLs have it.
    #[must_use]
    pub fn to_seven_digits(self) -> String {
        let mut out = Vec::with_capacity(28);
        self.write(&mut out, b":", true);
        String::from_utf8(out).expect("digits and punctuation are UTF-8")
    }

    /// The form `MM/dd/yyyy HH:mm:ss`, as the service's out-of-range message has it.
    #[must_use]
    pub fn to_american(self) -> String {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.time();
        format!("{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
    }

    fn write(self, out: &mut Vec<u8>, colon: &[u8], seven: bool) {
        // A version after the last date is written as the last date.
        let point = if self > Self::MAX { Self::MAX } else { self };
        let second = point.second_text();
        out.extend_from_slice(&second[..13]);
        out.extend_from_slice(colon);
        out.extend_from_slice(&second[14..16]);
        out.extend_from_slice(colon);
        out.extend_from_slice(&second[17..]);
        let fraction = (point.0 % TICKS_PER_SECOND) as u32;
        if seven || fraction != 0 {
            out.push(b'.');
            let mut digits = [b'0'; 7];
            put_digits(&mut digits, fraction);
            let zeros = if seven { 0 } else { digits.iter().rev().take_while(|digit| **digit == b'0').count() };
            out.extend_from_slice(&digits[..7 - zeros]);
        }
        out.push(b'Z');
    }

    /// `2022-05-06T00:31:05`. Entities of a page were often written within the same second, and each has its time twice.
    fn second_text(self) -> [u8; 19] {
        let seconds = self.0 / TICKS_PER_SECOND;
        let (known, text) = LAST_SECOND.get();
        if known == seconds {
            return text;
        }
        let ((year, month, day), (hour, minute, second)) = (self.date(), self.time());
        let mut text = *b"0000-00-00T00:00:00";
        for (at, width, value) in
            [(0, 4, year), (5, 2, month), (8, 2, day), (11, 2, hour), (14, 2, minute), (17, 2, second)]
        {
            put_digits(&mut text[at..at + width], value);
        }
        LAST_SECOND.set((seconds, text));
        text
    }

    /// Year, month and day (proleptic Gregorian).
    fn date(self) -> (u32, u32, u32) {
        // Dates repeat every 400 years. `time` ends with the year 9999, and an error may name a day of the year 10000.
        let days = (self.0 / TICKS_PER_SECOND / SECONDS_PER_DAY) as i32;
        let (cycles, days) = (days / CYCLE_DAYS, days % CYCLE_DAYS);
        let date =
            Date::from_julian_day(FIRST_JULIAN_DAY + days).expect("the first 400 years have a date for each day");
        let (year, month, day) = date.to_calendar_date();
        ((400 * cycles + year).unsigned_abs(), u32::from(u8::from(month)), u32::from(day))
    }

    fn time(self) -> (u32, u32, u32) {
        let second = (self.0 / TICKS_PER_SECOND % SECONDS_PER_DAY) as u32;
        (second / 3600, second / 60 % 60, second % 60)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(28);
        self.write_trimmed(&mut out);
        out.into_iter().try_for_each(|byte| f.write_char(char::from(byte)))
    }
}

/// A span in ticks, or as many as there are.
const fn ticks(span: Duration) -> u64 {
    span.as_secs().saturating_mul(TICKS_PER_SECOND).saturating_add((span.subsec_nanos() / 100) as u64)
}

fn put_digits(out: &mut [u8], mut value: u32) {
    for slot in out.iter_mut().rev() {
        *slot = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

thread_local! {
    /// The last second that was written, and its text.
    static LAST_SECOND: Cell<(u64, [u8; 19])> = const { Cell::new((0, *b"0001-01-01T00:00:00")) };
}

/// Reads a text from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn timestamp(&mut self) -> Option<Timestamp> {
        let mut ticks = self.date()?;
        if self.take(b'T') {
            ticks += self.time()?;
        }
        let ticks = i64::try_from(ticks).ok()? - self.offset_minutes()? * 60 * TICKS_PER_SECOND as i64;
        if !self.0.is_empty() {
            return None;
        }
        u64::try_from(ticks).ok().map(Timestamp)
    }

    fn date(&mut self) -> Option<u64> {
        let year = self.digits(4)? as i32;
        self.take(b'-').then_some(())?;
        let month = Month::try_from(self.digits(2)? as u8).ok()?;
        self.take(b'-').then_some(())?;
        let day = self.digits(2)? as u8;
        let date = Date::from_calendar_date(year, month, day).ok()?;
        let days = u64::try_from(date.to_julian_day() - FIRST_JULIAN_DAY).ok()?;
        Some(days * SECONDS_PER_DAY * TICKS_PER_SECOND)
    }

    fn time(&mut self) -> Option<u64> {
        let hour = self.digits(2)?;
        self.take(b':').then_some(())?;
        let minute = self.digits(2)?;
        let second = if self.take(b':') { self.digits(2)? } else { 0 };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let fraction = if self.take(b'.') { self.fraction()? } else { 0 };
        Some((hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction)
    }

    fn fraction(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        // Java's client writes nine digits.
        let ticks = self.digits(digits.min(7))? * 10u64.pow(7 - digits.min(7) as u32);
        self.0 = &self.0[digits.saturating_sub(7)..];
        Some(ticks)
    }

    fn offset_minutes(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.take(b'Z') {
            return Some(0);
        }
        let sign = if self.take(b'+') { 1 } else { self.take(b'-').then_some(-1)? };
        let hours = self.digits(2)?;
        self.take(b':').then_some(())?;
        let minutes = self.digits(2)?;
        (hours <= 14 && minutes <= 59).then_some(sign * (hours * 60 + minutes) as i64)
    }

    fn digits(&mut self, count: usize) -> Option<u64> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        head.iter().try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u64::from(b - b'0')))
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        if found {
            self.0 = &self.0[1..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_clock_makes_a_time_that_cannot_be_written() {
        let year_10000 = Duration::from_secs(253_402_300_800);
        for reading in [year_10000, year_10000 * 10, Duration::from_secs(u64::MAX / 10_000_000), Duration::MAX] {
            assert_eq!(Timestamp::from_unix(reading), Timestamp::MAX, "{reading:?}");
        }
        assert_eq!(Timestamp::from_unix(year_10000 - Duration::from_nanos(100)), Timestamp::MAX);
        assert_eq!(Timestamp::CLOCK_MAX.to_string(), "9999-12-30T23:59:59.9999999Z");
        for ticks in [0, Timestamp::MAX.ticks(), Timestamp::MAX.ticks() + 1, u64::MAX] {
            let point = Timestamp::from_ticks(ticks);
            assert_eq!(point.after(Duration::MAX), Timestamp::MAX);
            assert_eq!(point.before(Duration::MAX), Timestamp::from_ticks(0));
            let _ = (point.to_unix(), point.to_american(), point.to_seven_digits());
        }
        assert_eq!(Timestamp::from_ticks(u64::MAX).to_string(), "9999-12-31T23:59:59.9999999Z");
        assert_eq!(Timestamp::from_ticks(0).to_string(), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn known_points_have_their_ticks() {
        assert_eq!(Timestamp::parse("1601-01-01T00:00:00Z"), Ok(Timestamp::EDM_MIN));
        assert_eq!(Timestamp::parse("9999-12-31T23:59:59.9999999Z"), Ok(Timestamp::MAX));
        assert_eq!(Timestamp::parse("1970-01-01"), Ok(Timestamp::from_unix(Duration::ZERO)));
        assert_eq!(Timestamp::parse("2022-05-06T00:31:05.0707164Z").map(Timestamp::ticks), Ok(637_873_938_650_707_164));
    }

    #[test]
    fn dates_outside_of_the_range_are_named() {
        for (text, out) in [
            ("0001-01-01T00:00:00Z", "01/01/0001 00:00:00"),
            ("1600-02-29T23:59:59Z", "02/29/1600 23:59:59"),
            ("9999-12-31T23:59:59-01:00", "01/01/10000 00:59:59"),
        ] {
            let Err(TimestampError::OutOfRange(point)) = Timestamp::parse(text) else { panic!("{text} is in range") };
            assert_eq!(point.to_american(), out);
        }
        assert_eq!(Timestamp::from_ticks(u64::MAX).to_american(), "05/28/58456 05:36:10");
    }

    #[test]
    fn fractions_lose_their_trailing_zeros() {
        for (text, out) in [
            ("2021-09-13T22:13:41.8204980Z", "2021-09-13T22:13:41.820498Z"),
            ("2021-09-13T22:13:41.0000000Z", "2021-09-13T22:13:41Z"),
            ("2008-07-10T00:00:00", "2008-07-10T00:00:00Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.9999999Z"),
            ("2008-07-10T00:30+01:00", "2008-07-09T23:30:00Z"),
        ] {
            assert_eq!(Timestamp::parse(text).map(|t| t.to_string()).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "2008",
            "2008-13-01",
            "2008-02-30",
            "2009-02-29",
            "1900-02-29",
            "2008-00-10",
            "2008-07-00",
            "0000-12-31",
            "2008-07-10T",
            "2008-07-10T25:00",
            "2008-07-10T00:00:00.Z",
            "2008-07-10T00:00:00ZZ",
            "2008-07-10 00:00:00",
            "10/07/2008",
            "2008-07-10T00:00:00+1:00",
        ] {
            assert_eq!(Timestamp::parse(text), Err(TimestampError::Syntax), "{text}");
        }
        assert!(matches!(Timestamp::parse("0001-01-01T00:00:00Z"), Err(TimestampError::OutOfRange(_))));
        assert!(matches!(Timestamp::parse("1600-12-31T23:59:59Z"), Err(TimestampError::OutOfRange(_))));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ticks in Timestamp::EDM_MIN.0..=Timestamp::MAX.0) {
            let point = Timestamp(ticks);
            prop_assert_eq!(Timestamp::parse(&point.to_string()), Ok(point));
            prop_assert_eq!(Timestamp::parse(&point.to_seven_digits()), Ok(point));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = Timestamp::parse(&text);
        }
    }
}
