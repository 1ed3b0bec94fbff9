//! Rows as columns: gathered until there are enough, then encoded.

use super::{Cells, ColumnKey, UNIX_EPOCH_TICKS, properties};
use crate::format::FormatError;
use crate::format::edm;
use ::parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use ::parquet::data_type::{ByteArray, FixedLenByteArray};
use ::parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use bytes::Bytes;
use larimar_client::{DynamicEntity, Timestamp, Value};
use larimar_model::EdmType;
use std::collections::HashMap;

/// Rows that become one row group.
#[derive(Debug, Default)]
pub struct RowGroup {
    rows: usize,
    bytes: usize,
    columns: Vec<Column>,
    by_key: HashMap<String, Vec<(EdmType, usize)>>,
    /// The columns of the row before, which mostly has the same properties.
    last: Vec<usize>,
}

/// A row group in the form of the file.
#[derive(Debug)]
pub struct EncodedGroup {
    pub(super) rows: usize,
    pub(super) chunks: Vec<Chunk>,
}

#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) key: ColumnKey,
    pub(super) bytes: Vec<u8>,
    pub(super) close: ColumnCloseResult,
}

#[derive(Debug)]
struct Column {
    key: ColumnKey,
    /// One number for each row up to the last one with a value: 1 if it has one.
    levels: Vec<i16>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Bytes { bytes: Vec<u8>, ends: Vec<usize> },
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Boolean(Vec<bool>),
    Times { micros: Vec<i64>, ticks: Vec<i32> },
}

impl RowGroup {
    /// Adds a row.
    pub fn push(&mut self, entity: &DynamicEntity) {
        if self.columns.is_empty() {
            for key in [ColumnKey::PartitionKey, ColumnKey::RowKey, ColumnKey::Timestamp] {
                let values = if key == ColumnKey::Timestamp { Values::Int64(Vec::new()) } else { Values::bytes() };
                self.columns.push(Column { key, levels: Vec::new(), values });
            }
        }
        self.columns[0].values.push_bytes(entity.partition_key.as_bytes());
        self.columns[1].values.push_bytes(entity.row_key.as_bytes());
        if let Some(nanoseconds) = entity.timestamp.and_then(nanoseconds) {
            let timestamps = &mut self.columns[2];
            timestamps.present(self.rows);
            timestamps.values.push(&Value::Int64(nanoseconds));
        }
        self.bytes += entity.partition_key.len() + entity.row_key.len() + 24;
        for (at, (name, value)) in entity.properties().enumerate() {
            let index = self.column(at, name, edm::of(value));
            let column = &mut self.columns[index];
            column.present(self.rows);
            self.bytes += 8 + column.values.push(value);
        }
        self.rows += 1;
    }

    /// Whether it has as many rows or bytes as a row group should have.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.bytes >= GROUP_BYTES_MAX || self.rows >= GROUP_ROWS_MAX
    }

    /// How many rows it has.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    fn column(&mut self, at: usize, name: &str, edm: EdmType) -> usize {
        let is_it = |column: &Column| matches!(&column.key, ColumnKey::Property(known, Cells::Values(of)) if *of == edm && known == name);
        if let Some(index) = self.last.get(at).copied()
            && is_it(&self.columns[index])
        {
            return index;
        }
        let known = self.by_key.get(name).and_then(|types| types.iter().find(|(of, _)| *of == edm));
        let index = match known {
            Some((_, index)) => *index,
            None => {
                let key = ColumnKey::Property(name.to_owned(), Cells::Values(edm));
                self.columns.push(Column { key, levels: Vec::new(), values: Values::new(edm) });
                self.by_key.entry(name.to_owned()).or_default().push((edm, self.columns.len() - 1));
                self.columns.len() - 1
            }
        };
        self.last.resize(self.last.len().max(at + 1), 0);
        self.last[at] = index;
        index
    }

    /// Encodes the columns.
    ///
    /// # Errors
    /// None that is known; those of the encoder.
    pub fn encode(self) -> Result<EncodedGroup, FormatError> {
        let mut chunks = Vec::with_capacity(self.columns.len());
        for mut column in self.columns {
            column.levels.resize(self.rows, 0);
            if let Values::Times { ticks, .. } = &mut column.values
                && ticks.iter().any(|tick| *tick != 0)
                && let ColumnKey::Property(name, _) = &column.key
            {
                let key = ColumnKey::Property(name.clone(), Cells::Ticks);
                let values = Values::Int32(std::mem::take(ticks));
                chunks.push(Column { key, levels: column.levels.clone(), values }.encode()?);
            }
            chunks.push(column.encode()?);
        }
        Ok(EncodedGroup { rows: self.rows, chunks })
    }
}

