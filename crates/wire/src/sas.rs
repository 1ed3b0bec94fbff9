//! Shared access signatures: tokens in the query string that allow some operations for some time.
//!
//! The way of a token: [`SasToken::parse`] reads it; if it names a stored policy ([`SasToken::policy_id`]),
//! the server looks that up in the ACL of the table, queue or container; [`SasToken::verify`] checks signature, time, address,
//! protocol and service and gives a [`Grant`]; [`Grant::permits`] answers for each operation. Clients make
//! tokens with [`SasFields::to_query`].

mod error;
mod grant;
mod need;
mod permissions;
mod storage;
mod text;
mod verify;

pub use error::SasError;
pub use grant::{Grant, KeyLimits, ResourceType, Scope};
pub use larimar_model::Service;
pub use need::{Letters, Need, Target};
pub use permissions::Permissions;
pub use storage::{BlobSas, BlobSasScope, QueueSas, Resource, ResponseOverrides};
pub use verify::Circumstances;

use crate::request_head::is_version;
use crate::uri;
use std::borrow::Cow;

/// The fields of a token, decoded; what is empty is absent, as the signature cannot tell the two apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SasFields<'a> {
    /// `sv`: the version of the service whose rules the token follows.
    pub version: Cow<'a, str>,
    /// `sp`: letters of what is allowed.
    pub permissions: Option<Cow<'a, str>>,
    /// `st`: start.
    pub start: Option<Cow<'a, str>>,
    /// `se`: expiry.
    pub expiry: Option<Cow<'a, str>>,
    /// `sip`: an address, or two with a hyphen between them.
    pub ip: Option<Cow<'a, str>>,
    /// `spr`: `https` or `https,http`.
    pub protocol: Option<Cow<'a, str>>,
    /// What the token is for, with the fields of that kind.
    pub kind: SasKind<'a>,
}

/// The kinds of tokens that an account key signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SasKind<'a> {
    /// For the entities of one table.
    Table(TableSas<'a>),
    /// For the messages of one queue.
    Queue(QueueSas<'a>),
    /// For a container, a blob or a snapshot.
    Blob(Box<BlobSas<'a>>),
    /// For the account.
    Account(AccountSas<'a>),
}

/// The fields of a token for one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSas<'a> {
    /// `tn`: the table, in any case.
    pub table: Cow<'a, str>,
    /// `si`: the stored policy that completes the token.
    pub policy_id: Option<Cow<'a, str>>,
    /// `spk`: the first partition.
    pub start_partition: Option<Cow<'a, str>>,
    /// `srk`: the first row of the first partition.
    pub start_row: Option<Cow<'a, str>>,
    /// `epk`: the last partition.
    pub end_partition: Option<Cow<'a, str>>,
    /// `erk`: the last row of the last partition.
    pub end_row: Option<Cow<'a, str>>,
}

/// The fields of a token for an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSas<'a> {
    /// `ss`: letters of the services.
    pub services: Cow<'a, str>,
    /// `srt`: letters of the kinds of resources.
    pub resource_types: Cow<'a, str>,
    /// `ses`: an encryption scope, which only the blob service uses.
    pub encryption_scope: Option<Cow<'a, str>>,
}

impl Default for SasKind<'_> {
    fn default() -> Self {
        Self::Table(TableSas::default())
    }
}

/// A token from a query string, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasToken<'a> {
    fields: SasFields<'a>,
    signature: Cow<'a, str>,
}

