//! TLS for programs that know nothing else: a certificate of our own, for hosts that begin with the account.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::gate::succeeds;
use crate::sdk::ServerOptions;

/// Some programs take the development account for an emulator at a fixed address.
const ACCOUNT: &str = "larimartest";
/// Base64 of a text of 33 bytes.
const KEY: &str = "YW4gYWNjb3VudCBrZXkgdGhhdCBvbmx5IHRlc3RzIHVzZQ==";

/// The service's own domain, for programs that know no other (through a proxy of their script), and one that many
/// resolvers lead to this machine.
const DOMAINS: [&str; 2] = ["blob.core.windows.net", "blob.localhost"];

/// A certificate that is its own authority, and its key.
pub(super) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
}

impl Tls {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let tls = Self { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") };
        let names: Vec<String> = DOMAINS.iter().map(|domain| format!("DNS:*.{domain}")).collect();
        let names = format!("subjectAltName={},IP:127.0.0.1", names.join(","));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
        openssl.args(["-subj", "/CN=larimar", "-addext", &names, "-out"]).arg(&tls.certificate);
        succeeds(openssl.arg("-keyout").arg(&tls.key)).context("make a certificate")?;
        Ok(tls)
    }

    /// Has a server speak TLS and answer hosts that begin with the account.
    pub(super) fn serve(&self, options: &mut ServerOptions<'_>) {
        let path = |path: &Path| path.display().to_string();
        let certificate = ["--tls-certificate".to_owned(), path(&self.certificate)];
        let key = ["--tls-key".to_owned(), path(&self.key)];
        options.arguments.extend(certificate.into_iter().chain(key));
        options.arguments.extend(["--host-suffixes".to_owned(), DOMAINS.join(",")]);
        options.variables.push(("LARIMAR_ACCOUNTS", format!("{ACCOUNT}:{KEY}")));
    }

    /// Gives a script what the server's banner does not say.
    pub(super) fn set_variables(&self, command: &mut Command) {
        command.env("LARIMAR_KEY", KEY).env("LARIMAR_CA_FILE", &self.certificate);
    }
}
