//! A table's stored policies, and the tokens that its account's key signs.

use super::address::table_path;
use super::{Table, TableService};
use crate::credential::{Credential, SharedKey};
use crate::pipeline::{Call, Pipeline};
use crate::sas::{AccountSas, SasToken, TablePermissions, TableSas};
use crate::{Error, Result, Timestamp};
use http::Method;
use http::header::ACCEPT;
use larimar_wire::acl::{self, AccessPolicy, SignedIdentifier, TABLE_PERMISSIONS};
use larimar_wire::sas::Permissions;

/// A stored policy of a table: what tokens that name it allow, and for how long. Changing it changes them all, and
/// removing it revokes them.
///
/// What a policy does not say, the token must; what it says, the token must not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredPolicy {
    /// The name that tokens give, of up to 64 characters.
    pub id: String,
    /// When tokens become valid.
    pub start: Option<Timestamp>,
    /// When tokens end.
    pub expiry: Option<Timestamp>,
    /// What tokens allow.
    pub permissions: Option<TablePermissions>,
}

impl StoredPolicy {
    /// An empty policy of this name.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), start: None, expiry: None, permissions: None }
    }

    /// This policy with permissions.
    #[must_use]
    pub const fn permissions(mut self, permissions: TablePermissions) -> Self {
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

    fn to_wire(&self) -> SignedIdentifier {
        let permissions = self.permissions.filter(|set| !set.is_empty());
        let policy = AccessPolicy {
            start: self.start.map(Timestamp::inner),
            expiry: self.expiry.map(Timestamp::inner),
            permissions: permissions.and_then(|set| Permissions::parse(&set.to_string())),
        };
        SignedIdentifier { id: self.id.clone(), policy }
    }

    fn from_wire(identifier: SignedIdentifier) -> Self {
        let AccessPolicy { start, expiry, permissions } = identifier.policy;
        let permissions = permissions.map(|set| set.to_text(TABLE_PERMISSIONS));
        let time = |time: larimar_model::Timestamp| Timestamp::from_ticks(time.ticks());
        Self {
            id: identifier.id,
            start: start.map(time),
            expiry: expiry.map(time),
            permissions: permissions.and_then(|letters| letters.parse().ok()),
        }
    }
}

impl Table {
    /// The table's stored policies.
    ///
    /// # Errors
    /// A table that does not exist, or a credential other than the account's key.
    pub async fn policies(&self) -> Result<Vec<StoredPolicy>> {
        let call = Call::new("GetTableACL", Method::GET, table_path(self.name())).parameter("comp", "acl");
        let reply = self.send(call.header(ACCEPT, "application/xml")).await?;
        let list = acl::parse(&reply.body, TABLE_PERMISSIONS).map_err(|error| Error::Answer(error.to_string()))?;
        Ok(list.into_iter().map(StoredPolicy::from_wire).collect())
    }

    /// Sets the table's stored policies, up to five, in the place of all it had.
    ///
    /// # Errors
    /// Policies that the service would refuse, a table that does not exist, or a credential other than the account's
    /// key.
    pub async fn set_policies(&self, policies: &[StoredPolicy]) -> Result<()> {
        let list: Vec<SignedIdentifier> = policies.iter().map(StoredPolicy::to_wire).collect();
        let mut body = Vec::new();
        acl::write(&mut body, &list, TABLE_PERMISSIONS);
        acl::parse(&body, TABLE_PERMISSIONS).map_err(|error| Error::Invalid(error.to_string()))?;
        let call = Call::new("SetTableACL", Method::PUT, table_path(self.name()))
            .parameter("comp", "acl")
            .header(ACCEPT, "application/xml")
            .body("application/xml", without_mark(body));
        self.send(call).await?;
        Ok(())
    }

    /// A token for this table, signed with the account's key.
    ///
    /// ```no_run
    /// use larimar_client::sas::TablePermissions;
    /// use larimar_client::{Account, Timestamp};
    /// use std::time::Duration;
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = Account::connect("UseDevelopmentStorage=true")?.table("Employees");
    /// let in_an_hour = Timestamp::now().after(Duration::from_secs(3600));
    /// let token = table.sas(|token| token.permissions(TablePermissions::READ).expires(in_an_hour))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A token that no service would honour, or a credential other than the account's key.
    pub fn sas(&self, terms: impl FnOnce(TableSas) -> TableSas) -> Result<SasToken> {
        let key = signing_key(&self.pipeline)?;
        terms(TableSas::new(self.name())).sign(key).map_err(|error| Error::Invalid(error.to_string()))
    }
}

impl TableService {
    /// A token for the account, signed with its key.
    ///
    /// # Errors
    /// A token that no service would honour, or a credential other than the account's key.
    pub fn sas(&self, token: &AccountSas) -> Result<SasToken> {
        token.sign(signing_key(&self.pipeline)?).map_err(|error| Error::Invalid(error.to_string()))
    }
}

fn signing_key(pipeline: &Pipeline) -> Result<&SharedKey> {
    match &pipeline.credential {
        Credential::SharedKey(key) => Ok(key),
        Credential::Sas(_) | Credential::Token(_) | Credential::Anonymous => {
            Err(Error::Credential("expected an account key to sign a token with".into()))
        }
    }
}

/// The document without the byte order mark that the service puts in front of its own.
pub(crate) fn without_mark(mut document: Vec<u8>) -> Vec<u8> {
    if document.starts_with("\u{FEFF}".as_bytes()) {
        document.drain(.."\u{FEFF}".len());
    }
    document
}
