//! The pieces of a request's head that matter, borrowed from it.

use crate::handler::Peer;
use crate::spelling::Spellings;
use hyper::header::{HOST, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use larimar_model::{Timestamp, limits};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::signature::SignedRequest;
use larimar_wire::table::Headers;
use larimar_wire::uri::{is_unreserved, query_pairs};

/// A request without its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    /// The path as it was sent, still escaped.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) host: Option<&'a str>,
    /// The host of an absolute target.
    authority: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) accept: Option<&'a str>,
    pub(crate) content_length: Option<u64>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) version_header: Option<&'a str>,
    pub(crate) client_request_id: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    spellings: Option<&'a Spellings>,
    pub(crate) peer: Peer,
    pub(crate) now: Timestamp,
}

impl<'a> Head<'a> {
    pub(crate) fn new(parts: &'a Parts, peer: Peer, now: Timestamp) -> Self {
        let text = |name: &str| text(&parts.headers, name);
        Self {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or(""),
            host: text("host").or_else(|| parts.uri.authority().map(|authority| authority.as_str())),
            authority: parts.uri.authority().map(|authority| authority.as_str()),
            authorization: text("authorization"),
            accept: text("accept"),
            content_length: text("content-length").and_then(|length| length.parse().ok()),
            content_type: text("content-type"),
            version_header: text("x-ms-version"),
            client_request_id: text("x-ms-client-request-id").filter(|id| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX),
            headers: &parts.headers,
            spellings: parts.extensions.get(),
            peer,
            now,
        }
    }

    /// The value of a header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        text(self.headers, name)
    }

    /// All headers that are text. Names of metadata are as the client spelt them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let spellings = self.spellings;
        let spell = move |name: &'a str| spellings.map_or(name, |spellings| spellings.spell(name));
        self.headers.iter().filter_map(move |(name, value)| Some((spell(name.as_str()), value.to_str().ok()?)))
    }

    /// The first meaningful header that is not text. To ignore it would do something else than the client asked for: a
    /// write without its condition, a blob without its metadata.
    pub(crate) fn unreadable(&self) -> Option<&'a str> {
        let matters = |name: &str| MEANINGFUL.iter().any(|start| name.starts_with(start));
        let unreadable = self.headers.iter().filter(|(_, value)| value.to_str().is_err());
        unreadable.map(|(name, _)| name.as_str()).find(|name| matters(name))
    }

    /// The host that the client addresses. It becomes part of links in answers, so it is bounded, and two hosts are none.
    pub(crate) fn checked_host(&self) -> Result<&'a str, ErrorReply> {
        let host = self.host.filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| ErrorReply::new(ErrorCode::HostInformationNotPresent))?;
        let is_single = self.headers.get_all(HOST).iter().nth(1).is_none();
        // A proxy may have looked at the other one.
        let is_same = self.authority.is_none_or(|authority| is_same_host(authority, host));
        if !is_single || !is_same || host.len() > limits::HOST_BYTES_MAX || !host.bytes().all(is_host_byte) {
            return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "Host", host));
        }
        Ok(host)
    }

    /// The first header that means one thing only and is there more than once. To take either would be a guess, and a
    /// signature covers only one of them.
    pub(crate) fn repeated(&self) -> Option<&'a str> {
        if self.headers.len() == self.headers.keys_len() {
            return None;
        }
        let repeated = self.headers.keys().filter(|name| self.headers.get_all(*name).iter().nth(1).is_some());
        repeated.map(HeaderName::as_str).find(|name| is_single(name))
    }

    /// What the query asks for, for the log: the operation's parameters, and names of options. Nothing that could be secret.
    pub(crate) fn outline(&self) -> String {
        let mut outline = String::new();
        for pair in query_pairs(self.query).flatten().take(OUTLINE_PARAMETERS_MAX) {
            let is_option = pair.name.starts_with('$');
            let value = match &*pair.name {
                "comp" | "restype" => pair.raw_value,
                _ if is_option => "",
                _ => continue,
            };
            if !outline.is_empty() {
                outline.push('&');
            }
            outline.extend(pair.name.chars().take(OUTLINE_CHARS_MAX));
            if !is_option {
                outline.push('=');
                outline.extend(value.chars().take(OUTLINE_CHARS_MAX));
            }
        }
        if outline.is_empty() { "unknown".to_owned() } else { outline }
    }

    /// The version to run the request as: the header's, else `api-version`, else the signature's.
    pub(crate) fn version(&self) -> Option<&'a str> {
        self.version_header.or_else(|| self.raw_parameter("api-version")).or_else(|| self.raw_parameter("sv"))
    }

    /// What of the request a signature covers.
    pub(crate) fn signed(&self) -> SignedRequest<'a> {
        SignedRequest {
            method: self.method,
            path: self.path,
            comp: self.raw_parameter("comp"),
            content_md5: self.header("content-md5"),
            content_type: self.content_type,
            x_ms_date: self.header("x-ms-date"),
            date: self.header("date"),
        }
    }

    /// What of the headers the meaning of a table request depends on.
    pub(crate) fn table_headers(&self) -> Headers<'a> {
        let tunnelled = HeaderName::from_static("x-http-method");
        Headers {
            accept: self.accept,
            content_type: self.content_type,
            if_match: self.header("if-match"),
            if_none_match: self.header("if-none-match"),
            prefer: self.header("prefer"),
            version: self.version(),
            method_override: self
                .header("x-http-method")
                .map(|method| (method, self.headers.get_all(&tunnelled).iter().count())),
        }
    }

    /// The URL of the account, as the client spells it.
    pub(crate) fn base(&self, host: &str, prefix: Option<&str>) -> String {
        let scheme = if self.peer.is_tls { "https" } else { "http" };
        match prefix {
            Some(prefix) => format!("{scheme}://{host}/{prefix}"),
            None => format!("{scheme}://{host}"),
        }
    }

    /// A parameter of the query, as it was sent.
    pub(crate) fn raw_parameter(&self, name: &str) -> Option<&'a str> {
        if self.query.is_empty() {
            return None;
        }
        query_pairs(self.query).flatten().find(|pair| pair.name == name).map(|pair| pair.raw_value)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a header may be there once only. Metadata has a code of its own for names that are there twice.
