//! JSON lines: each line is an entity as the service has it in JSON, with `Name@odata.type` before values whose type JSON
//! does not show (Int64, DateTime, Guid, Binary).
//!
//! Also read: one JSON array of entities, and `{"value":[…]}`, which is how the service and AzCopy 7.3 write many of them.
//! A line that is wrong is refused by itself; in an array nothing after it can be read.

mod scalar;

use self::scalar::Members;
use super::edm;
use super::reader::{Source, shortened};
use super::{FormatError, Position, RECORD_BYTES_MAX, Record, Refused, Shape};
use crate::value::{to_text, write_json};
use larimar_client::{DynamicEntity, Value};
use std::borrow::Cow;
use std::io::{self, Read};

/// Appends an entity as one line.
pub fn write_line(out: &mut Vec<u8>, entity: &DynamicEntity) {
    write_json(entity, out);
    out.push(b'\n');
}

/// Reads the rows of JSON lines, or of one JSON array.
#[derive(Debug)]
pub struct JsonReader {
    source: Source,
    is_array: bool,
    shape: Shape,
    rows: u64,
    record: Vec<u8>,
}

impl JsonReader {
    pub(super) fn open(input: Box<dyn Read + Send>, shape: Shape) -> Result<Self, FormatError> {
        let mut reader = Self { source: Source::new(input)?, is_array: false, shape, rows: 0, record: Vec::new() };
        let first = reader.source.skip(|byte| byte.is_ascii_whitespace())?;
        let start = reader.source.fill()?;
        let wrapped = wrapper(start);
        reader.is_array = first == Some(b'[') || wrapped.is_some();
        reader.source.consume(wrapped.unwrap_or(usize::from(first == Some(b'['))));
        Ok(reader)
    }

    /// Goes on at a place of the same file.
    pub(super) fn restart(&mut self, input: Box<dyn Read + Send>, at: Position) {
        self.source = Source::from(input, at);
        self.rows = at.rows;
    }

    pub(super) fn next(&mut self) -> Result<Option<Record>, FormatError> {
        let is_gap = |byte: u8| byte.is_ascii_whitespace();
        let is_array_gap = |byte: u8| byte.is_ascii_whitespace() || byte == b',';
        let next = if self.is_array { self.source.skip(is_array_gap)? } else { self.source.skip(is_gap)? };
        // What follows an array closes the object around it.
        if next.is_none() || self.is_array && next == Some(b']') {
            return Ok(None);
        }
        let line = self.source.lines + 1;
        self.record.clear();
        let is_whole = match self.is_array {
            true => self.read_object(line)?,
            false => self.read_line()?,
        };
        self.rows += 1;
        let end = Position { offset: self.source.offset, line: self.source.lines, rows: self.rows };
        let entity = match is_whole {
            true => self.entity(),
            false => Err(format!("expected a line of at most {} MiB", RECORD_BYTES_MAX >> 20)),
        };
        let text = || shortened(&String::from_utf8_lossy(&self.record[..self.record.len().min(TEXT_BYTES_MAX)]));
        Ok(Some(Record { line, end, entity: entity.map_err(|reason| Refused { reason, text: text() }) }))
    }

    /// Reads to the end of the line; returns whether it was kept whole.
    fn read_line(&mut self) -> io::Result<bool> {
        let mut is_whole = true;
        loop {
            let bytes = self.source.fill()?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            is_whole &= self.record.len() + piece.len() <= RECORD_BYTES_MAX;
            if is_whole {
                self.record.extend_from_slice(piece);
            }
            let (read, is_last) = (piece.len() + usize::from(end.is_some()), end.is_some() || bytes.is_empty());
            self.source.consume(read);
            if is_last {
                return Ok(is_whole);
            }
        }
    }

    /// Reads an object to its closing brace.
    fn read_object(&mut self, line: u64) -> Result<bool, FormatError> {
        let refused = |reason: &str| FormatError::Line { line, reason: reason.to_owned() };
        let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
        loop {
            let bytes = self.source.fill()?;
            if bytes.is_empty() {
                return Err(refused("expected the rest of an entity, found the end of the file"));
            }
            let mut end = None;
            for (index, byte) in bytes.iter().enumerate() {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_text => is_escaped = true,
                    b'"' => in_text = !in_text,
                    _ if in_text => {}
                    b'{' => depth += 1,
                    b'}' => depth = depth.saturating_sub(1),
                    _ if depth == 0 => return Err(refused("expected an entity: {…}")),
                    _ => {}
                }
                if depth == 0 && !in_text {
                    end = Some(index + 1);
                    break;
                }
            }
            let read = end.unwrap_or(bytes.len());
            self.record.extend_from_slice(&bytes[..read]);
            self.source.consume(read);
            if self.record.len() > RECORD_BYTES_MAX {
                return Err(refused("expected an entity of at most 16 MiB"));
            }
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn entity(&self) -> Result<DynamicEntity, String> {
        let Members(members) = serde_json::from_slice(&self.record)
            .map_err(|error| format!("expected an entity in JSON: {}", bare(&error)))?;
        let type_of = |name: &str| {
            members.iter().find_map(|(member, value)| match value {
                Some(Value::String(edm)) if property_of(member) == Some(name) => Some(edm.as_str()),
                _ => None,
            })
        };
        let mut values: Vec<(&str, Value)> = Vec::with_capacity(members.len());
        for (name, value) in &members {
            let (None, Some(value)) = (property_of(name), value) else { continue };
            let value = match type_of(name) {
                None => value.clone(),
                Some(named) => {
                    let edm = edm::named(named)
                        .ok_or_else(|| format!("expected a type such as Edm.Int64, found '{named}'"))?;
                    edm::convert(edm, value.clone()).ok_or_else(|| format!("expected {edm} in '{name}'"))?
                }
            };
            values.push((name, value));
        }
        let text_of = |column: &str| {
            let (_, value) = values.iter().find(|(name, _)| *name == column)?;
            Some(Cow::Owned(to_text(value).into_owned()))
        };
        self.shape.entity(self.rows, text_of, values.clone())
    }
}

/// How long the start of `{"value":[` is, with any white space, and members that are texts before it.
fn wrapper(start: &[u8]) -> Option<usize> {
    let start = &start[..start.len().min(WRAPPER_BYTES_MAX)];
    let open = start.iter().position(|byte| *byte == b'[')?;
    // Closed right away, what stands before the array is an object with an empty one.
    let closed = [&start[..=open], b"]}"].concat();
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&closed).ok()?;
    object.get("value").is_some_and(|value| value.as_array().is_some_and(Vec::is_empty)).then_some(open + 1)
}

/// The error without its place: the record's own line is shown, and a record may begin anywhere in it.
fn bare(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The property whose type this member is.
fn property_of(member: &str) -> Option<&str> {
    member.strip_suffix(TYPE_SUFFIX).or_else(|| member.strip_suffix("@type"))
}

const TYPE_SUFFIX: &str = "@odata.type";
const WRAPPER_BYTES_MAX: usize = 4096;
const TEXT_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
