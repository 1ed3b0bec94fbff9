//! Reads the MIME answer to a transaction, whichever service wrote it: they differ in boundaries, line ends, blank
//! lines and the case of headers.

use crate::error::ServiceError;
use crate::pipeline::Reply;
use crate::{ETag, Error, Result};
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The answer to one operation.
#[derive(Debug)]
struct Part<'a> {
    status: u16,
    headers: HeaderMap,
    body: &'a [u8],
}

/// The operation that was refused, if one was, behind a status of success.
pub(super) fn refusal(reply: &Reply) -> Option<ServiceError> {
    let part = parts(reply).into_iter().find(|part| !(200..400).contains(&part.status))?;
    let mut refusal = ServiceError::read(part.status, &part.headers, part.body);
    let id = || reply.headers.get("x-ms-request-id")?.to_str().ok().map(str::to_owned);
    refusal.request_id = refusal.request_id.or_else(id);
    Some(refusal)
}

/// The ETags of a transaction that took place.
pub(super) fn etags(reply: &Reply, operations: usize) -> Result<Vec<Option<ETag>>> {
    let parts = parts(reply);
    if parts.len() != operations {
        return Err(Error::Answer(format!("{operations} operations were answered by {} parts", parts.len())));
    }
    let etag = |part: &Part<'_>| part.headers.get(ETAG)?.to_str().ok().map(ETag::new);
    Ok(parts.iter().map(etag).collect())
}

fn parts(reply: &Reply) -> Vec<Part<'_>> {
    let content_type = reply.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mut boundaries: Vec<Vec<u8>> = content_type.and_then(boundary).into_iter().collect();
    let mut parts = Vec::new();
    let mut rest = &reply.body[..];
    while let Some(line) = take_line(&mut rest) {
        if !is_delimiter(line, &boundaries) {
            // The first delimiter shows itself where the content type does not tell it.
            if !boundaries.is_empty() || !line.starts_with(b"--") {
                continue;
            }
            boundaries.push(line[2..].trim_ascii_end().to_vec());
        }
        let headers = take_headers(&mut rest);
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if let Some(inner) = content_type.and_then(boundary) {
            boundaries.truncate(BOUNDARIES_MAX - 1);
            boundaries.push(inner);
        } else {
            parts.extend(take_answer(&mut rest, &boundaries));
        }
    }
    parts
}

/// The answer to an operation, up to the next delimiter, which is left.
fn take_answer<'a>(rest: &mut &'a [u8], boundaries: &[Vec<u8>]) -> Option<Part<'a>> {
    let content = *rest;
    let mut length = content.len();
    loop {
        let before = rest.len();
        let Some(line) = take_line(rest) else { break };
        if is_delimiter(line, boundaries) {
            length -= before;
            *rest = &content[length..];
            break;
        }
    }
    let mut content = content[..length].trim_ascii_start();
    let mut status = take_line(&mut content)?.strip_prefix(b"HTTP/")?.split(u8::is_ascii_whitespace);
    let status = std::str::from_utf8(status.nth(1)?).ok()?.parse().ok()?;
    let headers = take_headers(&mut content);
    Some(Part { status, headers, body: content.trim_ascii() })
}

/// The next line, without its end.
fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = rest.iter().position(|byte| *byte == b'\n');
    let line = &rest[..end.unwrap_or(rest.len())];
    *rest = end.map_or(&[], |end| &rest[end + 1..]);
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

/// The headers up to the blank line after them. Lines that are not headers are skipped.
fn take_headers(rest: &mut &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    while let Some(line) = take_line(rest) {
        if line.trim_ascii().is_empty() {
            break;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value)
            && headers.len() < HEADERS_MAX
        {
            headers.insert(name, value);
        }
    }
    headers
}

fn is_delimiter(line: &[u8], boundaries: &[Vec<u8>]) -> bool {
    let Some(text) = line.trim_ascii_end().strip_prefix(b"--") else { return false };
    boundaries.iter().any(|boundary| text == boundary || text.strip_suffix(b"--") == Some(boundary))
}

