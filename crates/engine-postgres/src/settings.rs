//! How to reach the database: a URL as PostgreSQL's own tools take it, and what does not belong in the URL.

use crate::connection::ConnectError;
use crate::dialect::Dialect;
use crate::tls::{self, Verify};
use std::path::PathBuf;
use std::str::Utf8Error;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How to open an engine.
#[derive(Clone)]
pub struct Settings {
    /// `postgres://user@host1:5432,host2:5432/database?sslmode=verify-full&sslrootcert=ca.pem`. With several hosts
    /// the one that accepts writes is used, also after a failover.
    pub url: String,
    /// Which database it is.
    pub dialect: Dialect,
    /// The password, if it is not in the URL.
    pub password: Option<Password>,
    /// Connections to open at most.
    pub connections_max: usize,
    /// How long the database may take over one statement.
    pub timeout: Duration,
}

/// Where the password comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password itself.
    Text(String),
    /// A file that is read for each new connection, so that the password can be changed while servers run.
    File(PathBuf),
}

impl Password {
    /// The password, without a newline at the end of its file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self) -> std::io::Result<String> {
        let text = match self {
            Self::Text(text) => return Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path)?,
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(hidden)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Why an engine cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be parsed.
    #[error("cannot parse the URL of the database: {0}")]
    Url(String),
    /// The certificates to trust cannot be read.
    #[error("cannot read the certificates to trust: {0}")]
    Certificates(String),
    /// The database cannot be reached, or refuses.
    #[error("cannot connect to the database: {0}")]
    Connect(String),
    /// The tables cannot be created, or belong to a later release.
    #[error("cannot set up the tables: {0}")]
    Schema(String),
}

/// The URL cannot be parsed.
impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Url(chain(&error))
    }
}

impl From<Utf8Error> for OpenError {
    fn from(error: Utf8Error) -> Self {
        Self::Url(error.to_string())
    }
}

/// Where and how to connect.
pub(crate) struct Target {
    config: Config,
    password: Option<Password>,
    pub(crate) tls: MakeRustlsConnect,
    pub(crate) dialect: Dialect,
    pub(crate) timeout: Duration,
}

impl Target {
    /// The configuration of the next connection, with the current password.
    pub(crate) async fn config(&self) -> Result<Config, ConnectError> {
        let mut config = self.config.clone();
        if let Some(password) = self.password.clone() {
            match tokio::task::spawn_blocking(move || password.read()).await {
                Ok(Ok(password)) => config.password(password),
                Ok(Err(error)) => {
                    return Err(ConnectError::passing(format!("cannot read the password file: {error}")));
                }
                Err(error) => return Err(ConnectError::passing(error.to_string())),
            };
        }
        Ok(config)
    }
}

impl Settings {
    /// A database at a URL, with defaults for the rest.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            dialect: Dialect::default(),
            password: None,
            connections_max: 32,
            timeout: Duration::from_secs(15),
        }
    }

    /// Parses the URL. Its `sslmode` and `sslrootcert` have the meaning that PostgreSQL's own clients give them. The
    /// driver supports fewer values, so they are removed before it parses the URL.
    pub(crate) fn target(&self) -> Result<Target, OpenError> {
        let (base, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let mut mode = None;
        let mut roots = None;
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(decoded(value)?),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decoded(value)?)),
                _ => rest.push(pair),
            }
        }
        let (ssl_mode, verify) = match (mode.as_deref(), &roots) {
            (Some("disable"), _) => (SslMode::Disable, Verify::Nothing),
            (None | Some("prefer" | "allow"), _) => (SslMode::Prefer, Verify::Nothing),
            // As in PostgreSQL's own clients, `require` with a root certificate means `verify-ca`.
            (Some("require"), None) => (SslMode::Require, Verify::Nothing),
            (Some("require" | "verify-ca"), _) => (SslMode::Require, Verify::Issuer),
            (Some("verify-full"), _) => (SslMode::Require, Verify::IssuerAndName),
            (Some(other), _) => return Err(OpenError::Url(format!("unknown sslmode '{other}'"))),
        };
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = url.parse()?;
        if config.get_hosts().is_empty() {
            return Err(OpenError::Url("it names no host".to_owned()));
        }
        config.ssl_mode(ssl_mode).target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("larimar");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(self.timeout);
        }
        config.keepalives(true).keepalives_idle(Duration::from_secs(10));
        let tls = tls::connector(verify, roots.as_deref())?;
        let password = self.password.clone();
        Ok(Target { config, password, tls, dialect: self.dialect, timeout: self.timeout })
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may hold a password.
        f.debug_struct("Settings").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

fn decoded(text: &str) -> Result<String, OpenError> {
    let text = percent_encoding::percent_decode_str(text).decode_utf8();
    Ok(text?.into_owned())
}

/// An error with its causes, which the driver's own text leaves out.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, OpenError> {
        Settings::new(url).target()
    }

    #[test]
    fn sslmode_means_what_it_means_to_postgres_clients() {
        for (mode, expected) in [
            ("", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?sslmode=prefer", SslMode::Prefer),
            ("?application_name=x&sslmode=require", SslMode::Require),
            ("?sslmode=verify-ca", SslMode::Require),
            ("?sslmode=verify-full&application_name=x", SslMode::Require),
        ] {
            let target = target(&format!("postgres://u@h/d{mode}")).expect("a URL");
            assert_eq!(target.config.get_ssl_mode(), expected, "{mode}");
        }
        assert!(matches!(target("postgres://u@h/d?sslmode=sometimes"), Err(OpenError::Url(_))));
    }

    #[test]
    fn of_several_hosts_one_that_accepts_writes_is_used() {
        let target = target("postgres://u:p@one:1,two:2/d?target_session_attrs=any").expect("a URL");
        assert_eq!(target.config.get_hosts().len(), 2);
        assert_eq!(target.config.get_ports(), [1, 2]);
        assert_eq!(target.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_its_password() {
        for url in ["postgres://", "mysql://u:secret@h/d", "postgres://u:secret@h/d?no_such=1", "postgres://u@h:x/d"] {
            let error = target(url).err().unwrap_or_else(|| panic!("{url} was taken"));
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_missing_root_certificate_is_refused() {
        let refused = target("postgres://u@h/d?sslmode=verify-full&sslrootcert=no%20such%20file");
        assert!(matches!(refused, Err(OpenError::Certificates(_))));
    }
}
