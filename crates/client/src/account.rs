//! An account: where its services are, who the client is, and how it goes about its calls.

#[cfg(feature = "blob")]
use crate::blob::{BlobService, Container};
use crate::connection_string::{ConnectionString, ConnectionStringError};
use crate::credential::{Credential, InvalidKey, SasToken, SharedKey, TokenProvider, TokenSource};
use crate::pipeline::{Pipeline, Timeouts, printable};
#[cfg(feature = "queue")]
use crate::queue::{Queue, QueueService};
use crate::retry::RetryPolicy;
use crate::service::{Endpoint, EndpointError, Service};
use crate::table::{Table, TableService};
use crate::transport::{ConnectSettings, HttpTransport, ProxyChoice, Transport};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A storage account. It is cheap to clone, and clones share their connections.
///
/// ```no_run
/// use larimar_client::{Account, DynamicEntity};
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let account = Account::connect("UseDevelopmentStorage=true")?;
/// let employees = account.table("Employees");
/// employees.create_if_missing().await?;
/// employees.insert(&DynamicEntity::new("Sales", "000123").with("Name", "Don")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Account {
    tables: Option<Arc<Pipeline>>,
    queues: Option<Arc<Pipeline>>,
    blobs: Option<Arc<Pipeline>>,
}

impl Account {
    /// The account of a connection string; `UseDevelopmentStorage=true` is the one of development set-ups.
    ///
    /// # Errors
    /// A connection string that lacks something or is malformed.
    pub fn connect(connection_string: &str) -> Result<Self, AccountError> {
        Self::builder().connection_string(connection_string).build()
    }

    /// An account put together piece by piece.
    pub fn builder() -> AccountBuilder {
        AccountBuilder::default()
    }

    /// A table of the account, which need not exist yet.
    ///
    /// # Panics
    /// If the account was built without an address of the Table service.
    #[must_use]
    pub fn table(&self, name: impl Into<String>) -> Table {
        Table::new(Arc::clone(self.pipeline(Service::Table)), name.into())
    }

    /// The Table service as a whole: the list of tables, its properties.
    ///
    /// # Panics
    /// If the account was built without an address of the Table service.
    #[must_use]
    pub fn tables(&self) -> TableService {
        TableService::new(Arc::clone(self.pipeline(Service::Table)))
    }

    /// A queue of the account, which need not exist yet.
    ///
    /// # Panics
    /// If the account was built without an address of the Queue service.
    #[cfg(feature = "queue")]
    #[must_use]
    pub fn queue(&self, name: impl Into<String>) -> Queue {
        Queue::new(Arc::clone(self.pipeline(Service::Queue)), name.into())
    }

    /// The Queue service as a whole: the list of queues.
    ///
    /// # Panics
    /// If the account was built without an address of the Queue service.
    #[cfg(feature = "queue")]
    #[must_use]
    pub fn queues(&self) -> QueueService {
        QueueService::new(Arc::clone(self.pipeline(Service::Queue)))
    }

    /// A container of the account, which need not exist yet.
    ///
    /// # Panics
    /// If the account was built without an address of the Blob service.
    #[cfg(feature = "blob")]
    #[must_use]
    pub fn container(&self, name: impl Into<String>) -> Container {
        Container::new(Arc::clone(self.pipeline(Service::Blob)), name.into())
    }

    /// The Blob service as a whole: the list of containers.
    ///
    /// # Panics
    /// If the account was built without an address of the Blob service.
    #[cfg(feature = "blob")]
    #[must_use]
    pub fn blobs(&self) -> BlobService {
        BlobService::new(Arc::clone(self.pipeline(Service::Blob)))
    }

    /// The address of the Table service, without anything that would open it; `None` if the account has none.
    #[must_use]
    pub fn table_url(&self) -> Option<String> {
        self.tables.as_ref().map(|pipeline| pipeline.primary.url())
    }

