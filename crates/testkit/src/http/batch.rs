//! Entity group transactions as bytes: building the request, taking the answer apart.

use super::{Client, Request, Response};

/// A transaction, written as the Python SDK writes it.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    parts: Vec<String>,
}

/// The answer to a transaction, taken apart.
#[derive(Clone, Debug)]
pub struct BatchReply {
    /// The outer answer.
    pub outer: Response,
    /// The answers inside, in order.
    pub parts: Vec<Part>,
}

/// One answer inside a transaction's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes from `HTTP/1.1` on, up to the next boundary.
    pub raw: String,
    /// The answer itself.
    pub response: Response,
}

const BATCH: &str = "batch_a8f3c1d2-0001-4a5b-9c6d-1234567890ab";
const CHANGESET: &str = "changeset_b7e2d0c1-0002-4b5c-8d7e-abcdef012345";

impl Batch {
    /// A transaction without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation; `path` is relative to the account.
    #[must_use]
    pub fn operation(mut self, client: &Client, method: &str, path: &str, headers: &[&str], body: &str) -> Self {
        let mut part = format!("{method} {}{path} HTTP/1.1\r\n", client.base());
        part.push_str("x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n");
        part.push_str("Accept: application/json;odata=minimalmetadata\r\n");
        for header in headers {
            part.push_str(header);
            part.push_str("\r\n");
        }
        if !body.is_empty() {
            part.push_str("Content-Type: application/json;odata=nometadata\r\n");
            part.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        part.push_str("\r\n");
        part.push_str(body);
        self.parts.push(part);
        self
    }

    /// Adds an insert that asks for no echo.
    #[must_use]
    pub fn insert(self, client: &Client, table: &str, partition: &str, row: &str, members: &str) -> Self {
        let body = super::entity(partition, row, members);
        self.operation(client, "POST", &format!("/{table}"), &["Prefer: return-no-content"], &body)
    }

    /// Adds an insert-or-replace.
    #[must_use]
    pub fn upsert(self, client: &Client, table: &str, partition: &str, row: &str, members: &str) -> Self {
        let body = super::entity(partition, row, members);
        self.operation(client, "PUT", &super::entity_path(table, partition, row), &[], &body)
    }

    /// Adds a delete with this `If-Match`.
    #[must_use]
    pub fn delete(self, client: &Client, table: &str, partition: &str, row: &str, etag: &str) -> Self {
        let path = super::entity_path(table, partition, row);
        self.operation(client, "DELETE", &path, &[&format!("If-Match: {etag}")], "")
    }

    /// The body of the request.
    #[must_use]
    pub fn body(&self) -> String {
        let mut body = format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGESET}\r\n\r\n");
        for (number, part) in self.parts.iter().enumerate() {
            body.push_str(&format!("--{CHANGESET}\r\nContent-Type: application/http\r\n"));
            body.push_str(&format!("Content-Transfer-Encoding: binary\r\nContent-ID: {number}\r\n\r\n{part}\r\n"));
        }
        body.push_str(&format!("--{CHANGESET}--\r\n\r\n--{BATCH}--\r\n"));
        body
    }

    /// The request.
    pub fn request<'c>(&self, client: &'c Client) -> Request<'c> {
        Self::raw(client, self.body())
    }

    /// A request with another body and the same content type.
    pub fn raw(client: &Client, body: impl Into<Vec<u8>>) -> Request<'_> {
        let request = client.request("POST", "/$batch");
        request.header("Content-Type", format!("multipart/mixed; boundary={BATCH}")).body(body)
    }

    /// Sends the transaction.
    ///
    /// # Panics
    /// If the answer is not 202 with a well-formed multipart body.
    #[must_use]
    pub fn send(&self, client: &Client) -> BatchReply {
        BatchReply::new(self.request(client).send())
    }
}

impl BatchReply {
    /// Takes an answer apart.
    ///
    /// # Panics
    /// If it is not 202 with a well-formed multipart body.
    #[must_use]
    pub fn new(outer: Response) -> Self {
        assert_eq!(outer.status, 202, "{outer}");
        let content_type = outer.header("Content-Type").expect("a content type");
        let boundary = content_type.strip_prefix("multipart/mixed; boundary=").expect("a boundary");
        assert!(boundary.starts_with("batchresponse_"), "{boundary}");
        let text = outer.text().to_owned();
        let inside = text.strip_prefix(&format!("--{boundary}\r\n")).expect("the first boundary");
        let inside = inside.strip_suffix(&format!("--{boundary}--\r\n")).expect("the last boundary");
        let parts = match inside.strip_prefix("Content-Type: multipart/mixed; boundary=") {
            Some(rest) => Self::changeset(rest),
            None => vec![Part::new(inside)],
        };
        Self { outer, parts }
    }

    fn changeset(rest: &str) -> Vec<Part> {
        let (boundary, rest) = rest.split_once("\r\n\r\n").expect("an empty line");
        assert!(boundary.starts_with("changesetresponse_"), "{boundary}");
        let rest = rest.strip_suffix(&format!("--{boundary}--\r\n")).expect("the changeset's end");
        let delimiter = format!("--{boundary}\r\n");
        let mut pieces = rest.split(&delimiter);
        assert_eq!(pieces.next(), Some(""), "nothing before the first part");
        pieces.map(Part::new).collect()
    }

    /// The statuses inside.
    #[must_use]
    pub fn statuses(&self) -> Vec<u16> {
        self.parts.iter().map(|part| part.response.status).collect()
    }

    /// Panics unless the one answer inside is this error with a message that begins so.
    #[track_caller]
    pub fn is_error(&self, status: u16, code: &str, message: &str) {
        assert_eq!(self.parts.len(), 1, "{}", self.outer);
        let response = &self.parts[0].response;
        response.is_error(status, code);
        assert!(response.message().starts_with(message), "{:?} should begin {message:?}", response.message());
    }
}

impl Part {
    fn new(piece: &str) -> Self {
        let prefix = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        let raw = piece.strip_prefix(prefix).unwrap_or_else(|| panic!("a part begins otherwise: {piece:?}"));
        let (head, body) = raw.split_once("\r\n\r\n").expect("an empty line after the headers");
        let mut lines = head.split("\r\n");
        let line = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).unwrap_or_default();
        let (status, reason) =
            (line.get(..3).and_then(|status| status.parse().ok()), line.get(4..).unwrap_or_default());
        let headers = lines.map(|line| line.split_once(": ").expect("a header")).map(|(n, v)| (n.into(), v.into()));
        let body = body.strip_suffix("\r\n").expect("a line end before the boundary");
        let response = Response {
            status: status.expect("a status line"),
            reason: reason.to_owned(),
            headers: headers.collect(),
            body: body.as_bytes().to_vec(),
        };
        Self { raw: raw.to_owned(), response }
    }
}
