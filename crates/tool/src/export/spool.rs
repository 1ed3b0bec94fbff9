//! Rows of CSV that wait for the names of all columns, in a temporary file.
//!
//! ```text
//! row  = u32 length, keys and time as cells; u16 count; cell*
//! cell = u16 column; u32 length; the value, and its type, as cells
//! ```

use crate::format::csv::CsvWriter;
use larimar_client::DynamicEntity;
use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use tempfile::SpooledTempFile;

/// Rows of CSV without their header.
pub(super) struct CsvSpool {
    file: BufWriter<SpooledTempFile>,
    writer: CsvWriter,
    columns: HashMap<String, u16>,
    row: Vec<u8>,
}

impl CsvSpool {
    pub(super) fn new(has_types: bool, is_formula_safe: bool) -> Self {
        let file = BufWriter::new(SpooledTempFile::new(MEMORY_BYTES_MAX));
        Self { file, writer: CsvWriter::new(has_types, is_formula_safe), columns: HashMap::new(), row: Vec::new() }
    }

    pub(super) fn push(&mut self, entity: &DynamicEntity) -> io::Result<()> {
        self.row.clear();
        length_prefixed(&mut self.row, |out| self.writer.keys(out, entity));
        let properties = entity.properties();
        self.row.extend_from_slice(&number(properties.len())?.to_le_bytes());
        for (name, value) in properties {
            let column = match self.columns.get(name) {
                Some(column) => *column,
                None => {
                    let column = number(self.columns.len())?;
                    self.columns.insert(name.to_owned(), column);
                    column
                }
            };
            self.row.extend_from_slice(&column.to_le_bytes());
            length_prefixed(&mut self.row, |out| self.writer.value(out, value));
        }
        self.file.write_all(&self.row)
    }

    /// Writes the file: the header with columns in the order of their names, then the rows.
    pub(super) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let mut file = BufReader::with_capacity(256 * 1024, file);
        let mut names: Vec<_> = self.columns.into_iter().collect();
        names.sort();
        let mut places = vec![0; names.len()];
        for (place, (_, column)) in names.iter().enumerate() {
            places[usize::from(*column)] = place;
        }
        let mut row = Vec::new();
        self.writer.header(&mut row, names.iter().map(|(name, _)| name.as_str()));
        out.write_all(&row)?;
        let absent = self.writer.absent();
        while let Some(keys) = read_keys(&mut file)? {
            let mut cells: Vec<Option<Vec<u8>>> = vec![None; places.len()];
            for _ in 0..read_u16(&mut file)? {
                let column = read_u16(&mut file)?;
                cells[places[usize::from(column)]] = Some(read_bytes(&mut file)?);
            }
            row.clear();
            row.extend_from_slice(&keys);
            for cell in &cells {
                row.push(b',');
                row.extend_from_slice(cell.as_deref().unwrap_or(absent));
            }
            row.extend_from_slice(b"\r\n");
            out.write_all(&row)?;
        }
        Ok(())
    }
}

/// A table of this protocol may have any number of names; a file of so many columns nobody can use.
fn number(count: usize) -> io::Result<u16> {
    u16::try_from(count).map_err(|_| io::Error::other("a table with more than 65,535 names of properties: use jsonl"))
}

fn length_prefixed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - start - 4).expect("an entity is small");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The keys of the next row; none at the end.
fn read_keys(file: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    match read_bytes(file) {
        Ok(keys) => Ok(Some(keys)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_u16(file: &mut impl Read) -> io::Result<u16> {
    let mut bytes = [0; 2];
    file.read_exact(&mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

fn read_bytes(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    file.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Small tables never touch the disk.
const MEMORY_BYTES_MAX: usize = 32 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_their_names_whenever_they_came() {
        let mut spool = CsvSpool::new(true, false);
        spool.push(&DynamicEntity::new("p", "1").with("Z", 1).with("B", "")).expect("a row");
        spool.push(&DynamicEntity::new("p", "2").with("A", "x,y").with("Z", true)).expect("a row");
        let mut out = Vec::new();
        spool.finish(&mut out).expect("a file");
        let expected = "PartitionKey,RowKey,Timestamp,A,A@type,B,B@type,Z,Z@type\r\n\
                        p,1,,,,,Edm.String,1,Edm.Int32\r\n\
                        p,2,,\"x,y\",Edm.String,,,true,Edm.Boolean\r\n";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }
}