    /// The address of the Queue service, without anything that would open it; `None` if the account has none.
    #[must_use]
    pub fn queue_url(&self) -> Option<String> {
        self.queues.as_ref().map(|pipeline| pipeline.primary.url())
    }

    /// The address of the Blob service, without anything that would open it; `None` if the account has none.
    #[must_use]
    pub fn blob_url(&self) -> Option<String> {
        self.blobs.as_ref().map(|pipeline| pipeline.primary.url())
    }

    pub(crate) fn pipeline(&self, service: Service) -> &Arc<Pipeline> {
        let pipeline = match service {
            Service::Table => &self.tables,
            Service::Queue => &self.queues,
            Service::Blob => &self.blobs,
        };
        pipeline.as_ref().unwrap_or_else(|| panic!("the account has no address of the {} service", service.name()))
    }
}

/// Puts an account together.
///
/// ```
/// use larimar_client::{Account, RetryPolicy};
/// use std::time::Duration;
/// let account = Account::builder()
///     .table_endpoint("https://example.table.core.windows.net")
///     .shared_key("example", "c2VjcmV0")
///     .retry(RetryPolicy::exponential().read_from_secondary(true))
///     .timeout(Duration::from_secs(20))
///     .build()?;
/// # Ok::<(), larimar_client::AccountError>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct AccountBuilder {
    connection_string: Option<String>,
    endpoints: Vec<(Service, bool, String)>,
    credential: Option<Chosen>,
    transport: Option<Arc<dyn Transport>>,
    connect: ConnectSettings,
    retry: RetryPolicy,
    timeouts: Timeouts,
    user_agent: Option<String>,
}

/// A credential as the caller gave it.
#[derive(Clone)]
enum Chosen {
    Key { account: String, key: String },
    Ready(Credential),
}

/// Connection strings have keys in them, and addresses of services and proxies may have signatures and passwords: none
/// of them is shown.
impl fmt::Debug for AccountBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retry, timeouts, user_agent, .. } = self;
        f.debug_struct("AccountBuilder")
            .field("retry", retry)
            .field("timeouts", timeouts)
            .field("user_agent", user_agent)
            .finish_non_exhaustive()
    }
}

/// Why an account cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// The connection string is refused.
    #[error("connection string: {0}")]
    ConnectionString(#[from] ConnectionStringError),
    /// An address is none of a service.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The key is malformed.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// No service has an address.
    #[error("expected a connection string or the address of a service")]
    NoEndpoint,
    /// There is nothing to prove who the client is.
    #[error("expected a key, a shared access signature, a token provider, or anonymous access")]
    NoCredential,
    /// The proxy's address is none.
    #[error("expected the address of a proxy such as http://user:password@proxy:3128")]
    Proxy,
    /// A certificate is missing.
    #[error("root certificates: {0}")]
    Certificates(String),
    /// The user agent is not a header's value.
    #[error("expected printable ASCII as user agent")]
    UserAgent,
}

impl AccountBuilder {
    /// Takes addresses and credential from a connection string. What is given piece by piece goes before what it says.
    pub fn connection_string(mut self, text: impl Into<String>) -> Self {
        self.connection_string = Some(text.into());
        self
    }

    /// The address of the Table service. A shared access signature may follow it, after a question mark.
    pub fn table_endpoint(self, url: impl Into<String>) -> Self {
        self.endpoint(Service::Table, true, url)
    }

    /// The address of the Table service's read-only secondary.
    pub fn table_secondary_endpoint(self, url: impl Into<String>) -> Self {
        self.endpoint(Service::Table, false, url)
    }

    /// The address of the Queue service. A shared access signature may follow it, after a question mark.
    pub fn queue_endpoint(self, url: impl Into<String>) -> Self {
        self.endpoint(Service::Queue, true, url)
    }

    /// The address of the Blob service. A shared access signature may follow it, after a question mark.
    pub fn blob_endpoint(self, url: impl Into<String>) -> Self {
        self.endpoint(Service::Blob, true, url)
    }

