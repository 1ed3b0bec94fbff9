//! The MIME body of `$batch` becomes its requests.
//!
//! Clients differ in line ends, blank lines, boundaries and what they leave out at the end, so the parser
//! takes lines, not bytes: `\n` with or without `\r` before it, and any number of blank lines before content.

use super::request::Headers;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use memchr::memmem;

/// What a batch holds.
#[derive(Clone, Debug)]
pub enum Batch<'a> {
    /// The operations of a transaction.
    Changeset(Vec<Part<'a>>),
    /// One query.
    Query(Part<'a>),
}

/// One request inside a batch.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The method.
    pub method: &'a str,
    /// The path of its URL; the authority is dropped, since proxies change it.
    pub path: &'a str,
    /// The query of its URL.
    pub query: &'a str,
    /// Its headers.
    pub headers: Headers<'a>,
    /// `Content-ID` among its own headers, which is echoed.
    pub content_id: Option<&'a str>,
    /// Its body.
    pub body: &'a str,
}

/// Reads a batch.
///
/// # Errors
/// `InvalidInput` for what is no batch, and for more than one changeset or query.
pub fn parse<'a>(content_type: &str, body: &'a [u8]) -> Result<Batch<'a>, ErrorReply> {
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let boundary = boundary(content_type).ok_or_else(malformed)?;
    let mut parts = split(text, boundary).into_iter();
    let (Some(part), None) = (parts.next(), parts.next()) else { return Err(malformed()) };
    let part = MimePart::parse(part);
    let content_type = part.content_type.unwrap_or("");
    if !is_multipart(content_type) {
        let query = Part::parse(part.content).ok_or_else(malformed)?;
        return if query.method == "GET" { Ok(Batch::Query(query)) } else { Err(malformed()) };
    }
    let inner = self::boundary(content_type).ok_or_else(malformed)?;
    let operations: Vec<Part<'a>> = split(part.content, inner)
        .into_iter()
        .map(|part| Part::parse(MimePart::parse(part).content).ok_or_else(malformed))
        .collect::<Result<_, _>>()?;
    if operations.is_empty() || operations.iter().any(|part| part.method == "GET") {
        return Err(malformed());
    }
    Ok(Batch::Changeset(operations))
}

fn malformed() -> ErrorReply {
    ErrorReply::new(ErrorCode::InvalidInput)
}

fn is_multipart(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or("").trim();
    media.eq_ignore_ascii_case("multipart/mixed")
}

/// The boundary of a `multipart/mixed` content type.
fn boundary(content_type: &str) -> Option<&str> {
    if !is_multipart(content_type) {
        return None;
    }
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then_some(value)
    })
}

/// The parts between the delimiter lines. A missing last delimiter ends the last part at the end.
fn split<'a>(text: &'a str, boundary: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut start = None;
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
                break;
            }
        }
    }
    parts.extend(start.map(|start| &text[start..]).filter(|rest| !rest.trim().is_empty()));
    parts
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

/// A MIME part: its one header that matters, and what it contains.
struct MimePart<'a> {
    content_type: Option<&'a str>,
    content: &'a str,
}

impl<'a> MimePart<'a> {
    fn parse(part: &'a str) -> Self {
        let mut content_type = None;
        let mut lines = Lines { rest: skip_blank_lines(part) };
        while let Some((name, value)) = lines.header() {
            if name.eq_ignore_ascii_case("content-type") {
                content_type = Some(value);
            }
        }
        Self { content_type, content: lines.rest }
    }
}

impl<'a> Part<'a> {
    fn parse(content: &'a str) -> Option<Self> {
        let mut lines = Lines { rest: skip_blank_lines(content) };
        let mut words = lines.line()?.split_ascii_whitespace();
        let (method, url) = (words.next()?, words.next()?);
        if words.next().is_some_and(|version| !version.starts_with("HTTP/")) || words.next().is_some() {
            return None;
        }
        let mut headers = Headers::default();
        let mut content_id = None;
        while let Some((name, value)) = lines.header() {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("accept") {
                // Old clients ask for Atom here and get JSON; the version is that of the whole batch.
                headers.accept = Some(value).filter(|value| value.contains("json"));
            } else if is("content-type") {
                headers.content_type = Some(value);
            } else if is("if-match") {
                headers.if_match = Some(value);
            } else if is("if-none-match") {
                headers.if_none_match = Some(value);
            } else if is("prefer") {
                headers.prefer = Some(value);
            } else if is("x-http-method") {
                headers.method_override = Some((value, headers.method_override.map_or(1, |(_, count)| count + 1)));
            } else if is("content-id") {
                content_id = Some(value);
            }
        }
        let (path, query) = split_url(url);
        Some(Self { method, path, query, headers, content_id, body: lines.rest.trim() })
    }
}

