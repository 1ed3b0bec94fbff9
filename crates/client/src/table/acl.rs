//! A table's stored policies, and the tokens that its account's key signs.

use super::address::table_path;
use super::{Table, TableService};
use crate::credential::{Credential, SharedKey};
use crate::pipeline::{Call, Pipeline};
use crate::sas::{AccountSas, SasToken, TableSas};
use crate::{Error, Result, StoredPolicy, stored_policy};
use http::Method;
use http::header::ACCEPT;

impl Table {
    /// The table's stored policies.
    ///
    /// # Errors
    /// A table that does not exist, or a credential other than the account's key.
    pub async fn policies(&self) -> Result<Vec<StoredPolicy>> {
        let call = Call::new("GetTableACL", Method::GET, table_path(self.name())).parameter("comp", "acl");
        let reply = self.send(call.header(ACCEPT, "application/xml")).await?;
        stored_policy::read(&reply.body)
    }

    /// Sets the table's stored policies, up to five, in the place of all it had.
    ///
    /// # Errors
    /// Policies that the service would refuse, a table that does not exist, or a credential other than the account's
    /// key.
    pub async fn set_policies(&self, policies: &[StoredPolicy]) -> Result<()> {
        let call = Call::new("SetTableACL", Method::PUT, table_path(self.name()))
            .parameter("comp", "acl")
            .header(ACCEPT, "application/xml")
            .body("application/xml", stored_policy::body(policies)?);
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
