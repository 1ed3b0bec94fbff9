//! Blob Batch: several deletions or changes of tier in one body, each with its own headers and its own response.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::multipart::{self, BatchOf, MimePart, parse_request, reason, split_closed};
use crate::request_head::RequestHead;
use std::fmt::Display;
use std::io::Write as _;

/// Bytes of a batch (service: blob batch).
pub const BATCH_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Requests of one batch (service: blob batch).
pub const BATCH_REQUESTS_MAX: usize = 256;

/// One request inside a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubRequest<'a> {
    /// Its head. Proxies change the authority of the URL.
    pub head: RequestHead<'a>,
    /// `Content-ID` of its part, which the response repeats.
    pub content_id: Option<&'a str>,
}

/// Parses a batch.
///
/// # Errors
/// `InvalidInput` for a body that is not a batch of this boundary, lacks its closing delimiter, or holds something other
/// than requests. `ExceedsMaxBatchRequestCount` for too many requests.
pub fn parse<'a>(content_type: &str, body: &'a [u8]) -> Result<Vec<SubRequest<'a>>, ErrorReply> {
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let boundary = multipart::boundary(content_type).ok_or_else(malformed)?;
    // A body that was cut off must not be executed in part.
    let parts = split_closed(text, boundary).ok_or_else(malformed)?;
    if parts.is_empty() {
        return Err(malformed());
    }
    if parts.len() > BATCH_REQUESTS_MAX {
        return Err(ErrorReply::new(ErrorCode::ExceedsMaxBatchRequestCount));
    }
    parts.into_iter().map(|part| SubRequest::parse(part).ok_or_else(malformed)).collect()
}

impl<'a> SubRequest<'a> {
    fn parse(part: &'a str) -> Option<Self> {
        let part = MimePart::parse(part);
        let media = part.content_type?.split(';').next()?.trim();
        if !media.eq_ignore_ascii_case("application/http") {
            return None;
        }
        let (head, _) = parse_request(part.content, BatchOf::Blobs)?;
        Some(Self { head, content_id: part.content_id })
    }

    /// Whether its URL could be that of a request by itself, for which HTTP refuses these characters.
    #[must_use]
    pub fn has_valid_url(&self) -> bool {
        let is_refused = |byte: u8| byte.is_ascii_control() || matches!(byte, b'#' | b'<' | b'>' | b'`');
        let RequestHead { path, query, .. } = self.head;
        path.starts_with('/') && !path.bytes().chain(query.bytes()).any(is_refused)
    }
}

fn malformed() -> ErrorReply {
    ErrorReply::new(ErrorCode::InvalidInput)
}

/// The response to a batch, built part by part.
#[derive(Clone, Debug)]
pub struct BatchAnswer {
    out: Vec<u8>,
    boundary: String,
}

