//! Values of properties: the eight types that the service stores.

use crate::{Guid, Timestamp};
use larimar_model::ValueRef;
use std::borrow::Cow;

/// The value of a property.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text of up to 64 KiB in UTF-16.
    String(String),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A 64-bit floating point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// A point in time.
    DateTime(Timestamp),
    /// An identifier.
    Guid(Guid),
    /// Up to 64 KiB of bytes.
    Binary(Vec<u8>),
}

impl Value {
    /// The type's name in the Entity Data Model, such as `Edm.Int64`.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "Edm.String",
            Self::Int32(_) => "Edm.Int32",
            Self::Int64(_) => "Edm.Int64",
            Self::Double(_) => "Edm.Double",
            Self::Boolean(_) => "Edm.Boolean",
            Self::DateTime(_) => "Edm.DateTime",
            Self::Guid(_) => "Edm.Guid",
            Self::Binary(_) => "Edm.Binary",
        }
    }

    /// Bytes that the value adds to its entity as the service counts them.
    #[must_use]
    pub fn size(&self) -> usize {
        self.as_model().size()
    }

    /// The same value in the vocabulary that the service's rules are written in.
    pub(crate) fn as_model(&self) -> ValueRef<'_> {
        match self {
            Self::String(text) => ValueRef::String(text),
            Self::Int32(number) => ValueRef::Int32(*number),
            Self::Int64(number) => ValueRef::Int64(*number),
            Self::Double(number) => ValueRef::Double(*number),
            Self::Boolean(truth) => ValueRef::Boolean(*truth),
            Self::DateTime(time) => ValueRef::DateTime(time.inner()),
            Self::Guid(guid) => ValueRef::Guid(larimar_model::Guid(*guid.as_bytes())),
            Self::Binary(bytes) => ValueRef::Binary(bytes),
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident $(by $convert:expr)?),+ $(,)?) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                $(let value = $convert(value);)?
                Self::$variant(value)
            }
        }
    )+};
}

from! {
    String => String,
    &String => String by String::clone,
    &str => String by str::to_owned,
    Cow<'_, str> => String by Cow::into_owned,
    i8 => Int32 by i32::from,
    i16 => Int32 by i32::from,
    i32 => Int32,
    u8 => Int32 by i32::from,
    u16 => Int32 by i32::from,
    i64 => Int64,
    u32 => Int64 by i64::from,
    f32 => Double by f64::from,
    f64 => Double,
    bool => Boolean,
    Timestamp => DateTime,
    std::time::SystemTime => DateTime by Timestamp::from,
    Guid => Guid,
    Vec<u8> => Binary,
    &[u8] => Binary by <[u8]>::to_vec,
}

#[cfg(feature = "uuid")]
from! { uuid::Uuid => Guid by Guid::from }

#[cfg(feature = "chrono")]
from! { chrono::DateTime<chrono::Utc> => DateTime by Timestamp::from }

#[cfg(feature = "time")]
from! { time::OffsetDateTime => DateTime by Timestamp::from }

#[cfg(test)]
pub(crate) mod samples;
