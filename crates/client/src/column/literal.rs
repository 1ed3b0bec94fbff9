//! What a column of a type is compared with.

use crate::{Guid, Timestamp, Value};
use std::borrow::Cow;
use std::time::SystemTime;

/// A value that a column of type `T` is compared with.
///
/// A `Column<String>` takes `&str`, `String` and the like; a `Column<i64>` every integer; a `Column<Timestamp>` also
/// `SystemTime` and the types of `chrono` and `time` with the features of their names. `#[derive(Property)]`
/// implements it for the enum.
///
/// A time that no property holds, before 1601 or after 9999, counts as the first or last one that a property does.
#[diagnostic::on_unimplemented(
    message = "a column of type `{T}` is not compared with `{Self}`",
    label = "expected a value that `{T}` compares with"
)]
pub trait IntoLiteral<T> {
    /// The value to compare with.
    fn into_literal(self) -> Value;
}

/// A time in a filter is one that a property may have: the service refuses the others.
pub(super) fn storable(value: Value) -> Value {
    match value {
        Value::DateTime(time) => Value::DateTime(time.clamp(Timestamp::MIN, Timestamp::MAX)),
        other => other,
    }
}

/// A `Column<Value>` compares with a value of any type.
impl<V: Into<Value>> IntoLiteral<Value> for V {
    fn into_literal(self) -> Value {
        self.into()
    }
}

macro_rules! literal {
    ($($scalar:ty: $($type:ty),+ => $variant:ident by $convert:expr;)+) => {$($(
        impl IntoLiteral<$scalar> for $type {
            fn into_literal(self) -> Value {
                Value::$variant($convert(self))
            }
        }
    )+)+};
}

literal! {
    String: &str, &String, String, Cow<'_, str> => String by String::from;
    bool: bool => Boolean by bool::from;
    i32: i8, i16, i32, u8, u16 => Int32 by i32::from;
    i64: i8, i16, i32, i64, u8, u16, u32 => Int64 by i64::from;
    f64: f32, f64, i8, i16, i32, u8, u16, u32 => Double by f64::from;
    Timestamp: Timestamp, SystemTime => DateTime by Timestamp::from;
    Guid: Guid => Guid by Guid::from;
    Vec<u8>: Vec<u8>, &[u8] => Binary by Vec::from;
    Vec<u8>: &Vec<u8> => Binary by Vec::clone;
}

#[cfg(feature = "uuid")]
literal! {
    Guid: uuid::Uuid => Guid by Guid::from;
}

#[cfg(feature = "chrono")]
impl<Zone: chrono::TimeZone> IntoLiteral<Timestamp> for chrono::DateTime<Zone> {
    fn into_literal(self) -> Value {
        Value::DateTime(Timestamp::from(self))
    }
}

#[cfg(feature = "time")]
literal! {
    Timestamp: time::OffsetDateTime => DateTime by Timestamp::from;
}

impl<const N: usize> IntoLiteral<Vec<u8>> for [u8; N] {
    fn into_literal(self) -> Value {
        Value::Binary(self.to_vec())
    }
}

impl<const N: usize> IntoLiteral<Vec<u8>> for &[u8; N] {
    fn into_literal(self) -> Value {
        Value::Binary(self.to_vec())
    }
}

/// A number that is greater than every Int64 becomes a Double, which the service takes as greater than every Int64 too.
impl IntoLiteral<i64> for u64 {
    fn into_literal(self) -> Value {
        i64::try_from(self).map_or(Value::Double(self as f64), Value::Int64)
    }
}

/// As for `u64`.
impl IntoLiteral<i64> for usize {
    fn into_literal(self) -> Value {
        IntoLiteral::<i64>::into_literal(self as u64)
    }
}
