//! Properties of a description from sample entities: types, numbers of values and lengths.
//!
//! [`Sample::see`] takes the values of one entity after the other; `sample/text.rs` reads them from a text.

mod text;

use crate::description::{Description, Property};
use crate::error::DesignError;
use crate::limits::{PROPERTIES_MAX, SAMPLE_ROWS_MAX};
use larimar_model::{EdmType, ValueRef};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// What was seen of some entities.
#[derive(Debug, Default)]
pub struct Sample {
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    rows: u64,
}

impl Sample {
    /// Takes one more entity into account. A property counts with the type that its first value has.
    ///
    /// # Errors
    /// More than [`PROPERTIES_MAX`] properties.
    pub fn see<'a>(
        &mut self,
        properties: impl IntoIterator<Item = (&'a str, ValueRef<'a>)>,
    ) -> Result<(), DesignError> {
        self.rows += 1;
        for (name, value) in properties {
            let index = match self.by_name.get(name) {
                Some(index) => *index,
                None if self.columns.len() >= PROPERTIES_MAX => {
                    let (what, max) = ("properties", PROPERTIES_MAX);
                    return Err(DesignError::TooMany { what, max, found: self.columns.len() + 1 });
                }
                None => {
                    self.columns.push(Column::new(name, value));
                    self.by_name.insert(name.to_owned(), self.columns.len() - 1);
                    self.columns.len() - 1
                }
            };
            self.columns[index].see(value);
        }
        Ok(())
    }

    /// Whether there are as many entities as are looked at.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.rows >= SAMPLE_ROWS_MAX
    }

    /// Adds the properties that the description does not have. Those that it has stay as they are. A description without
    /// a volume gets the number of the entities.
    ///
    /// # Errors
    /// A sample without entities.
    pub fn add_to(self, description: &mut Description) -> Result<(), DesignError> {
        if self.rows == 0 {
            return Err(DesignError::invalid("sample", "expected at least one entity"));
        }
        if description.volume.entities == 0 && description.volume.growth_per_day == 0 {
            description.volume.entities = self.rows;
        }
        let entities = description.volume.entities.max(self.rows);
        for column in self.columns {
            if description.properties.iter().all(|property| property.name != column.name) {
                description.properties.push(column.property(entities));
            }
        }
        Ok(())
    }
}

/// What was seen of a property.
#[derive(Debug)]
struct Column {
    name: String,
    kind: EdmType,
    rows: u64,
    bytes: u64,
    /// How often each value came, by its hash.
    values: HashMap<u64, u64>,
    /// The last time, in ticks.
    last: u64,
    is_growing: bool,
}

impl Column {
    fn new(name: &str, value: ValueRef<'_>) -> Self {
        let kind = value.edm_type();
        let (name, values) = (name.to_owned(), HashMap::new());
        Self { name, kind, rows: 0, bytes: 0, values, last: 0, is_growing: kind == EdmType::DateTime }
    }

    fn see(&mut self, value: ValueRef<'_>) {
        if value.edm_type() != self.kind {
            return;
        }
        self.rows += 1;
        let mut hasher = DefaultHasher::new();
        match value {
            ValueRef::String(text) => {
                // What the service counts: two bytes for each unit of UTF-16.
                self.bytes += 2 * text.encode_utf16().count() as u64;
                text.hash(&mut hasher);
            }
            ValueRef::Binary(bytes) => {
                self.bytes += bytes.len() as u64;
                bytes.hash(&mut hasher);
            }
            ValueRef::DateTime(time) => {
                self.is_growing &= self.last <= time.ticks();
                self.last = time.ticks();
                time.hash(&mut hasher);
            }
            ValueRef::Int32(number) => number.hash(&mut hasher),
            ValueRef::Int64(number) => number.hash(&mut hasher),
            ValueRef::Double(number) => number.to_bits().hash(&mut hasher),
            ValueRef::Boolean(truth) => truth.hash(&mut hasher),
            ValueRef::Guid(guid) => guid.hash(&mut hasher),
        }
        *self.values.entry(hasher.finish()).or_default() += 1;
    }

    /// The property in so many entities. If most values came more than once, there are few others; otherwise their
    /// number grows with the entities.
    fn property(self, entities: u64) -> Property {
        let seen = self.values.len() as u64;
        let may_identify = !matches!(self.kind, EdmType::Double | EdmType::DateTime | EdmType::Boolean);
        let unique = may_identify && seen == self.rows && self.rows >= UNIQUE_ROWS_MIN;
        let distinct = match seen * 2 < self.rows {
            true => seen,
            false => (seen as f64 * entities as f64 / self.rows as f64) as u64,
        };
        let most_common = self.values.values().max().copied().unwrap_or(0) as f64 / self.rows as f64;
        let is_sized = matches!(self.kind, EdmType::String | EdmType::Binary);
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

/// Rows without a repeated value from which on a column is taken for unique.
const UNIQUE_ROWS_MIN: u64 = 20;
