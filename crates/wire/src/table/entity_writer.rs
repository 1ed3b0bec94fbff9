//! Writes entities as JSON, straight from their stored bytes, at each of the metadata levels.

mod size;

use super::content::MetadataLevel;
use super::json_text::{push_double, push_escaped, push_integer, push_string};
use super::options::Select;
use crate::uri;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_model::filter::Row;
use larimar_model::{ETag, Lookup, ValueRef};
use std::fmt;

/// Writes the entities of one table for one request.
#[derive(Clone, Copy, Debug)]
pub struct EntityWriter<'a> {
    /// The URL of the account, without a slash at its end.
    pub base: &'a str,
    /// The account's name.
    pub account: &'a str,
    /// The table's name.
    pub table: &'a str,
    /// How much metadata is written.
    pub level: MetadataLevel,
    /// Which properties are written.
    pub select: &'a Select,
}

impl EntityWriter<'_> {
    /// Appends one entity by itself: the answer to a point get or an insert.
    pub fn write_single(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            self.write_context(out, "/@Element");
            out.push(b',');
        }
        self.write_members(out, row);
        out.push(b'}');
    }

    /// Appends what comes before the first entity of a page.
    pub fn write_page_start(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            self.write_context(out, "");
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
    }

    /// Appends one entity of a page.
    pub fn write_item(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        if out.last() == Some(&b'}') {
            out.push(b',');
        }
        out.push(b'{');
        self.write_members(out, row);
        out.push(b'}');
    }

    /// Appends what comes after the last entity of a page.
    pub fn write_page_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    /// `"odata.metadata":"{base}/$metadata#T…"`.
    fn write_context(&self, out: &mut Vec<u8>, element: &str) {
        out.extend_from_slice(b"\"odata.metadata\":\"");
        push_escaped(out, self.base);
        out.extend_from_slice(b"/$metadata#");
        out.extend_from_slice(self.table.as_bytes());
        out.extend_from_slice(element.as_bytes());
        if let Select::Names(names) = self.select {
            out.extend_from_slice(b"&$select=");
            push_escaped(out, &names.join(","));
        }
        out.push(b'"');
    }

    fn write_members(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let start = out.len();
        if self.level != MetadataLevel::None {
            self.write_metadata(out, row);
        }
        for name in ["PartitionKey", "RowKey", "Timestamp"] {
            if self.select.contains(name) {
                self.write_member(out, name, row.get(name));
            }
        }
        match self.select {
            Select::All => row.body.properties().for_each(|(name, value)| self.write_member(out, name, Some(value))),
            // A property that the entity lacks is written as null: the only null there is.
            Select::Names(names) => {
                let values = Lookup::new(row.body, names.len());
                let names = names.iter().filter(|name| !larimar_model::is_system_property(name));
                names.for_each(|name| self.write_member(out, name, values.get(name)));
            }
        }
        if out.len() > start {
            out.pop();
        }
    }

    /// `odata.type`, `odata.id`, `odata.etag` and `odata.editLink`, each with a comma behind it.
    fn write_metadata(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let link = Link { table: self.table, partition: row.partition, row: row.row };
        let is_full = self.level == MetadataLevel::Full;
        if is_full {
            out.extend_from_slice(b"\"odata.type\":");
            push_string(out, &format!("{}.{}", self.account, self.table));
            out.extend_from_slice(b",\"odata.id\":");
            push_string(out, &format!("{}/{link}", self.base));
            out.push(b',');
        }
        out.extend_from_slice(b"\"odata.etag\":\"");
        ETag(row.version).write_in_json(out);
        out.extend_from_slice(b"\",");
        if is_full {
            out.extend_from_slice(b"\"odata.editLink\":");
            push_string(out, &link.to_string());
            out.push(b',');
        }
    }

    /// A property with its type where its JSON does not tell it, and a comma behind it.
    fn write_member(&self, out: &mut Vec<u8>, name: &str, value: Option<ValueRef<'_>>) {
        if let Some(value) = value.filter(|value| self.annotates(name, *value)) {
            out.push(b'"');
            push_escaped(out, name);
            out.extend_from_slice(b"@odata.type\":\"");
            out.extend_from_slice(value.edm_type().name().as_bytes());
            out.extend_from_slice(b"\",");
        }
        push_string(out, name);
        out.push(b':');
        match value {
            Some(value) => write_value(out, value),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b',');
    }

    fn annotates(&self, name: &str, value: ValueRef<'_>) -> bool {
        match self.level {
            MetadataLevel::None => false,
            // Clients turn an annotated Timestamp into something else.
            MetadataLevel::Minimal if name == "Timestamp" => false,
            MetadataLevel::Minimal | MetadataLevel::Full => match value {
                ValueRef::Binary(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) | ValueRef::Int64(_) => true,
                ValueRef::Double(value) => !value.is_finite(),
                ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) => false,
            },
        }
    }
}

fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::String(text) => push_string(out, text),
        ValueRef::Boolean(true) => out.extend_from_slice(b"true"),
        ValueRef::Boolean(false) => out.extend_from_slice(b"false"),
        ValueRef::Int32(value) => push_integer(out, i64::from(value)),
        ValueRef::Double(value) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        ValueRef::Double(f64::INFINITY) => out.extend_from_slice(b"\"Infinity\""),
        ValueRef::Double(f64::NEG_INFINITY) => out.extend_from_slice(b"\"-Infinity\""),
        ValueRef::Double(value) => push_double(out, value),
        ValueRef::Int64(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) | ValueRef::Binary(_) => {
            out.push(b'"');
            match value {
                ValueRef::Int64(value) => push_integer(out, value),
                ValueRef::DateTime(value) => value.write_trimmed(out),
                ValueRef::Guid(value) => value.write(out),
                ValueRef::Binary(bytes) => out.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
                _ => {}
            }
            out.push(b'"');
        }
    }
}

/// The URL of an entity below its account: keys with quotes doubled, then escaped.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The table's name.
    pub table: &'a str,
    /// PartitionKey.
    pub partition: &'a str,
    /// RowKey.
    pub row: &'a str,
}

impl fmt::Display for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys = [String::new(), String::new()];
        for (out, key) in keys.iter_mut().zip([self.partition, self.row]) {
            uri::encode(out, &key.replace('\'', "''"), |byte| uri::is_unreserved(byte) || byte == b'\'');
        }
        write!(f, "{}(PartitionKey='{}',RowKey='{}')", self.table, keys[0], keys[1])
    }
}

#[cfg(test)]
mod tests;
