//! Opens connections: directly, through a proxy, with TLS where the address asks for it.

use super::{BoxError, TransportError};
use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::fmt;
use std::time::Duration;
use tower_service::Service as _;

/// A connection, plain or encrypted.
pub(crate) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// Where requests go through.
#[derive(Clone, Debug, Default)]
pub(crate) enum ProxyChoice {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
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
}

impl Default for ConnectSettings {
    fn default() -> Self {
        Self { proxy: ProxyChoice::default(), connect_timeout: Duration::from_secs(10), root_certificates: Vec::new() }
    }
}

/// Opens connections.
pub(super) struct Connector {
    tcp: HttpConnector,
    proxies: Option<Matcher>,
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
            #[cfg(feature = "rustls")]
            tls: super::tls::Tls::new(&settings.root_certificates),
        }
    }

    /// Opens a connection to the server of this address.
    pub(super) async fn connect(&self, address: &Uri) -> Result<Connected, TransportError> {
        self.open(address).await.map_err(TransportError::not_sent)
    }

    async fn open(&self, address: &Uri) -> Result<Connected, BoxError> {
        let is_encrypted = address.scheme() == Some(&Scheme::HTTPS);
        let proxy = self.proxies.as_ref().and_then(|proxies| proxies.intercept(address));
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
            return Ok(Connected { stream: Box::new(stream), through_proxy });
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
