//! A line of the access log: what it has of a request, and that no signature, key or literal is in it.

use larimar_model::Timestamp;
use larimar_wire::analytics::{Authentication, mask_signatures_in};
use larimar_wire::error_code::ErrorCode;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A request in the access log. The names of the fields are those of the line.
#[derive(Debug, Serialize)]
pub(crate) struct AccessLine {
    time: String,
    client: IpAddr,
    client_port: u16,
    service: &'static str,
    account: Option<String>,
    operation: &'static str,
    method: String,
    resource: String,
    auth: &'static str,
    status: u16,
    code: Option<&'static str>,
    bytes_in: u64,
    request_id: String,
    client_request_id: Option<String>,
    user_agent: Option<String>,
}

/// What a line is made of.
pub(crate) struct Accessed<'a> {
    pub(crate) head: &'a RequestHead<'a>,
    pub(crate) peer: SocketAddr,
    pub(crate) now: Timestamp,
    pub(crate) request_id: &'a str,
    pub(crate) service: Service,
    /// The account, if it is served here.
    pub(crate) account: Option<String>,
    /// The path below the account, or all of it.
    pub(crate) path: &'a str,
    pub(crate) operation: &'static str,
    pub(crate) authentication: Authentication,
    pub(crate) status: u16,
    pub(crate) code: Option<ErrorCode>,
    pub(crate) received_bytes: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) sent_bytes: u64,
    /// Whether all of the answer was sent, as far as the server knows.
    pub(crate) is_complete: bool,
    pub(crate) elapsed: Duration,
}

impl AccessLine {
    pub(crate) fn new(accessed: Accessed<'_>) -> Self {
        let Accessed { head, peer, service, .. } = accessed;
        Self {
            time: accessed.now.to_string(),
            client: peer.ip().to_canonical(),
            client_port: peer.port(),
            service: service.name(),
            account: accessed.account,
            operation: accessed.operation,
            method: cut(head.method, METHOD_BYTES_MAX).to_owned(),
            resource: resource(accessed.path, service),
            auth: accessed.authentication.as_str(),
            status: accessed.status,
            code: accessed.code.map(ErrorCode::as_str),
            bytes_in: accessed.received_bytes,
            request_id: accessed.request_id.to_owned(),
            client_request_id: head.client_request_id().map(text),
            user_agent: head.raw_header("user-agent").map(text),
        }
    }

    pub(crate) fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    pub(crate) const fn service(&self) -> &'static str {
        self.service
    }

    /// The line with its end, as one object of JSON and a newline.
    pub(crate) fn to_json(&self, end: End) -> Vec<u8> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            line: &'a AccessLine,
            bytes_out: u64,
            complete: bool,
            ms: f64,
        }
        let ms = end.elapsed.as_micros() as f64 / 1000.0;
        let whole = Whole { line: self, bytes_out: end.sent_bytes, complete: end.is_complete, ms };
        let mut json = serde_json::to_vec(&whole).expect("texts and numbers are JSON");
        json.push(b'\n');
        json
    }
}

/// The table, queue, message, container or blob that a path names, without what could be secret: the keys of an entity, and
/// a signature that a client has escaped into its path.
fn resource(path: &str, service: Service) -> String {
    // An escaped byte is three.
    let decoded = decode_lossy(cut(path, 3 * RESOURCE_BYTES_MAX));
    let mut resource = decoded.split('?').next().unwrap_or_default();
    if service == Service::Table && !resource.trim_start_matches('/').starts_with("Tables(") {
        resource = resource.split(['(', '%', '\'', '=']).next().unwrap_or_default();
    }
    shown(resource, RESOURCE_BYTES_MAX)
}

/// Decodes what can be decoded, also of a path that the server refuses, so that nothing is hidden behind an escape.
fn decode_lossy(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let escaped = others.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &others[2..]),
            None => (bytes.push(first), rest = others),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text of the client, cut and without signatures.
fn text(text: &str) -> String {
    shown(text, TEXT_BYTES_MAX)
}

/// The beginning of a text without signatures. JSON escapes the control characters of ASCII but DEL; the others could still
/// change a terminal or end a line of some readers, and are replaced.
fn shown(text: &str, bytes_max: usize) -> String {
    let is_control = |c: char| c > '\u{1f}' && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
    mask_signatures_in(cut(text, bytes_max)).replace(is_control, "\u{fffd}")
}

/// The beginning of a text.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

const METHOD_BYTES_MAX: usize = 16;
const RESOURCE_BYTES_MAX: usize = 1536;
const TEXT_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_no_keys_and_no_signatures() {
        for (path, service, expected) in [
            ("/people(PartitionKey='secret',RowKey='x')", Service::Table, "/people"),
            ("/people%28PartitionKey=%27secret%27%29", Service::Table, "/people"),
            ("/people%2528PartitionKey=%27secret%27%29", Service::Table, "/people"),
            ("/people%FF%28PartitionKey='secret')", Service::Table, "/people\u{fffd}"),
            ("/people%2(PartitionKey='secret')", Service::Table, "/people"),
            ("/people%3Fsv=2020&sig=secret", Service::Table, "/people"),
            ("/Tables('people')", Service::Table, "/Tables('people')"),
            ("/Tables('people%3Fsig=secret')", Service::Table, "/Tables('people"),
            ("/box/a%20b/c.txt", Service::Blob, "/box/a b/c.txt"),
            ("/box/a%3Fsv=2020&se=2030&sig=secret", Service::Blob, "/box/a"),
            ("/box/a&sig=secret&sv=1", Service::Blob, "/box/a&sig=XXXXX&sv=1"),
            ("/box/a%FF%3Fsv=2020&sig=secret%", Service::Blob, "/box/a\u{fffd}"),
            ("/box/a%253Fsv=2020&Sig%3Dsecret", Service::Blob, "/box/a%3Fsv=2020&Sig=XXXXX"),
            ("/box/a%0A%22b", Service::Blob, "/box/a\n\"b"),
            ("/box/a%7F%C2%9B%E2%80%A8", Service::Blob, "/box/a\u{fffd}\u{fffd}\u{fffd}"),
            ("/queue/messages/id", Service::Queue, "/queue/messages/id"),
            ("/", Service::Table, "/"),
        ] {
            assert_eq!(resource(path, service), expected, "{path}");
        }
    }

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(cut("aü", 2), "a");
        assert_eq!(cut("aü", 3), "aü");
        assert_eq!(text(&"ü".repeat(9000)).len(), TEXT_BYTES_MAX);
        assert_eq!(text("curl sig=secret"), "curl sig=XXXXX");
        let long = format!("/box/{}", "%F0%9F%98%80".repeat(4000));
        let shown = resource(&long, Service::Blob);
        assert!(shown.len() <= RESOURCE_BYTES_MAX && shown.starts_with("/box/😀"), "{} bytes", shown.len());
    }
}
