//! Opens connections: directly, through a proxy, with TLS where the address asks for it.

use super::{BoxError, TransportError};
use crate::account::AccountError;
use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service as _;

/// A connection, plain or encrypted.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Where requests go through.
#[derive(Clone, Debug, Default)]
pub(crate) enum ProxyChoice {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, but for addresses of this machine.
    #[default]
    Environment,
    /// None.
    Direct,
    /// This one, for all requests.
    Through(String),
}

/// How connections are opened.
#[derive(Clone, Debug)]
pub(crate) struct ConnectSettings {
    pub(crate) proxy: ProxyChoice,
    pub(crate) connect_timeout: Duration,
    /// Certificates in PEM that are trusted besides those of the operating system.
    pub(crate) root_certificates: Vec<Vec<u8>>,
    /// Certificates in PEM of servers themselves, which are trusted whatever names they have.
    pub(crate) server_certificates: Vec<Vec<u8>>,
    /// Bytes of the largest answer that is read.
    pub(crate) answer_bytes_max: usize,
}

impl Default for ConnectSettings {
    fn default() -> Self {
        Self {
            proxy: ProxyChoice::default(),
            connect_timeout: Duration::from_secs(10),
            root_certificates: Vec::new(),
            server_certificates: Vec::new(),
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }
}

impl ConnectSettings {
    /// Refuses what would else be passed over in silence, and show itself only in where requests go.
    pub(crate) fn check(&self) -> Result<(), AccountError> {
        if let ProxyChoice::Through(url) = &self.proxy {
            let any = Uri::from_static("http://service/");
            let proxy = Matcher::builder().all(url.clone()).build().intercept(&any);
            proxy.filter(|proxy| check_proxy(proxy).is_ok()).ok_or(AccountError::Proxy)?;
        }
        #[cfg(feature = "rustls")]
        for pem in self.root_certificates.iter().chain(&self.server_certificates) {
            super::tls::certificates(pem).map_err(|error| AccountError::Certificates(error.to_string()))?;
        }
        Ok(())
    }
}

/// Opens connections.
pub(super) struct Connector {
    tcp: HttpConnector,
    proxies: Option<Matcher>,
    /// Whether addresses of this machine go through a proxy too.
    proxies_loopback: bool,
    #[cfg(feature = "rustls")]
    tls: super::tls::Tls,
}

/// An open connection, and what requests on it need besides.
pub(super) struct Connected {
    pub(super) stream: Box<dyn Stream>,
    /// Requests name their whole address, since a proxy reads them.
    pub(super) through_proxy: Option<ProxyHeaders>,
}

/// What a proxy wants to see on every request.
#[derive(Clone, Debug)]
pub(super) struct ProxyHeaders {
    pub(super) authorization: Option<HeaderValue>,
}

impl Connector {
    pub(super) fn new(settings: &ConnectSettings) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(settings.connect_timeout));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let proxies = match &settings.proxy {
            ProxyChoice::Environment => Some(Matcher::from_env()),
            ProxyChoice::Direct => None,
            ProxyChoice::Through(url) => Some(Matcher::builder().all(url.clone()).build()),
        };
        Self {
            tcp,
            proxies,
            proxies_loopback: matches!(settings.proxy, ProxyChoice::Through(_)),
            #[cfg(feature = "rustls")]
            tls: super::tls::Tls::new(&settings.root_certificates, &settings.server_certificates),
        }
    }

    /// Opens a connection to the server of this address.
    pub(super) async fn connect(&self, address: &Uri) -> Result<Connected, TransportError> {
        self.open(address).await.map_err(TransportError::not_sent)
    }

    async fn open(&self, address: &Uri) -> Result<Connected, BoxError> {
        let is_encrypted = address.scheme() == Some(&Scheme::HTTPS);
        let proxies = self.proxies.as_ref().filter(|_| self.proxies_loopback || !is_loopback(address));
        let proxy = proxies.and_then(|proxies| proxies.intercept(address));
        let mut tcp = self.tcp.clone();
        let (stream, through_proxy) = match proxy {
            None => (tcp.call(address.clone()).await?, None),
            Some(proxy) => {
                check_proxy(&proxy)?;
                let authorization = proxy.basic_auth().cloned();
                if is_encrypted {
                    let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                    let mut tunnel = match authorization {
                        Some(authorization) => tunnel.with_auth(authorization),
                        None => tunnel,
                    };
                    (tunnel.call(address.clone()).await?, None)
                } else {
                    (tcp.call(proxy.uri().clone()).await?, Some(ProxyHeaders { authorization }))
                }
            }
        };
        if !is_encrypted {
            return Ok(Connected { stream: Box::new(stream.into_inner()), through_proxy });
        }
        #[cfg(feature = "rustls")]
        {
            let host = address.host().unwrap_or_default();
            let stream = self.tls.connect(host, stream.into_inner()).await?;
            Ok(Connected { stream, through_proxy })
        }
        #[cfg(not(feature = "rustls"))]
        Err("an address with https needs the feature 'rustls'".into())
    }
}

/// Whether the server is on this machine, so that no proxy would find it.
fn is_loopback(address: &Uri) -> bool {
    let host = address.host().unwrap_or_default();
    let is_address = host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
    is_address || host.eq_ignore_ascii_case("localhost")
}

fn check_proxy(proxy: &Intercept) -> Result<(), BoxError> {
    match proxy.uri().scheme_str() {
        Some("http") => Ok(()),
        other => Err(format!("expected a proxy with an http address, found {}", other.unwrap_or("none")).into()),
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// More than any answer of the services that is read whole.
const ANSWER_BYTES_MAX: usize = 512 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_of_the_environment_are_not_asked_for_this_machine() {
        for (address, expected) in [
            ("http://127.0.0.1:10002/a", true),
            ("http://[::1]:10002/a", true),
            ("https://LocalHost/a", true),
            ("https://a.table.core.windows.net/", false),
            ("http://192.168.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Uri::from_static(address)), expected, "{address}");
        }
    }

    #[test]
    fn proxies_that_would_be_passed_over_are_refused() {
        let check = |url: &str| {
            let proxy = ProxyChoice::Through(url.to_owned());
            ConnectSettings { proxy, ..ConnectSettings::default() }.check()
        };
        for url in ["http://proxy:3128", "proxy:3128", "http://user:p%40ss@proxy"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in ["", "socks5://proxy", "https://proxy", "ftp://proxy", "http://", "/proxy", "a b"] {
            assert_eq!(check(url), Err(AccountError::Proxy), "{url}");
        }
    }
}
