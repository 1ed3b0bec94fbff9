//! Encoded row groups in a temporary file, and the file that they become.

use super::columns::{Chunk, EncodedGroup};
use super::{Cells, ColumnKey, properties};
use crate::format::FormatError;
use ::parquet::column::writer::{ColumnCloseResult, ColumnWriter};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{ColumnDescriptor, Type};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read as _, Seek as _, SeekFrom, Write};
use std::sync::Arc;
use tempfile::SpooledTempFile;

/// Row groups that wait for the schema of the file.
#[derive(Debug)]
pub struct Spool {
    file: SpooledTempFile,
    at: u64,
    groups: Vec<(usize, BTreeMap<ColumnKey, Stored>)>,
}

#[derive(Debug)]
struct Stored {
    offset: u64,
    length: usize,
    close: ColumnCloseResult,
}

impl Spool {
    /// An empty one. Nothing is written to disk before there is much of it.
    ///
    /// # Errors
    /// None; a build without Parquet has one.
    pub fn new() -> Result<Self, FormatError> {
        Ok(Self { file: SpooledTempFile::new(MEMORY_BYTES_MAX), at: 0, groups: Vec::new() })
    }

    /// Adds a row group.
    ///
    /// # Errors
    /// A full disk.
    pub fn push(&mut self, group: EncodedGroup) -> Result<(), FormatError> {
        let mut chunks = BTreeMap::new();
        for Chunk { key, bytes, close } in group.chunks {
            self.file.write_all(&bytes)?;
            chunks.insert(key, Stored { offset: self.at, length: bytes.len(), close });
            self.at += bytes.len() as u64;
        }
        self.groups.push((group.rows, chunks));
        Ok(())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn finish(mut self, out: impl Write + Send) -> Result<(), FormatError> {
        let columns = self.columns()?;
        let fields = columns.iter().map(|(_, descriptor)| descriptor.self_type_ptr()).collect();
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        let mut writer = SerializedFileWriter::new(out, schema, properties())?;
        for (rows, mut chunks) in std::mem::take(&mut self.groups) {
            let mut group = writer.next_row_group()?;
            for (key, descriptor) in &columns {
                match chunks.remove(key) {
                    Some(stored) => {
                        let bytes = self.read(&stored)?;
                        group.append_column(&bytes, renamed(stored.close, descriptor)?)?;
                    }
                    None => {
                        let column = group.next_column()?;
                        write_nulls(column.ok_or_else(|| FormatError::File("a column too many".to_owned()))?, rows)?;
                    }
                }
            }
            group.close()?;
        }
        writer.into_inner()?.flush()?;
        Ok(())
    }

    /// All columns in their order, with their final names.
    fn columns(&self) -> Result<Vec<(ColumnKey, Arc<ColumnDescriptor>)>, ParquetError> {
        let fixed = [ColumnKey::PartitionKey, ColumnKey::RowKey, ColumnKey::Timestamp];
        let keys: BTreeSet<_> =
            self.groups.iter().flat_map(|(_, chunks)| chunks.keys().cloned()).chain(fixed).collect();
        let mut types: HashMap<&str, usize> = HashMap::new();
        for key in &keys {
            if let ColumnKey::Property(name, Cells::Values(_)) = key {
                *types.entry(name).or_default() += 1;
            }
        }
        let is_mixed =
            |key: &ColumnKey| matches!(key, ColumnKey::Property(name, _) if types.get(name.as_str()) > Some(&1));
        keys.iter().map(|key| Ok((key.clone(), key.descriptor(&key.name(is_mixed(key)))?))).collect()
    }

    fn read(&mut self, stored: &Stored) -> Result<Bytes, FormatError> {
        self.file.seek(SeekFrom::Start(stored.offset))?;
        let mut bytes = vec![0; stored.length];
        self.file.read_exact(&mut bytes)?;
        Ok(Bytes::from(bytes))
    }
}

/// The same column under its final name.
fn renamed(close: ColumnCloseResult, descriptor: &Arc<ColumnDescriptor>) -> Result<ColumnCloseResult, ParquetError> {
    let known = &close.metadata;
    if known.column_descr() == descriptor.as_ref() {
        return Ok(close);
    }
    let mut builder = ColumnChunkMetaData::builder(Arc::clone(descriptor))
        .set_encodings_mask(*known.encodings_mask())
        .set_compression_codec(known.compression_codec())
        .set_num_values(known.num_values())
        .set_total_compressed_size(known.compressed_size())
        .set_total_uncompressed_size(known.uncompressed_size())
        .set_data_page_offset(known.data_page_offset())
        .set_dictionary_page_offset(known.dictionary_page_offset())
        .set_unencoded_byte_array_data_bytes(known.unencoded_byte_array_data_bytes())
        .set_repetition_level_histogram(known.repetition_level_histogram().cloned())
        .set_definition_level_histogram(known.definition_level_histogram().cloned());
    if let Some(statistics) = known.statistics() {
        builder = builder.set_statistics(statistics.clone());
    }
    if let Some(encodings) = known.page_encoding_stats() {
        builder = builder.set_page_encoding_stats(encodings.clone());
    }
    Ok(ColumnCloseResult { metadata: builder.build()?, ..close })
}

fn write_nulls(mut column: SerializedColumnWriter<'_>, rows: usize) -> Result<(), ParquetError> {
    let levels = vec![0; rows];
    match column.untyped() {
        ColumnWriter::BoolColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None)?,
        ColumnWriter::Int32ColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None)?,
        ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None)?,
        ColumnWriter::DoubleColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None)?,
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None)?,
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None)?,
        ColumnWriter::Int96ColumnWriter(_) | ColumnWriter::FloatColumnWriter(_) => 0,
    };
    column.close()
}

/// Small tables never touch the disk.
const MEMORY_BYTES_MAX: usize = 32 * 1024 * 1024;
