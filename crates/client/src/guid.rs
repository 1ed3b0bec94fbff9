//! Identifiers of 128 bits.

use larimar_model::Guid as Inner;
use std::fmt;
use std::str::FromStr;

/// An identifier of 128 bits, the value of a Guid property.
///
/// With the feature `uuid` it converts from and to `uuid::Uuid`, and properties may have that type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid([u8; 16]);

/// A text that is not a Guid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a Guid such as c9da6455-213d-42c9-9a79-3e9149a57833")]
pub struct GuidError;

impl Guid {
    /// The Guid whose text spells these bytes in their order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes in the order of the Guid's text.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A new Guid of random bits (version 4).
    ///
    /// # Panics
    /// If the operating system has no random numbers.
    #[must_use]
    pub fn random() -> Self {
        Self::of_random(crate::random::bytes())
    }

    /// The same for a request, of which there are many.
    pub(crate) fn of_request() -> Self {
        Self::of_random(crate::random::id())
    }

    const fn of_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }
}

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Self, GuidError> {
        Inner::parse(text).map(|guid| Self(guid.0)).ok_or(GuidError)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Inner(self.0).fmt(f)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(feature = "uuid")]
impl From<uuid::Uuid> for Guid {
    fn from(id: uuid::Uuid) -> Self {
        Self(id.into_bytes())
    }
}

#[cfg(feature = "uuid")]
impl From<Guid> for uuid::Uuid {
    fn from(id: Guid) -> Self {
        Self::from_bytes(id.0)
    }
}
