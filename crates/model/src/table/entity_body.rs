//! The stored form of an entity's properties: typed bytes that are compared, filtered, projected and
//! written as JSON without building a map. `docs/format.md` draws them.
//!
//! ```text
//! body     = 0x01 property*                       the first byte is the format's version
//! property = varint(len name) name tag value      in the order the client sent them
//! value    = varint(len) bytes                    String (0), Binary (7)
//!          | 4 bytes                              Int32 (1)
//!          | 8 bytes                              Int64 (2), Double (3), DateTime (6)
//!          | 16 bytes                             Guid (8)
//!          | nothing                              false (4), true (5)
//! ```
//! Numbers are little-endian; a varint has seven bits a byte, least significant first.

use super::property;
use crate::{EntityKey, Guid, PropertyError, Timestamp, ValueRef, limits, utf16, varint};
use std::collections::{HashMap, HashSet};

/// A stored body, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityBody<'a>(&'a [u8]);

/// Why a body cannot be built or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// One property breaks a rule.
    #[error(transparent)]
    Property(#[from] PropertyError),
    /// More than 252 properties.
    #[error("expected at most 252 properties")]
    TooManyProperties,
    /// The same name twice.
    #[error("expected each property once, found '{0}' again")]
    Duplicate(String),
    /// More than 1 MiB in all.
    #[error("expected an entity of at most 1 MiB")]
    TooLarge,
    /// The bytes are not a body: the store is damaged.
    #[error("expected a stored entity body of a known format")]
    Damaged,
}

/// Builds a body property by property.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyBuilder {
    bytes: Vec<u8>,
    count: usize,
    /// The names that are there already, once there are many.
    names: HashSet<String>,
}

const FORMAT: u8 = 1;
const TAG_STRING: u8 = 0;
const TAG_INT32: u8 = 1;
const TAG_INT64: u8 = 2;
const TAG_DOUBLE: u8 = 3;
const TAG_FALSE: u8 = 4;
const TAG_TRUE: u8 = 5;
const TAG_DATETIME: u8 = 6;
const TAG_BINARY: u8 = 7;
const TAG_GUID: u8 = 8;

impl<'a> EntityBody<'a> {
    /// Takes bytes from a store, checking all of them.
    ///
    /// # Errors
    /// `BodyError::Damaged` if they are not a body.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BodyError> {
        let body = Self::from_trusted(bytes);
        let mut properties = body.properties();
        if bytes.first() != Some(&FORMAT) {
            return Err(BodyError::Damaged);
        }
        properties.by_ref().for_each(drop);
        if properties.rest.is_empty() { Ok(body) } else { Err(BodyError::Damaged) }
    }

    /// Takes bytes that a [`BodyBuilder`] made. Other bytes are read as far as they make sense.
    #[must_use]
    pub const fn from_trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The properties in stored order.
    #[must_use]
    pub fn properties(self) -> Properties<'a> {
        Properties { rest: self.0.get(1..).unwrap_or_default() }
    }

    /// The properties in stored order, their values not read yet.
    pub(crate) fn raw_properties(self) -> RawProperties<'a> {
        RawProperties { rest: self.0.get(1..).unwrap_or_default() }
    }

    /// The value of one property. The others are passed over unread, as filters look at many rows.
    #[must_use]
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        self.raw_properties().find(|(known, _)| *known == name.as_bytes())?.1.decode()
    }

    /// The entity's size as the service counts it (service: data model).
    #[must_use]
    pub fn size(self, key: &EntityKey) -> usize {
        let keys = utf16::len(key.partition.as_str()) + utf16::len(key.row.as_str());
        let properties: usize = self.properties().map(|(name, value)| 8 + 2 * utf16::len(name) + value.size()).sum();
        4 + 2 * keys + properties
    }

    /// Refuses an entity of more than 1 MiB.
    ///
    /// # Errors
    /// `BodyError::TooLarge`.
    pub fn check_size(self, key: &EntityKey) -> Result<(), BodyError> {
        // A stored byte counts at most twice (UTF-16), and a property's overhead less than eight bytes more.
        let at_most = 4
            + 2 * (self.0.len() + key.partition.as_str().len() + key.row.as_str().len())
            + 16 * limits::PROPERTIES_MAX;
        if at_most > limits::ENTITY_BYTES_MAX && self.size(key) > limits::ENTITY_BYTES_MAX {
            return Err(BodyError::TooLarge);
        }
        Ok(())
    }

    /// This body with the properties of `changes` set on it: what Merge stores.
    ///
    /// # Errors
    /// Refuses more than 252 properties or 1 MiB in all.
    pub fn merged(self, changes: Self, key: &EntityKey) -> Result<Vec<u8>, BodyError> {
        let mut merged = BodyBuilder::with_capacity(self.0.len() + changes.0.len());
        let changed = Lookup::new(changes, self.raw_properties().count());
        for (name, value) in self.properties() {
            merged.push_unchecked(name, changed.get(name).unwrap_or(value))?;
        }
        let known = Lookup::new(self, changes.raw_properties().count());
        for (name, value) in changes.properties() {
            if known.get(name).is_none() {
                merged.push_unchecked(name, value)?;
            }
        }
        EntityBody(&merged.bytes).check_size(key)?;
        Ok(merged.bytes)
    }
}

/// Finds properties of one body by name, at a cost that does not grow with their number times that of the names.
#[derive(Clone, Debug)]
pub struct Lookup<'a> {
    body: EntityBody<'a>,
    /// Where there are many names to look for.
    index: Option<HashMap<&'a str, ValueRef<'a>>>,
}

