//! What users describe: an entity, its volume, its queries and its writes. `docs/designer.md` has an example.

use crate::rate::{Rate, Span};
use serde::{Deserialize, Serialize};

/// An entity with its volume, queries and writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What one entity is called; the table is named after it.
    pub entity: String,
    /// The properties that identify an entity together. Default: the unique ones, each by itself.
    #[serde(default)]
    pub identity: Vec<String>,
    /// How many entities there are.
    pub volume: Volume,
    /// The properties.
    #[serde(default, rename = "property")]
    pub properties: Vec<Property>,
    /// Records that belong to the entity.
    #[serde(default)]
    pub related: Vec<Related>,
    /// The queries.
    #[serde(default, rename = "query")]
    pub queries: Vec<Query>,
    /// The writes.
    #[serde(default, rename = "write")]
    pub writes: Vec<Write>,
}

/// How many entities there are, and for how long.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// How many there are now.
    #[serde(default)]
    pub entities: u64,
    /// How many are added in a day.
    #[serde(default)]
    pub growth_per_day: u64,
    /// After how many days they are deleted.
    pub retention_days: Option<u32>,
}

/// The type of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the types of the service")]
pub enum PropertyType {
    String,
    Int32,
    Int64,
    Double,
    Boolean,
    DateTime,
    Guid,
    Binary,
}

/// A property of the entity.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: PropertyType,
    /// How many different values there are, roughly.
    pub distinct: Option<u64>,
    /// Whether no two entities have the same value.
    #[serde(default)]
    pub unique: bool,
    /// Whether later entities have greater values, as times and sequences do.
    #[serde(default)]
    pub growing: bool,
    /// Which part of the entities and requests has the most common value, from 0 to 1.
    pub most_common: Option<f64>,
    /// How long a value is, roughly.
    pub bytes: Option<u64>,
    /// The distance of two values of a time, if they come at fixed distances: `1h`.
    pub every: Option<Span>,
    /// How many properties like this one there are.
    pub repeat: Option<u64>,
    /// A value for the example keys.
    pub example: Option<String>,
}

/// A record that belongs to the entity.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// What it is called.
    pub name: String,
    /// How many an entity has: 1 for one-to-one.
    pub count: Option<u64>,
    /// The property of the entity that there is one of these records for each value of, as for a parent.
    pub per: Option<String>,
    /// What tells the records of one entity apart, such as a year.
    pub key: Option<String>,
    /// How long one is, roughly.
    pub bytes: u64,
}

/// A range that a query asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeOf {
    /// The property that is compared.
    pub property: String,
    /// Which part of all values is in the range, from 0 to 1.
    pub share: Option<f64>,
    /// How long the range is, for a time.
    pub span: Option<Span>,
}

/// A query.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// What it is called.
    pub name: String,
    /// The properties that must equal a value.
    #[serde(default)]
    pub equals: Vec<String>,
    /// The range that one property must be in; a prefix of a text is a range too.
    pub range: Option<RangeOf>,
    /// The property that results are sorted by; with `-` before it the greatest first.
    pub order: Option<String>,
    /// How many results are wanted, if not all.
    pub top: Option<u64>,
    /// How many entities match, if that does not follow from the properties.
    pub results: Option<u64>,
    /// The properties that are needed. Default: all.
    #[serde(default)]
    pub returns: Vec<String>,
    /// The related records that are read with the entity.
    #[serde(default)]
    pub with: Vec<String>,
    /// How often it runs.
    #[serde(default)]
    pub rate: Rate,
}

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the verbs of the service")]
pub enum WriteKind {
    Insert,
    Update,
    Delete,
}

/// A write.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// What it is called.
    pub name: String,
    /// What it does.
    #[serde(rename = "does")]
    pub kind: WriteKind,
    /// The related record that it writes. Default: the entity.
    pub of: Option<String>,
    /// The properties that are known of the entity that is changed or deleted. Default: its identity.
    #[serde(default)]
    pub by: Vec<String>,
    /// The properties that it changes.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The related records that should change in the same transaction; for a related record also the entity.
    #[serde(default)]
    pub together: Vec<String>,
    /// Several entities with the same values of these properties should change in one transaction.
    #[serde(default)]
    pub same: Vec<String>,
    /// How often it happens.
    #[serde(default)]
    pub rate: Rate,
}
