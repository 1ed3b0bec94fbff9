//! Parquet: a column for each property and type, all of them optional.
//!
//! | EDM type | column |
//! |---|---|
//! | String | BYTE_ARRAY, STRING |
//! | Int32, Int64, Double, Boolean | INT32, INT64, DOUBLE, BOOLEAN |
//! | Guid | FIXED_LEN_BYTE_ARRAY(16), UUID |
//! | Binary | BYTE_ARRAY |
//! | DateTime | INT64, TIMESTAMP(MICROS, UTC); and `Name@ticks`, INT32, with the digit of 100 ns where one is not 0 |
//!
//! `PartitionKey`, `RowKey` and `Timestamp` come first. A property of one type has a column of its name; one of several
//! types has a column for each, `Name@Int32` and `Name@String`. `Timestamp` is TIMESTAMP(NANOS, UTC).
//!
//! The columns of a table are known only when all of it was read. Row groups are therefore encoded as they come, in any
//! order ([`RowGroup`]), and kept in a temporary file ([`Spool`]); in the end they are put together under one schema, and
//! columns that a row group does not have are all null.

mod columns;
mod pages;
mod read;
mod spool;

pub use columns::{EncodedGroup, RowGroup};
pub use read::ParquetReader;
pub use spool::Spool;

use ::parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use ::parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};
use larimar_model::EdmType;
use std::sync::Arc;

/// A column of a file, in the order of columns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ColumnKey {
    PartitionKey,
    RowKey,
    Timestamp,
    Property(String, Cells),
}

/// What a column of a property holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cells {
    Values(EdmType),
    /// What is left of times below a microsecond, in ticks of 100 ns.
    Ticks,
}

impl ColumnKey {
    /// The column's name, if its property has several types or not.
    fn name(&self, is_mixed: bool) -> String {
        match self {
            Self::PartitionKey => "PartitionKey".to_owned(),
            Self::RowKey => "RowKey".to_owned(),
            Self::Timestamp => "Timestamp".to_owned(),
            Self::Property(name, Cells::Ticks) => format!("{name}{TICKS_SUFFIX}"),
            Self::Property(name, Cells::Values(edm)) if is_mixed => format!("{name}@{}", &edm.name()["Edm.".len()..]),
            Self::Property(name, Cells::Values(_)) => name.clone(),
        }
    }

    fn schema(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = match self {
            Self::PartitionKey | Self::RowKey => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Self::Property(_, Cells::Ticks) => (Physical::INT32, None),
            Self::Property(_, Cells::Values(edm)) => match edm {
                EdmType::String => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                EdmType::Int32 => (Physical::INT32, None),
                EdmType::Int64 => (Physical::INT64, None),
                EdmType::Double => (Physical::DOUBLE, None),
                EdmType::Boolean => (Physical::BOOLEAN, None),
                EdmType::DateTime => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
                EdmType::Guid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
                EdmType::Binary => (Physical::BYTE_ARRAY, None),
            },
        };
        let repetition = if self.is_key() { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let builder =
            Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        builder.with_length(if physical == Physical::FIXED_LEN_BYTE_ARRAY { 16 } else { -1 }).build()
    }

    fn descriptor(&self, name: &str) -> Result<Arc<ColumnDescriptor>, ParquetError> {
        let levels = i16::from(!self.is_key());
        let path = ColumnPath::new(vec![name.to_owned()]);
        Ok(Arc::new(ColumnDescriptor::new(Arc::new(self.schema(name)?), levels, 0, path)))
    }

    const fn is_key(&self) -> bool {
        matches!(self, Self::PartitionKey | Self::RowKey)
    }
}

fn properties() -> Arc<WriterProperties> {
    let builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(::parquet::basic::Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("larimar ", env!("CARGO_PKG_VERSION")).to_owned());
    Arc::new(builder.build())
}

/// Of the column with the ticks of a time.
const TICKS_SUFFIX: &str = "@ticks";
const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;

#[cfg(test)]
mod tests;
