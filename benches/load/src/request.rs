//! Requests as bytes: the Table protocol's operations, signed and ready to send.
//!
//! One `Requests` belongs to one connection and reuses its buffers, so that a request costs little more
//! than its signature.

use std::io::Write as _;
use std::rc::Rc;

use crate::dataset::{CATEGORIES, Key, TABLE, TRANSACTION_ROWS, WIDE, write_change, write_entity};
use crate::sign::{ACCOUNT, Date, Signer};

/// The media type and metadata level that most client libraries ask for.
const ACCEPT: &str = "application/json;odata=minimalmetadata";
const JSON: &str = "application/json";
const BATCH: &str = "multipart/mixed; boundary=batch_load";

/// Builds the requests of one connection.
pub(crate) struct Requests {
    signer: Rc<Signer>,
    port: u16,
    date: Date,
    path: String,
    body: Vec<u8>,
    out: Vec<u8>,
}

impl Requests {
    /// Requests for the server on a port of this machine.
    pub(crate) fn new(signer: Rc<Signer>, port: u16) -> Self {
        Self { signer, port, date: Date::default(), path: String::new(), body: Vec::new(), out: Vec::new() }
    }

    /// Creates the table.
    pub(crate) fn create_table(&mut self) -> &[u8] {
        self.set_path("/Tables");
        self.body.clear();
        let _ = write!(self.body, r#"{{"TableName":"{TABLE}"}}"#);
        self.finish("POST", "", JSON, "Prefer: return-no-content\r\n")
    }

    /// Lists tables; used to find out whether a server answers.
    pub(crate) fn list_tables(&mut self) -> &[u8] {
        self.set_path("/Tables");
        self.body.clear();
        self.finish("GET", "", "", "")
    }

    /// Inserts an entity, asking for no echo.
    pub(crate) fn insert(&mut self, key: &Key, number: u64) -> &[u8] {
        self.set_path("/");
        self.path.push_str(TABLE);
        self.body.clear();
        write_entity(&mut self.body, key, number);
        self.finish("POST", "", JSON, "Prefer: return-no-content\r\n")
    }

    /// Reads one entity by its keys.
    pub(crate) fn point_get(&mut self, key: &Key) -> &[u8] {
        self.set_entity_path(key);
        self.body.clear();
        self.finish("GET", "", "", "")
    }

    /// Replaces an entity that exists, whatever its ETag.
    pub(crate) fn replace(&mut self, key: &Key, number: u64) -> &[u8] {
        self.set_entity_path(key);
        self.body.clear();
        write_entity(&mut self.body, key, number);
        self.finish("PUT", "", JSON, "If-Match: *\r\n")
    }

    /// Merges two properties into an entity that exists, whatever its ETag.
    pub(crate) fn merge(&mut self, key: &Key, number: u64) -> &[u8] {
        self.set_entity_path(key);
        self.body.clear();
        write_change(&mut self.body, number);
        self.finish("PATCH", "", JSON, "If-Match: *\r\n")
    }

    /// Deletes an entity, whatever its ETag.
    pub(crate) fn delete(&mut self, key: &Key) -> &[u8] {
        self.set_entity_path(key);
        self.body.clear();
        self.finish("DELETE", "", "", "If-Match: *\r\n")
    }

    /// Queries the rows of a partition from `key` up to, and without, `end`.
    pub(crate) fn range(&mut self, key: &Key, end: &str, next: &str) -> &[u8] {
        let query = format!(
            "?$filter=PartitionKey%20eq%20%27{}%27%20and%20RowKey%20ge%20%27{}%27%20and%20RowKey%20lt%20%27{end}%27{next}",
            key.partition, key.row
        );
        self.query(&query)
    }

    /// Queries the rows of the wide partition that have one of the categories.
    pub(crate) fn scan(&mut self, category: u64, next: &str) -> &[u8] {
        let category = category % CATEGORIES;
        let query =
            format!("?$filter=PartitionKey%20eq%20%27{WIDE}%27%20and%20Category%20eq%20%27c{category:02}%27{next}");
        self.query(&query)
    }

    /// Queries a page of the whole table; `next` is empty or begins with `&`.
    pub(crate) fn page(&mut self, next: &str) -> &[u8] {
        let query = format!("?$top=1000{next}");
        self.query(&query)
    }

    /// Inserts 100 entities in one transaction; `name` gives the key and number of each.
    pub(crate) fn transaction(&mut self, mut name: impl FnMut(u64, &mut Key) -> u64) -> &[u8] {
        self.body.clear();
        self.body.extend_from_slice(b"--batch_load\r\nContent-Type: multipart/mixed; boundary=changeset_load\r\n\r\n");
        let mut key = Key::default();
        for index in 0..TRANSACTION_ROWS {
            let _ = write!(
                self.body,
                "--changeset_load\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST http://127.0.0.1:{}/{ACCOUNT}/{TABLE} HTTP/1.1\r\nContent-Type: {JSON}\r\nAccept: {ACCEPT}\r\n\
                 Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n",
                self.port
            );
            let number = name(index, &mut key);
            write_entity(&mut self.body, &key, number);
            self.body.extend_from_slice(b"\r\n");
        }
        self.body.extend_from_slice(b"--changeset_load--\r\n\r\n--batch_load--\r\n");
        self.set_path("/$batch");
        self.finish("POST", "", BATCH, "")
    }

    fn query(&mut self, query: &str) -> &[u8] {
        self.set_path("/");
        self.path.push_str(TABLE);
        self.path.push_str("()");
        self.body.clear();
        self.finish("GET", query, "", "")
    }

    fn set_path(&mut self, rest: &str) {
        self.path.clear();
        self.path.push('/');
        self.path.push_str(ACCOUNT);
        self.path.push_str(rest);
    }

    fn set_entity_path(&mut self, key: &Key) {
        self.set_path("/");
        for part in [TABLE, "(PartitionKey='", &key.partition, "',RowKey='", &key.row, "')"] {
            self.path.push_str(part);
        }
    }

    /// Writes head and body; `content_type` is empty for a request without a body.
    fn finish(&mut self, verb: &str, query: &str, content_type: &str, headers: &str) -> &[u8] {
        let date = self.date.now();
        let signature = self.signer.signature(verb, content_type, date, &self.path);
        self.out.clear();
        let _ = write!(
            self.out,
            "{verb} {}{query} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nx-ms-date: {}\r\nx-ms-version: 2019-02-02\r\n\
             DataServiceVersion: 3.0\r\nAccept: {ACCEPT}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n{headers}",
            self.path, self.port, date
        );
        if !content_type.is_empty() {
            let _ = write!(self.out, "Content-Type: {content_type}\r\nContent-Length: {}\r\n", self.body.len());
        }
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&self.body);
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_framed_and_signed() {
        let signer = Rc::new(Signer::development().expect("a valid key"));
        let mut requests = Requests::new(Rc::clone(&signer), 1234);
        let mut key = Key::default();
        key.set_narrow(7);
        let sent = String::from_utf8(requests.insert(&key, 7).to_vec()).expect("text");
        let (head, body) = sent.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("POST /devstoreaccount1/bench HTTP/1.1\r\nHost: 127.0.0.1:1234\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())));
        let signature = signer.signature("POST", JSON, requests.date.now(), "/devstoreaccount1/bench");
        assert!(head.contains(&format!("\r\nAuthorization: SharedKey devstoreaccount1:{signature}\r\n")));
    }
}