impl BatchAnswer {
    /// An empty response; `id` is part of its boundary.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { out: Vec::with_capacity(1024), boundary: format!("batchresponse_{id}") }
    }

    /// The `Content-Type` of the response.
    #[must_use]
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Adds the response to one request.
    pub fn part<'a>(
        &mut self,
        content_id: Option<&str>,
        (status, phrase): (u16, Option<&str>),
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: &[u8],
    ) {
        self.line(format_args!("--{}", self.boundary.clone()));
        self.line("Content-Type: application/http");
        if let Some(id) = content_id {
            self.line(format_args!("Content-ID: {id}"));
        }
        self.line("");
        self.line(format_args!("HTTP/1.1 {status} {}", phrase.unwrap_or(reason(status))));
        for (name, value) in headers {
            self.line(format_args!("{name}: {value}"));
        }
        if !body.is_empty() {
            self.line(format_args!("Content-Length: {}", body.len()));
        }
        self.line("");
        // The service sends one empty line before the next boundary; clients read a second one as a body.
        if !body.is_empty() {
            self.out.extend_from_slice(body);
            self.line("");
        }
    }

    /// The body of the response.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.line(format_args!("--{}--", self.boundary.clone()));
        self.out
    }

    fn line(&mut self, text: impl Display) {
        write!(self.out, "{text}\r\n").expect("a vector takes all bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPE: &str = "multipart/mixed; boundary=batch_357de4f7-6d0b-4e02-8cd2-6361411a9525";
    /// The example of the service's reference.
    const BODY: &str = "--batch_357de4f7-6d0b-4e02-8cd2-6361411a9525\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\nDELETE /container0/blob0 HTTP/1.1\r\nx-ms-date: Thu, 14 Jun 2018 16:46:54 GMT\r\nAuthorization: SharedKey account:G4jjBXA7LI/RnWKIOQ8i9xH4p76pAQ+4Fs4R1VxasaE=\r\nContent-Length: 0\r\n\r\n--batch_357de4f7-6d0b-4e02-8cd2-6361411a9525\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 1\r\n\r\nPUT http://h:1/container1/blob1?comp=tier HTTP/1.1\r\nx-ms-access-tier: Cool\r\n\r\n--batch_357de4f7-6d0b-4e02-8cd2-6361411a9525--\r\n";

    #[test]
    fn x2_batches_are_read() {
        for body in [BODY.to_owned(), BODY.replace("\r\n", "\n"), BODY.replace("--\r\n", "--")] {
            let requests = parse(TYPE, body.as_bytes()).expect("a batch");
            let seen: Vec<_> = requests
                .iter()
                .map(|SubRequest { head, content_id }| (head.method, head.path, head.query, *content_id))
                .collect();
            assert_eq!(
                seen,
                [("DELETE", "/container0/blob0", "", Some("0")), ("PUT", "/container1/blob1", "comp=tier", Some("1"))]
            );
            assert_eq!(requests[0].head.headers().count(), 3);
            assert!(requests[1].head.headers().eq([("x-ms-access-tier", "Cool")]));
        }
    }

    #[test]
    fn other_bodies_are_refused() {
        let part = "--b\r\nContent-Type: application/http\r\n\r\nDELETE /c/b HTTP/1.1\r\n\r\n";
        let of = |count: usize| format!("{}--b--\r\n", part.repeat(count));
        assert_eq!(parse("multipart/mixed; boundary=b", of(256).as_bytes()).map(|list| list.len()), Ok(256));
        let many_headers = format!(
            "--b\r\nContent-Type: application/http\r\n\r\nDELETE /c/b HTTP/1.1\r\n{}\r\n--b--",
            "a: b\r\n".repeat(65)
        );
        for (content_type, body) in [
            ("multipart/mixed; boundary=b", of(0)),
            ("multipart/mixed; boundary=b", String::new()),
            ("multipart/mixed", of(1)),
            ("application/http; boundary=b", of(1)),
            ("multipart/mixed; boundary=b", of(1).replace("application/http", "text/plain")),
            ("multipart/mixed; boundary=b", of(1).replace("DELETE /c/b HTTP/1.1", "DELETE /c/b")),
            ("multipart/mixed; boundary=b", of(1).replace("HTTP/1.1", "HTTP/1.1 x")),
            ("multipart/mixed; boundary=b", many_headers),
        ] {
            let code = parse(content_type, body.as_bytes()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::InvalidInput), "{content_type} {body:.200}");
        }
        assert!(parse(TYPE, b"\xff").is_err());
        for (url, is_valid) in
            [("/c/b?comp=tier", true), ("http://h/c/é", true), ("c/b", false), ("/c/b#x", false), ("/c?<", false)]
        {
            let body = of(1).replace("/c/b", url);
            let parts = parse("multipart/mixed; boundary=b", body.as_bytes()).expect("a batch");
            assert_eq!(parts[0].has_valid_url(), is_valid, "{url}");
        }
        let many = of(257);
        let refused = parse("multipart/mixed; boundary=b", many.as_bytes()).map_err(|error| error.code);
        assert_eq!(refused, Err(ErrorCode::ExceedsMaxBatchRequestCount));
    }

    #[test]
    fn answers_are_those_of_the_reference() {
        let mut answer = BatchAnswer::new("66925647");
        assert_eq!(answer.content_type(), "multipart/mixed; boundary=batchresponse_66925647");
        answer.part(Some("0"), (202, None), [("x-ms-delete-type-permanent", "true")], b"");
        answer.part(
            Some("1"),
            (404, Some("The specified blob does not exist.")),
            [("x-ms-error-code", "BlobNotFound")],
            b"<Error />",
        );
        answer.part(None, (202, None), [], b"");
        assert_eq!(
            String::from_utf8(answer.finish()).expect("UTF-8"),
            "--batchresponse_66925647\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\n\r\n--batchresponse_66925647\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nHTTP/1.1 404 The specified blob does not exist.\r\nx-ms-error-code: BlobNotFound\r\nContent-Length: 9\r\n\r\n<Error />\r\n--batchresponse_66925647\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n--batchresponse_66925647--\r\n"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(paths in proptest::collection::vec("/[!-~&&[^?#]]{1,20}", 1..20), value in "[!-~]{0,20}") {
            let mut body = String::new();
            for (index, path) in paths.iter().enumerate() {
                body.push_str(&format!("--b\r\nContent-Type: application/http\r\nContent-ID: {index}\r\n\r\nDELETE {path}?a=b HTTP/1.1\r\nh: {value}\r\n\r\n"));
            }
            body.push_str("--b--\r\n");
            let requests = parse("multipart/mixed; boundary=\"b\"", body.as_bytes()).expect("a batch");
            prop_assert_eq!(requests.len(), paths.len());
            for (request, path) in requests.iter().zip(&paths) {
                // A path that looks like a URL has its authority dropped.
                prop_assert!(request.head.path == path || path.contains("://"));
                prop_assert!(request.head.headers().eq([("h", &*value)]));
            }
        }

        #[test]
        fn any_body_is_read_or_refused(body in "(--b|--|\r\n|\n|Content-Type: application/http|DELETE / HTTP/1.1|a: b|é){0,24}") {
            let _ = parse("multipart/mixed; boundary=b", body.as_bytes());
        }
    }
}
