//! Reads Parquet: our own files, and those of other programs whose columns are not nested.

use super::pages::{Held, Pages};
use super::{TICKS_SUFFIX, UNIX_EPOCH_TICKS};
use crate::format::edm;
use crate::format::reader::missing_column;
use crate::format::{FormatError, Position, Record, Refused, Shape};
use crate::value::to_text;
use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::FileReader as _;
use ::parquet::file::serialized_reader::SerializedFileReader;
use ::parquet::schema::types::ColumnDescriptor;
use larimar_client::{DynamicEntity, Guid, Timestamp, Value};
use larimar_model::EdmType;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

/// Reads the rows of a Parquet file.
pub struct ParquetReader {
    file: SerializedFileReader<File>,
    /// The same, for the pages.
    pages: Arc<File>,
    pub(super) held: Held,
    shape: Shape,
    columns: Vec<Column>,
    group: usize,
    /// Rows of the current row group that are not read yet.
    left: u64,
    rows: u64,
}

struct Column {
    /// Its place in the file.
    index: usize,
    /// The name of the property.
    name: String,
    kind: Kind,
    /// The column with the ticks of its times.
    ticks: Option<usize>,
    reader: Option<ColumnReader>,
    cells: VecDeque<Option<Cell>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Binary,
    Guid,
    Int32,
    /// Of 32 bits without a sign.
    Unsigned32,
    Int64,
    /// Of 64 bits without a sign.
    Unsigned64,
    Double,
    Float,
    Boolean,
    /// So many ticks are one unit, or so many units one tick.
    Time {
        ticks: i64,
        units: i64,
    },
    /// Days since 1970.
    Date,
    Ticks,
}

/// A value, or why it is none that the service has.
type Cell = Result<Value, String>;

impl std::fmt::Debug for ParquetReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetReader").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl ParquetReader {
    /// Reads a file from this row on.
    ///
    /// # Errors
    /// A file that is not Parquet, has nested columns, or lacks columns that the keys need.
    pub fn open(file: File, shape: Shape, from: u64) -> Result<Self, FormatError> {
        let pages = Arc::new(file.try_clone()?);
        let file = SerializedFileReader::new(file)?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let mut columns = Vec::with_capacity(schema.num_columns());
        for (index, descriptor) in schema.columns().iter().enumerate() {
            let name = descriptor.path().string();
            if !matches!(shape.types.get(&name), Some(None)) {
                columns.push(Column::new(index, name, descriptor)?);
            }
        }
        for at in 0..columns.len() {
            let ticks = format!("{}{TICKS_SUFFIX}", columns[at].name);
            columns[at].ticks = columns.iter().position(|column| column.kind == Kind::Ticks && column.name == ticks);
        }
        if let Some(missing) = shape.keys.columns().find(|key| columns.iter().all(|column| column.name != *key)) {
            return Err(missing_column(missing, columns.iter().map(|column| column.name.as_str())));
        }
        let mut reader = Self { file, pages, held: Held::default(), shape, columns, group: 0, left: 0, rows: 0 };
        reader.skip_to(from)?;
        Ok(reader)
    }

    pub(crate) fn has_timestamp(&self) -> bool {
        self.columns.iter().any(|column| column.name == "Timestamp")
    }

    pub(crate) fn columns(&self) -> Vec<(String, Option<EdmType>)> {
        let is_property =
            |column: &&Column| column.kind != Kind::Ticks && !crate::format::properties::is_system(&column.name);
        self.columns.iter().filter(is_property).map(|column| (column.name.clone(), column.kind.edm())).collect()
    }

    pub(crate) fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    pub(crate) fn next(&mut self) -> Result<Option<Record>, FormatError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(None);
            }
            self.open_group()?;
        }
        let mut cells = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            if column.cells.is_empty() {
                column.fill(self.left)?;
            }
            cells.push(column.cells.pop_front().ok_or_else(|| short(&column.name))?);
        }
        self.left -= 1;
        self.rows += 1;
        let end = Position { offset: self.rows, line: self.rows, rows: self.rows };
        let entity = self.entity(&cells).map_err(|reason| Refused { reason, text: text(&self.columns, &cells) });
        Ok(Some(Record { line: self.rows, end, entity }))
    }

    fn entity(&self, cells: &[Option<Cell>]) -> Result<DynamicEntity, String> {
        let mut values: Vec<(&str, Value)> = Vec::with_capacity(cells.len());
        for (column, cell) in self.columns.iter().zip(cells) {
            let (false, Some(cell)) = (column.kind == Kind::Ticks, cell) else { continue };
            let mut value = cell.clone().map_err(|reason| format!("'{}': {reason}", column.name))?;
            if let (Value::DateTime(time), Some(ticks)) = (&mut value, column.ticks)
                && let Some(Ok(Value::Int32(ticks @ 0..=9))) = &cells[ticks]
            {
                *time = Timestamp::from_ticks(time.ticks() + u64::from(ticks.unsigned_abs()));
            }
            values.push((&column.name, value));
        }
        let text_of = |name: &str| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some(Cow::Owned(to_text(value).into_owned()))
        };
        self.shape.entity(self.rows, text_of, values.clone())
    }

    fn open_group(&mut self) -> Result<(), FormatError> {
        let group = self.file.metadata().row_group(self.group);
        self.left = u64::try_from(group.num_rows()).unwrap_or(0);
        for column in &mut self.columns {
            // The pages of the row group before make room first.
            column.reader = None;
            column.cells.clear();
        }
        for column in &mut self.columns {
            let pages = Pages::open(&self.pages, group, column.index, &self.held)?;
            let descriptor = group.column(column.index).column_descr_ptr();
            column.reader = Some(get_column_reader(descriptor, Box::new(pages)));
        }
        self.group += 1;
        Ok(())
    }

    fn skip_to(&mut self, row: u64) -> Result<(), FormatError> {
        let metadata = self.file.metadata();
        for group in metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            if self.rows + rows > row {
                break;
            }
            self.rows += rows;
            self.group += 1;
        }
        while self.rows < row && self.next()?.is_some() {}
        Ok(())
    }
}