/// The boundary that a content type names.
fn boundary(content_type: &str) -> Option<Vec<u8>> {
    let (media, parameters) = content_type.split_once(';')?;
    if !media.trim().to_ascii_lowercase().starts_with("multipart/") {
        return None;
    }
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then(|| value.as_bytes().to_vec())
    })
}

/// More boundaries than there are levels.
const BOUNDARIES_MAX: usize = 4;

/// More headers than any service sends.
const HEADERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_wire::table::batch_response::BatchResponse;
    use proptest::prelude::*;

    fn reply(content_type: Option<&str>, body: impl Into<bytes::Bytes>) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-request-id", HeaderValue::from_static("outer"));
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).expect("a value"));
        }
        Reply { status: 202, headers, body: body.into(), after_ambiguous: false }
    }

    const AZURE: &str = "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nCache-Control: no-cache\r\nETag: W/\"a\"\r\n\r\n\r\n--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nDataServiceVersion: 1.0;\r\n\r\n\r\n--changesetresponse_2--\r\n--batchresponse_1--\r\n";

    #[test]
    fn c5_answers_are_read_in_every_spelling() {
        let outer = Some("multipart/mixed; boundary=batchresponse_1");
        let expected = vec![Some(ETag::new("W/\"a\"")), None];
        let lower = AZURE.replace("ETag", "etag").replace("Content-Type", "content-type");
        let quoted = AZURE.replace("=changesetresponse_2", "=\"changesetresponse_2\"");
        let azurite = AZURE.replace("--changesetresponse_2--\r\n--batch", "--changesetresponse_2--\r\n\r\n--batch");
        let cut = AZURE.trim_end_matches("--batchresponse_1--\r\n");
        for body in [AZURE, &AZURE.replace("\r\n", "\n"), &lower, &quoted, &azurite, cut] {
            for content_type in [outer, Some("multipart/mixed;boundary=\"batchresponse_1\""), None] {
                let reply = reply(content_type, body.to_owned());
                assert_eq!(refusal(&reply), None);
                assert_eq!(etags(&reply, 2).expect("two parts"), expected, "{content_type:?} {body}");
            }
        }
        assert!(etags(&reply(outer, AZURE), 3).is_err(), "an operation without an answer");
    }

    #[test]
    fn c5_a_refused_operation_is_found_behind_a_success() {
        let error = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"2:The specified entity already exists."}}}"#;
        let mut response = BatchResponse::changeset("1", "2");
        response.part(409, [("Content-Type", "application/json")], error.as_bytes());
        let reply = reply(Some(&response.content_type()), response.finish());
        let refusal = refusal(&reply).expect("a refusal").with_operation();
        assert_eq!((refusal.status, refusal.operation), (409, Some(2)));
        assert_eq!((refusal.code.as_str(), refusal.request_id.as_deref()), ("EntityAlreadyExists", Some("outer")));
    }

    proptest! {
        #[test]
        fn c5_what_the_server_writes_is_read(etags in prop::collection::vec(prop::option::of("[!-~]{1,30}"), 1..20)) {
            let mut response = BatchResponse::changeset("1", "2");
            for etag in &etags {
                response.part(204, etag.iter().map(|etag| ("ETag", etag.as_str())), b"");
            }
            let reply = reply(Some(&response.content_type()), response.finish());
            prop_assert_eq!(refusal(&reply), None);
            let expected: Vec<_> = etags.iter().map(|etag| etag.as_deref().map(ETag::new)).collect();
            prop_assert_eq!(super::etags(&reply, etags.len()).expect("as many"), expected);
        }

        #[test]
        fn any_answer_is_read_or_refused(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "--b", "--c", "--", "\r\n", "\n", "Content-Type: multipart/mixed; boundary=c", "HTTP/1.1 204", "HTTP/1.1 409 No",
                "ETag: x", ":", " ", "{}", "é",
            ]), 0..40),
            bytes: Vec<u8>,
            with_type: bool,
        ) {
            for body in [pieces.concat().into_bytes(), bytes] {
                let reply = reply(with_type.then_some("multipart/mixed; boundary=b"), body);
                let _ = (refusal(&reply), etags(&reply, 1));
            }
        }
    }
}
