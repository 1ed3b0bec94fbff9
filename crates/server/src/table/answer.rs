//! The answer to one write, by itself or as a part of a transaction.

use crate::call::Call;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::table::Table;
use larimar_model::filter::Row;
use larimar_model::table::Write;
use larimar_model::{ETag, Timestamp};
use larimar_wire::table::{EntityWriter, Link, MetadataLevel, Prefer, Select};

/// The response to a write that succeeded.
pub(super) struct WriteAnswer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    level: MetadataLevel,
}

impl WriteAnswer {
    pub(super) fn new<E: Engine>(
        call: &Call<'_, E>,
        table: &Table,
        write: &Write,
        version: Timestamp,
        level: MetadataLevel,
        prefer: Option<Prefer>,
    ) -> Self {
        let mut answer = Self { status: 204, headers: Vec::with_capacity(4), body: Vec::new(), level };
        if let Write::Insert(entity) = write {
            let (partition, row) = (entity.key.partition.as_str(), entity.key.row.as_str());
            let link = Link { table: &table.name, partition, row };
            let location = format!("{}/{link}", call.base);
            answer.headers.push(("Location", location.clone()));
            if prefer == Some(Prefer::NoContent) {
                answer.headers.push(("DataServiceId", location));
            } else {
                answer.status = 201;
                let (base, account, select) = (call.base, call.account(), &Select::All);
                let writer = EntityWriter { base, account, table: &table.name, level, select };
                writer.write_single(&mut answer.body, &Row { partition, row, version, body: entity.body() });
            }
        }
        if !matches!(write, Write::Delete(..)) {
            answer.headers.push(("ETag", ETag(version).to_string()));
        }
        answer
    }

    /// An upper bound for the bytes of the response to a write, known before the write is made.
    pub(super) fn bytes_max<E: Engine>(
        call: &Call<'_, E>,
        table: &Table,
        write: &Write,
        level: MetadataLevel,
        prefer: Option<Prefer>,
    ) -> usize {
        let Write::Insert(entity) = write else { return ETAG_BYTES_MAX };
        let (partition, row) = (entity.key.partition.as_str(), entity.key.row.as_str());
        let location = call.base.len() + 1 + Link { table: &table.name, partition, row }.bytes();
        let content = if prefer == Some(Prefer::NoContent) {
            location
        } else {
            let (base, account, select) = (call.base, call.account(), &Select::All);
            let writer = EntityWriter { base, account, table: &table.name, level, select };
            writer.single_bytes_max(&Row { partition, row, version: Timestamp::EDM_MIN, body: entity.body() })
        };
        location + content + ETAG_BYTES_MAX
    }

    /// The `Content-Type` of the body, if there is one.
    pub(super) const fn content_type(&self) -> Option<&'static str> {
        if self.body.is_empty() { None } else { Some(self.level.content_type()) }
    }

    pub(super) fn into_reply(self) -> Reply {
        let reply = match self.content_type() {
            Some(_) => Reply::json(self.status, self.level, self.body),
            None => Reply::empty(self.status),
        };
        self.headers.into_iter().fold(reply, |reply, (name, value)| reply.with(name, value))
    }
}

/// `W/"datetime'2026-11-16T06%3A09%3A53.1234567Z'"`.
const ETAG_BYTES_MAX: usize = 64;