/// Names that are looked for one by one.
const FEW_NAMES: usize = 16;

impl<'a> Lookup<'a> {
    /// Prepares to look for so many names.
    #[must_use]
    pub fn new(body: EntityBody<'a>, names: usize) -> Self {
        Self { body, index: (names > FEW_NAMES).then(|| body.properties().collect()) }
    }

    /// The value of a property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.body.get(name),
        }
    }
}

impl BodyBuilder {
    /// A body without properties.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(256)
    }

    fn with_capacity(bytes_max: usize) -> Self {
        let mut bytes = Vec::with_capacity(bytes_max);
        bytes.push(FORMAT);
        Self { bytes, count: 0, names: HashSet::new() }
    }

    /// Adds a property.
    ///
    /// # Errors
    /// Refuses a bad name or value, a name that is there already, and a 253rd property.
    pub fn push(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), BodyError> {
        property::check(name, value)?;
        if self.is_known(name) {
            return Err(BodyError::Duplicate(name.to_owned()));
        }
        self.push_unchecked(name, value)
    }

    /// Whether a name is there already. If not, it will be.
    fn is_known(&mut self, name: &str) -> bool {
        let body = EntityBody(&self.bytes);
        if self.count < FEW_NAMES {
            return body.raw_properties().any(|(known, _)| known == name.as_bytes());
        }
        if self.names.is_empty() {
            self.names = body.properties().map(|(known, _)| known.to_owned()).collect();
        }
        !self.names.insert(name.to_owned())
    }

    /// The bytes of the body.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds a property whose name and value were checked when they were first stored.
    fn push_unchecked(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), BodyError> {
        if self.count == limits::PROPERTIES_MAX {
            return Err(BodyError::TooManyProperties);
        }
        self.count += 1;
        let out = &mut self.bytes;
        push_counted(out, name.as_bytes());
        match value {
            ValueRef::String(v) => {
                out.push(TAG_STRING);
                push_counted(out, v.as_bytes());
            }
            ValueRef::Binary(v) => {
                out.push(TAG_BINARY);
                push_counted(out, v);
            }
            ValueRef::Int32(v) => push_fixed(out, TAG_INT32, &v.to_le_bytes()),
            ValueRef::Int64(v) => push_fixed(out, TAG_INT64, &v.to_le_bytes()),
            ValueRef::Double(v) => push_fixed(out, TAG_DOUBLE, &v.to_le_bytes()),
            ValueRef::DateTime(v) => push_fixed(out, TAG_DATETIME, &v.ticks().to_le_bytes()),
            ValueRef::Guid(v) => push_fixed(out, TAG_GUID, &v.0),
            ValueRef::Boolean(v) => out.push(if v { TAG_TRUE } else { TAG_FALSE }),
        }
        Ok(())
    }
}

impl Default for BodyBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// The properties of a body in stored order. Ends early at bytes that are not a property.
#[derive(Clone, Debug)]
pub struct Properties<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Properties<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.rest;
        let name = std::str::from_utf8(take_counted(&mut rest)?).ok()?;
        let value = take_value(&mut rest)?;
        self.rest = rest;
        Some((name, value))
    }
}

/// The properties of a body in stored order, by the bytes of their names.
#[derive(Clone, Debug)]
pub(crate) struct RawProperties<'a> {
    rest: &'a [u8],
}

/// A value that was not read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawValue<'a>(&'a [u8]);

impl<'a> Iterator for RawProperties<'a> {
    type Item = (&'a [u8], RawValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let name = take_counted(&mut self.rest)?;
        let value = RawValue(self.rest);
        skip_value(&mut self.rest)?;
        Some((name, value))
    }
}

impl<'a> RawValue<'a> {
    /// The value, if it is one.
    pub(crate) fn decode(self) -> Option<ValueRef<'a>> {
        let mut rest = self.0;
        take_value(&mut rest)
    }
}

fn take_value<'a>(rest: &mut &'a [u8]) -> Option<ValueRef<'a>> {
    let [tag] = take_array(rest)?;
    Some(match tag {
        TAG_STRING => ValueRef::String(std::str::from_utf8(take_counted(rest)?).ok()?),
        TAG_BINARY => ValueRef::Binary(take_counted(rest)?),
        TAG_INT32 => ValueRef::Int32(i32::from_le_bytes(take_array(rest)?)),
        TAG_INT64 => ValueRef::Int64(i64::from_le_bytes(take_array(rest)?)),
        TAG_DOUBLE => ValueRef::Double(f64::from_le_bytes(take_array(rest)?)),
        TAG_DATETIME => ValueRef::DateTime(Timestamp::from_ticks(u64::from_le_bytes(take_array(rest)?))),
        TAG_GUID => ValueRef::Guid(Guid(take_array(rest)?)),
        TAG_FALSE => ValueRef::Boolean(false),
        TAG_TRUE => ValueRef::Boolean(true),
        _ => return None,
    })
}

fn skip_value(rest: &mut &[u8]) -> Option<()> {
    let [tag] = take_array(rest)?;
    let length = match tag {
        TAG_STRING | TAG_BINARY => return take_counted(rest).map(drop),
        TAG_INT32 => 4,
        TAG_INT64 | TAG_DOUBLE | TAG_DATETIME => 8,
        TAG_GUID => 16,
        TAG_FALSE | TAG_TRUE => 0,
        _ => return None,
    };
    *rest = rest.get(length..)?;
    Some(())
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(rest)?).ok()?;
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn push_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn push_fixed(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests;
