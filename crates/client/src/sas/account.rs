//! Tokens for an account: some services of it, and some kinds of resources of those.

use super::table::VERSION;
use super::{AccountPermissions, ResourceTypes, SasError, SasProtocol, SasToken, Services, Terms, terms};
use crate::{SharedKey, Timestamp};
use larimar_wire::sas::{AccountSas as Fields, SasKind};
use std::net::IpAddr;

/// Builds a token for an account, or for some services and kinds of resources of it.
///
/// ```
/// use larimar_client::sas::{AccountPermissions, AccountSas, ResourceTypes, Services};
/// use larimar_client::{SharedKey, Timestamp};
///
/// # let base64_key = "c2VjcmV0";
/// let key = SharedKey::new("myaccount", base64_key)?;
/// let token = AccountSas::new(Services::TABLE, ResourceTypes::CONTAINER | ResourceTypes::OBJECT)
///     .permissions(AccountPermissions::READ | AccountPermissions::LIST)
///     .expires("2030-01-01T00:00:00Z".parse::<Timestamp>()?)
///     .sign(&key)?;
/// assert!(token.as_str().contains("&ss=t&srt=co&sp=rl&"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it signs"]
pub struct AccountSas {
    services: Services,
    resources: ResourceTypes,
    permissions: AccountPermissions,
    terms: Terms,
}

impl AccountSas {
    /// A token for these kinds of resources of these services, which allows nothing yet.
    pub fn new(services: Services, resources: ResourceTypes) -> Self {
        Self { services, resources, permissions: AccountPermissions::NONE, terms: Terms::default() }
    }

    /// What the token allows.
    pub const fn permissions(mut self, permissions: AccountPermissions) -> Self {
        self.permissions = permissions;
        self
    }

    terms!();

    /// Signs the token with a key of the account.
    ///
    /// # Errors
    /// A token that no service would honour.
    pub fn sign(&self, key: &SharedKey) -> Result<SasToken, SasError> {
        if self.services.is_empty() || self.resources.is_empty() {
            return Err(SasError::ScopeMissing);
        }
        let mut fields = self.terms.fields(VERSION, &self.permissions.to_string())?;
        fields.kind = SasKind::Account(Fields {
            services: self.services.to_string().into(),
            resource_types: self.resources.to_string().into(),
            encryption_scope: None,
        });
        Ok(SasToken(fields.to_query(key.account(), key.key())))
    }
}
