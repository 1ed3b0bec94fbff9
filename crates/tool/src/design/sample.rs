//! Properties of a description from a file of entities: types, numbers of values and lengths.

use crate::format::{Format, FormatError, Position, Reader, Shape, csv, keys::Keys};
use crate::{Error, Result};
use larimar_client::Value;
use larimar_design::{Description, Property, PropertyType};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

/// Adds the properties that the description does not have. Those that it has stay as they are.
pub(super) fn add(description: &mut Description, path: &Path) -> Result<()> {
    let refused = |error: FormatError| match error {
        FormatError::Io(source) => Error::io(path.display(), source),
        other => Error::Usage(format!("{}: {other}", path.display())),
    };
    let columns = columns(path).map_err(refused)?;
    let rows = columns.iter().map(|column| column.rows).max().unwrap_or(0);
    if rows == 0 {
        return Err(Error::Usage(format!("{}: expected at least one row", path.display())));
    }
    if description.volume.entities == 0 && description.volume.growth_per_day == 0 {
        description.volume.entities = rows;
    }
    let entities = description.volume.entities.max(rows);
    for column in columns {
        if description.properties.iter().all(|property| property.name != column.name) {
            description.properties.push(column.property(entities));
        }
    }
    Ok(())
}

/// What was seen of a column.
struct Column {
    name: String,
    kind: PropertyType,
    rows: u64,
    bytes: u64,
    /// How often each value came, by its hash.
    values: HashMap<u64, u64>,
    last: Option<Value>,
    is_growing: bool,
}

impl Column {
    fn new(name: &str, value: &Value) -> Self {
        let kind = kind(value);
        let (name, values) = (name.to_owned(), HashMap::new());
        Self { name, kind, rows: 0, bytes: 0, values, last: None, is_growing: kind == PropertyType::DateTime }
    }

    fn see(&mut self, value: Value) {
        self.rows += 1;
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Binary(bytes) => format!("{bytes:?}"),
            other => format!("{other:?}"),
        };
        self.bytes += match &value {
            // What the service counts: two bytes for each unit of UTF-16.
            Value::String(text) => 2 * text.encode_utf16().count() as u64,
            Value::Binary(bytes) => bytes.len() as u64,
            _ => 0,
        };
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        *self.values.entry(hasher.finish()).or_default() += 1;
        if let (Some(Value::DateTime(last)), Value::DateTime(time)) = (&self.last, &value) {
            self.is_growing &= last <= time;
        }
        self.last = Some(value);
    }

    /// The property in so many entities. If most values came more than once, there are few others; otherwise their
    /// number grows with the entities.
    fn property(self, entities: u64) -> Property {
        let seen = self.values.len() as u64;
        let may_identify = !matches!(self.kind, PropertyType::Double | PropertyType::DateTime | PropertyType::Boolean);
        let unique = may_identify && seen == self.rows && self.rows >= UNIQUE_ROWS_MIN;
        let distinct = match seen * 2 < self.rows {
            true => seen,
            false => (seen as f64 * entities as f64 / self.rows as f64) as u64,
        };
        let most_common = self.values.values().max().copied().unwrap_or(0) as f64 / self.rows as f64;
        let is_sized = matches!(self.kind, PropertyType::String | PropertyType::Binary);
        Property {
            name: self.name,
            kind: self.kind,
            distinct: (!unique).then_some(distinct.max(1)),
            unique,
            growing: self.is_growing && seen > 1,
            most_common: (most_common > 2.0 / seen as f64).then_some(most_common),
            bytes: is_sized.then_some(self.bytes / self.rows),
            every: None,
            repeat: None,
            example: None,
        }
    }
}

fn kind(value: &Value) -> PropertyType {
    match value {
        Value::String(_) => PropertyType::String,
        Value::Int32(_) => PropertyType::Int32,
        Value::Int64(_) => PropertyType::Int64,
        Value::Double(_) => PropertyType::Double,
        Value::Boolean(_) => PropertyType::Boolean,
        Value::DateTime(_) => PropertyType::DateTime,
        Value::Guid(_) => PropertyType::Guid,
        Value::Binary(_) => PropertyType::Binary,
    }
}

/// The columns of the first rows of a file.
fn columns(path: &Path) -> Result<Vec<Column>, FormatError> {
    let name = path.to_string_lossy();
    let Some(format) = Format::from_name(&name) else {
        return Err(FormatError::File("expected a file whose name ends in .csv, .jsonl, .json or .parquet".to_owned()));
    };
    // The rows need no keys: their numbers do.
    let number = || "{#}".parse().expect("a template");
    let mut shape = Shape { keys: Keys { partition: number(), row: number() }, ..Shape::default() };
    if format == Format::Csv {
        shape.inferred = csv::infer(File::open(path)?, ROWS_MAX)?.types;
    }
    let mut reader = Reader::open(format, File::open(path)?, shape, Position::default())?;
    let mut columns: Vec<Column> = Vec::new();
    for _ in 0..ROWS_MAX {
        let Some(record) = reader.next_record()? else { break };
        let Ok(entity) = record.entity else { continue };
        for (name, value) in entity.properties() {
            let value = value.clone();
            let is_full = columns.len() >= COLUMNS_MAX;
            match columns.iter_mut().find(|column| column.name == name) {
                Some(column) if column.kind == kind(&value) => column.see(value),
                Some(_) => {}
                None if is_full => {
                    return Err(FormatError::File(format!("expected at most {COLUMNS_MAX} columns")));
                }
                None => {
                    let mut column = Column::new(name, &value);
                    column.see(value);
                    columns.push(column);
                }
            }
        }
    }
    Ok(columns)
}

/// Rows of a sample that are read.
const ROWS_MAX: u64 = 20_000;
/// Rows without a repeated value from which on a column is taken for unique.
const UNIQUE_ROWS_MIN: u64 = 20;
const COLUMNS_MAX: usize = larimar_design::limits::PROPERTIES_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_numbers_of_values_come_from_a_sample() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("people.csv");
        let row =
            |number: usize| format!("P{number:04},{},{},2026-01-{:02}\n", number % 4, number / 3, number / 10 + 1);
        let rows: String = (0..100).map(row).collect();
        std::fs::write(&path, format!("Id,Team,Chief,Joined\n{rows}")).expect("a file");
        let text = "entity = 'Person'\n[volume]\nentities = 1000\n[[property]]\nname = 'Chief'\ntype = 'string'\n";
        let mut description: Description = toml::from_str(text).expect("TOML");
        add(&mut description, &path).expect("a sample");
        let find = |name: &str| description.properties.iter().find(|it| it.name == name).expect(name).clone();
        assert!(find("Id").unique && find("Id").bytes == Some(10));
        let team = find("Team");
        assert_eq!((team.kind, team.distinct, team.unique), (PropertyType::Int32, Some(4), false));
        assert_eq!(find("Chief").kind, PropertyType::String, "what the description says stays");
        assert!(find("Joined").growing && find("Joined").kind == PropertyType::DateTime);
        assert!(larimar_design::propose(&description).is_ok());
        let error = add(&mut description, &folder.path().join("people.txt")).expect_err("no format");
        assert!(error.to_string().contains(".csv"), "{error}");
    }
}
