//! The settings of a server before it starts.

use crate::{Larimar, StartError};
use larimar_server::{Account, AccountKey, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};

/// Settings of a server that is about to start; [`Larimar::builder`] makes one.
///
/// # Examples
/// ```
/// use larimar_embedded::Larimar;
///
/// # #[tokio::main] async fn main() -> Result<(), larimar_embedded::StartError> {
/// let server = Larimar::builder().strict(true).account("contoso", "c2VjcmV0").start().await?;
/// assert_eq!(server.account(), "contoso");
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it starts a server"]
pub struct Builder {
    pub(crate) account: String,
    pub(crate) key: String,
    pub(crate) strict: bool,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { account: DEVELOPMENT_ACCOUNT.to_owned(), key: DEVELOPMENT_KEY.to_owned(), strict: false }
    }

    /// The account to serve, and its key in Base64, in place of the development account.
    pub fn account(mut self, name: impl Into<String>, key: impl Into<String>) -> Self {
        self.account = name.into();
        self.key = key.into();
        self
    }

    /// Whether to be as unforgiving as the original service.
    ///
    /// A strict server answers 503 above the published targets (2,000 entities a second in a partition, 20,000 in the
    /// account), keeps the names of deleted tables, queues and containers busy for 40 seconds, and refuses protocol
    /// versions that were never published.
    pub const fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Starts the server in the current Tokio runtime.
    ///
    /// # Errors
    /// An account name or key that cannot be served, or no free port.
    ///
    /// # Panics
    /// Outside of a Tokio runtime, or in one without input, output and time.
    pub async fn start(self) -> Result<Larimar, StartError> {
        Larimar::start(self).await
    }

    /// The account as the services take it.
    pub(crate) fn served_account(&self) -> Result<Account, StartError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(1..=63).contains(&self.account.len()) || !self.account.chars().all(is_plain) {
            return Err(StartError::AccountName(self.account.clone()));
        }
        let key = AccountKey::from_base64(&self.key).map_err(|_| StartError::AccountKey)?;
        Ok(Account { name: self.account.clone(), keys: vec![key] })
    }
}

/// Keys are secrets, also in a log line.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { account, strict, .. } = self;
        f.debug_struct("Builder").field("account", account).field("strict", strict).finish_non_exhaustive()
    }
}
