//! What is printed as one line.

use crate::value;
use larimar_client::{DynamicEntity, Value};

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Text, on the left of its column.
    Text(String),
    /// A number, on the right of its column. JSON has it without quotes.
    Number(String),
}

impl Field {
    /// The text of the cell.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Field {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string())
    }
}

/// What is printed as one line.
pub trait Record {
    /// Its columns and their cells.
    fn fields(&self) -> Vec<(String, Field)>;

    /// The record as one JSON object.
    fn write_json(&self, out: &mut Vec<u8>);
}

/// A record of columns that the command knows.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(&'static str, Field)>);

impl Fields {
    /// A record without columns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The record with another column.
    #[must_use]
    pub fn with(mut self, name: &'static str, field: impl Into<Field>) -> Self {
        self.0.push((name, field.into()));
        self
    }
}

impl Record for Fields {
    fn fields(&self) -> Vec<(String, Field)> {
        self.0.iter().map(|(name, field)| ((*name).to_owned(), field.clone())).collect()
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        for (place, (name, field)) in self.0.iter().enumerate() {
            out.push(if place == 0 { b'{' } else { b',' });
            value::write_string(name, out);
            out.push(b':');
            match field {
                Field::Text(text) => value::write_string(text, out),
                Field::Number(number) => out.extend_from_slice(number.as_bytes()),
            }
        }
        out.push(b'}');
    }
}

impl Record for DynamicEntity {
    fn fields(&self) -> Vec<(String, Field)> {
        let mut fields: Vec<(String, Field)> = vec![("PartitionKey".to_owned(), self.partition_key.as_str().into())];
        fields.push(("RowKey".to_owned(), self.row_key.as_str().into()));
        for (name, value) in self.properties() {
            let text = value::to_text(value).into_owned();
            let is_number = matches!(value, Value::Int32(_) | Value::Int64(_) | Value::Double(_));
            fields.push((name.to_owned(), if is_number { Field::Number(text) } else { Field::Text(text) }));
        }
        if let Some(time) = self.timestamp {
            fields.push(("Timestamp".to_owned(), Field::Text(time.to_string())));
        }
        fields
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        value::write_json(self, out);
    }
}
