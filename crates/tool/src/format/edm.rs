//! The eight types of properties, and values of them from the text of other programs.

use crate::value::to_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_client::{Timestamp, Value};
use std::fmt;

/// A type of properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the variants are those of `Value`")]
pub enum EdmType {
    String,
    Int32,
    Int64,
    Double,
    Boolean,
    DateTime,
    Guid,
    Binary,
}

impl EdmType {
    pub(crate) const ALL: [Self; 8] =
        [Self::String, Self::Int32, Self::Int64, Self::Double, Self::Boolean, Self::DateTime, Self::Guid, Self::Binary];

    /// The type of a value.
    #[must_use]
    pub const fn of(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::String,
            Value::Int32(_) => Self::Int32,
            Value::Int64(_) => Self::Int64,
            Value::Double(_) => Self::Double,
            Value::Boolean(_) => Self::Boolean,
            Value::DateTime(_) => Self::DateTime,
            Value::Guid(_) => Self::Guid,
            Value::Binary(_) => Self::Binary,
        }
    }

    /// The name as the service has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "Edm.String",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::Boolean => "Edm.Boolean",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
            Self::Binary => "Edm.Binary",
        }
    }

    /// The type with this name, with or without `Edm.`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        let short = name.strip_prefix("Edm.").unwrap_or(name);
        Self::ALL.into_iter().find(|edm| edm.name()["Edm.".len()..].eq_ignore_ascii_case(short))
    }

    /// Reads a value of this type from its text, as [`to_text`] or another program writes it.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Value> {
        Some(match self {
            Self::String => Value::String(text.to_owned()),
            Self::Int32 => Value::Int32(text.trim().parse().ok()?),
            Self::Int64 => Value::Int64(text.trim().parse().ok()?),
            Self::Double => Value::Double(parse_double(text.trim())?),
            Self::Boolean => Value::Boolean(parse_boolean(text.trim())?),
            Self::DateTime => Value::DateTime(parse_time(text.trim())?),
            Self::Guid => Value::Guid(text.trim().parse().ok()?),
            Self::Binary => Value::Binary(STANDARD.decode(text.trim()).ok()?),
        })
    }

    /// A value as this type, if that loses nothing but its type: wider numbers, and texts of values.
    #[must_use]
    pub fn convert(self, value: Value) -> Option<Value> {
        if Self::of(&value) == self {
            return Some(value);
        }
        match (self, value) {
            (Self::Int64, Value::Int32(number)) => Some(Value::Int64(number.into())),
            (Self::Int32, Value::Int64(number)) => i32::try_from(number).ok().map(Value::Int32),
            (Self::Double, Value::Int32(number)) => Some(Value::Double(number.into())),
            (Self::Double, Value::Int64(number)) => {
                #[expect(clippy::cast_precision_loss, reason = "compared right away")]
                let double = number as f64;
                #[expect(clippy::cast_possible_truncation, reason = "compared right away")]
                let is_same = double as i128 == i128::from(number);
                is_same.then_some(Value::Double(double))
            }
            (Self::String, value) => Some(Value::String(to_text(&value).into_owned())),
            (_, Value::String(text)) => self.parse(&text),
            _ => None,
        }
    }
}

impl fmt::Display for EdmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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

/// Reads a time as the service writes it, or with a space instead of the `T` as databases do.
fn parse_time(text: &str) -> Option<Timestamp> {
    match text.as_bytes().get(10) {
        Some(b' ') => format!("{}T{}", &text[..10], &text[11..]).parse().ok(),
        _ => text.parse().ok(),
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
            let edm = EdmType::of(&value);
            prop_assert_eq!(EdmType::from_name(edm.name()), Some(edm));
            let read = edm.parse(&to_text(&value));
            prop_assert_eq!(read.as_ref().map(debug), Some(debug(&value)));
        }

        #[test]
        fn any_text_is_a_value_or_none(text: String) {
            for edm in EdmType::ALL {
                let _ = edm.parse(&text);
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
                assert_eq!(edm.parse(text), None, "{edm} {text}");
            }
        }
    }

    #[test]
    fn conversions_lose_nothing() {
        assert_eq!(EdmType::Int64.convert(Value::Int32(7)), Some(Value::Int64(7)));
        assert_eq!(EdmType::Double.convert(Value::Int64(i64::MAX)), None);
        assert_eq!(EdmType::Double.convert(Value::Int64(-3)), Some(Value::Double(-3.0)));
        assert_eq!(EdmType::Int32.convert(Value::Int64(1 << 40)), None);
        assert_eq!(EdmType::String.convert(Value::Double(1.5)), Some(Value::String("1.5".to_owned())));
        assert_eq!(EdmType::Int32.convert(Value::Boolean(true)), None);
    }
}
