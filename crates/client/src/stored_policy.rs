//! Stored access policies of tables, queues and containers, and the XML that they are sent and read as.

#[cfg(feature = "blob")]
use crate::sas::ContainerPermissions;
#[cfg(feature = "queue")]
use crate::sas::QueuePermissions;
use crate::sas::TablePermissions;
use crate::{Error, Result, Timestamp};
use larimar_wire::acl::{self, AccessPolicy, SignedIdentifier};
use larimar_wire::sas::Permissions as WirePermissions;
use std::fmt;
use std::str::FromStr;

/// A stored policy of a table, a queue or a container: what tokens that name it allow, and for how long. Changing it
/// changes them all, and removing it revokes them.
///
/// What a policy does not say, the token must; what it says, the token must not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredPolicy<P = TablePermissions> {
    /// The name that tokens give, of up to 64 characters.
    pub id: String,
    /// When tokens become valid.
    pub start: Option<Timestamp>,
    /// When tokens end.
    pub expiry: Option<Timestamp>,
    /// What tokens allow.
    pub permissions: Option<P>,
}

impl<P> StoredPolicy<P> {
    /// An empty policy of this name.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), start: None, expiry: None, permissions: None }
    }

    /// This policy with permissions.
    #[must_use]
    pub fn permissions(mut self, permissions: P) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// This policy with a start.
    #[must_use]
    pub const fn starts(mut self, time: Timestamp) -> Self {
        self.start = Some(time);
        self
    }

    /// This policy with an end.
    #[must_use]
    pub const fn expires(mut self, time: Timestamp) -> Self {
        self.expiry = Some(time);
        self
    }
}

/// The permissions that policies of one kind of resource can give.
pub(crate) trait PolicyPermissions: Copy + fmt::Display + FromStr {
    /// Their letters, in the order that the service wants them written in.
    const LETTERS: &'static str;
}

impl PolicyPermissions for TablePermissions {
    const LETTERS: &'static str = acl::TABLE_PERMISSIONS;
}

#[cfg(feature = "queue")]
impl PolicyPermissions for QueuePermissions {
    const LETTERS: &'static str = acl::QUEUE_PERMISSIONS;
}

#[cfg(feature = "blob")]
impl PolicyPermissions for ContainerPermissions {
    const LETTERS: &'static str = acl::CONTAINER_PERMISSIONS;
}

/// The policies of a response.
pub(crate) fn read<P: PolicyPermissions>(body: &[u8]) -> Result<Vec<StoredPolicy<P>>> {
    let list = acl::parse(body, P::LETTERS).map_err(|error| Error::Answer(error.to_string()))?;
    list.into_iter().map(from_wire).collect()
}

/// The body of a request that sets these policies, if the service would accept them.
pub(crate) fn body<P: PolicyPermissions>(policies: &[StoredPolicy<P>]) -> Result<Vec<u8>> {
    let list: Vec<SignedIdentifier> = policies.iter().map(to_wire).collect();
    let mut body = Vec::new();
    acl::write(&mut body, &list, P::LETTERS);
    acl::parse(&body, P::LETTERS).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(without_mark(body))
}

/// The document without the byte order mark that the service puts in front of its own.
pub(crate) fn without_mark(mut document: Vec<u8>) -> Vec<u8> {
    if document.starts_with("\u{FEFF}".as_bytes()) {
        document.drain(.."\u{FEFF}".len());
    }
    document
}

fn to_wire<P: PolicyPermissions>(policy: &StoredPolicy<P>) -> SignedIdentifier {
    let letters = policy.permissions.map(|set| set.to_string()).filter(|letters| !letters.is_empty());
    let terms = AccessPolicy {
        start: policy.start.map(Timestamp::inner),
        expiry: policy.expiry.map(Timestamp::inner),
        permissions: letters.and_then(|letters| WirePermissions::parse(&letters)),
    };
    SignedIdentifier { id: policy.id.clone(), policy: terms }
}

fn from_wire<P: PolicyPermissions>(identifier: SignedIdentifier) -> Result<StoredPolicy<P>> {
    let AccessPolicy { start, expiry, permissions } = identifier.policy;
    let letters = permissions.map(|set| set.to_text(P::LETTERS));
    let unknown = |_| Error::Answer("expected permissions of a stored policy that are known".to_owned());
    let time = |time: larimar_model::Timestamp| Timestamp::from_ticks(time.ticks());
    Ok(StoredPolicy {
        id: identifier.id,
        start: start.map(time),
        expiry: expiry.map(time),
        permissions: letters.map(|letters| letters.parse().map_err(unknown)).transpose()?,
    })
}
