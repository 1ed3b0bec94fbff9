//! Whether keys are made of times, as those of logs and of data that is deleted by age are.

use crate::report::TableReport;

/// Whether at least half of the keys in the report have a time in them.
pub(super) fn are_keys_times(table: &TableReport) -> bool {
    // The first range begins at the beginning of the table, where no key is.
    let starts = table.ranges.iter().filter(|range| !range.partition.is_empty() || !range.row.is_empty());
    let of_ranges: Vec<bool> = starts.map(|range| is_time(&range.partition) || is_time(&range.row)).collect();
    let partitions = || table.partitions.iter().map(|partition| is_time(&partition.partition)).collect();
    let samples: Vec<bool> = if of_ranges.is_empty() { partitions() } else { of_ranges };
    let times = samples.iter().filter(|is_time| **is_time).count();
    times > 0 && times * 2 >= samples.len()
}

/// Whether a key has a date, such as `2026-11-16` or `20261116`, or a number of ticks or milliseconds since an epoch.
fn is_time(key: &str) -> bool {
    let bytes = key.as_bytes();
    let dashed = bytes
        .windows(10)
        .any(|text| text[4] == b'-' && text[7] == b'-' && is_date(&text[..4], &text[5..7], &text[8..]));
    let runs = key.split(|character: char| !character.is_ascii_digit()).map(str::as_bytes);
    dashed || runs.into_iter().any(is_time_number)
}

fn is_time_number(digits: &[u8]) -> bool {
    match digits.len() {
        // A date, perhaps with hours, minutes and seconds.
        8 | 10 | 12 | 14 => is_date(&digits[..4], &digits[4..6], &digits[6..8]),
        // Milliseconds since 1970, until 2033.
        13 => digits[0] == b'1',
        // Ticks of 100 ns since year 1, and such ticks up to year 9999.
        18 => digits[0] == b'6',
        19 => digits[..2] == *b"06" || digits[..2] == *b"25",
        _ => false,
    }
}

fn is_date(year: &[u8], month: &[u8], day: &[u8]) -> bool {
    let number = |digits: &[u8]| {
        std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit))?.parse().ok()
    };
    let is_within = |digits: &[u8], least: u32, most: u32| {
        number(digits).is_some_and(|number: u32| (least..=most).contains(&number))
    };
    is_within(year, 1970, 2099) && is_within(month, 1, 12) && is_within(day, 1, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_keys() {
        for (key, expected) in [
            ("2026-11-16", true),
            ("web01_2026-11-16T10:00:00Z", true),
            ("20261116", true),
            ("log-2026111610", true),
            ("1763287200000", true),
            ("638988480000000000", true),
            ("0638988480000000000", true),
            ("2516391519999999999", true),
            ("", false),
            ("000123", false),
            ("Sales", false),
            ("20269916", false),
            ("12345678", false),
            ("9876543210123", false),
            ("2026-1-1", false),
            ("4012888888881881", false),
            ("ü026-11-16", false),
        ] {
            assert_eq!(is_time(key), expected, "{key}");
        }
    }
}
