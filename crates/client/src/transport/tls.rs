//! TLS by rustls: the certificates that the operating system trusts, and those that the caller adds.

use super::BoxError;
use super::connect::Stream;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(super) struct Tls {
    roots: Vec<Vec<u8>>,
    servers: Vec<Vec<u8>>,
    /// Made for the first address that needs it: reading the certificates of the system takes a while.
    connector: OnceLock<Result<TlsConnector, String>>,
}

impl Tls {
    /// Trusts these certificates besides those of the system, and servers that show one of the others.
    pub(super) fn new(roots: &[Vec<u8>], servers: &[Vec<u8>]) -> Self {
        Self { roots: roots.to_vec(), servers: servers.to_vec(), connector: OnceLock::new() }
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
        for pem in &self.roots {
            for certificate in certificates(pem)? {
                roots.add(certificate)?;
            }
        }
        let mut servers = Vec::new();
        for pem in &self.servers {
            servers.extend(certificates(pem)?.into_iter().next());
        }
        if roots.is_empty() && servers.is_empty() {
            return Err(format!("no trusted certificates were found: {:?}", system.errors).into());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let config = match servers.is_empty() {
            true => config.with_root_certificates(roots),
            false => {
                let verifier = KnownServers::new(servers, roots, provider)?;
                config.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        Ok(TlsConnector::from(Arc::new(config.with_no_client_auth())))
    }
}

/// Trusts servers by their own certificates, and others by those who signed theirs. Either way the server proves that it has
/// the certificate's key.
#[derive(Debug)]
struct KnownServers {
    known: Vec<CertificateDer<'static>>,
    others: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl KnownServers {
    fn new(
        known: Vec<CertificateDer<'static>>,
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, BoxError> {
        let others = match roots.is_empty() {
            true => None,
            false => Some(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?),
        };
        Ok(Self { known, others, provider })
    }
}

impl ServerCertVerifier for KnownServers {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.known.contains(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.others {
            Some(others) => others.verify_server_cert(certificate, chain, name, ocsp, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The certificates of a PEM, which has at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BoxError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    if certificates.is_empty() { Err("expected a certificate in PEM".into()) } else { Ok(certificates) }
}
