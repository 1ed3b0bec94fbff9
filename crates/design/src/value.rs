//! Values of properties by their number, for example keys and trials: the number 3 of a string property `City` is
//! `City000003`, of a time it is the fourth in order.

use crate::description::PropertyType;
use crate::key::{FIXED, Part, Period};
use crate::model::Model;

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the types of the service")]
pub enum SampleValue {
    String(String),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    /// As text in ISO 8601.
    DateTime(String),
    /// As text.
    Guid(String),
}

impl SampleValue {
    /// The value as a literal of a filter.
    #[must_use]
    pub fn literal(&self) -> String {
        match self {
            Self::String(text) => format!("'{}'", text.replace('\'', "''")),
            Self::Int32(number) => number.to_string(),
            Self::Int64(number) => format!("{number}L"),
            Self::Double(number) => format!("{number:.1}"),
            Self::Boolean(value) => value.to_string(),
            Self::DateTime(text) => format!("datetime'{text}'"),
            Self::Guid(text) => format!("guid'{text}'"),
        }
    }
}

/// The value of a property with this number.
pub(crate) fn sample(model: &Model<'_>, property: u8, number: u64) -> SampleValue {
    match model.kind(property) {
        PropertyType::String | PropertyType::Binary => SampleValue::String(string(model, property, number)),
        PropertyType::Int32 => SampleValue::Int32(i32::try_from(number).unwrap_or(i32::MAX)),
        PropertyType::Int64 => SampleValue::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
        PropertyType::Double => SampleValue::Double(number as f64),
        PropertyType::Boolean => SampleValue::Boolean(number % 2 == 1),
        PropertyType::DateTime => SampleValue::DateTime(iso(seconds(model, property, number))),
        PropertyType::Guid => SampleValue::Guid(guid(number)),
    }
}

/// A part of a key, for an entity that has these numbers.
pub(crate) fn part_text(model: &Model<'_>, part: Part, tags: &[String], number: impl Fn(u8) -> u64) -> String {
    let Some(property) = part.property() else {
        return if let Part::Tag(tag) = part { tags[usize::from(tag)].clone() } else { FIXED.to_owned() };
    };
    let number = number(property);
    match part {
        Part::Period(_, period) => period_text(seconds(model, property, number), period),
        Part::Bucket(_, buckets) => bucket_text(bucket(number, buckets)),
        Part::Inverted(_) => inverted(model, property, number),
        Part::Value(_) | Part::Fixed | Part::Tag(_) => match sample(model, property, number) {
            SampleValue::Int32(number) => format!("{number:010}"),
            SampleValue::Int64(number) => format!("{number:019}"),
            SampleValue::Double(number) => format!("{number:019.3}"),
            SampleValue::Boolean(value) => value.to_string(),
            SampleValue::String(text) | SampleValue::DateTime(text) | SampleValue::Guid(text) => text,
        },
    }
}

/// The bucket of a value.
pub(crate) fn bucket(number: u64, buckets: u16) -> u16 {
    (mixed(number) % u64::from(buckets)) as u16
}

pub(crate) fn bucket_text(bucket: u16) -> String {
    format!("{bucket:03}")
}

/// A number that looks random and is always the same (SplitMix64).
pub(crate) const fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn string(model: &Model<'_>, property: u8, number: u64) -> String {
    let example = model.property(property).and_then(|property| property.example.as_deref());
    match (example, number) {
        (Some(example), 0) => example.to_owned(),
        _ => format!("{}{number:06}", model.name(property)),
    }
}

fn inverted(model: &Model<'_>, property: u8, number: u64) -> String {
    match model.kind(property) {
        PropertyType::DateTime => {
            let ticks = (seconds(model, property, number) + SECONDS_BEFORE_1970) * 10_000_000;
            format!("{:019}", MAX_TICKS - ticks)
        }
        PropertyType::Int32 => format!("{:010}", u64::from(i32::MAX.unsigned_abs()).saturating_sub(number)),
        _ => format!("{:019}", i64::MAX.unsigned_abs().saturating_sub(number)),
    }
}

fn guid(number: u64) -> String {
    let (high, low) = (mixed(number), mixed(number ^ u64::MAX));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// The time with this number, in seconds since 1970; number 0 is the beginning of 2026.
pub(crate) fn seconds(model: &Model<'_>, property: u8, number: u64) -> u64 {
    let step = match model.property(property).and_then(|property| property.every) {
        Some(every) => every.0 * 86_400.0,
        None => (model.days * 86_400.0 / model.distinct(property)).max(1.0),
    };
    FIRST_SECOND + (number as f64 * step).min(1e10) as u64
}

/// The period that a time is in.
pub(crate) fn period_text(seconds: u64, period: Period) -> String {
    let text = iso(seconds);
    match period {
        Period::Hour => text[..13].to_owned(),
        Period::Day => text[..10].to_owned(),
        Period::Month => text[..7].to_owned(),
    }
}

/// A time in ISO 8601, by the calendar's rules (Howard Hinnant, "chrono-compatible low-level date algorithms").
pub(crate) fn iso(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// The first of January 2026.
const FIRST_SECOND: u64 = 1_767_225_600;
const SECONDS_BEFORE_1970: u64 = 62_135_596_800;
/// The ticks of `DateTime.MaxValue`.
const MAX_TICKS: u64 = 3_155_378_975_999_999_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_says() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (FIRST_SECOND, "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(iso(seconds), text);
        }
        assert_eq!(period_text(FIRST_SECOND + 3600, Period::Hour), "2026-01-01T01");
    }
}
