//! CSV as Azure Storage Explorer writes it: `PartitionKey,RowKey,Timestamp`, then for each property its value and its
//! type (`Age,Age@type`).
//!
//! An absent property has neither value nor type; an empty string has the type `Edm.String` and no value. Where a file
//! has no type column, an empty cell is an absent property, and types are inferred. Texts are written as they are, times
//! with all their digits, binary values in Base64.
//!
//! The formula-safe form has an apostrophe before texts and binary values that start with one of `= + - @ '`, a tab or a
//! carriage return; reading it with the same option removes it again.

mod infer;
mod read;

pub use infer::{Inferred, infer};
pub use read::CsvReader;

use crate::value::to_text;
use larimar_client::{DynamicEntity, Value};

/// Writes the parts of rows.
#[derive(Clone, Copy, Debug)]
pub struct CsvWriter {
    /// Whether each property has a column with its type.
    has_types: bool,
    is_formula_safe: bool,
}

impl CsvWriter {
    /// A writer, with or without types, safe for spreadsheets or not.
    #[must_use]
    pub const fn new(has_types: bool, is_formula_safe: bool) -> Self {
        Self { has_types, is_formula_safe }
    }

    /// Appends the names of the columns, for properties of these names.
    pub fn header<'a>(&self, out: &mut Vec<u8>, properties: impl IntoIterator<Item = &'a str>) {
        out.extend_from_slice(b"PartitionKey,RowKey,Timestamp");
        for name in properties {
            out.push(b',');
            self.cell(out, name, false);
            if self.has_types {
                out.push(b',');
                self.cell(out, &format!("{name}{TYPE_SUFFIX}"), false);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the first cells of a row: keys and time.
    pub fn keys(&self, out: &mut Vec<u8>, entity: &DynamicEntity) {
        self.cell(out, &entity.partition_key, true);
        out.push(b',');
        self.cell(out, &entity.row_key, true);
        out.push(b',');
        if let Some(time) = entity.timestamp {
            out.extend_from_slice(time.to_string().as_bytes());
        }
    }

    /// Appends the cells of a property that a row has.
    pub fn value(&self, out: &mut Vec<u8>, value: &Value) {
        self.cell(out, &to_text(value), matches!(value, Value::String(_) | Value::Binary(_)));
        if self.has_types {
            out.push(b',');
            out.extend_from_slice(value.type_name().as_bytes());
        }
    }

    /// The cells of a property that a row does not have.
    #[must_use]
    pub const fn absent(&self) -> &'static [u8] {
        if self.has_types { b"," } else { b"" }
    }

    fn cell(&self, out: &mut Vec<u8>, text: &str, is_text: bool) {
        let is_formula = self.is_formula_safe && is_text && text.starts_with(FORMULA_STARTS);
        let is_quoted = text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
        if is_quoted {
            out.push(b'"');
        }
        if is_formula {
            out.push(b'\'');
        }
        match is_quoted {
            false => out.extend_from_slice(text.as_bytes()),
            true => {
                for byte in text.bytes() {
                    out.push(byte);
                    if byte == b'"' {
                        out.push(b'"');
                    }
                }
                out.push(b'"');
            }
        }
    }
}

/// What a spreadsheet takes for a formula, and the apostrophe that says that it is none.
const FORMULA_STARTS: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

const TYPE_SUFFIX: &str = "@type";

#[cfg(test)]
mod tests;
