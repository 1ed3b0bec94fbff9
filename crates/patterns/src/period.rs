//! Periods of the calendar: hours, days, months and years in UTC, and their names.
//!
//! [`crate::period_tables`] names tables after them and [`crate::series`] rows.

use larimar_client::Timestamp;
use std::time::Duration;

/// A span of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// From one full hour to the next, such as `2026021513`.
    Hour,
    /// From midnight to midnight, such as `20260215`.
    Day,
    /// A month, such as `202602`.
    Month,
    /// A year, such as `2026`.
    Year,
}

impl Period {
    /// The name of the period that contains a time: digits that sort as time goes.
    ///
    /// ```
    /// use larimar_patterns::Period;
    /// let time = "2026-02-15T13:05:00Z".parse()?;
    /// assert_eq!(Period::Hour.name(time), "2026021513");
    /// assert_eq!(Period::Month.name(time), "202602");
    /// # Ok::<(), larimar_client::TimestampError>(())
    /// ```
    #[must_use]
    pub fn name(self, time: Timestamp) -> String {
        let mut name = clamped(time).to_string();
        name.retain(|c| c.is_ascii_digit());
        name.truncate(self.digits());
        name
    }

    /// The start of the period that contains a time.
    #[must_use]
    pub fn start(self, time: Timestamp) -> Timestamp {
        self.parse(&self.name(time)).unwrap_or(Timestamp::MIN)
    }

    /// The start of the period after the one that contains a time. The last period ends with the year 9999.
    #[must_use]
    pub fn end(self, time: Timestamp) -> Timestamp {
        let start = self.start(time);
        let span = Duration::from_secs(match self {
            Self::Hour => HOUR,
            Self::Day => 24 * HOUR,
            // Into the period after it, wherever that begins.
            Self::Month => 31 * 24 * HOUR,
            Self::Year => 366 * 24 * HOUR,
        });
        match start.after(span) {
            next if next > Timestamp::MAX => Timestamp::MAX,
            next => self.start(next),
        }
    }

    /// When the period of a name begins; `None` if no period has that name.
    #[must_use]
    pub fn parse(self, name: &str) -> Option<Timestamp> {
        if name.len() != self.digits() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let part = |from: usize, otherwise| name.get(from..from + 2).unwrap_or(otherwise);
        let (year, month, day, hour) = (&name[..4], part(4, "01"), part(6, "01"), part(8, "00"));
        format!("{year}-{month}-{day}T{hour}:00:00Z").parse().ok()
    }

    const fn digits(self) -> usize {
        match self {
            Self::Year => 4,
            Self::Month => 6,
            Self::Day => 8,
            Self::Hour => 10,
        }
    }
}

fn clamped(time: Timestamp) -> Timestamp {
    time.clamp(Timestamp::MIN, Timestamp::MAX)
}

const HOUR: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn t8_periods_begin_and_end_by_the_calendar() {
        for (period, within, start, end) in [
            (Period::Hour, "2024-02-28T23:59:59.9999999Z", "2024-02-28T23:00:00Z", "2024-02-29T00:00:00Z"),
            (Period::Day, "2024-02-28T23:59:59Z", "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"),
            (Period::Day, "2023-02-28T12:00:00Z", "2023-02-28T00:00:00Z", "2023-03-01T00:00:00Z"),
            (Period::Month, "2024-02-01T00:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
            (Period::Month, "2024-12-31T23:59:59Z", "2024-12-01T00:00:00Z", "2025-01-01T00:00:00Z"),
            (Period::Year, "2024-12-31T00:00:00Z", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
            (Period::Year, "2100-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "2101-01-01T00:00:00Z"),
        ] {
            assert_eq!(period.start(time(within)), time(start), "{within}");
            assert_eq!(period.end(time(within)), time(end), "{within}");
            assert_eq!(period.parse(&period.name(time(within))), Some(time(start)), "{within}");
        }
    }

    #[test]
    fn t8_names_that_are_none_of_a_period_are_refused() {
        for (period, name) in [
            (Period::Day, "20240230"),
            (Period::Day, "2024023"),
            (Period::Day, "2024022a"),
            (Period::Month, "202413"),
            (Period::Hour, "2024022924"),
            (Period::Year, "0001"),
            (Period::Year, ""),
            (Period::Day, "２０２４"),
        ] {
            assert_eq!(period.parse(name), None, "{name}");
        }
    }

    #[test]
    fn t8_the_ends_of_time_have_periods_too() {
        for period in [Period::Hour, Period::Day, Period::Month, Period::Year] {
            assert_eq!(period.end(Timestamp::MAX), Timestamp::MAX);
            assert_eq!(period.start(Timestamp::from_ticks(0)), Timestamp::MIN);
            assert_eq!(period.start(Timestamp::from_ticks(u64::MAX)), period.start(Timestamp::MAX));
        }
    }
}