fn is_single(name: &str) -> bool {
    SINGLE.contains(&name) || name.starts_with("x-ms-") && !name.starts_with("x-ms-meta-")
}

/// Whether two hosts are the same, with or without the port that HTTP has by itself.
fn is_same_host(one: &str, other: &str) -> bool {
    let without_port = |host| ["80", "443"].iter().find_map(|port| strip_port(host, port)).unwrap_or(host);
    one.eq_ignore_ascii_case(other) || without_port(one).eq_ignore_ascii_case(without_port(other))
}

fn strip_port<'a>(host: &'a str, port: &str) -> Option<&'a str> {
    host.strip_suffix(port)?.strip_suffix(':')
}

/// Whether RFC 3986 lets a byte be part of a host with a port.
const fn is_host_byte(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'%' | b':' | b'[' | b']' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
}

/// Headers of HTTP that have one value.
const SINGLE: [&str; 12] = [
    "authorization",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "origin",
    "range",
];

/// How the names of headers begin that requests are understood by.
const MEANINGFUL: [&str; 5] = ["x-ms-", "if-", "content-", "range", "cache-control"];

/// Parameters, and characters of each, that a line of the log shows.
const OUTLINE_PARAMETERS_MAX: usize = 16;
const OUTLINE_CHARS_MAX: usize = 32;

/// The service's reference, "x-ms-client-request-id".
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn headers_that_matter_and_are_no_text_are_found() {
        let unreadable = HeaderValue::from_bytes(b"\xfc").expect("bytes");
        for (name, expected) in [
            ("if-match", Some("if-match")),
            ("x-ms-meta-a", Some("x-ms-meta-a")),
            ("range", Some("range")),
            ("user-agent", None),
            ("cookie", None),
        ] {
            let request = hyper::Request::get("/").header(name, &unreadable).header("x-ms-date", "now").body(());
            let (parts, ()) = request.expect("a request").into_parts();
            let peer = Peer { address: std::net::SocketAddr::from(([127, 0, 0, 1], 1)), is_tls: false };
            assert_eq!(Head::new(&parts, peer, Timestamp::EDM_MIN).unreadable(), expected, "{name}");
        }
    }

    #[test]
    fn the_outline_of_a_request_has_no_values_but_the_operation_s() {
        let outline = |target: &str| {
            let (parts, ()) = hyper::Request::get(target).body(()).expect("a request").into_parts();
            let peer = Peer { address: std::net::SocketAddr::from(([127, 0, 0, 1], 1)), is_tls: false };
            Head::new(&parts, peer, Timestamp::EDM_MIN).outline()
        };
        assert_eq!(
            outline("/c/b?comp=undelete&sig=secret&se=2020&restype=container"),
            "comp=undelete&restype=container"
        );
        assert_eq!(outline("/T()?$orderby=Name&%24skip=1&x=y"), "$orderby&$skip");
        assert_eq!(outline("/c"), "unknown");
        assert!(outline(&format!("/?comp={}&{}", "x".repeat(5000), "$a&".repeat(100))).len() < 200);
    }
}
