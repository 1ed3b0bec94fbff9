//! Values of properties by their number, for example keys and trials: the number 3 of a string property `City` is
//! `City000003`, of a time it is the fourth in order.

use crate::key::{FIXED, Part, Period};
use crate::model::Model;
use larimar_model::{EdmType, Guid, Timestamp, Value};
use std::time::Duration;

/// The value as a literal of a filter.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => format!("{number}L"),
        Value::Double(number) => format!("{number:.1}"),
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(time) => format!("datetime'{time}'"),
        Value::Guid(guid) => format!("guid'{guid}'"),
        Value::Binary(bytes) => format!("X'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// The value of a property with this number.
pub(crate) fn sample(model: &Model<'_>, property: u8, number: u64) -> Value {
    match model.kind(property) {
        EdmType::String | EdmType::Binary => Value::String(string(model, property, number)),
        EdmType::Int32 => Value::Int32(i32::try_from(number).unwrap_or(i32::MAX)),
        EdmType::Int64 => Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
        EdmType::Double => Value::Double(number as f64),
        EdmType::Boolean => Value::Boolean(number % 2 == 1),
        EdmType::DateTime => Value::DateTime(time(seconds(model, property, number))),
        EdmType::Guid => Value::Guid(guid(number)),
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
            Value::Int32(number) => format!("{number:010}"),
            Value::Int64(number) => format!("{number:019}"),
            Value::Double(number) => format!("{number:019.3}"),
            Value::Boolean(value) => value.to_string(),
            Value::String(text) => text,
            Value::DateTime(time) => time.to_string(),
            Value::Guid(guid) => guid.to_string(),
            // A property of bytes is in no key, and its sample is a text.
            Value::Binary(_) => String::new(),
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
        EdmType::DateTime => {
            format!("{:019}", Timestamp::MAX.ticks() - time(seconds(model, property, number)).ticks())
        }
        EdmType::Int32 => format!("{:010}", u64::from(i32::MAX.unsigned_abs()).saturating_sub(number)),
        _ => format!("{:019}", i64::MAX.unsigned_abs().saturating_sub(number)),
    }
}

fn guid(number: u64) -> Guid {
    let (high, low) = (mixed(number), mixed(number ^ u64::MAX));
    let mut bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    // Version 4 and its variant (RFC 9562), as random ones have.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Guid(bytes)
}

const fn time(seconds: u64) -> Timestamp {
    Timestamp::from_unix(Duration::from_secs(seconds))
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
    let text = time(seconds).to_string();
    match period {
        Period::Hour => text[..13].to_owned(),
        Period::Day => text[..10].to_owned(),
        Period::Month => text[..7].to_owned(),
    }
}

/// The first of January 2026.
const FIRST_SECOND: u64 = 1_767_225_600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_the_beginnings_of_times() {
        for (period, text) in [(Period::Hour, "2026-01-01T01"), (Period::Day, "2026-01-01"), (Period::Month, "2026-01")]
        {
            assert_eq!(period_text(FIRST_SECOND + 3600, period), text);
        }
    }

    #[test]
    fn literals_are_those_of_filters() {
        for value in [
            Value::String("it's".to_owned()),
            Value::Int32(-1),
            Value::Int64(i64::MIN),
            Value::Double(2.0),
            Value::Boolean(true),
            Value::DateTime(time(FIRST_SECOND)),
            Value::Guid(guid(7)),
            Value::Binary(vec![0, 255]),
        ] {
            let text = format!("P eq {}", literal(&value));
            assert!(larimar_model::Filter::parse(&text).is_ok(), "{text}");
        }
    }
}
