//! Property values: the eight types of the Entity Data Model that the service stores.

use crate::{Guid, Timestamp};
use std::fmt;

/// The type of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdmType {
    /// UTF-16 text of up to 64 KiB.
    String,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// 64-bit floating point.
    Double,
    /// True or false.
    Boolean,
    /// A point in time from 1601 on, in ticks of 100 ns.
    DateTime,
    /// A 128-bit identifier.
    Guid,
    /// Up to 64 KiB of bytes.
    Binary,
}

impl EdmType {
    /// The eight types.
    pub const ALL: [Self; 8] =
        [Self::String, Self::Int32, Self::Int64, Self::Double, Self::Boolean, Self::DateTime, Self::Guid, Self::Binary];

    /// The type's name on the wire.
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

    /// The type with this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edm| edm.name() == name)
    }
}

impl fmt::Display for EdmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A property's value, owned.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are those of EdmType")]
pub enum Value {
    String(String),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    DateTime(Timestamp),
    Guid(Guid),
    Binary(Vec<u8>),
}

/// A property's value, borrowed from a stored row or a request.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are those of EdmType")]
pub enum ValueRef<'a> {
    String(&'a str),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    DateTime(Timestamp),
    Guid(Guid),
    Binary(&'a [u8]),
}

impl Value {
    /// The same value, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::String(v) => ValueRef::String(v),
            Self::Int32(v) => ValueRef::Int32(*v),
            Self::Int64(v) => ValueRef::Int64(*v),
            Self::Double(v) => ValueRef::Double(*v),
            Self::Boolean(v) => ValueRef::Boolean(*v),
            Self::DateTime(v) => ValueRef::DateTime(*v),
            Self::Guid(v) => ValueRef::Guid(*v),
            Self::Binary(v) => ValueRef::Binary(v),
        }
    }
}

impl ValueRef<'_> {
    /// The value's type.
    #[must_use]
    pub const fn edm_type(self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::Boolean(_) => EdmType::Boolean,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }

    /// The same value, copied.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::String(v) => Value::String(v.to_owned()),
            Self::Int32(v) => Value::Int32(v),
            Self::Int64(v) => Value::Int64(v),
            Self::Double(v) => Value::Double(v),
            Self::Boolean(v) => Value::Boolean(v),
            Self::DateTime(v) => Value::DateTime(v),
            Self::Guid(v) => Value::Guid(v),
            Self::Binary(v) => Value::Binary(v.to_vec()),
        }
    }

    /// Bytes that the value adds to its entity as the service counts them (service: data model).
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::String(v) => 2 * crate::utf16::len(v) + 4,
            Self::Binary(v) => v.len() + 4,
            Self::Int32(_) => 4,
            Self::Int64(_) | Self::Double(_) | Self::DateTime(_) => 8,
            Self::Guid(_) => 16,
            Self::Boolean(_) => 1,
        }
    }
}
