//! Shared access signatures: tokens that give their holder some of an account's rights for some time.
//!
//! A builder for each kind of token says what it allows and [signs](TableSas::sign) it with an account's key;
//! nothing is sent. What no service would honour is refused there: a token without an end, one that ends before it
//! starts, a range of keys that cannot be written.
//!
//! ```
//! use larimar_client::sas::{TablePermissions, TableSas};
//! use larimar_client::{SharedKey, Timestamp};
//! use std::time::Duration;
//!
//! # let base64_key = "c2VjcmV0";
//! let key = SharedKey::new("myaccount", base64_key)?;
//! let token = TableSas::new("Employees")
//!     .permissions(TablePermissions::READ | TablePermissions::ADD)
//!     .expires(Timestamp::now().after(Duration::from_secs(3600)))
//!     .partition("Sales")
//!     .sign(&key)?;
//! assert!(token.as_str().contains("&tn=Employees&spk=Sales&epk=Sales&sp=ra&"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod permissions;
mod storage;
mod table;
#[cfg(test)]
mod tests;

pub use account::AccountSas;
pub use permissions::{
    AccountPermissions, BlobPermissions, ContainerPermissions, LettersError, QueuePermissions, ResourceTypes, Services,
    TablePermissions,
};
pub use storage::{BlobSas, QueueSas};
pub use table::TableSas;

use crate::Timestamp;
use larimar_model::{limits, utf16};
use larimar_wire::sas::SasFields;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// A signed token: the query string to append to an address. Its holder has the rights it names, so it is
/// not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SasToken(String);

impl SasToken {
    /// The query string, without a question mark in front.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The query string, without a question mark in front.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for SasToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SasToken(hidden)")
    }
}

/// The protocols over which a token is honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SasProtocol {
    /// HTTPS only.
    Https,
    /// HTTPS and HTTP, which is also what a token that does not say allows.
    HttpsAndHttp,
}

/// Why a token is not signed: no service would honour it, or not as it was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SasError {
    /// The name of the table, queue, container or blob is none.
    #[error("expected a name that the service allows for what the token is for")]
    Name,
    /// Nothing is allowed, neither here nor by a stored policy.
    #[error("expected permissions, or a stored policy that has them")]
    PermissionsMissing,
    /// An account token that is for no service or for no kind of resource.
    #[error("expected a service and a kind of resource that the token is for")]
    ScopeMissing,
    /// The token would never end, neither here nor by a stored policy.
    #[error("expected an expiry, or a stored policy that has one")]
    ExpiryMissing,
    /// The token would end before it starts. Times count in whole seconds.
    #[error("expected an expiry that comes at least a second after the start")]
    EndBeforeStart,
    /// A stored policy's name that is empty or too long.
    #[error("expected a stored policy's name of 1 to 64 characters")]
    PolicyId,
    /// A bound of rows without a partition.
    #[error("expected a bound of row keys to come with its partition key, which is not empty")]
    RowWithoutPartition,
    /// An empty key as the last one. Tokens cannot tell it from no bound at all.
    #[error("expected a last key that is not empty, as the token would have no bound")]
    EmptyLastKey,
    /// The last key comes before the first one.
    #[error("expected the last key not to come before the first one")]
    KeysReversed,
    /// The last address comes before the first one, or is of another family.
    #[error("expected two addresses of one family, in their order")]
    Addresses,
    /// A field with a control character, which could pass for the end of the field.
    #[error("expected no control characters")]
    ControlCharacter,
}

/// What tokens of every kind say.
#[derive(Clone, Debug, Default)]
struct Terms {
    start: Option<Timestamp>,
    expiry: Option<Timestamp>,
    addresses: Option<(IpAddr, IpAddr)>,
    protocol: Option<SasProtocol>,
    policy: Option<String>,
}

impl Terms {
    /// The fields that tokens of every kind have, checked. `permissions` are letters.
    fn fields(&self, version: &'static str, permissions: &str) -> Result<SasFields<'static>, SasError> {
        if let Some(policy) = &self.policy {
            if policy.is_empty() || utf16::len(policy) > limits::POLICY_ID_CHARS_MAX {
                return Err(SasError::PolicyId);
            }
            check_field(policy)?;
        }
        if permissions.is_empty() && self.policy.is_none() {
            return Err(SasError::PermissionsMissing);
        }
        if self.expiry.is_none() && self.policy.is_none() {
            return Err(SasError::ExpiryMissing);
        }
        let (start, expiry) = (self.start.map(to_seconds), self.expiry.map(to_seconds));
        if start.zip(expiry).is_some_and(|(start, expiry)| expiry <= start) {
            return Err(SasError::EndBeforeStart);
        }
        Ok(SasFields {
            version: version.into(),
            permissions: Some(permissions.to_owned().into()).filter(|text: &Cow<'_, str>| !text.is_empty()),
            start: start.map(|time| time.to_string().into()),
            expiry: expiry.map(|time| time.to_string().into()),
            ip: self.addresses.map(address_text).transpose()?.map(Cow::Owned),
            protocol: self.protocol.map(|protocol| match protocol {
                SasProtocol::Https => "https".into(),
                SasProtocol::HttpsAndHttp => "https,http".into(),
            }),
            ..SasFields::default()
        })
    }

    fn policy_id(&self) -> Option<Cow<'static, str>> {
        self.policy.clone().map(Cow::Owned)
    }
}

/// The time without its fraction, which not every service reads.
const fn to_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_ticks(time.ticks() - time.ticks() % TICKS_A_SECOND)
}

fn address_text((first, last): (IpAddr, IpAddr)) -> Result<String, SasError> {
    if first == last {
        return Ok(first.to_string());
    }
    if first.is_ipv4() != last.is_ipv4() || first > last {
        return Err(SasError::Addresses);
    }
    Ok(format!("{first}-{last}"))
}

/// Fields are signed as lines, and the service refuses those that could pass for two.
fn check_field(text: &str) -> Result<(), SasError> {
    if text.contains(char::is_control) { Err(SasError::ControlCharacter) } else { Ok(()) }
}

const TICKS_A_SECOND: u64 = 10_000_000;

/// The methods that the builders of all tokens have.
macro_rules! terms {
    () => {
        /// The token is honoured from this time on, to the second; a token that does not say is honoured at once.
        /// Clocks differ: a start of now may lie ahead of the service's clock.
        pub const fn starts(mut self, time: Timestamp) -> Self {
            self.terms.start = Some(time);
            self
        }

        /// The token is honoured until this time, to the second.
        pub const fn expires(mut self, time: Timestamp) -> Self {
            self.terms.expiry = Some(time);
            self
        }

        /// The token is honoured when it comes from an address of this range. Azure knows addresses of IPv4 only.
        pub fn addresses(mut self, first: impl Into<IpAddr>, last: impl Into<IpAddr>) -> Self {
            self.terms.addresses = Some((first.into(), last.into()));
            self
        }

        /// The token is honoured over these protocols; over both if it does not say.
        pub const fn protocol(mut self, protocol: SasProtocol) -> Self {
            self.terms.protocol = Some(protocol);
            self
        }
    };
}
use terms;
