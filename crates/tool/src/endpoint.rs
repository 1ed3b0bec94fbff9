//! Which account a command works on: flags, then variables, then the server on this machine.

use crate::location::Uploads;
use crate::{Error, Result};
use clap::Args;
use larimar_client::{Account, AccountBuilder};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;

/// The environment of the process.
pub type Environment = BTreeMap<OsString, OsString>;

/// What a command uses of the process that runs it.
#[derive(Clone, Debug)]
pub struct Context {
    /// The environment of the process.
    pub environment: Environment,
    /// The server that the settings in this directory describe, or why they are refused.
    pub local: Result<LocalServer, String>,
    /// Uploads of the command; the process waits for their end.
    pub uploads: Uploads,
}

impl Context {
    /// The context of one command.
    #[must_use]
    pub fn new(environment: Environment, local: Result<LocalServer, String>) -> Self {
        Self { environment, local, uploads: Uploads::default() }
    }
}

/// How to reach the server on this machine.
#[derive(Clone)]
pub struct LocalServer {
    /// The connection string of its first account.
    pub connection_string: String,
    /// The certificate that it shows, if it speaks TLS.
    pub certificate: Option<PathBuf>,
}

/// The connection string has a key in it.
impl std::fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalServer").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// The services of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Tables.
    Table,
    /// Queues.
    Queue,
    /// Blobs.
    Blob,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Queue => "queue",
            Self::Blob => "blob",
        }
    }
}

/// The flags that name an account. It has no `Debug`, since it holds secrets.
#[derive(Clone, Default, Args)]
pub struct EndpointArgs {
    /// Connection string, or @FILE [env: AZURE_STORAGE_CONNECTION_STRING]
    #[arg(long, value_name = "TEXT", help_heading = HEADING, conflicts_with_all = ["account", "key", "sas", "endpoint"])]
    connection_string: Option<String>,
    /// Name of the account [env: AZURE_STORAGE_ACCOUNT]
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    account: Option<String>,
    /// Key of the account, or @FILE, since others can see command lines [env: AZURE_STORAGE_KEY]
    #[arg(long, value_name = "KEY", help_heading = HEADING, conflicts_with = "sas")]
    key: Option<String>,
    /// Shared access signature, or @FILE [env: AZURE_STORAGE_SAS_TOKEN]
    #[arg(long, value_name = "TOKEN", help_heading = HEADING)]
    sas: Option<String>,
    /// Address of the service [default: that of the account in Azure]
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    endpoint: Option<String>,
    /// Also trust the certificates in this file (PEM)
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    ca_file: Option<PathBuf>,
}

impl EndpointArgs {
    /// The flags of an account that is given by a connection string.
    #[must_use]
    pub fn of_connection_string(text: impl Into<String>) -> Self {
        Self { connection_string: Some(text.into()), ..Self::default() }
    }

    /// The account, for a command that uses this service of it. A server on this machine that does not run is
    /// reported at once.
    ///
    /// # Errors
    /// Flags or variables that do not name an account, or a server that does not run.
    pub async fn connect(&self, context: &Context, service: Service) -> Result<Account> {
        let account = self.builder(context, service)?.build()?;
        let url = match service {
            Service::Table => account.table("x").url(),
            Service::Queue => account.queue("x").url(),
            Service::Blob => account.container("x").url(),
        };
        check_running(&url, "with --connection-string or --endpoint").await?;
        Ok(account)
    }

    /// What the flags and variables say of the account.
    fn builder(&self, context: &Context, service: Service) -> Result<AccountBuilder> {
        let mut builder = Account::builder().user_agent(concat!("larimar/", env!("CARGO_PKG_VERSION")));
        if let Some(path) = &self.ca_file {
            let pem = std::fs::read(path).map_err(|error| Error::io(path.display(), error))?;
            builder = builder.root_certificates(pem);
        }
        let variable = |name: &str| {
            let value = context.environment.get(OsStr::new(name)).filter(|value| !value.is_empty())?;
            value.to_str().map(str::to_owned)
        };
        let names_account = self.account.is_some() || self.endpoint.is_some();
        let text = match &self.connection_string {
            Some(text) => Some(secret(text)?),
            None if names_account => None,
            None => variable("AZURE_STORAGE_CONNECTION_STRING"),
        };
        if let Some(text) = text {
            return Ok(builder.connection_string(text));
        }
        let account = self.account.clone().or_else(|| variable("AZURE_STORAGE_ACCOUNT"));
        if account.is_none() && self.endpoint.is_none() {
            if self.key.is_some() || self.sas.is_some() {
                return Err(Error::Usage("--key and --sas need --account or --endpoint".to_owned()));
            }
            return of_local(builder, context);
        }
        self.of_account(builder, service, account, variable)
    }

