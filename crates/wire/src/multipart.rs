//! MIME bodies of several parts, as batches are sent.
//!
//! Clients differ in line ends, blank lines, boundaries and what they leave out at the end, so the parser
//! takes lines, not bytes: `\n` with or without `\r` before it, and any number of blank lines before content.

use crate::request_head::RequestHead;
use larimar_model::limits;
use memchr::memmem;

/// Whether a content type is `multipart/mixed`.
pub(crate) fn is_multipart(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or("").trim();
    media.eq_ignore_ascii_case("multipart/mixed")
}

/// The boundary of a `multipart/mixed` content type.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    if !is_multipart(content_type) {
        return None;
    }
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then_some(value)
    })
}

/// The parts between the delimiter lines, and whether a closing delimiter ends them. Without one the last part reaches to
/// the end of the text, which may have been cut off.
pub(crate) fn split<'a>(text: &'a str, boundary: &str) -> (Vec<&'a str>, bool) {
    let mut parts = Vec::new();
    let mut start = None;
    let mut is_closed = false;
    let dashed = format!("--{boundary}");
    for at in memmem::find_iter(text.as_bytes(), &dashed) {
        if at > 0 && text.as_bytes()[at - 1] != b'\n' {
            continue;
        }
        let line = text[at..].split_inclusive('\n').next().unwrap_or_default();
        if let Some(is_last) = delimiter(line, boundary) {
            parts.extend(start.map(|start| &text[start..at]));
            start = (!is_last).then_some(at + line.len());
            if is_last {
                is_closed = true;
                break;
            }
        }
    }
    parts.extend(start.map(|start| &text[start..]).filter(|rest| !rest.trim().is_empty()));
    (parts, is_closed)
}

/// The parts between the delimiter lines, the last of which has to be a closing one.
pub(crate) fn split_closed<'a>(text: &'a str, boundary: &str) -> Option<Vec<&'a str>> {
    let (parts, is_closed) = split(text, boundary);
    is_closed.then_some(parts)
}

/// Whether a line is a delimiter, and then whether it is the last one.
fn delimiter(line: &str, boundary: &str) -> Option<bool> {
    let rest = line.trim_end().strip_prefix("--")?.strip_prefix(boundary)?;
    match rest {
        "" => Some(false),
        "--" => Some(true),
        _ => None,
    }
}

/// A MIME part: its headers that matter, and what it contains.
pub(crate) struct MimePart<'a> {
    /// `Content-Type`.
    pub(crate) content_type: Option<&'a str>,
    /// `Content-ID`.
    pub(crate) content_id: Option<&'a str>,
    /// What follows the headers.
    pub(crate) content: &'a str,
}

impl<'a> MimePart<'a> {
    pub(crate) fn parse(part: &'a str) -> Self {
        let (mut content_type, mut content_id) = (None, None);
        let mut lines = Lines { rest: skip_blank_lines(part) };
        while let Some((name, value)) = lines.header() {
            if name.eq_ignore_ascii_case("content-type") {
                content_type = Some(value);
            } else if name.eq_ignore_ascii_case("content-id") {
                content_id = Some(value);
            }
        }
        Self { content_type, content_id, content: lines.rest }
    }
}

/// Authority, path and query of a URL; a relative one has no authority.
fn split_url(url: &str) -> (Option<&str>, &str, &str) {
    // What follows a question mark may hold another URL.
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    match before.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(authority), path, query)
        }
        _ => (None, before, query),
    }
}

/// What a batch is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchOf {
    /// Of entities: the version of HTTP may be missing, and of headers that are sent twice the last one counts.
    Entities,
    /// Of blobs: as for a request by itself, neither is allowed.
    Blobs,
}

/// The head of a request inside a batch, and what follows it. `None` if it is malformed, has too many headers, or is
/// larger than the head of a request by itself, as it would cost more.
pub(crate) fn parse_request(content: &str, batch: BatchOf) -> Option<(RequestHead<'_>, &str)> {
    let content = skip_blank_lines(content);
    let mut lines = Lines { rest: content };
    let mut words = lines.line()?.split_ascii_whitespace();
    let (method, url) = (words.next()?, words.next()?);
    let is_version = words.next().map_or(batch == BatchOf::Entities, |version| version.starts_with("HTTP/"));
    if !is_version || words.next().is_some() {
        return None;
    }
    let mut headers = Vec::new();
    while let Some(header) = lines.header() {
        if headers.len() == HEADERS_MAX {
            return None;
        }
        headers.push(header);
    }
    if content.len() - lines.rest.len() > limits::HEAD_BYTES_MAX {
        return None;
    }
    if batch == BatchOf::Entities {
        headers.reverse();
    }
    let (authority, path, query) = split_url(url);
    Some((RequestHead::new(method, path, query, headers).with_authority(authority), lines.rest))
}

/// Headers of one request inside a batch, far more than clients send.
const HEADERS_MAX: usize = 64;

/// The lines of a part, one after the other.
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Lines<'a> {
    fn line(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// The next header; `None` after the blank line that ends them.
    fn header(&mut self) -> Option<(&'a str, &'a str)> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return None;
            }
            if let Some((name, value)) = line.split_once(':') {
                return Some((name.trim(), value.trim()));
            }
        }
    }
}

fn skip_blank_lines(text: &str) -> &str {
    text.trim_start_matches(['\r', '\n'])
}

/// The reason phrase of the statuses that an operation can have.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The parts line by line, as [`split`] finds them by searching.
    fn split_by_lines<'a>(text: &'a str, boundary: &str) -> Vec<&'a str> {
        let (mut parts, mut start, mut at) = (Vec::new(), None, 0);
        for line in text.split_inclusive('\n') {
            if let Some(is_last) = delimiter(line, boundary) {
                parts.extend(start.map(|start| &text[start..at]));
                start = (!is_last).then_some(at + line.len());
                if is_last {
                    break;
                }
            }
            at += line.len();
        }
        parts.extend(start.map(|start| &text[start..]).filter(|rest| !rest.trim().is_empty()));
        parts
    }

    proptest! {
        #[test]
        fn parts_lie_between_the_lines_that_delimit_them(text in "[-ab \r\n]{0,60}", boundary in "[-ab]{1,4}") {
            prop_assert_eq!(split(&text, &boundary).0, split_by_lines(&text, &boundary));
        }
    }
}
