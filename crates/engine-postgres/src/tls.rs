//! Encryption to the database, with the checks that `sslmode` asks for.

use crate::settings::OpenError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What is checked about the database's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// Nothing: an attacker who can change the traffic can read it.
    Nothing,
    /// That a trusted authority issued it.
    Issuer,
    /// The issuer, and that it is for the host of the URL.
    IssuerAndName,
}

/// The TLS settings of connections. The root certificates are those of a file, or of the system.
pub(crate) fn connector(verify: Verify, roots: Option<&Path>) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = match verify {
        Verify::Nothing => {
            let lenient = Arc::new(Lenient { provider, issuer: None });
            builder.dangerous().with_custom_certificate_verifier(lenient).with_no_client_auth()
        }
        Verify::Issuer => {
            let roots = Arc::new(root_store(roots)?);
            let issuer = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
            let lenient = Arc::new(Lenient { provider, issuer: Some(issuer) });
            builder.dangerous().with_custom_certificate_verifier(lenient).with_no_client_auth()
        }
        Verify::IssuerAndName => builder.with_root_certificates(root_store(roots)?).with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn root_store(file: Option<&Path>) -> Result<RootCertStore, OpenError> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    let mut read = || -> Result<(), Box<dyn std::error::Error>> {
        for certificate in CertificateDer::pem_file_iter(file)? {
            store.add(certificate?)?;
        }
        if store.is_empty() { Err("the file has no PEM certificate".into()) } else { Ok(()) }
    };
    read().map_err(|error| OpenError::Certificates(format!("{}: {error}", file.display())))?;
    Ok(store)
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Certificates(error.to_string())
    }
}

impl From<VerifierBuilderError> for OpenError {
    fn from(error: VerifierBuilderError) -> Self {
        Self::Certificates(error.to_string())
    }
}

/// Checks less than rustls does, as `sslmode` below `verify-full` requires.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    issuer: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(issuer) = &self.issuer else { return Ok(ServerCertVerified::assertion()) };
        match issuer.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