impl<'a> SasToken<'a> {
    /// `sv`: the version whose rules the token follows.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.fields.version
    }

    /// Reads a token from a query string (without its question mark). `None` if there is no signature.
    /// Tokens for queues and blobs do not name them: they are for the `resource` of the request.
    ///
    /// # Errors
    /// A token that is not of a kind we know, or lacks what its kind needs.
    pub fn parse(query: &'a str, resource: Resource<'a>) -> Result<Option<Self>, SasError> {
        let raw = RawFields::collect(query)?;
        let Some(signature) = raw.get("sig") else { return Ok(None) };
        // User delegation keys come from Entra ID, which we do not speak.
        if ["skoid", "sktid", "skt", "ske", "sks", "skv"].iter().any(|name| raw.get(name).is_some()) {
            return Err(SasError::UserDelegation);
        }
        let kind = match (raw.get("ss"), raw.get("srt")) {
            (Some(services), Some(resource_types)) => {
                SasKind::Account(AccountSas { services, resource_types, encryption_scope: raw.get("ses") })
            }
            (None, None) => storage::kind(&raw, resource)?,
            _ => return Err(SasError::Malformed("ss with srt")),
        };
        let fields = SasFields {
            version: raw.get("sv").ok_or(SasError::Missing("sv"))?,
            permissions: raw.get("sp"),
            start: raw.get("st"),
            expiry: raw.get("se"),
            ip: raw.get("sip"),
            protocol: raw.get("spr"),
            kind,
        };
        fields.check_version()?;
        Ok(Some(Self { fields, signature }))
    }

    /// What the token says.
    #[must_use]
    pub const fn fields(&self) -> &SasFields<'a> {
        &self.fields
    }

    /// The table, queue or container and the stored policy of it to look up before the token can be verified.
    #[must_use]
    pub fn policy_id(&self) -> Option<(&str, &str)> {
        match &self.fields.kind {
            SasKind::Table(table) => Some((&table.table, table.policy_id.as_deref()?)),
            SasKind::Queue(queue) => Some((&queue.queue, queue.policy_id.as_deref()?)),
            SasKind::Blob(blob) => Some((&blob.container, blob.policy_id.as_deref()?)),
            SasKind::Account(_) => None,
        }
    }
}

impl SasFields<'_> {
    /// Versions are dates, so that they compare as texts. Later ones than we know follow the latest rules.
    fn check_version(&self) -> Result<(), SasError> {
        let oldest = match &self.kind {
            SasKind::Blob(blob) if matches!(blob.scope, BlobSasScope::Snapshot { .. }) => SIGNED_RESOURCE,
            SasKind::Table(_) | SasKind::Queue(_) | SasKind::Blob(_) => "2012-02-12",
            SasKind::Account(_) => IP_AND_PROTOCOL,
        };
        if is_version(&self.version) && *self.version >= *oldest { Ok(()) } else { Err(SasError::Malformed("sv")) }
    }

    /// Whether the token follows the rules of this version or of a later one.
    fn is_since(&self, version: &str) -> bool {
        *self.version >= *version
    }
}

/// The version that signs the headers to answer with.
const RESPONSE_OVERRIDES: &str = "2013-08-15";
/// The version that signs `sr` and the snapshot.
const SIGNED_RESOURCE: &str = "2018-11-09";
/// The version that put the service's name into the signed resource.
const RESOURCE_WITH_SERVICE: &str = "2015-02-21";
/// The version that brought `sip`, `spr` and account tokens, and 403 instead of 404 for what is not allowed.
const IP_AND_PROTOCOL: &str = "2015-04-05";
/// The version that signs `ses`.
const ENCRYPTION_SCOPE: &str = "2020-12-06";

/// The names of all parameters that belong to tokens.
const NAMES: [&str; 28] = [
    "sv", "sp", "st", "se", "sip", "spr", "si", "sig", "tn", "spk", "srk", "epk", "erk", "ss", "srt", "ses", "skoid",
    "sktid", "skt", "ske", "sks", "skv", "sr", "rscc", "rscd", "rsce", "rscl", "rsct",
];

/// The parameters of a token as they were sent.
struct RawFields<'a>([Option<Cow<'a, str>>; NAMES.len()]);

impl<'a> RawFields<'a> {
    fn collect(query: &'a str) -> Result<Self, SasError> {
        let mut values = [const { None }; NAMES.len()];
        for pair in uri::query_pairs(query) {
            let pair = pair.map_err(|_| SasError::Malformed("query"))?;
            let Some(at) = NAMES.iter().position(|name| pair.name == *name) else { continue };
            // Two values would leave open which one was signed.
            if values[at].is_some() {
                return Err(SasError::Malformed(NAMES[at]));
            }
            let value = pair.value().map_err(|_| SasError::Malformed(NAMES[at]))?;
            // Fields are signed as lines: one with a line feed could pass for two.
            if value.contains(char::is_control) {
                return Err(SasError::Malformed(NAMES[at]));
            }
            values[at] = Some(value);
        }
        Ok(Self(values))
    }

    fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let at = NAMES.iter().position(|known| *known == name)?;
        self.0[at].clone().filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests;
