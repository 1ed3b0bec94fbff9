//! Rows from a file of any format, one at a time, with where they stand in it.

use super::csv::CsvReader;
use super::edm;
use super::json_lines::JsonReader;
use super::keys::Keys;
use super::parquet::ParquetReader;
use super::properties::is_system;
use super::{Format, FormatError};
use larimar_client::{DynamicEntity, Value};
use larimar_model::EdmType;
use larimar_model::column::property_name;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};

/// A place between two rows, at which reading can start again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Bytes before it; rows before it in Parquet.
    pub offset: u64,
    /// Complete lines before it; rows before it in Parquet.
    pub line: u64,
    /// Rows before it.
    pub rows: u64,
}

/// What becomes of the rows of a file: their keys and types.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The templates of the keys.
    pub keys: Keys,
    /// The types of columns that the user gave; `None` leaves a column out.
    pub types: BTreeMap<String, Option<EdmType>>,
    /// The types of columns that were inferred, for files that do not have them.
    pub inferred: HashMap<String, EdmType>,
    /// Whether cells of CSV have an apostrophe before what a spreadsheet would take for a formula.
    pub is_formula_safe: bool,
}

/// One row of a file.
#[derive(Debug)]
pub struct Record {
    /// The line on which it starts, or the number of the row in Parquet; counted from 1.
    pub line: u64,
    /// The place after it.
    pub end: Position,
    /// The entity, or why there is none.
    pub entity: Result<DynamicEntity, Refused>,
}

/// Why a row is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was expected.
    pub reason: String,
    /// The row as it stands in the file, or the start of it.
    pub text: String,
}

/// Reads the rows of a file.
#[derive(Debug)]
pub enum Reader {
    /// Of CSV.
    Csv(Box<CsvReader>),
    /// Of JSON lines, or of one JSON array.
    JsonLines(Box<JsonReader>),
    /// Of Parquet.
    Parquet(Box<ParquetReader>),
}

impl Reader {
    /// Reads a file from a place on.
    ///
    /// # Errors
    /// A file that is not of this format, or lacks columns that the keys need.
    pub fn open(format: Format, mut file: File, shape: Shape, from: Position) -> Result<Self, FormatError> {
        Ok(match format {
            Format::Csv => {
                let mut reader = CsvReader::open(Box::new(file.try_clone()?), shape)?;
                if from.offset > 0 {
                    file.seek(SeekFrom::Start(from.offset))?;
                    reader.restart(Box::new(file), from);
                }
                Self::Csv(Box::new(reader))
            }
            Format::JsonLines => {
                let mut reader = JsonReader::open(Box::new(file.try_clone()?), shape)?;
                if from.offset > 0 {
                    file.seek(SeekFrom::Start(from.offset))?;
                    reader.restart(Box::new(file), from);
                }
                Self::JsonLines(Box::new(reader))
            }
            Format::Parquet => Self::Parquet(Box::new(ParquetReader::open(file, shape, from.offset)?)),
        })
    }

    /// Reads what can be read only once, such as standard input.
    ///
    /// # Errors
    /// As [`Reader::open`]; Parquet, which is read from its end.
    pub fn stream(format: Format, input: Box<dyn Read + Send>, shape: Shape) -> Result<Self, FormatError> {
        match format {
            Format::Csv => CsvReader::open(input, shape).map(Box::new).map(Self::Csv),
            Format::JsonLines => JsonReader::open(input, shape).map(Box::new).map(Self::JsonLines),
            Format::Parquet => Err(FormatError::File(
                "expected a file: Parquet is read from its end, which a pipe does not have".into(),
            )),
        }
    }

    /// The next row.
    ///
    /// # Errors
    /// A file that cannot be read any further. A row that is merely wrong is a [`Record`] with a reason.
    pub fn next_record(&mut self) -> Result<Option<Record>, FormatError> {
        match self {
            Self::Csv(reader) => reader.next(),
            Self::JsonLines(reader) => reader.next(),
            Self::Parquet(reader) => reader.next(),
        }
    }

    /// Whether the file has a column `Timestamp`, which only the service sets.
    #[must_use]
    pub fn has_timestamp(&self) -> bool {
        match self {
            Self::Csv(reader) => reader.has_timestamp(),
            Self::JsonLines(_) => false,
            Self::Parquet(reader) => reader.has_timestamp(),
        }
    }

