//! An account's name and key, with which tokens are signed.

use larimar_wire::signature::AccountKey;

/// An account's name and one of its keys.
#[derive(Clone, Debug)]
pub struct SharedKey {
    account: String,
    key: AccountKey,
}

/// A text that is no account key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an account key in base64")]
pub struct InvalidKey;

impl SharedKey {
    /// A key of this account, in base64.
    ///
    /// # Errors
    /// A text that is no base64, or empty.
    pub fn new(account: impl Into<String>, key: &str) -> Result<Self, InvalidKey> {
        let key = AccountKey::from_base64(key).map_err(|_| InvalidKey)?;
        Ok(Self { account: account.into(), key })
    }

    /// The account's name.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    pub(crate) const fn key(&self) -> &AccountKey {
        &self.key
    }
}
