//! The spelling of the names of metadata: clients send `x-ms-meta-Color` and expect it back with its capital.
//!
//! hyper writes and compares header names in lower case. With `preserve_header_case` it keeps how a request spelt them, in
//! an extension of a private type, and spells the headers of a response so if the response has the extension. The type
//! can neither be read nor made, so hyper itself does both here, over a connection in memory: to read spellings it writes
//! a response with the request's extension, and to make them it reads a request that has these names. Only requests with
//! metadata, and answers whose metadata has capitals, pay for it.

use crate::reply::ResponseBody;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::Extensions;
use hyper::http::request::Parts;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// How the names of metadata begin.
pub(crate) const METADATA_PREFIX: &str = "x-ms-meta-";

/// The names of a request's metadata as the client spelt them, by their names in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spellings(HashMap<String, String>);

impl Spellings {
    /// The spellings of the metadata of a request; none if it has no metadata.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let names: Vec<_> = parts.headers.keys().filter(|name| name.as_str().starts_with(METADATA_PREFIX)).collect();
        if names.is_empty() {
            return None;
        }
        let mut response = Response::new(ResponseBody::whole(Vec::new()));
        for name in names {
            response.headers_mut().insert(name, HeaderValue::from_static(""));
        }
        *response.extensions_mut() = parts.extensions.clone();
        let response = Cell::new(Some(response));
        let answer = |_| response.take().unwrap_or_else(|| Response::new(ResponseBody::whole(Vec::new())));
        let written = converse("GET / HTTP/1.1\r\n\r\n", 1, answer);
        let lines = written.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let spelled = lines.filter_map(|line| line.split_once(':')).map(|(name, _)| name);
        let pairs = spelled.map(|name| (name.to_ascii_lowercase(), name.to_owned()));
        Some(Self(pairs.filter(|(name, _)| name.starts_with(METADATA_PREFIX)).collect()))
    }

    /// A name as the client spelt it.
    pub(crate) fn spell<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }
}

/// The extension that makes hyper spell the headers of a response like these names.
pub(crate) fn extension(names: &[String]) -> Extensions {
    let mut head = String::from("GET / HTTP/1.1\r\n");
    for name in names.iter().filter(|name| HeaderName::from_bytes(name.as_bytes()).is_ok()) {
        head.push_str(name);
        head.push_str(":\r\n");
    }
    head.push_str("\r\n");
    let found = RefCell::new(Extensions::new());
    converse(&head, names.len(), |request| {
        found.replace(request.into_parts().0.extensions);
        Response::new(ResponseBody::whole(Vec::new()))
    });
    found.into_inner()
}

/// Lets hyper read a request of so many headers, and returns how it writes the answer.
fn converse(request: &str, headers: usize, answer: impl Fn(Request<Incoming>) -> Response<ResponseBody>) -> Vec<u8> {
    let mut memory = MemoryConnection { unread: request.as_bytes(), written: Vec::new() };
    let mut http = http1::Builder::new();
    // The request is all there is to read, and its end is not that of the connection.
    http.half_close(true);
    http.preserve_header_case(true).keep_alive(false).header_read_timeout(None).auto_date_header(false);
    http.max_headers(headers.max(1)).max_buf_size(request.len().max(BUFFER_BYTES_MIN));
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(request))));
    {
        let mut connection = pin!(http.serve_connection(&mut memory, service));
        let mut context = Context::from_waker(Waker::noop());
        // Memory never blocks; hyper only yields in between.
        for _ in 0..POLLS_MAX {
            if connection.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
    }
    memory.written
}

/// A connection in memory: has the whole request to read, and keeps what is written.
struct MemoryConnection<'a> {
    unread: &'a [u8],
    written: Vec<u8>,
}

impl Read for MemoryConnection<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let (now, later) = self.unread.split_at(buffer.remaining().min(self.unread.len()));
        buffer.put_slice(now);
        self.unread = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for MemoryConnection<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Far more than a conversation in memory takes.
const POLLS_MAX: usize = 1_000;

/// The least that hyper takes for a buffer.
const BUFFER_BYTES_MIN: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(names: &[&str]) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.extensions = extension(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        for name in names {
            parts
                .headers
                .append(HeaderName::from_bytes(name.as_bytes()).expect("a name"), HeaderValue::from_static(""));
        }
        parts
    }

    #[test]
    fn spellings_are_read_as_they_were_made() {
        let spellings = Spellings::of(&parts(&["x-ms-meta-Hello", "X-MS-META-UPPER", "x-ms-date"])).expect("metadata");
        assert_eq!(spellings.spell("x-ms-meta-hello"), "x-ms-meta-Hello");
        assert_eq!(spellings.spell("x-ms-meta-upper"), "X-MS-META-UPPER");
        assert_eq!(spellings.spell("x-ms-meta-other"), "x-ms-meta-other");
    }

    #[test]
    fn requests_without_metadata_have_none() {
        assert!(Spellings::of(&parts(&["X-Ms-Date"])).is_none());
    }

    #[test]
    fn as_many_names_as_metadata_may_have_keep_their_spelling() {
        let names: Vec<_> = (0..3_100).map(|number| format!("x-ms-meta-N{number:x}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let spellings = Spellings::of(&parts(&names)).expect("metadata");
        assert!(names.iter().all(|name| spellings.spell(&name.to_ascii_lowercase()) == *name));
    }
}
