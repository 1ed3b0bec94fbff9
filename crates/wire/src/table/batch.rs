//! The MIME body of `$batch` becomes its requests.
//!
//! How clients differ in writing it is the matter of `multipart.rs`.

use super::request::Headers;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::multipart::{self, Lines, MimePart, is_multipart, skip_blank_lines, split, split_closed, split_url};
use larimar_model::limits;
use larimar_model::table::TransactionError;

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
    /// Where its URL goes, if it is absolute. Proxies change it.
    pub authority: Option<&'a str>,
    /// The path of its URL.
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
/// `InvalidInput` for a body that is not a batch, for more than one changeset or query, and for a changeset without its
/// closing delimiter.
pub fn parse<'a>(content_type: &str, body: &'a [u8]) -> Result<Batch<'a>, ErrorReply> {
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let boundary = multipart::boundary(content_type).ok_or_else(malformed)?;
    let mut parts = split(text, boundary).0.into_iter();
    let (Some(part), None) = (parts.next(), parts.next()) else { return Err(malformed()) };
    let part = MimePart::parse(part);
    let content_type = part.content_type.unwrap_or("");
    if !is_multipart(content_type) {
        let query = Part::parse(part.content).ok_or_else(malformed)?;
        return if query.method == "GET" { Ok(Batch::Query(query)) } else { Err(malformed()) };
    }
    let inner = multipart::boundary(content_type).ok_or_else(malformed)?;
    // The closing delimiter of the batch may be missing, as in samples of the documentation; that of the changeset may
    // not, or a body that was cut off would be executed in part.
    let operations: Vec<Part<'a>> = split_closed(part.content, inner)
        .ok_or_else(malformed)?
        .into_iter()
        .map(|part| Part::parse(MimePart::parse(part).content).ok_or_else(malformed))
        .collect::<Result<_, _>>()?;
    if operations.is_empty() || operations.iter().any(|part| part.method == "GET") {
        return Err(malformed());
    }
    Ok(Batch::Changeset(operations))
}

impl From<TransactionError> for ErrorReply {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::TooManyWrites => {
                let message = "The batch request operation exceeds the maximum 100 changes per change set.";
                Self::with_message(ErrorCode::InvalidInput, message)
            }
            TransactionError::OtherPartition => Self::new(ErrorCode::CommandsInBatchActOnDifferentPartitions),
            TransactionError::DuplicateRow => Self::new(ErrorCode::InvalidDuplicateRow),
        }
    }
}

fn malformed() -> ErrorReply {
    ErrorReply::new(ErrorCode::InvalidInput)
}

impl<'a> Part<'a> {
    fn parse(content: &'a str) -> Option<Self> {
        let content = skip_blank_lines(content);
        let mut lines = Lines { rest: content };
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
        // A request inside a batch may be no larger than one by itself, or it would cost more.
        if content.len() - lines.rest.len() > limits::HEAD_BYTES_MAX {
            return None;
        }
        let (authority, path, query) = split_url(url);
        Some(Self { method, authority, path, query, headers, content_id, body: lines.rest.trim() })
    }
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
        let lower =
            PYTHON.replace("Content-Type: multipart", "content-type: multipart").replace("If-Match", "if-match");
        for body in [PYTHON, &lf, &blank, cut, &lower] {
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
    fn a_request_inside_a_batch_has_the_bound_of_one_by_itself() {
        let batch = |filter: usize, header: usize| {
            let url = format!("http://h/T()?$filter=A%20eq%20'{}'", "x".repeat(filter));
            let line = format!("GET {url} HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(header));
            format!("--b\r\nContent-Type: application/http\r\n\r\n{line}\r\n--b--\r\n")
        };
        let is_read = |body: &str| parse("multipart/mixed; boundary=b", body.as_bytes()).is_ok();
        assert!(is_read(&batch(limits::HEAD_BYTES_MAX - 100, 10)));
        assert!(!is_read(&batch(limits::HEAD_BYTES_MAX, 10)));
        assert!(!is_read(&batch(10, limits::HEAD_BYTES_MAX)));
        assert!(!is_read(&batch(limits::HEAD_BYTES_MAX / 2, limits::HEAD_BYTES_MAX / 2)));
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let two = PYTHON.replace("--batch_1--", &PYTHON[..PYTHON.len() - 2]);
        let with_get = PYTHON.replace("DELETE", "GET");
        let open = PYTHON.strip_suffix("--changeset_2--\r\n\r\n--batch_1--\r\n").expect("its end");
        let unclosed = PYTHON.replace("--changeset_2--\r\n\r\n", "");
        let empty = "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--batch_1--";
        for (content_type, body) in [
            ("multipart/mixed; boundary=batch_1", ""),
            ("multipart/mixed; boundary=other", PYTHON),
            ("multipart/mixed", PYTHON),
            ("application/json", PYTHON),
            ("multipart/mixed; boundary=batch_1", two.as_str()),
            ("multipart/mixed; boundary=batch_1", with_get.as_str()),
            ("multipart/mixed; boundary=batch_1", empty),
            ("multipart/mixed; boundary=batch_1", open),
            ("multipart/mixed; boundary=batch_1", unclosed.as_str()),
        ] {
            assert_eq!(
                parse(content_type, body.as_bytes()).map_err(|e| e.code).err(),
                Some(ErrorCode::InvalidInput),
                "{body}"
            );
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
