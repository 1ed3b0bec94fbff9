//! How a client proves who it is: an account key, a shared access signature, or tokens from elsewhere.

use crate::timestamp::system_time;
use crate::transport::{BoxError, BoxFuture};
use larimar_wire::signature::AccountKey;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An account's name and one of its keys.
#[derive(Clone)]
pub struct SharedKey {
    account: String,
    key: AccountKey,
}

/// A key that is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an account key in base64")]
pub struct InvalidKey;

impl SharedKey {
    /// The key of this account, in base64 as the portal shows it. Blanks and line ends around either do not count: they
    /// often come along from files.
    ///
    /// # Errors
    /// A key that is not base64.
    pub fn new(account: impl Into<String>, key: &str) -> Result<Self, InvalidKey> {
        let key = AccountKey::from_base64(key.trim()).map_err(|_| InvalidKey)?;
        Ok(Self { account: account.into().trim().to_owned(), key })
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

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("account", &self.account).finish_non_exhaustive()
    }
}

/// Gives out tokens, for example of Microsoft Entra ID.
///
/// The client asks for a token when it needs one and keeps it until shortly before it expires.
pub trait TokenProvider: fmt::Debug + Send + Sync + 'static {
    /// A token for this scope, such as `https://storage.azure.com/.default`.
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>>;
}

/// A token and how long it is good for.
#[derive(Clone)]
#[non_exhaustive]
pub struct AccessToken {
    /// What is sent as bearer token.
    pub secret: String,
    /// When it expires.
    pub expires_on: SystemTime,
}

impl AccessToken {
    /// A token that expires at this time.
    #[must_use]
    pub fn new(secret: impl Into<String>, expires_on: SystemTime) -> Self {
        Self { secret: secret.into(), expires_on }
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("expires_on", &self.expires_on).finish_non_exhaustive()
    }
}

/// How requests are authorized.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    SharedKey(SharedKey),
    Sas(SasToken),
    Token(Arc<TokenSource>),
    Anonymous,
}

/// A shared access signature: the query string without its question mark.
#[derive(Clone)]
pub(crate) struct SasToken(pub(crate) String);

impl SasToken {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.trim().trim_start_matches('?').to_owned())
    }
}

impl fmt::Debug for SasToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SasToken")
    }
}

/// A provider with the token it gave last.
#[derive(Debug)]
pub(crate) struct TokenSource {
    provider: Arc<dyn TokenProvider>,
    last: Mutex<Option<(String, AccessToken)>>,
}

impl TokenSource {
    pub(crate) fn new(provider: Arc<dyn TokenProvider>) -> Self {
        Self { provider, last: Mutex::new(None) }
    }

    /// A token that is good for a while yet.
    pub(crate) async fn token(&self, scope: &str) -> Result<String, BoxError> {
        let kept =
            self.last.lock().as_ref().filter(|(for_scope, _)| for_scope == scope).map(|(_, token)| token.clone());
        if let Some(token) = kept
            && token.expires_on > system_time() + EXPIRY_MARGIN
        {
            return Ok(token.secret);
        }
        // Two calls that find the token expired both ask for a new one, which does no harm.
        let token = self.provider.token(scope).await?;
        let secret = token.secret.clone();
        *self.last.lock() = Some((scope.to_owned(), token));
        Ok(secret)
    }

    /// Forgets the token: the service did not take it.
    pub(crate) fn forget(&self) {
        *self.last.lock() = None;
    }
}

const EXPIRY_MARGIN: Duration = Duration::from_secs(120);