    fn endpoint(mut self, service: Service, is_primary: bool, url: impl Into<String>) -> Self {
        self.endpoints.push((service, is_primary, url.into()));
        self
    }

    /// Signs with one of the account's keys, in base64 as the portal shows it.
    pub fn shared_key(mut self, account: impl Into<String>, key: impl Into<String>) -> Self {
        self.credential = Some(Chosen::Key { account: account.into(), key: key.into() });
        self
    }

    /// Uses a shared access signature, with or without its question mark.
    pub fn sas(mut self, token: &str) -> Self {
        self.credential = Some(Chosen::Ready(Credential::Sas(SasToken::new(token))));
        self
    }

    /// Uses bearer tokens of a provider. They are only sent to addresses with https.
    pub fn token(mut self, provider: Arc<dyn TokenProvider>) -> Self {
        let source = Arc::new(TokenSource::new(provider));
        self.credential = Some(Chosen::Ready(Credential::Token(source)));
        self
    }

    /// Proves nothing, for containers that are open to the public.
    pub fn anonymous(mut self) -> Self {
        self.credential = Some(Chosen::Ready(Credential::Anonymous));
        self
    }

    /// When requests that failed are sent again.
    pub const fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long a call may take with all its retries (default: two minutes).
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.call = timeout;
        self
    }

    /// How long one attempt may take (default: half a minute).
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.attempt = timeout;
        self
    }

    /// How long it may take to open a connection (default: ten seconds).
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect.connect_timeout = timeout;
        self
    }

    /// Puts the name of the application before that of this client in the header `User-Agent`.
    pub fn user_agent(mut self, application: impl Into<String>) -> Self {
        self.user_agent = Some(application.into());
        self
    }

    /// Sends all requests through this proxy, such as `http://user:password@proxy:3128`, in the place of what
    /// `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say. Those are not asked for addresses of this machine.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.connect.proxy = ProxyChoice::Through(url.into());
        self
    }

    /// Sends no request through a proxy, even if the environment names one.
    pub fn no_proxy(mut self) -> Self {
        self.connect.proxy = ProxyChoice::Direct;
        self
    }

    /// Trusts these certificates (PEM) besides those of the operating system.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.connect.root_certificates.push(pem.into());
        self
    }

    /// Trusts a server that shows the first certificate of this PEM, whatever names the certificate has and whoever signed
    /// it: for a server whose certificate file is at hand.
    pub fn server_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.connect.server_certificates.push(pem.into());
        self
    }

    /// Sends requests by another transport. The settings of proxy, certificates and connections are then its own.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The account.
    ///
    /// # Errors
    /// What is missing or malformed.
    pub fn build(self) -> Result<Account, AccountError> {
        let given = self.connection_string.as_deref().map(ConnectionString::parse).transpose()?;
        // Whichever way the account was to be named, that is where its credential is missed.
        let no_credential = match given {
            Some(_) => AccountError::ConnectionString(ConnectionStringError::Credential),
            None => AccountError::NoCredential,
        };
        let (mut credential, endpoints) = given.map_or((None, Vec::new()), |given| (given.credential, given.endpoints));
        match self.credential {
            Some(Chosen::Key { account, key }) => {
                credential = Some(Credential::SharedKey(SharedKey::new(account, &key)?))
            }
            Some(Chosen::Ready(chosen)) => credential = Some(chosen),
            None => {}
        }
        self.connect.check()?;
        let transport = self.transport.unwrap_or_else(|| Arc::new(HttpTransport::with_settings(&self.connect)));
        let user_agent = concat!("larimar-client/", env!("CARGO_PKG_VERSION"));
        let user_agent = self.user_agent.map_or_else(|| user_agent.to_owned(), |first| format!("{first} {user_agent}"));
        let user_agent = printable(&user_agent).ok_or(AccountError::UserAgent)?;
        let mut account = Account { tables: None, queues: None, blobs: None };
        for service in [Service::Table, Service::Queue, Service::Blob] {
            let own = |primary| self.endpoints.iter().rev().find(|(of, is, _)| (*of, *is) == (service, primary));
            let stated = endpoints.iter().find(|(of, ..)| *of == service);
            let primary = own(true).map(|(.., url)| url.as_str()).or_else(|| stated.map(|(_, url, _)| url.as_str()));
            let Some(primary) = primary else { continue };
            // The secondary of the string goes with the primary of the string.
            let stated = stated.filter(|_| own(true).is_none());
            let secondary = own(false).map(|(.., url)| url.as_str()).or_else(|| stated?.2.as_deref());
            let mut primary = Endpoint::parse(primary)?;
            let mut secondary = secondary.map(Endpoint::parse).transpose()?;
            let in_url = primary.take_query().map(|query| Credential::Sas(SasToken::new(&query)));
            // The signature of the primary is good for both.
            drop(secondary.as_mut().map(Endpoint::take_query));
            let credential = in_url.or_else(|| credential.clone()).ok_or_else(|| no_credential.clone())?;
            let pipeline = Some(Arc::new(Pipeline {
                service,
                primary,
                secondary,
                credential,
                transport: Arc::clone(&transport),
                retry: self.retry.clone(),
                timeouts: self.timeouts,
                user_agent: user_agent.clone(),
            }));
            match service {
                Service::Table => account.tables = pipeline,
                Service::Queue => account.queues = pipeline,
                Service::Blob => account.blobs = pipeline,
            }
        }
        if account.tables.is_none() && account.queues.is_none() && account.blobs.is_none() {
            return Err(AccountError::NoEndpoint);
        }
        Ok(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secondary_belongs_to_its_primary() {
        let secondary = |account: AccountBuilder| {
            let account = account.build().expect("an account");
            account.pipeline(Service::Table).secondary.as_ref().map(Endpoint::url)
        };
        let account = || Account::builder().connection_string("AccountName=a;AccountKey=a2V5");
        assert_eq!(secondary(account()).as_deref(), Some("https://a-secondary.table.core.windows.net"));
        assert_eq!(secondary(account().table_endpoint("https://b.table.core.windows.net")), None);
        let both = account().table_endpoint("https://b").table_secondary_endpoint("https://c/");
        assert_eq!(secondary(both).as_deref(), Some("https://c"));
        assert_eq!(secondary(account().table_secondary_endpoint("https://c/")).as_deref(), Some("https://c"));
    }

    fn credential(account: AccountBuilder) -> Result<Credential, AccountError> {
        Ok(account.build()?.pipeline(Service::Table).credential.clone())
    }

    #[test]
    fn a_credential_comes_from_the_string_the_address_or_the_caller() {
        let account = |text: &str| Account::builder().connection_string(text);
        let refused = |text: &str| credential(account(text)).map(drop).expect_err("no credential");
        let missed = AccountError::ConnectionString(ConnectionStringError::Credential);
        for text in ["AccountName=a", "TableEndpoint=https://h", "AccountKey=a2V5;TableEndpoint=https://h"] {
            assert_eq!(refused(text), missed, "{text}");
        }
        let address_only = Account::builder().table_endpoint("https://h");
        assert_eq!(credential(address_only).map(drop), Err(AccountError::NoCredential));
        assert!(matches!(credential(account("AccountName=a").anonymous()), Ok(Credential::Anonymous)));
        assert!(matches!(credential(account("AccountName=a;AccountKey=a2V5").sas("sig=1")), Ok(Credential::Sas(_))));
        let in_address =
            credential(account("AccountName=a;TableEndpoint=https://h/?sv=1&sig=2;BlobEndpoint=https://h"));
        assert_eq!(in_address.map(drop), Err(missed), "the address of tables only has one");
        let in_address = credential(account("TableEndpoint=https://h/?sv=1&sig=2"));
        assert!(matches!(in_address, Ok(Credential::Sas(sas)) if sas.0 == "sv=1&sig=2"));
    }
}