    fn of_account(
        &self,
        builder: AccountBuilder,
        service: Service,
        account: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<AccountBuilder> {
        let url = match (&self.endpoint, &account) {
            (Some(url), _) => url.clone(),
            (None, Some(account)) => format!("https://{account}.{}.core.windows.net", service.name()),
            (None, None) => return Err(Error::Usage("expected --account or --endpoint".to_owned())),
        };
        // A signature may follow the address after a question mark.
        let is_signed = url.contains('?');
        let account = account.or_else(|| account_in(&url));
        let builder = match service {
            Service::Table => builder.table_endpoint(url),
            Service::Queue => builder.queue_endpoint(url),
            Service::Blob => builder.blob_endpoint(url),
        };
        let key = self.key.as_deref().map(secret).transpose()?;
        let sas = self.sas.as_deref().map(secret).transpose()?;
        let (key, sas) = match (key, sas) {
            (None, None) => (variable("AZURE_STORAGE_KEY"), variable("AZURE_STORAGE_SAS_TOKEN")),
            given => given,
        };
        match (key, sas, account) {
            _ if is_signed => Ok(builder),
            (Some(key), _, Some(account)) => Ok(builder.shared_key(account, key)),
            (Some(_), ..) => Err(Error::Usage("--key needs --account".to_owned())),
            (None, Some(sas), _) => Ok(builder.sas(&sas)),
            (None, None, Some(account)) if account == "devstoreaccount1" => {
                Ok(builder.connection_string("UseDevelopmentStorage=true"))
            }
            (None, None, _) => Err(Error::Usage(
                "expected a credential: --key, --sas, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN".to_owned(),
            )),
        }
    }
}

/// The account of the server on this machine.
pub(crate) fn of_local(builder: AccountBuilder, context: &Context) -> Result<AccountBuilder> {
    let local = context.local.clone().map_err(|reason| {
        Error::Usage(format!("the settings of the server on this machine are refused, so name an account: {reason}"))
    })?;
    let builder = builder.connection_string(local.connection_string);
    match local.certificate {
        None => Ok(builder),
        Some(path) => {
            let pem = std::fs::read(&path).map_err(|error| Error::io(path.display(), error))?;
            Ok(builder.server_certificate(pem))
        }
    }
}

/// A secret of the command line: itself, or what the file holds that it names.
pub(crate) fn secret(text: &str) -> Result<String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let mut secret = String::new();
    let file = std::fs::File::open(path).map_err(|error| Error::io(path, error))?;
    file.take(SECRET_BYTES_MAX).read_to_string(&mut secret).map_err(|error| Error::io(path, error))?;
    Ok(secret.trim().to_owned())
}

/// The account that an address names: in its path for a host that is a number or this machine, else in its host.
fn account_in(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    match url.host()? {
        url::Host::Domain(domain) if domain != "localhost" => domain.split('.').next().map(str::to_owned),
        _ => url.path_segments()?.next().filter(|name| !name.is_empty()).map(str::to_owned),
    }
}

/// Fails if the address is of this machine and nothing listens there. The client would try for seconds. `how` is part of
/// the error: how the command takes another account.
pub(crate) async fn check_running(url: &str, how: &'static str) -> Result<()> {
    let Ok(url) = url::Url::parse(url) else { return Ok(()) };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return Ok(()) };
    let plain = host.trim_matches(['[', ']']);
    let is_here = plain == "localhost" || plain.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if !is_here {
        return Ok(());
    }
    match tokio::net::TcpStream::connect((plain, port)).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            Err(Error::NotRunning { address: format!("{}://{host}:{port}", url.scheme()), how })
        }
        _ => Ok(()),
    }
}

/// The group of the help.
const HEADING: &str = "Account (default: the server on this machine)";
/// Far more than a key or a connection string has.
const SECRET_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)]) -> Context {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let local = LocalServer { connection_string: "UseDevelopmentStorage=true".to_owned(), certificate: None };
        Context::new(environment, Ok(local))
    }

    fn url(arguments: &EndpointArgs, variables: &[(&str, &str)]) -> Result<String> {
        Ok(arguments.builder(&context(variables), Service::Table)?.build()?.table("t").url())
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn flags_come_before_variables_and_variables_before_the_local_server() {
        let none = EndpointArgs::default();
        assert_eq!(url(&none, &[]).expect("an account"), "http://127.0.0.1:10002/devstoreaccount1/t");
        let string = ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=shop;AccountKey=a2V5");
        assert_eq!(url(&none, &[string]).expect("an account"), "https://shop.table.core.windows.net/t");
        let named = EndpointArgs { account: text("other"), key: text("a2V5"), ..EndpointArgs::default() };
        assert_eq!(url(&named, &[string]).expect("an account"), "https://other.table.core.windows.net/t");
        let variables = [("AZURE_STORAGE_ACCOUNT", "shop"), ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=2")];
        assert_eq!(url(&none, &variables).expect("an account"), "https://shop.table.core.windows.net/t");
    }

    #[test]
    fn an_address_names_its_account() {
        for (address, account) in [
            ("http://127.0.0.1:10002/devstoreaccount1", Some("devstoreaccount1")),
            ("http://localhost:10002/shop/", Some("shop")),
            ("http://[::1]:10002/shop", Some("shop")),
            ("https://shop.table.core.windows.net", Some("shop")),
            ("http://127.0.0.1:10002", None),
            ("nonsense", None),
        ] {
            assert_eq!(account_in(address).as_deref(), account, "{address}");
        }
        let local = EndpointArgs { endpoint: text("http://127.0.0.1:7/devstoreaccount1"), ..EndpointArgs::default() };
        assert_eq!(url(&local, &[]).expect("the well-known key"), "http://127.0.0.1:7/devstoreaccount1/t");
    }

    #[test]
    fn what_is_missing_is_named() {
        let no_credential = EndpointArgs { account: text("shop"), ..EndpointArgs::default() };
        let key_only = EndpointArgs { key: text("a2V5"), ..EndpointArgs::default() };
        let no_file = EndpointArgs { account: text("shop"), key: text("@/no/such/file"), ..EndpointArgs::default() };
        for (arguments, code, word) in
            [(no_credential, 2, "AZURE_STORAGE_KEY"), (key_only, 2, "--account"), (no_file, 1, "/no/such/file")]
        {
            let error = url(&arguments, &[]).expect_err("refused");
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn a_secret_may_come_from_a_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "AccountName=shop;AccountKey=a2V5\n").expect("written");
        let arguments = EndpointArgs::of_connection_string(format!("@{}", file.path().display()));
        assert_eq!(url(&arguments, &[]).expect("an account"), "https://shop.table.core.windows.net/t");
    }
}
