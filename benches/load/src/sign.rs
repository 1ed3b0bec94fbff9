//! SharedKey signatures: what every real client computes for every request.
//!
//! The account key is expanded into the HMAC state once; a signature then costs a few hash blocks.
//! `request.rs` puts the result into the `Authorization` header.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// The development account every emulator ships with.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";

/// Its key, published in the service's documentation.
pub(crate) const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

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

    /// The base64 signature of one request to the Table service; `path` is the path exactly as on the request line.
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

    /// The base64 signature of one request to the Queue or Blob service, version 2015-02-21 or later.
    pub(crate) fn storage_signature(&self, request: &Signed<'_>) -> String {
        let mut mac = self.keyed.clone();
        mac.update(request.verb.as_bytes());
        // Two lines for Content-Encoding and -Language, which we never send.
        mac.update(b"\n\n\n");
        if request.body_bytes > 0 {
            mac.update(request.body_bytes.to_string().as_bytes());
        }
        // Content-MD5 is never sent.
        mac.update(b"\n\n");
        mac.update(request.content_type.as_bytes());
        // Date, which `x-ms-date` replaces, four conditions and a range.
        mac.update(b"\n\n\n\n\n\n\n");
        for (name, value) in request.headers {
            mac.update(name.as_bytes());
            mac.update(b":");
            mac.update(value.as_bytes());
            mac.update(b"\n");
        }
        mac.update(b"/");
        mac.update(ACCOUNT.as_bytes());
        mac.update(request.path.as_bytes());
        for (name, value) in request.query {
            mac.update(b"\n");
            mac.update(name.as_bytes());
            mac.update(b":");
            mac.update(value.as_bytes());
        }
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

/// The time of requests as text, formatted once a second.
#[derive(Default)]
pub(crate) struct Date {
    text: String,
    second: u64,
}

impl Date {
    /// The text of this second.
    pub(crate) fn now(&mut self) -> &str {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second != self.second || self.text.is_empty() {
            self.text = httpdate::fmt_http_date(now);
            self.second = second;
        }
        &self.text
    }
}

/// What a signature of the Queue or Blob service covers, as far as we send it.
pub(crate) struct Signed<'a> {
    pub(crate) verb: &'a str,
    pub(crate) body_bytes: usize,
    /// Empty without a body.
    pub(crate) content_type: &'a str,
    /// The `x-ms-` headers, sorted by name.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// The path exactly as on the request line.
    pub(crate) path: &'a str,
    /// The parameters, decoded and sorted by name.
    pub(crate) query: &'a [(&'a str, &'a str)],
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

    /// Computed likewise, with Python's `hmac`.
    #[test]
    fn signatures_of_queues_and_blobs_equal_those_of_another_implementation() {
        let signer = Signer::development().expect("the constant key is valid");
        let headers = [
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-date", "Fri, 06 May 2022 00:31:05 GMT"),
            ("x-ms-version", "2021-12-02"),
        ];
        let put = Signed {
            verb: "PUT",
            body_bytes: 4096,
            content_type: "application/octet-stream",
            headers: &headers,
            path: "/devstoreaccount1/c/b",
            query: &[("blockid", "QQ=="), ("comp", "block")],
        };
        assert_eq!(signer.storage_signature(&put), "G3ofcRo4YfBefPDSkL31JV6uR56IercaTEkK5pfzjvU=");
        let get = Signed {
            verb: "GET",
            body_bytes: 0,
            content_type: "",
            headers: &headers[1..],
            path: "/devstoreaccount1/q/messages",
            query: &[],
        };
        assert_eq!(signer.storage_signature(&get), "P5lEBLd2o5IZTGa/maRtGoYQnbNfhaAK0ZEDwnDnssg=");
    }
}
