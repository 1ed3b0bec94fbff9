//! An upper bound for the bytes of an entity as JSON, known before it is written: the room for a response is taken before
//! the change is made.

use super::{EntityWriter, Link};
use crate::table::MetadataLevel;
use crate::table::options::Select;
use crate::uri;
use larimar_model::ValueRef;
use larimar_model::filter::Row;

impl EntityWriter<'_> {
    /// The most that [`EntityWriter::write_single`] appends for all properties of a row, whatever its version.
    #[must_use]
    pub fn single_bytes_max(&self, row: &Row<'_>) -> usize {
        let link = Link { table: self.table, partition: row.partition, row: row.row }.bytes();
        let base = escaped_bytes(self.base);
        let names = match self.select {
            Select::All => 0,
            Select::Names(names) => names.iter().map(|name| escaped_bytes(name) + MEMBER_BYTES).sum(),
        };
        let context = base + self.table.len() + names + METADATA_BYTES;
        let full = self.account.len() + self.table.len() + base + 2 * link + METADATA_BYTES;
        let metadata = match self.level {
            MetadataLevel::None => 0,
            MetadataLevel::Minimal => context + METADATA_BYTES,
            MetadataLevel::Full => context + full + METADATA_BYTES,
        };
        let keys = escaped_bytes(row.partition) + escaped_bytes(row.row) + SYSTEM_BYTES;
        let members = row.body.properties().map(|(name, value)| 2 * escaped_bytes(name) + MEMBER_BYTES + bytes(value));
        metadata + names + keys + members.sum::<usize>()
    }
}

impl Link<'_> {
    /// How many bytes the link has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let key = |key: &str| -> usize { key.bytes().map(link_bytes).sum() };
        self.table.len() + key(self.partition) + key(self.row) + "(PartitionKey='',RowKey='')".len()
    }
}

/// A quote is doubled, and what may not stand in a URL is escaped.
const fn link_bytes(byte: u8) -> usize {
    match byte {
        b'\'' => 2,
        byte if uri::is_unreserved(byte) => 1,
        _ => 3,
    }
}

fn escaped_bytes(text: &str) -> usize {
    let added = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(added).sum::<usize>()
}

fn bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) => escaped_bytes(text),
        ValueRef::Binary(bytes) => bytes.len().div_ceil(3) * 4,
        ValueRef::Boolean(_) | ValueRef::Int32(_) | ValueRef::Int64(_) => 20,
        ValueRef::Double(_) | ValueRef::DateTime(_) => 32,
        ValueRef::Guid(_) => 36,
    }
}

/// What stands around the two names of a member and its value: quotes, `@odata.type`, the longest name of a type.
const MEMBER_BYTES: usize = 48;

/// The names of the two keys, and `Timestamp` with its value and type.
const SYSTEM_BYTES: usize = 160;

/// The names of metadata, and the entity's tag.
const METADATA_BYTES: usize = 128;