/// A row as it may be shown.
fn text(columns: &[Column], cells: &[Option<Cell>]) -> String {
    let mut shown = serde_json::Map::new();
    for (column, cell) in columns.iter().zip(cells) {
        if let Some(Ok(value)) = cell {
            shown.insert(column.name.clone(), to_text(value).into_owned().into());
        }
    }
    crate::format::reader::shortened(&serde_json::Value::Object(shown).to_string())
}

fn short(column: &str) -> FormatError {
    FormatError::File(format!("Parquet: column '{column}' has fewer rows than its row group"))
}

impl Column {
    fn new(index: usize, name: String, descriptor: &ColumnDescriptor) -> Result<Self, FormatError> {
        let is_flat = descriptor.path().parts().len() == 1 && descriptor.max_rep_level() == 0;
        let kind = is_flat.then(|| kind(descriptor, &name)).flatten().ok_or_else(|| {
            FormatError::File(format!(
                "column '{name}' is of a type that tables do not have (nested, decimal or time of day): convert it, or \
                 leave it out with null for it in the schema file"
            ))
        })?;
        // Our own name of a column of one of several types.
        let property = name.rsplit_once('@').filter(|(_, edm)| edm::named(edm).is_some()).map(|(name, _)| name);
        let name = property.map_or(name.clone(), str::to_owned);
        Ok(Self { index, name, kind, ticks: None, reader: None, cells: VecDeque::new() })
    }

    /// Reads some cells, of as many rows as are left in the row group.
    fn fill(&mut self, left: u64) -> Result<(), FormatError> {
        let rows = usize::try_from(left).unwrap_or(BATCH_ROWS).min(BATCH_ROWS);
        let kind = self.kind;
        let reader = self.reader.as_mut().ok_or_else(|| short(&self.name))?;
        let cells = match reader {
            ColumnReader::BoolColumnReader(reader) => read(reader, rows, |value| Ok(Value::Boolean(*value))),
            ColumnReader::Int32ColumnReader(reader) => read(reader, rows, |value| kind.integer((*value).into())),
            ColumnReader::Int64ColumnReader(reader) => read(reader, rows, |value| kind.integer(*value)),
            ColumnReader::FloatColumnReader(reader) => read(reader, rows, |value| Ok(Value::Double((*value).into()))),
            ColumnReader::DoubleColumnReader(reader) => read(reader, rows, |value| Ok(Value::Double(*value))),
            ColumnReader::ByteArrayColumnReader(reader) => read(reader, rows, |value| kind.bytes(value.data())),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => read(reader, rows, |value| kind.bytes(value.data())),
            ColumnReader::Int96ColumnReader(reader) => read(reader, rows, |value| {
                // Of old programs: nanoseconds of the day, and the Julian day.
                kind.integer(value.to_nanos())
            }),
        };
        self.cells.extend(cells?);
        Ok(())
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    cell: impl Fn(&T::T) -> Cell,
) -> Result<Vec<Option<Cell>>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let mut values = values.iter();
    match levels.is_empty() {
        // A column that always has a value has no levels.
        true => Ok(values.take(rows).map(|value| Some(cell(value))).collect()),
        false => Ok(levels.iter().map(|level| (*level == 1).then(|| values.next().map(&cell)).flatten()).collect()),
    }
}