    /// How many rows the file has, if it says so.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        match self {
            Self::Csv(_) | Self::JsonLines(_) => None,
            Self::Parquet(reader) => Some(reader.rows()),
        }
    }

    /// The columns and their types as far as they are known before rows are read; `None`: each row has its own.
    #[must_use]
    pub fn columns(&self) -> Vec<(String, Option<EdmType>)> {
        match self {
            Self::Csv(reader) => reader.columns(),
            Self::JsonLines(_) => Vec::new(),
            Self::Parquet(reader) => reader.columns(),
        }
    }
}

impl Shape {
    /// The entity of a row, from the texts of its columns and its values.
    pub(super) fn entity<'a>(
        &self,
        number: u64,
        text_of: impl Fn(&str) -> Option<Cow<'a, str>>,
        values: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<DynamicEntity, String> {
        let (partition, row) = self.keys.build(number, text_of)?;
        let mut entity = DynamicEntity::new(partition, row);
        for (column, value) in values {
            if is_system(column) {
                continue;
            }
            let value = match self.types.get(column) {
                None => value,
                Some(None) => continue,
                Some(Some(edm)) => {
                    let found = edm::of(&value);
                    edm::convert(*edm, value).ok_or_else(|| format!("expected {edm} in '{column}', found {found}"))?
                }
            };
            let name = if is_plain(column) { column.to_owned() } else { property_name(column) };
            if entity.set(name, value).is_some() {
                return Err(format!("expected each property once, found '{column}' again"));
            }
        }
        Ok(entity)
    }
}

/// Whether a column's name is that of a property, without looking at rare letters.
fn is_plain(name: &str) -> bool {
    name.starts_with(|char: char| char.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The start of a text that is too long to be shown or kept.
/// The error for a column that the keys need.
pub(super) fn missing_column<'a>(missing: &str, columns: impl IntoIterator<Item = &'a str>) -> FormatError {
    let columns: Vec<_> = columns.into_iter().take(40).collect();
    let hint = match columns.as_slice() {
        [one] if one.contains(';') => ". Columns are separated by commas, and this file seems to have semicolons",
        [one] if one.contains('\t') => ". Columns are separated by commas, and this file seems to have tabs",
        _ => "",
    };
    FormatError::File(format!(
        "expected a column '{missing}'; give the keys with --partition-key and --row-key, such as \
         --partition-key '{{country}}' --row-key '{{id}}'. The columns are: {}{hint}",
        columns.join(", ")
    ))
}

pub(super) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 4096;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Bytes of a file with a bounded buffer, counted.
pub(super) struct Source {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    pub(super) offset: u64,
    pub(super) lines: u64,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl Source {
    /// From the start of a file, whose byte order mark is passed over.
    pub(super) fn new(input: Box<dyn Read + Send>) -> Result<Self, FormatError> {
        let mut source = Self::from(input, Position::default());
        // A pipe may give its first bytes one by one.
        while source.end < 3 {
            let read = source.input.read(&mut source.buffer[source.end..])?;
            if read == 0 {
                break;
            }
            source.end += read;
        }
        match &source.buffer[..source.end] {
            [0xef, 0xbb, 0xbf, ..] => source.consume(3),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                return Err(FormatError::File("expected UTF-8, found UTF-16: save the file as UTF-8".to_owned()));
            }
            _ => {}
        }
        Ok(source)
    }

    /// From a place between two rows.
    pub(super) fn from(input: Box<dyn Read + Send>, at: Position) -> Self {
        Self { input, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, offset: at.offset, lines: at.line }
    }

    /// The bytes at hand; none at the end.
    pub(super) fn fill(&mut self) -> io::Result<&[u8]> {
        while self.start == self.end {
            match self.input.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(read) => {
                    (self.start, self.end) = (0, read);
                    break;
                }
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        let consumed = &self.buffer[self.start..self.start + bytes];
        self.lines += consumed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Passes over these bytes; returns the first other one.
    pub(super) fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let skipped = bytes.iter().take_while(|byte| is_skipped(**byte)).count();
            let next = bytes.get(skipped).copied();
            self.consume(skipped);
            if next.is_some() {
                return Ok(next);
            }
        }
    }
}

const BUFFER_BYTES: usize = 256 * 1024;
