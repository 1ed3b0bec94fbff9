//! SharedKey signatures for the Table service: what every real client computes for every request.
//!
//! The account key is expanded into the HMAC state once; a signature then costs a few hash blocks.
//! `request.rs` puts the result into the `Authorization` header.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// The development account every emulator ships with.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";

/// Its key, published in the service's documentation.
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Signs requests of the development account.
pub(crate) struct Signer {
    keyed: Hmac<Sha256>,
}

impl Signer {
    /// A signer with the development account's key.
    pub(crate) fn development() -> anyhow::Result<Self> {
        let key = STANDARD.decode(KEY).context("the account key is base64")?;
        let keyed = Hmac::new_from_slice(&key).context("the account key suits HMAC")?;
        Ok(Self { keyed })
    }

    /// The base64 signature of one request; `path` is the path exactly as on the request line.
    pub(crate) fn signature(&self, verb: &str, content_type: &str, date: &str, path: &str) -> String {
        let mut mac = self.keyed.clone();
        mac.update(verb.as_bytes());
        // The line between the two breaks is Content-MD5, which we never send.
        mac.update(b"\n\n");
        mac.update(content_type.as_bytes());
        mac.update(b"\n");
        mac.update(date.as_bytes());
        mac.update(b"\n/");
        mac.update(ACCOUNT.as_bytes());
        mac.update(path.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values were computed with another HMAC implementation (OpenSSL) over the
    /// string-to-sign of the service's reference, account named twice for a path-style address.
    #[test]
    fn signatures_equal_those_of_another_implementation() {
        let signer = Signer::development().expect("the constant key is valid");
        let date = "Fri, 06 May 2022 00:31:05 GMT";
        assert_eq!(
            signer.signature("GET", "", date, "/devstoreaccount1/T(PartitionKey='a',RowKey='b')"),
            "L744FAQzrHZ+z1QI7f7VOIpUbGxjsXGaWNGSJpovYMY="
        );
        assert_eq!(
            signer.signature("POST", "application/json", date, "/devstoreaccount1/Tables"),
            "7Qv8HixXFCbWBH0z5VlaMIgqO1bf9E59Evl4RqdC1Ac="
        );
    }
}
