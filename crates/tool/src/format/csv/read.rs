//! Reads CSV record by record. A record is bounded, so that a quote which is never closed does not fill the memory.

use super::{FORMULA_STARTS, TYPE_SUFFIX};
use crate::format::edm;
use crate::format::properties::is_system;
use crate::format::reader::{Source, missing_column, shortened};
use crate::format::{FormatError, Position, RECORD_BYTES_MAX, Record, Refused, Shape};
use csv_core::ReadRecordResult;
use larimar_client::Value;
use larimar_model::EdmType;
use larimar_model::column::property_name;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Read;

/// Reads the rows of a CSV file.
#[derive(Debug)]
pub struct CsvReader {
    records: Records,
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    shape: Shape,
    rows: u64,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// The type of its values, if no type column says so.
    edm: EdmType,
    /// The column with the type of each value.
    type_column: Option<usize>,
    role: Role,
}

#[derive(Debug, PartialEq, Eq)]
enum Role {
    Property,
    /// A key or the time, read by templates only.
    System,
    TypeOf,
    LeftOut,
}

impl CsvReader {
    pub(crate) fn open(input: Box<dyn Read + Send>, shape: Shape) -> Result<Self, FormatError> {
        let mut records = Records::new(Source::new(input)?);
        let header = header(&mut records)?;
        let columns = columns(&header, &shape)?;
        let by_name: HashMap<_, _> =
            columns.iter().enumerate().map(|(index, column)| (column.name.clone(), index)).collect();
        if let Some(missing) = shape.keys.columns().find(|name| !by_name.contains_key(*name)) {
            let known = header.iter().filter(|name| !name.ends_with(TYPE_SUFFIX)).map(String::as_str);
            return Err(missing_column(missing, known));
        }
        Ok(Self { records, columns, by_name, shape, rows: 0 })
    }

    /// Goes on with the same columns at a place of the same file.
    pub(crate) fn restart(&mut self, input: Box<dyn Read + Send>, at: Position) {
        self.records = Records::new(Source::from(input, at));
        self.rows = at.rows;
    }

    pub(crate) fn has_timestamp(&self) -> bool {
        self.by_name.contains_key("Timestamp")
    }

    pub(crate) fn columns(&self) -> Vec<(String, Option<EdmType>)> {
        let properties = self.columns.iter().filter(|column| column.role == Role::Property);
        properties.map(|column| (column.name.clone(), column.type_column.is_none().then_some(column.edm))).collect()
    }

    pub(crate) fn next(&mut self) -> Result<Option<Record>, FormatError> {
        let Some(line) = self.records.next(CELLS_MAX)? else { return Ok(None) };
        self.rows += 1;
        let end = self.records.position(self.rows);
        let entity = self.entity().map_err(|reason| Refused { reason, text: self.records.text() });
        Ok(Some(Record { line, end, entity }))
    }

    fn entity(&self) -> Result<larimar_client::DynamicEntity, String> {
        let cells = self.cells()?;
        let text_of = |name: &str| {
            let index = *self.by_name.get(name)?;
            let text = self.plain(cells[index]);
            // The keys themselves may be empty; a column that a template needs may not.
            (!text.is_empty() || is_system(name)).then_some(Cow::Borrowed(text))
        };
        let mut values = Vec::with_capacity(self.columns.len());
        for (column, cell) in self.columns.iter().zip(&cells) {
            if column.role == Role::Property
                && let Some(value) = self.value(column, cell, &cells)?
            {
                values.push((column.name.as_str(), value));
            }
        }
        self.shape.entity(self.rows, text_of, values)
    }

    fn cells(&self) -> Result<Vec<&str>, String> {
        let (found, expected) = (self.records.len(), self.columns.len());
        if found != expected {
            return Err(format!("expected {expected} columns, found {found}"));
        }
        // All of them are looked at together, and one by one only to name the one that is wrong.
        match std::str::from_utf8(self.records.bytes()) {
            Ok(text) => self.records.ranges().map(|range| text.get(range).ok_or_else(not_utf8)).collect(),
            Err(_) => Err(not_utf8()),
        }
    }

    fn value(&self, column: &Column, cell: &str, cells: &[&str]) -> Result<Option<Value>, String> {
        let named = match column.type_column.map(|index| cells[index].trim()) {
            None | Some("") if cell.is_empty() => return Ok(None),
            Some("Edm.Null" | "Null") => return Ok(None),
            None | Some("") => None,
            Some(name) => {
                let unknown =
                    || format!("expected a type such as Edm.Int64 in '{}{TYPE_SUFFIX}', found '{name}'", column.name);
                Some(edm::named(name).ok_or_else(unknown)?)
            }
        };
        let edm = named.unwrap_or(column.edm);
        let text = if matches!(edm, EdmType::String | EdmType::Binary) { self.plain(cell) } else { cell };
        match edm::parse(edm, text) {
            Some(value) => Ok(Some(value)),
            None => Err(format!(
                "expected {edm} in '{}', found '{}'",
                column.name,
                text.chars().take(64).collect::<String>()
            )),
        }
    }

    /// A text without the apostrophe of the formula-safe form.
    fn plain<'a>(&self, cell: &'a str) -> &'a str {
        match cell.strip_prefix('\'') {
            Some(rest) if self.shape.is_formula_safe && rest.starts_with(FORMULA_STARTS) => rest,
            _ => cell,
        }
    }
}

fn not_utf8() -> String {
    "expected UTF-8".to_owned()
}

