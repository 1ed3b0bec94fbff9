//! The types of properties: by name, and values of them from the text of other programs.

use crate::value::to_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_client::{Timestamp, Value};
use larimar_model::EdmType;
use larimar_model::column::parse_time;

/// The type of a value.
#[must_use]
pub const fn of(value: &Value) -> EdmType {
    match value {
        Value::String(_) => EdmType::String,
        Value::Int32(_) => EdmType::Int32,
        Value::Int64(_) => EdmType::Int64,
        Value::Double(_) => EdmType::Double,
        Value::Boolean(_) => EdmType::Boolean,
        Value::DateTime(_) => EdmType::DateTime,
        Value::Guid(_) => EdmType::Guid,
        Value::Binary(_) => EdmType::Binary,
    }
}

/// The name of a type without `Edm.`.
#[must_use]
pub fn short_name(edm: EdmType) -> &'static str {
    &edm.name()["Edm.".len()..]
}

/// The type with this name, with or without `Edm.`, in any case.
#[must_use]
pub fn named(name: &str) -> Option<EdmType> {
    let name = name.trim();
    let short = name.strip_prefix("Edm.").unwrap_or(name);
    EdmType::ALL.into_iter().find(|edm| short_name(*edm).eq_ignore_ascii_case(short))
}

/// Reads a value of this type from its text, as [`to_text`] or another program writes it.
#[must_use]
pub fn parse(edm: EdmType, text: &str) -> Option<Value> {
    Some(match edm {
        EdmType::String => Value::String(text.to_owned()),
        EdmType::Int32 => Value::Int32(text.trim().parse().ok()?),
        EdmType::Int64 => Value::Int64(text.trim().parse().ok()?),
        EdmType::Double => Value::Double(parse_double(text.trim())?),
        EdmType::Boolean => Value::Boolean(parse_boolean(text.trim())?),
        EdmType::DateTime => Value::DateTime(Timestamp::from_ticks(parse_time(text.trim())?.ticks())),
        EdmType::Guid => Value::Guid(text.trim().parse().ok()?),
        EdmType::Binary => Value::Binary(STANDARD.decode(text.trim()).ok()?),
    })
}

/// What the text of a value of this type looks like, for error messages.
#[must_use]
pub const fn expected(edm: EdmType) -> &'static str {
    match edm {
        EdmType::String => "text",
        EdmType::Int32 => "a 32-bit integer",
        EdmType::Int64 => "a 64-bit integer",
        EdmType::Double => "a number",
        EdmType::Boolean => "true or false",
        EdmType::DateTime => "a time such as 2026-01-31T12:00:00Z",
        EdmType::Guid => "a GUID such as 8f0f5d5a-94f3-4d5b-9c44-9d7d7bb1b5f2",
        EdmType::Binary => "base64",
    }
}

/// A value as this type, if that loses nothing but its type: wider numbers, and texts of values.
#[must_use]
pub fn convert(edm: EdmType, value: Value) -> Option<Value> {
    if of(&value) == edm {
        return Some(value);
    }
    match (edm, value) {
        (EdmType::Int64, Value::Int32(number)) => Some(Value::Int64(number.into())),
        (EdmType::Int32, Value::Int64(number)) => i32::try_from(number).ok().map(Value::Int32),
        (EdmType::Double, Value::Int32(number)) => Some(Value::Double(number.into())),
        (EdmType::Double, Value::Int64(number)) => {
            #[expect(clippy::cast_precision_loss, reason = "compared right away")]
            let double = number as f64;
            #[expect(clippy::cast_possible_truncation, reason = "compared right away")]
            let is_same = double as i128 == i128::from(number);
            is_same.then_some(Value::Double(double))
        }
        (EdmType::String, value) => Some(Value::String(to_text(&value).into_owned())),
        (_, Value::String(text)) => parse(edm, &text),
        _ => None,
    }
}

fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        // Rust reads more words than the service writes, and numbers that are too large as infinite.
        _ if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) => {
            text.parse().ok().filter(|number: &f64| number.is_finite())
        }
        _ => None,
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::samples::{any_value, debug};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_is_read_from_its_text(value in any_value()) {
            let edm = of(&value);
            prop_assert_eq!(named(edm.name()), Some(edm));
            let read = parse(edm, &to_text(&value));
            prop_assert_eq!(read.as_ref().map(debug), Some(debug(&value)));
        }

        #[test]
        fn any_text_is_a_value_or_none(text: String) {
            for edm in EdmType::ALL {
                let _ = parse(edm, &text);
            }
        }
    }

    #[test]
    fn values_that_are_not_of_the_type_are_refused() {
        for (edm, texts) in [
            (EdmType::Int32, &["", "2147483648", "1.0", "x"][..]),
            (EdmType::Double, &["", "inf", "nan", "infinity", "1e999", "0x1"]),
            (EdmType::Boolean, &["", "1", "yes"]),
            (EdmType::DateTime, &["", "1600-12-31", "10000-01-01", "02/03/2004", "äääää 00:00"]),
            (EdmType::Guid, &["", "c9da6455"]),
            (EdmType::Binary, &["a", "é"]),
        ] {
            for text in texts {
                assert_eq!(parse(edm, text), None, "{edm} {text}");
            }
        }
    }

    #[test]
    fn conversions_lose_nothing() {
        assert_eq!(convert(EdmType::Int64, Value::Int32(7)), Some(Value::Int64(7)));
        assert_eq!(convert(EdmType::Double, Value::Int64(i64::MAX)), None);
        assert_eq!(convert(EdmType::Double, Value::Int64(-3)), Some(Value::Double(-3.0)));
        assert_eq!(convert(EdmType::Int32, Value::Int64(1 << 40)), None);
        assert_eq!(convert(EdmType::String, Value::Double(1.5)), Some(Value::String("1.5".to_owned())));
        assert_eq!(convert(EdmType::Int32, Value::Boolean(true)), None);
    }
}