/// Path and query of a URL, absolute or relative.
fn split_url(url: &str) -> (&str, &str) {
    let local = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None => url,
    };
    local.split_once('?').unwrap_or((local, ""))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PYTHON: &str = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n--changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\nPOST https://acct.table.example.com/T?$format=x HTTP/1.1\r\nx-ms-version: 2019-02-02\r\nPrefer: return-no-content\r\nContent-Type: application/json\r\n\r\n{\"PartitionKey\":\"p\"}\r\n--changeset_2\r\nContent-Type: application/http\r\n\r\nDELETE http://127.0.0.1:10002/devstoreaccount1/T(PartitionKey='003',RowKey='x') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n--changeset_2--\r\n\r\n--batch_1--\r\n";

    fn changeset(content_type: &str, body: &str) -> Vec<(String, String, String)> {
        match parse(content_type, body.as_bytes()) {
            Ok(Batch::Changeset(parts)) => {
                parts.iter().map(|p| (p.method.to_owned(), p.path.to_owned(), p.body.to_owned())).collect()
            }
            other => panic!("expected a changeset, found {other:?}"),
        }
    }

    fn expected() -> Vec<(String, String, String)> {
        [
            ("POST", "/T", "{\"PartitionKey\":\"p\"}"),
            ("DELETE", "/devstoreaccount1/T(PartitionKey='003',RowKey='x')", ""),
        ]
        .map(|(method, path, body)| (method.to_owned(), path.to_owned(), body.to_owned()))
        .to_vec()
    }

    #[test]
    fn m8_the_forms_that_clients_send_are_read() {
        let lf = PYTHON.replace("\r\n", "\n");
        let blank = PYTHON
            .replace("\r\n\r\n--changeset_2\r\n", "\r\n\r\n\r\n--changeset_2\r\n")
            .replace("json\r\n\r\n{", "json\r\n\r\n\r\n{");
        let cut = PYTHON.strip_suffix("\r\n--batch_1--\r\n").expect("its end");
        let open = PYTHON.strip_suffix("--changeset_2--\r\n\r\n--batch_1--\r\n").expect("its end");
        let lower =
            PYTHON.replace("Content-Type: multipart", "content-type: multipart").replace("If-Match", "if-match");
        for body in [PYTHON, &lf, &blank, cut, open, &lower] {
            assert_eq!(changeset("multipart/mixed; boundary=batch_1", body), expected(), "{body}");
        }
        for content_type in [
            "multipart/mixed; boundary=\"batch_1\"",
            "multipart/mixed; charset=\"utf-8\"; boundary=batch_1",
            "Multipart/Mixed;BOUNDARY=batch_1",
        ] {
            assert_eq!(changeset(content_type, PYTHON), expected(), "{content_type}");
        }
    }

    #[test]
    fn headers_of_an_operation_are_its_own() {
        let Ok(Batch::Changeset(parts)) = parse("multipart/mixed; boundary=batch_1", PYTHON.as_bytes()) else {
            panic!("a changeset")
        };
        assert_eq!(
            (parts[0].headers.prefer, parts[0].content_id, parts[0].query),
            (Some("return-no-content"), None, "$format=x")
        );
        assert_eq!((parts[1].headers.if_match, parts[1].headers.prefer), (Some("*"), None));
    }

    #[test]
    fn a_single_query_stands_by_itself() {
        let body = "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/T(PartitionKey='a',RowKey='b') HTTP/1.1\r\nAccept: application/json\r\n\r\n--b--\r\n";
        let Ok(Batch::Query(part)) = parse("multipart/mixed; boundary=b", body.as_bytes()) else { panic!("a query") };
        assert_eq!(
            (part.method, part.path, part.headers.accept),
            ("GET", "/T(PartitionKey='a',RowKey='b')", Some("application/json"))
        );
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let two = PYTHON.replace("--batch_1--", &PYTHON[..PYTHON.len() - 2]);
        let with_get = PYTHON.replace("DELETE", "GET");
        let empty = "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--batch_1--";
        for (content_type, body) in [
            ("multipart/mixed; boundary=batch_1", ""),
            ("multipart/mixed; boundary=other", PYTHON),
            ("multipart/mixed", PYTHON),
            ("application/json", PYTHON),
            ("multipart/mixed; boundary=batch_1", two.as_str()),
            ("multipart/mixed; boundary=batch_1", with_get.as_str()),
            ("multipart/mixed; boundary=batch_1", empty),
        ] {
            assert_eq!(
                parse(content_type, body.as_bytes()).map_err(|e| e.code).err(),
                Some(ErrorCode::InvalidInput),
                "{body}"
            );
        }
    }

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
            prop_assert_eq!(split(&text, &boundary), split_by_lines(&text, &boundary));
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(pieces in prop::collection::vec(prop::sample::select(vec![
            "--b", "--c", "--", "\r\n", "\n", "Content-Type: multipart/mixed; boundary=c", "GET /T HTTP/1.1", "POST http://h", ":", " ", "{}", "é",
        ]), 0..30)) {
            let _ = parse("multipart/mixed; boundary=b", pieces.concat().as_bytes());
        }
    }
}