/// The cells of the first record.
pub(super) fn header(records: &mut Records) -> Result<Vec<String>, FormatError> {
    let Some(line) = records.next(CELLS_MAX)? else {
        return Err(FormatError::File("expected a line with the names of the columns, found an empty file".to_owned()));
    };
    let cells: Result<Vec<_>, _> = records.ranges().map(|range| std::str::from_utf8(&records.bytes()[range])).collect();
    let cells = cells.map_err(|_| FormatError::Line { line, reason: "expected UTF-8".to_owned() })?;
    Ok(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

fn columns(header: &[String], shape: &Shape) -> Result<Vec<Column>, FormatError> {
    let refused = |reason: String| FormatError::Line { line: 1, reason };
    let mut names = HashSet::new();
    let mut columns: Vec<Column> = Vec::with_capacity(header.len());
    for name in header {
        if !names.insert(name.as_str()) {
            return Err(refused(format!("expected each column once, found '{name}' again")));
        }
        let role = match shape.types.get(name) {
            Some(None) => Role::LeftOut,
            _ if type_of(name).is_some() => Role::TypeOf,
            _ if is_system(name) => Role::System,
            _ => Role::Property,
        };
        let edm = shape.types.get(name).copied().flatten().or_else(|| shape.inferred.get(name).copied());
        columns.push(Column { name: name.clone(), edm: edm.unwrap_or(EdmType::String), type_column: None, role });
    }
    for (index, name) in header.iter().enumerate() {
        if let Some(property) = type_of(name)
            && let Some(column) = columns.iter_mut().find(|column| column.name == property)
        {
            column.type_column = Some(index);
        }
    }
    let mut properties = HashMap::new();
    for column in columns.iter().filter(|column| column.role == Role::Property) {
        let property = property_name(&column.name);
        if let Some(other) = properties.insert(property.clone(), &column.name) {
            return Err(refused(format!(
                "the columns '{other}' and '{}' would both be the property '{property}'",
                column.name
            )));
        }
    }
    Ok(columns)
}

/// The column whose types this column holds.
pub(super) fn type_of(name: &str) -> Option<&str> {
    name.strip_suffix(TYPE_SUFFIX).or_else(|| name.strip_suffix("@odata.type")).map(str::trim)
}

/// The records of a CSV file.
#[derive(Debug)]
pub(super) struct Records {
    source: Source,
    core: csv_core::Reader,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    bytes_len: usize,
    ends_len: usize,
    /// The last byte of the file that was read.
    last: u8,
}

impl Records {
    pub(super) fn new(source: Source) -> Self {
        let core = csv_core::Reader::new();
        Self { source, core, bytes: vec![0; 4096], ends: vec![0; 64], bytes_len: 0, ends_len: 0, last: 0 }
    }

    /// Reads the next record; returns the line on which it starts.
    pub(super) fn next(&mut self, cells_max: usize) -> Result<Option<u64>, FormatError> {
        (self.bytes_len, self.ends_len) = (0, 0);
        // Empty lines between records, and what is left of the end of the one before.
        if self.source.skip(|byte| matches!(byte, b'\r' | b'\n'))?.is_none() {
            return Ok(None);
        }
        let line = self.source.lines + 1;
        let refused = |reason: String| FormatError::Line { line, reason };
        loop {
            let (output, ends) = (&mut self.bytes[self.bytes_len..], &mut self.ends[self.ends_len..]);
            let input = self.source.fill()?;
            let is_at_end = input.is_empty();
            let (result, read, written, ended) = self.core.read_record(input, output, ends);
            self.last = read.checked_sub(1).map_or(self.last, |at| input[at]);
            self.source.consume(read);
            self.bytes_len += written;
            self.ends_len += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                // The end of a line ends a record, but in quotes.
                ReadRecordResult::Record if is_at_end && self.last == b'\n' => {
                    return Err(refused("expected a closing quote before the end of the file".to_owned()));
                }
                ReadRecordResult::Record => return Ok(Some(line)),
                ReadRecordResult::End => return Ok((self.ends_len > 0).then_some(line)),
                ReadRecordResult::OutputFull if self.bytes.len() >= RECORD_BYTES_MAX => {
                    return Err(refused(format!(
                        "expected a record of at most {} MiB: perhaps a quote is not closed",
                        RECORD_BYTES_MAX >> 20
                    )));
                }
                ReadRecordResult::OutputFull => self.bytes.resize(self.bytes.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= cells_max => {
                    return Err(refused(format!("expected at most {cells_max} columns")));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.ends_len
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.bytes_len]
    }

    fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut start = 0;
        self.ends[..self.ends_len].iter().map(move |end| std::mem::replace(&mut start, *end)..*end)
    }

    /// The cells that are UTF-8; others are empty.
    pub(super) fn cells(&self) -> impl Iterator<Item = &str> {
        self.ranges().map(|range| std::str::from_utf8(&self.bytes[range]).unwrap_or_default())
    }

    const fn position(&self, rows: u64) -> Position {
        Position { offset: self.source.offset, line: self.source.lines, rows }
    }

    /// The record as it may be shown.
    fn text(&self) -> String {
        let cells: Vec<_> = self.ranges().map(|range| String::from_utf8_lossy(&self.bytes[range])).collect();
        shortened(&cells.join(","))
    }
}

/// 252 properties with their types, keys and time, and room for columns that are left out.
pub(super) const CELLS_MAX: usize = 4096;
