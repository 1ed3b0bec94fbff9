//! Names of folders: the span of time that a record is in, and the prefixes that a range of time has.

use larimar_client::Timestamp;
use std::time::Duration;

/// The start of a folder's span, with all that its name contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Folder {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
}

impl Folder {
    /// The folder of a time, whose minutes are a multiple of `minutes`, a divisor of 60.
    pub(super) fn of(time: Timestamp, minutes: u8) -> Self {
        // Always `2014-07-31T18:05:00`, regardless of what follows.
        let text = time.to_string();
        let number =
            |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse().ok()).unwrap_or(0_u16);
        let small = |from| u8::try_from(number(from, from + 2)).unwrap_or(0);
        let minute = small(14) / minutes * minutes;
        Self { year: number(0, 4), month: small(5), day: small(8), hour: small(11), minute }
    }

    /// The folder's name, such as `2014/07/31/1800`.
    pub(super) fn name(&self) -> String {
        let Self { hour, minute, .. } = self;
        format!("{}/{hour:02}{minute:02}", self.day())
    }

    /// Reads a folder's name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('/');
        let (year, month, day, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if (parts.next(), time.len()) != (None, 4) || !time.is_ascii() {
            return None;
        }
        let (hour, minute) = time.split_at(2);
        let folder = Self {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
            day: day.parse().ok()?,
            hour: hour.parse().ok()?,
            minute: minute.parse().ok()?,
        };
        (folder.name() == name).then_some(folder)
    }

    fn day(&self) -> String {
        format!("{}/{:02}", self.month(), self.day)
    }

    fn month(&self) -> String {
        format!("{:04}/{:02}", self.year, self.month)
    }
}

/// What the names of all folders begin with that may have records from one time to another, both included: few, and in
/// their order.
pub(super) fn prefixes(from: Timestamp, to: Timestamp, minutes: u8) -> Vec<String> {
    let (first, last) = (Folder::of(from, minutes), Folder::of(to, minutes));
    if first > last {
        return Vec::new();
    }
    if first == last {
        return vec![format!("{}/", first.name())];
    }
    let mut prefixes = Vec::new();
    if to.since(from) < Duration::from_secs(7 * DAY) {
        let mut time = from;
        while Folder::of(time, minutes).day() < last.day() {
            prefixes.push(format!("{}/", Folder::of(time, minutes).day()));
            time = time.after(Duration::from_secs(DAY));
        }
        prefixes.push(format!("{}/", last.day()));
        return prefixes;
    }
    let (mut year, mut month) = (first.year, first.month);
    // Ten years of months, and years beyond that.
    let by_year = last.year - first.year > 10;
    while (year, month) <= (last.year, last.month) {
        prefixes.push(if by_year { format!("{year:04}/") } else { format!("{year:04}/{month:02}/") });
        (year, month) = if by_year || month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    prefixes
}

const DAY: u64 = 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn t13_folders_are_named_as_the_guide_says() {
        assert_eq!(Folder::of(time("2014-07-31T18:59:59.9Z"), 60).name(), "2014/07/31/1800");
        assert_eq!(Folder::of(time("2014-07-31T18:59:59.9Z"), 15).name(), "2014/07/31/1845");
        for name in ["2014/07/31", "2014/07/31/18", "2014/7/31/1800", "2014/07/31/1800/x", "x", "2014/07/31/18ü"] {
            assert_eq!(Folder::parse(name), None, "{name}");
        }
    }

    #[test]
    fn t13_a_range_has_few_prefixes() {
        let prefixes = |from, to| prefixes(time(from), time(to), 60);
        assert_eq!(prefixes("2014-07-31T18:00:00Z", "2014-07-31T18:59:59Z"), ["2014/07/31/1800/"]);
        assert_eq!(prefixes("2014-07-31T15:04:00Z", "2014-07-31T18:06:00Z"), ["2014/07/31/"]);
        assert_eq!(prefixes("2014-07-31T23:00:00Z", "2014-08-01T01:00:00Z"), ["2014/07/31/", "2014/08/01/"]);
        assert_eq!(prefixes("2014-11-20T00:00:00Z", "2015-01-02T00:00:00Z"), ["2014/11/", "2014/12/", "2015/01/"]);
        assert_eq!(prefixes("1999-11-20T00:00:00Z", "2015-01-02T00:00:00Z").len(), 17);
        assert_eq!(prefixes("2014-07-31T18:00:00Z", "2014-07-31T17:00:00Z"), [""; 0]);
    }

    proptest! {
        /// Every name in the range has exactly one of its prefixes.
        #[test]
        fn t13_every_time_of_a_range_has_one_prefix(
            from in 635_000_000_000_000_000_u64..638_000_000_000_000_000,
            span in prop_oneof![0_u64..864_000_000_000, 0_u64..60 * 864_000_000_000, 0_u64..6_000_000_000_000_000],
            at in 0.0..=1.0,
            minutes in prop::sample::select(vec![1_u8, 15, 60]),
        ) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "any will do")]
            let between = from + ((span as f64 * at) as u64).min(span);
            let folder = Folder::of(Timestamp::from_ticks(between), minutes);
            prop_assert_eq!(Folder::parse(&folder.name()), Some(folder));
            let name = format!("{}/000001.log", folder.name());
            let found = prefixes(Timestamp::from_ticks(from), Timestamp::from_ticks(from + span), minutes);
            prop_assert_eq!(found.iter().filter(|prefix| name.starts_with(prefix.as_str())).count(), 1, "{} in {:?}", name, found);
        }
    }
}
