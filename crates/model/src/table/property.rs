//! The rules of one property: its name and the size of its value.

use crate::{Timestamp, ValueRef, limits, utf16};

/// Why a property is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyError {
    /// The name has more than 255 characters.
    #[error("expected a property name of at most 255 characters")]
    NameTooLong,
    /// The name is not an identifier.
    #[error("expected a property name of letters, digits and underscores, no digit first")]
    NameInvalid,
    /// The string or binary value exceeds 64 KiB.
    #[error("expected a value of at most 64 KiB")]
    ValueTooLarge,
    /// The DateTime lies outside of 1601 to 9999.
    #[error("expected a time from 1601-01-01 to 9999-12-31 in '{name}'")]
    OutOfRange {
        /// The property's name.
        name: String,
        /// Its value.
        value: Timestamp,
    },
}

/// Whether a name is one of the three properties that every entity has.
#[must_use]
pub fn is_system_property(name: &str) -> bool {
    matches!(name, "PartitionKey" | "RowKey" | "Timestamp")
}

pub(crate) fn check(name: &str, value: ValueRef<'_>) -> Result<(), PropertyError> {
    check_name(name)?;
    match value {
        ValueRef::String(text) if !utf16::fits(text, limits::STRING_UTF16_MAX) => Err(PropertyError::ValueTooLarge),
        ValueRef::Binary(bytes) if bytes.len() > limits::BINARY_BYTES_MAX => Err(PropertyError::ValueTooLarge),
        ValueRef::DateTime(value) if !(Timestamp::EDM_MIN..=Timestamp::MAX).contains(&value) => {
            Err(PropertyError::OutOfRange { name: name.to_owned(), value })
        }
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), PropertyError> {
    if !utf16::fits(name, limits::PROPERTY_NAME_UTF16_MAX) {
        return Err(PropertyError::NameTooLong);
    }
    let mut chars = name.chars();
    let starts_well = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    if starts_well && chars.all(|c| c == '_' || c.is_alphanumeric()) {
        return Ok(());
    }
    Err(PropertyError::NameInvalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_names_at_and_past_their_limits() {
        for name in ["a", "_x1", "Größe", "名前", &"n".repeat(255)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        assert_eq!(check_name(&"n".repeat(256)), Err(PropertyError::NameTooLong));
        for name in ["", "1a", "a-b", "a b", "a.b", "@x"] {
            assert_eq!(check_name(name), Err(PropertyError::NameInvalid), "{name}");
        }
    }

    #[test]
    fn d5_values_at_and_past_their_limits() {
        assert_eq!(check("a", ValueRef::String(&"x".repeat(32 * 1024))), Ok(()));
        assert_eq!(check("a", ValueRef::String(&"x".repeat(32 * 1024 + 1))), Err(PropertyError::ValueTooLarge));
        assert_eq!(check("a", ValueRef::Binary(&[0; 64 * 1024])), Ok(()));
        assert_eq!(check("a", ValueRef::Binary(&[0; 64 * 1024 + 1])), Err(PropertyError::ValueTooLarge));
    }
}
