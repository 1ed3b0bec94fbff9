//! A request that is built header by header and signed when it is sent.

use super::{Client, Credential, Response, encode, socket};
use larimar_engine::{Clock as _, SystemClock};
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use larimar_wire::signature::{self, AccountKey, Scheme};

/// A request of a [`Client`]. It begins with the headers that a current SDK sends.
#[derive(Clone, Debug)]
#[must_use]
pub struct Request<'c> {
    client: &'c Client,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    is_signed: bool,
}

impl<'c> Request<'c> {
    pub(super) fn new(client: &'c Client, method: &str, path: &str) -> Self {
        let request = Self {
            client,
            method: method.to_owned(),
            target: format!("/{}{path}", client.segment),
            headers: Vec::new(),
            body: Vec::new(),
            is_signed: true,
        };
        let request = request
            .header("Host", client.address.to_string())
            .header("x-ms-date", signature::http_date(SystemClock.now()));
        match client.service {
            Service::Table => request
                .header("x-ms-version", "2019-02-02")
                .header("DataServiceVersion", "3.0")
                .header("Accept", "application/json;odata=minimalmetadata"),
            Service::Queue | Service::Blob => {
                request.header("x-ms-version", "2024-11-04").header("Accept", "application/xml")
            }
        }
    }

    /// Sets a header, in the place of one of the same name.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a header beside those of the same name.
    pub fn also(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Leaves a header out.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self
    }

    /// Puts another target in the place of the whole path, such as one without an account.
    pub fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    /// Sets `Accept`.
    pub fn accept(self, value: &str) -> Self {
        self.header("Accept", value)
    }

    /// Sets `If-Match`.
    pub fn if_match(self, etag: &str) -> Self {
        self.header("If-Match", etag)
    }

    /// Adds a query parameter, escaped.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        let separator = if self.target.contains('?') { '&' } else { '?' };
        self.target.push_str(&format!("{separator}{}={}", encode(name), encode(value)));
        self
    }

    /// Sets a JSON body.
    pub fn json(self, body: impl Into<Vec<u8>>) -> Self {
        self.header("Content-Type", "application/json").body(body)
    }

    /// Sets an XML body.
    pub fn xml(self, body: impl Into<Vec<u8>>) -> Self {
        self.header("Content-Type", "application/xml").accept("application/xml").body(body)
    }

    /// Sets the body and its length.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("Content-Length", length)
    }

    /// Leaves the credential out.
    pub fn unsigned(mut self) -> Self {
        self.is_signed = false;
        self
    }

    /// The bytes of the request, signed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut target, mut headers) = (self.target.clone(), self.headers.clone());
        match &self.client.credential {
            Credential::Key(scheme, key) if self.is_signed => {
                headers.push(("Authorization".to_owned(), self.signature(*scheme, key)));
            }
            Credential::Sas(token) if self.is_signed => {
                let separator = if target.contains('?') { '&' } else { '?' };
                target.push_str(&format!("{separator}{token}"));
            }
            _ => {}
        }
        let mut bytes = format!("{} {target} HTTP/1.1\r\n", self.method).into_bytes();
        for (name, value) in &headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends the request and waits for the answer.
    ///
    /// # Panics
    /// If the connection fails: the server is expected to be there and to answer.
    #[must_use]
    pub fn send(&self) -> Response {
        self.try_send().unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.target))
    }

    /// Sends the request; the error says why there is no answer.
    ///
    /// # Errors
    /// What the socket says, such as when the server was killed meanwhile.
    pub fn try_send(&self) -> std::io::Result<Response> {
        let bytes = self.to_bytes();
        let kept = self.client.idle.lock().expect("no panic while locked").take();
        let has_body = self.method != "HEAD";
        let (stream, response) = match kept {
            // The server may have closed an idle connection; nothing of the answer came then.
            Some(stream) => match socket::round_trip(stream, &bytes, has_body) {
                Ok(done) => done,
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && self.is_safe() => {
                    socket::round_trip(socket::connect(self.client.address)?, &bytes, has_body)?
                }
                Err(error) => return Err(error),
            },
            None => socket::round_trip(socket::connect(self.client.address)?, &bytes, has_body)?,
        };
        if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            *self.client.idle.lock().expect("no panic while locked") = Some(stream);
        }
        Ok(response)
    }

    fn signature(&self, scheme: Scheme, key: &AccountKey) -> String {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let head = RequestHead::new(&self.method, path, query, headers);
        let signed = signature::sign(self.client.service, scheme, &self.client.account, key, &head);
        signed.expect("no header comes twice, and the query can be read")
    }

    fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}
