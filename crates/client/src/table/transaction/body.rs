//! The MIME body of a transaction: a changeset with a request for every operation, as the official clients write it.

use super::TransactionRefusal;
use crate::table::Table;
use crate::table::write::{Write, WriteKind};
use crate::{Guid, service::Endpoint};
use bytes::Bytes;
use larimar_model::limits;
use std::fmt;
use std::io::Write as _;

/// A body that grows by an operation at a time, and never past 4 MiB.
#[derive(Clone)]
pub(super) struct Body {
    bytes: Vec<u8>,
    /// Distinguishes the boundaries. No JSON has a line that begins with one, since it has no line feed.
    id: Guid,
    /// The address that the inner requests are below.
    base: String,
    is_cosmos: bool,
}

impl Body {
    pub(super) fn new(table: &Table) -> Self {
        Self::at(&table.pipeline.primary)
    }

    fn at(endpoint: &Endpoint) -> Self {
        let id = Guid::random();
        let head = format!("--batch_{id}\r\nContent-Type: multipart/mixed; boundary=changeset_{id}\r\n\r\n");
        Self { bytes: head.into_bytes(), id, base: endpoint.url(), is_cosmos: endpoint.is_cosmos() }
    }

    /// Adds an operation, unless the body would be too large with it.
    pub(super) fn push(&mut self, write: &Write, table: &str) -> Result<(), TransactionRefusal> {
        let before = self.bytes.len();
        self.write(write, table);
        let bytes = self.len();
        if bytes > limits::TRANSACTION_BYTES_MAX {
            self.bytes.truncate(before);
            return Err(TransactionRefusal::TooLarge { bytes });
        }
        Ok(())
    }

    fn write(&mut self, write: &Write, table: &str) {
        let is_merge = matches!(write.kind, WriteKind::Merge(_) | WriteKind::InsertOrMerge);
        // Cosmos DB knows MERGE only behind a POST.
        let behind_post = is_merge && self.is_cosmos;
        let method = if behind_post { http::Method::POST } else { write.method() };
        let head = format!(
            "--changeset_{}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {method} {}{} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n",
            self.id,
            self.base,
            write.path(table)
        );
        self.bytes.extend_from_slice(head.as_bytes());
        if behind_post {
            self.line("X-HTTP-Method", "MERGE");
        }
        if write.kind == WriteKind::Insert {
            self.line("Prefer", "return-no-content");
        }
        if let Some(condition) = write.if_match() {
            self.line("If-Match", condition);
        }
        let body = write.body().unwrap_or_default();
        if !body.is_empty() {
            self.line("Content-Type", "application/json;odata=nometadata");
            self.line("Content-Length", &body.len().to_string());
        }
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.extend_from_slice(&body);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, name: &str, value: &str) {
        write!(self.bytes, "{name}: {value}\r\n").expect("a vector takes all bytes");
    }

    /// Bytes of the whole.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.end().len()
    }

    /// The whole.
    pub(super) fn bytes(&self) -> Bytes {
        [self.bytes.as_slice(), self.end().as_bytes()].concat().into()
    }

    pub(super) fn content_type(&self) -> String {
        format!("multipart/mixed; boundary=batch_{}", self.id)
    }

    fn end(&self) -> String {
        format!("--changeset_{id}--\r\n--batch_{id}--\r\n", id = self.id)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DynamicEntity, ETag, IfMatch};
    use larimar_wire::table::batch::{self, Batch};
    use proptest::prelude::*;

    fn any_kind() -> impl Strategy<Value = WriteKind> {
        let etag = prop_oneof![
            Just(IfMatch::Any),
            "[ -~]{1,20}".prop_map(|text| IfMatch::ETag(ETag::new(format!("W/\"{}\"", text.trim())))),
        ];
        prop_oneof![
            Just(WriteKind::Insert),
            Just(WriteKind::InsertOrReplace),
            Just(WriteKind::InsertOrMerge),
            etag.clone().prop_map(WriteKind::Replace),
            etag.clone().prop_map(WriteKind::Merge),
            etag.prop_map(WriteKind::Delete),
        ]
    }

    fn any_write() -> impl Strategy<Value = Write> {
        let properties = prop::collection::btree_map("[a-z]{1,5}", any::<String>(), 0..4);
        (any_kind(), any::<String>(), any::<String>(), properties).prop_map(|(kind, partition, row, properties)| {
            let entity = DynamicEntity::new(partition, row);
            Write {
                kind,
                entity: properties.into_iter().fold(entity, |entity, (name, value)| entity.with(name, value)),
            }
        })
    }

    proptest! {
        #[test]
        fn c5_the_server_reads_what_is_written(writes in prop::collection::vec(any_write(), 1..20)) {
            let endpoint = Endpoint::parse("https://127.0.0.1:10002/devstoreaccount1").expect("an endpoint");
            let mut body = Body::at(&endpoint);
            for write in &writes {
                body.push(write, "Employees").expect("small enough");
            }
            let bytes = body.bytes();
            prop_assert_eq!(bytes.len(), body.len());
            let batch = batch::parse(&body.content_type(), &bytes);
            let Ok(Batch::Changeset(parts)) = batch else { panic!("expected a changeset, found {batch:?}") };
            prop_assert_eq!(parts.len(), writes.len());
            for (part, write) in parts.iter().zip(&writes) {
                prop_assert_eq!(part.head.method, write.method().to_string());
                prop_assert_eq!(part.head.path, format!("/devstoreaccount1{}", write.path("Employees")));
                prop_assert_eq!(part.head.raw_header("if-match"), write.if_match());
                prop_assert_eq!(part.body.as_bytes(), write.body().unwrap_or_default());
            }
        }
    }
}
