//! The MIME body of `$batch` becomes its requests.
//!
//! How clients differ in writing it is the matter of `multipart.rs`.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::multipart::{self, BatchOf, MimePart, is_multipart, parse_request, split, split_closed};
use crate::request_head::RequestHead;
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
    /// Its head. Proxies change the authority of the URL.
    pub head: RequestHead<'a>,
    /// Its body.
    pub body: &'a str,
}

/// Parses a batch.
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
        return if query.head.method == "GET" { Ok(Batch::Query(query)) } else { Err(malformed()) };
    }
    let inner = multipart::boundary(content_type).ok_or_else(malformed)?;
    // The closing delimiter of the batch may be missing, as in samples of the documentation; that of the changeset may
    // not, or a body that was cut off would be executed in part.
    let operations: Vec<Part<'a>> = split_closed(part.content, inner)
        .ok_or_else(malformed)?
        .into_iter()
        // One more than a transaction may have is refused, whatever follows.
        .take(limits::TRANSACTION_OPERATIONS_MAX + 1)
        .map(|part| Part::parse(MimePart::parse(part).content).ok_or_else(malformed))
        .collect::<Result<_, _>>()?;
    if operations.is_empty() || operations.iter().any(|part| part.head.method == "GET") {
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
        let (head, rest) = parse_request(content, BatchOf::Entities)?;
        Some(Self { head, body: rest.trim() })
    }

    /// `Content-ID` among its own headers, which the response repeats.
    #[must_use]
    pub fn content_id(&self) -> Option<&'a str> {
        self.head.raw_header("content-id")
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
                parts.iter().map(|p| (p.head.method.to_owned(), p.head.path.to_owned(), p.body.to_owned())).collect()
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
        let [first, second] = &parts[..] else { panic!("two parts") };
        let twice = PYTHON.replace("If-Match: *", "If-Match: a\r\nIF-MATCH: b");
        let Ok(Batch::Changeset(last)) = parse("multipart/mixed; boundary=batch_1", twice.as_bytes()) else {
            panic!("a changeset")
        };
        assert_eq!(last[1].head.header("if-match"), Some("b"), "the last one counts");
        assert_eq!(
            (first.head.header("prefer"), first.content_id(), first.head.query),
            (Some("return-no-content"), None, "$format=x")
        );
        assert_eq!((second.head.header("if-match"), second.head.header("prefer")), (Some("*"), None));
    }

    #[test]
    fn a_single_query_stands_by_itself() {
        let body = "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/T(PartitionKey='a',RowKey='b') HTTP/1.1\r\nAccept: application/json\r\n\r\n--b--\r\n";
        let Ok(Batch::Query(part)) = parse("multipart/mixed; boundary=b", body.as_bytes()) else { panic!("a query") };
        assert_eq!(
            (part.head.method, part.head.path, part.head.header("accept")),
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
        let many = |count: usize| batch(10, 10).replace("X: ", &format!("{}X: ", "A:b\r\n".repeat(count)));
        assert!(is_read(&many(63)) && !is_read(&many(64)));
    }

    #[test]
    fn no_more_parts_are_parsed_than_are_needed_to_refuse_them() {
        let part = "--c\r\nContent-Type: application/http\r\n\r\nDELETE /T HTTP/1.1\r\n\r\n";
        let body = format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}--c--\r\n", part.repeat(500));
        assert_eq!(changeset("multipart/mixed; boundary=b", &body).len(), limits::TRANSACTION_OPERATIONS_MAX + 1);
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