/// Nanoseconds since 1970, if they fit: from 1677 to 2262.
fn nanoseconds(time: Timestamp) -> Option<i64> {
    since_1970(time).checked_mul(100)
}

fn since_1970(time: Timestamp) -> i64 {
    i64::try_from(time.ticks()).unwrap_or(i64::MAX).saturating_sub(UNIX_EPOCH_TICKS)
}

impl Column {
    fn present(&mut self, row: usize) {
        self.levels.resize(row, 0);
        self.levels.push(1);
    }

    fn encode(self) -> Result<Chunk, FormatError> {
        // Its final name is known when all types of its property are.
        let descriptor = self.key.descriptor(&self.key.name(false))?;
        let mut sink = TrackedWrite::new(Vec::new());
        let mut writer = get_column_writer(descriptor, properties(), Box::new(SerializedPageWriter::new(&mut sink)));
        let levels = (!self.key.is_key()).then_some(self.levels.as_slice());
        match (&mut writer, self.values) {
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Bytes { bytes, ends }) => {
                let values: Vec<ByteArray> = slices(bytes, &ends).map(ByteArray::from).collect();
                writer.write_batch(&values, levels, None)?
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(writer), Values::Bytes { bytes, ends }) => {
                let values: Vec<FixedLenByteArray> =
                    slices(bytes, &ends).map(|bytes| FixedLenByteArray::from(ByteArray::from(bytes))).collect();
                writer.write_batch(&values, levels, None)?
            }
            (ColumnWriter::Int32ColumnWriter(writer), Values::Int32(values)) => {
                writer.write_batch(&values, levels, None)?
            }
            (ColumnWriter::Int64ColumnWriter(writer), Values::Int64(values) | Values::Times { micros: values, .. }) => {
                writer.write_batch(&values, levels, None)?
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Double(values)) => {
                writer.write_batch(&values, levels, None)?
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Boolean(values)) => {
                writer.write_batch(&values, levels, None)?
            }
            _ => unreachable!("a column's values are of the type of its schema"),
        };
        let close = writer.close()?;
        let bytes = sink.into_inner()?;
        Ok(Chunk { key: self.key, bytes, close })
    }
}

/// Parts of a buffer that they share.
fn slices(bytes: Vec<u8>, ends: &[usize]) -> impl Iterator<Item = Bytes> {
    let (bytes, mut start) = (Bytes::from(bytes), 0);
    ends.iter().map(move |end| bytes.slice(std::mem::replace(&mut start, *end)..*end))
}

impl Values {
    const fn bytes() -> Self {
        Self::Bytes { bytes: Vec::new(), ends: Vec::new() }
    }

    const fn new(edm: EdmType) -> Self {
        match edm {
            EdmType::String | EdmType::Binary | EdmType::Guid => Self::bytes(),
            EdmType::Int32 => Self::Int32(Vec::new()),
            EdmType::Int64 => Self::Int64(Vec::new()),
            EdmType::Double => Self::Double(Vec::new()),
            EdmType::Boolean => Self::Boolean(Vec::new()),
            EdmType::DateTime => Self::Times { micros: Vec::new(), ticks: Vec::new() },
        }
    }

    fn push_bytes(&mut self, more: &[u8]) {
        if let Self::Bytes { bytes, ends } = self {
            bytes.extend_from_slice(more);
            ends.push(bytes.len());
        }
    }

    /// Adds a value of the column's type; returns how many bytes it has beside a number.
    fn push(&mut self, value: &Value) -> usize {
        match (self, value) {
            (bytes @ Self::Bytes { .. }, Value::String(text)) => {
                bytes.push_bytes(text.as_bytes());
                text.len()
            }
            (bytes @ Self::Bytes { .. }, Value::Binary(value)) => {
                bytes.push_bytes(value);
                value.len()
            }
            (bytes @ Self::Bytes { .. }, Value::Guid(guid)) => {
                bytes.push_bytes(guid.as_bytes());
                16
            }
            (Self::Int32(values), Value::Int32(value)) => add(values, *value),
            (Self::Int64(values), Value::Int64(value)) => add(values, *value),
            (Self::Double(values), Value::Double(value)) => add(values, *value),
            (Self::Boolean(values), Value::Boolean(value)) => add(values, *value),
            (Self::Times { micros, ticks }, Value::DateTime(time)) => {
                let since = since_1970(*time);
                ticks.push((since.rem_euclid(10)) as i32);
                add(micros, since.div_euclid(10))
            }
            _ => unreachable!("a column is found by the type of the value"),
        }
    }
}

fn add<T>(values: &mut Vec<T>, value: T) -> usize {
    values.push(value);
    0
}

/// Several row groups are gathered at once; readers want at least some megabytes in each.
const GROUP_BYTES_MAX: usize = 32 * 1024 * 1024;
const GROUP_ROWS_MAX: usize = 256 * 1024;