impl Kind {
    const fn edm(self) -> Option<EdmType> {
        Some(match self {
            Self::Text => EdmType::String,
            Self::Binary => EdmType::Binary,
            Self::Guid => EdmType::Guid,
            Self::Int32 => EdmType::Int32,
            Self::Unsigned32 | Self::Int64 | Self::Unsigned64 => EdmType::Int64,
            Self::Double | Self::Float => EdmType::Double,
            Self::Boolean => EdmType::Boolean,
            Self::Time { .. } | Self::Date => EdmType::DateTime,
            Self::Ticks => return None,
        })
    }

    fn integer(self, number: i64) -> Cell {
        match self {
            Self::Int32 | Self::Ticks => i32::try_from(number).map(Value::Int32).map_err(|error| error.to_string()),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bits are those of a u32")]
            Self::Unsigned32 => Ok(Value::Int64((number as u32).into())),
            Self::Unsigned64 if number < 0 => Err("expected an integer that fits Int64".to_owned()),
            Self::Date => time(number.checked_mul(86_400 * 10_000_000)),
            Self::Time { ticks, units } => time(number.div_euclid(units).checked_mul(ticks)),
            _ => Ok(Value::Int64(number)),
        }
    }

    fn bytes(self, bytes: &[u8]) -> Cell {
        match self {
            Self::Text => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::String(text.to_owned())),
                Err(_) => Err("expected UTF-8".to_owned()),
            },
            Self::Guid => match bytes.try_into() {
                Ok(bytes) => Ok(Value::Guid(Guid::from_bytes(bytes))),
                Err(_) => Err("expected 16 bytes".to_owned()),
            },
            _ => Ok(Value::Binary(bytes.to_vec())),
        }
    }
}

/// The time this many ticks after 1970, if the service has it.
fn time(ticks: Option<i64>) -> Cell {
    let time = ticks.and_then(|ticks| ticks.checked_add(UNIX_EPOCH_TICKS)).and_then(|ticks| u64::try_from(ticks).ok());
    let time = time.map(Timestamp::from_ticks).filter(|time| (Timestamp::MIN..=Timestamp::MAX).contains(time));
    time.map(Value::DateTime).ok_or_else(|| "expected a time from 1601-01-01 to 9999-12-31".to_owned())
}

/// How a column is read; `None` if there is nothing like it in tables.
fn kind(descriptor: &ColumnDescriptor, name: &str) -> Option<Kind> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => Kind::Time { ticks: 10_000, units: 1 },
        TimeUnit::MICROS => Kind::Time { ticks: 10, units: 1 },
        TimeUnit::NANOS => Kind::Time { ticks: 1, units: 100 },
    };
    let physical = descriptor.physical_type();
    let converted = descriptor.converted_type();
    Some(match (physical, descriptor.logical_type_ref()) {
        (_, Some(LogicalType::Timestamp(time))) => unit(&time.unit),
        (Physical::INT96, _) => unit(&TimeUnit::NANOS),
        (_, Some(LogicalType::Date)) => Kind::Date,
        (_, Some(LogicalType::Uuid)) => Kind::Guid,
        (_, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)) => Kind::Text,
        (Physical::INT32, Some(LogicalType::Integer(integer))) if !integer.is_signed && integer.bit_width == 32 => {
            Kind::Unsigned32
        }
        (Physical::INT64, Some(LogicalType::Integer(integer))) if !integer.is_signed => Kind::Unsigned64,
        (_, Some(LogicalType::Decimal { .. } | LogicalType::Time { .. })) => return None,
        _ if converted == ConvertedType::TIMESTAMP_MILLIS => unit(&TimeUnit::MILLIS),
        _ if converted == ConvertedType::TIMESTAMP_MICROS => unit(&TimeUnit::MICROS),
        _ if converted == ConvertedType::DATE => Kind::Date,
        _ if matches!(converted, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON) => Kind::Text,
        _ if converted == ConvertedType::UINT_32 => Kind::Unsigned32,
        _ if converted == ConvertedType::UINT_64 => Kind::Unsigned64,
        _ if matches!(converted, ConvertedType::DECIMAL | ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS) => {
            return None;
        }
        (Physical::INT32, _) if name.ends_with(TICKS_SUFFIX) => Kind::Ticks,
        (Physical::INT32, _) => Kind::Int32,
        (Physical::INT64, _) => Kind::Int64,
        (Physical::DOUBLE, _) => Kind::Double,
        (Physical::FLOAT, _) => Kind::Float,
        (Physical::BOOLEAN, _) => Kind::Boolean,
        (Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY, _) => Kind::Binary,
    })
}

const BATCH_ROWS: usize = 512;
