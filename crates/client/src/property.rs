//! Types that a property may have, and how they are stored.

use crate::entity::EntityError;
use crate::{Guid, Value};

mod times;

/// A type that a property may have.
///
/// It is implemented for `String`, `bool`, the integers, floating point numbers, `Vec<u8>`, [`crate::Timestamp`], [`Guid`],
/// `SystemTime`, and with the features of their names for the types of `chrono`, `time` and `uuid`; for an
/// `Option` of them, whose `None` is an absent property; and by `#[derive(Property)]` for enums without data and for
/// structs around one value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a property",
    label = "not a type that the service stores",
    note = "`#[derive(larimar_client::Property)]` serves enums without data and structs around one value",
    note = "`#[entity(string)]` stores text by `Display` and `FromStr`, `#[entity(json)]` stores JSON by serde",
    note = "`#[entity(flatten)]` is for structs that derive `larimar_client::Properties`"
)]
pub trait Property: Sized {
    /// The type that filters compare such a property with.
    type Scalar;

    /// The value to store; `None` leaves the property out.
    ///
    /// # Errors
    /// A value that the service does not store.
    fn to_value(&self) -> Result<Option<Value>, PropertyError>;

    /// Reads a stored value; `None` is an absent property.
    ///
    /// # Errors
    /// An absent value, or one of another type.
    fn from_value(value: Option<Value>) -> Result<Self, PropertyError>;
}

/// Why a property cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PropertyError {
    /// The entity does not have the property.
    #[error("expected a value, found none")]
    Missing,
    /// The property has another type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What was asked for.
        expected: &'static str,
        /// What the entity has.
        found: &'static str,
    },
    /// The value does not fit.
    #[error("{0}")]
    Invalid(String),
}

impl PropertyError {
    /// The error for a value of another type than was expected.
    #[must_use]
    pub fn unexpected(expected: &'static str, found: Option<&Value>) -> Self {
        found.map_or(Self::Missing, |found| Self::Type { expected, found: found.type_name() })
    }

    /// The error for a value that does not fit, with its reason.
    #[must_use]
    pub fn invalid(reason: impl std::fmt::Display) -> Self {
        Self::Invalid(reason.to_string())
    }

    pub(crate) fn of(self, property: &str) -> EntityError {
        EntityError::new(property, self)
    }
}

/// An absent property is `None`. A property that holds a value of another type is an error all the same.
impl<T: Property> Property for Option<T> {
    type Scalar = T::Scalar;

    fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        self.as_ref().map_or(Ok(None), T::to_value)
    }

    fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
        value.map(|value| T::from_value(Some(value))).transpose()
    }
}

macro_rules! property {
    ($($type:ty, $name:literal, $variant:ident($value:ident) => $read:expr, $self:ident => $write:expr;)+) => {$(
        impl Property for $type {
            type Scalar = Self;

            fn to_value(&self) -> Result<Option<Value>, PropertyError> {
                let $self = self;
                Ok(Some(Value::$variant($write)))
            }

            fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
                match value {
                    Some(Value::$variant($value)) => Ok($read),
                    other => Err(PropertyError::unexpected($name, other.as_ref())),
                }
            }
        }
    )+};
}

property! {
    String, "Edm.String", String(value) => value, this => this.clone();
    bool, "Edm.Boolean", Boolean(value) => value, this => *this;
    i32, "Edm.Int32", Int32(value) => value, this => *this;
    Vec<u8>, "Edm.Binary", Binary(value) => value, this => this.clone();
    Guid, "Edm.Guid", Guid(value) => value, this => *this;
}

#[cfg(feature = "uuid")]
impl Property for uuid::Uuid {
    type Scalar = Guid;

    fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        Guid::from(*self).to_value()
    }

    fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
        Guid::from_value(value).map(Self::from)
    }
}

/// Smaller types of integers are stored as Int32.
macro_rules! small_integer {
    ($($type:ty),+) => {$(
        impl Property for $type {
            type Scalar = i32;

            fn to_value(&self) -> Result<Option<Value>, PropertyError> {
                Ok(Some(Value::Int32(i32::from(*self))))
            }

            fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
                Self::try_from(i32::from_value(value)?).map_err(PropertyError::invalid)
            }
        }
    )+};
}

small_integer!(i8, i16, u8, u16);

/// Reads an Int32 too: a service may have got the smaller type from another client.
impl Property for i64 {
    type Scalar = Self;

    fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        Ok(Some(Value::Int64(*self)))
    }

    fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
        match value {
            Some(Value::Int64(value)) => Ok(value),
            Some(Value::Int32(value)) => Ok(Self::from(value)),
            other => Err(PropertyError::unexpected("Edm.Int64", other.as_ref())),
        }
    }
}

/// Stored as Int64.
macro_rules! large_integer {
    ($($type:ty),+) => {$(
        impl Property for $type {
            type Scalar = i64;

            fn to_value(&self) -> Result<Option<Value>, PropertyError> {
                i64::try_from(*self).map(|value| Some(Value::Int64(value))).map_err(PropertyError::invalid)
            }

            fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
                Self::try_from(i64::from_value(value)?).map_err(PropertyError::invalid)
            }
        }
    )+};
}

large_integer!(u32, u64, usize);

/// Reads integers too: some clients write a Double without a fraction as Int32.
impl Property for f64 {
    type Scalar = Self;

    fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        Ok(Some(Value::Double(*self)))
    }

    fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
        match value {
            Some(Value::Double(value)) => Ok(value),
            Some(Value::Int32(value)) => Ok(Self::from(value)),
            other => Err(PropertyError::unexpected("Edm.Double", other.as_ref())),
        }
    }
}

impl Property for f32 {
    type Scalar = f64;

    fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        Ok(Some(Value::Double(f64::from(*self))))
    }

    fn from_value(value: Option<Value>) -> Result<Self, PropertyError> {
        #[expect(clippy::cast_possible_truncation, reason = "the type asked for has less precision")]
        Ok(f64::from_value(value)? as Self)
    }
}
