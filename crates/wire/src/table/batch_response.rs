//! Writes the MIME answer to a `$batch`. Clients look for its boundaries and header names letter by letter.

use crate::multipart::reason;
use std::fmt::Display;
use std::io::Write as _;

/// The answer to a batch as it grows.
#[derive(Clone, Debug)]
pub struct BatchResponse {
    out: Vec<u8>,
    batch: String,
    changeset: Option<String>,
}

impl BatchResponse {
    /// An answer with the results of a changeset; `ids` make its boundaries.
    #[must_use]
    pub fn changeset(batch_id: &str, changeset_id: &str) -> Self {
        let mut response = Self::query(batch_id);
        let changeset = format!("changesetresponse_{changeset_id}");
        response.line(format_args!("--{}", response.batch.clone()));
        response.line(format_args!("Content-Type: multipart/mixed; boundary={changeset}"));
        response.line("");
        response.changeset = Some(changeset);
        response
    }

    /// An answer with the result of one query.
    #[must_use]
    pub fn query(batch_id: &str) -> Self {
        Self { out: Vec::with_capacity(1024), batch: format!("batchresponse_{batch_id}"), changeset: None }
    }

    /// Takes the memory for this many bytes at once.
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve_exact(bytes);
    }

    /// The `Content-Type` of the whole answer.
    #[must_use]
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.batch)
    }

    /// Adds the result of one operation.
    pub fn part<'a>(&mut self, status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>, body: &[u8]) {
        let boundary = self.changeset.clone().unwrap_or_else(|| self.batch.clone());
        self.line(format_args!("--{boundary}"));
        self.line("Content-Type: application/http");
        self.line("Content-Transfer-Encoding: binary");
        self.line("");
        self.line(format_args!("HTTP/1.1 {status} {}", reason(status)));
        for (name, value) in headers {
            self.line(format_args!("{name}: {value}"));
        }
        self.line("");
        self.out.extend_from_slice(body);
        self.line("");
    }

    /// The bytes of the whole answer.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        if let Some(changeset) = self.changeset.take() {
            self.line(format_args!("--{changeset}--"));
        }
        self.line(format_args!("--{}--", self.batch.clone()));
        self.out
    }

    /// The most that a part takes besides the values of its headers, their names included, and its body.
    pub const PART_BYTES_MAX: usize = 640;

    fn line(&mut self, text: impl Display) {
        write!(self.out, "{text}\r\n").expect("a vector takes all bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changeset_looks_as_recorded() {
        let mut response = BatchResponse::changeset("1", "2");
        assert_eq!(response.content_type(), "multipart/mixed; boundary=batchresponse_1");
        response.part(204, [("Cache-Control", "no-cache"), ("ETag", "W/\"x\"")], b"");
        let expected = "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nCache-Control: no-cache\r\nETag: W/\"x\"\r\n\r\n\r\n--changesetresponse_2--\r\n--batchresponse_1--\r\n";
        assert_eq!(String::from_utf8(response.finish()).as_deref(), Ok(expected));
    }

    #[test]
    fn a_query_stands_directly_in_the_batch() {
        let mut response = BatchResponse::query("1");
        response.part(200, [], b"{}");
        let expected = "--batchresponse_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}\r\n--batchresponse_1--\r\n";
        assert_eq!(String::from_utf8(response.finish()).as_deref(), Ok(expected));
    }
}
