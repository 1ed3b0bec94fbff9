//! TLS by rustls: the certificates that the operating system trusts, and those that the caller adds.

use super::BoxError;
use super::connect::Stream;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(super) struct Tls {
    added: Vec<Vec<u8>>,
    /// Made for the first address that needs it: reading the certificates of the system takes a while.
    connector: OnceLock<Result<TlsConnector, String>>,
}

impl Tls {
    pub(super) fn new(added: &[Vec<u8>]) -> Self {
        Self { added: added.to_vec(), connector: OnceLock::new() }
    }

    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> Result<Box<dyn Stream>, BoxError> {
        let connector = self.connector.get_or_init(|| self.make().map_err(|error| error.to_string())).clone()?;
        // An IPv6 address stands in brackets in an address only.
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        Ok(Box::new(connector.connect(name, stream).await?))
    }

    fn make(&self) -> Result<TlsConnector, BoxError> {
        let mut roots = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        for pem in &self.added {
            for certificate in certificates(pem)? {
                roots.add(certificate)?;
            }
        }
        if roots.is_empty() {
            return Err(format!("no trusted certificates were found: {:?}", system.errors).into());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The certificates of a PEM, which has at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BoxError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    if certificates.is_empty() { Err("expected a certificate in PEM".into()) } else { Ok(certificates) }
}
