//! Reads the certificate chain and the private key for encrypted connections.

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a listener needs for encrypted connections.
pub type TlsConfig = ServerConfig;

/// Why the certificate or the key cannot be used. The setting at fault is in the message.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate file cannot be read.
    #[error("tls_certificate: cannot read {}: expected a file with a certificate chain in PEM", .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: pem::Error,
    },
    /// The certificate file holds no certificate.
    #[error("tls_certificate: {} holds no certificate: expected a certificate chain in PEM", .path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The key file cannot be read.
    #[error("tls_key: cannot read {}: expected a file with one private key in PEM", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: pem::Error,
    },
    /// The two do not fit, or are of a kind that is not supported.
    #[error("tls_key: {} cannot serve the certificate of {}", .key.display(), .certificate.display())]
    Pair {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
        /// Why not.
        #[source]
        source: rustls::Error,
    },
}

/// A certificate and its key, which can be exchanged while connections are served.
#[derive(Debug)]
pub struct TlsCertificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl TlsCertificate {
    /// Loads a certificate chain and its private key, both PEM.
    ///
    /// # Errors
    /// If a file cannot be read or the two do not fit.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self { current: RwLock::new(Arc::new(load_pair(certificate, key)?)) }))
    }

    /// Takes over what another one has, for every handshake from now on.
    pub fn replace_with(&self, other: &Self) {
        let other = Arc::clone(&other.current.read());
        *self.current.write() = other;
    }

    /// What a listener needs to present this certificate.
    #[must_use]
    pub fn config(self: &Arc<Self>) -> Arc<TlsConfig> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has the suites of the default versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

impl ResolvesServerCert for TlsCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

fn load_pair(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let unreadable = |source| TlsError::Certificate { path: certificate.to_owned(), source };
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: certificate.to_owned() });
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Key { path: key.to_owned(), source })?;
    CertifiedKey::from_der(chain, private, &provider()).map_err(|source| TlsError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    })
}

/// The provider is named, so that no other crate of the process can change it by a feature.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_and_its_key_load() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = pair();
        let paths = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        std::fs::write(&paths.0, certificate).expect("a file");
        std::fs::write(&paths.1, key).expect("a file");
        TlsCertificate::load(&paths.0, &paths.1).expect("a usable pair");
    }

    #[test]
    fn refusals_name_the_setting_and_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = pair();
        let (_, other_key) = pair();
        let files = [("cert", &*certificate), ("key", &*key), ("other", &*other_key), ("empty", "")];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let cases = [
            ("missing", "key", "tls_certificate: cannot read"),
            ("empty", "key", "tls_certificate:"),
            ("key", "key", "tls_certificate:"),
            ("cert", "missing", "tls_key: cannot read"),
            ("cert", "empty", "tls_key: cannot read"),
            ("cert", "cert", "tls_key: cannot read"),
            ("cert", "other", "tls_key:"),
        ];
        for (certificate, key, expected) in cases {
            let error = TlsCertificate::load(&folder.path().join(certificate), &folder.path().join(key));
            let error = error.expect_err(&format!("{certificate} with {key}"));
            let text = error.to_string();
            assert!(text.starts_with(expected), "{certificate} with {key}: {text}");
            let at_fault = if expected.starts_with("tls_key") { key } else { certificate };
            assert!(text.contains(&folder.path().join(at_fault).display().to_string()), "{text}");
            assert!(error.source().is_some() || matches!(error, TlsError::NoCertificate { .. }), "{text}");
        }
    }
}
