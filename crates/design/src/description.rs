//! What users describe: an entity, its volume, its queries and its writes. `docs/designer.md` has an example.

use crate::rate::{Rate, Span};
use larimar_model::EdmType;
use serde::{Deserialize, Serialize};

/// An entity with its volume, queries and writes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What one entity is called; the table is named after it.
    pub entity: String,
    /// The properties that identify an entity together. Default: the unique ones, each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<String>,
    /// How many entities there are.
    pub volume: Volume,
    /// The properties.
    #[serde(default, rename = "property", skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// Records that belong to the entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The queries.
    #[serde(default, rename = "query", skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<Query>,
    /// The writes.
    #[serde(default, rename = "write", skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Write>,
}

/// How many entities there are, and for how long.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// How many there are now.
    #[serde(default)]
    pub entities: u64,
    /// How many are added in a day.
    #[serde(default)]
    pub growth_per_day: u64,
    /// After how many days they are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
}

/// A property of the entity.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type", with = "type_names")]
    pub kind: EdmType,
    /// How many different values there are, roughly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    /// Whether no two entities have the same value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// Whether later entities have greater values, as times and sequences do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub growing: bool,
    /// Which part of the entities and requests has the most common value, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_common: Option<f64>,
    /// How long a value is, roughly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The distance of two values of a time, if they come at fixed distances: `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// How many properties like this one there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
    /// A value for the example keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// A record that belongs to the entity.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// What it is called.
    pub name: String,
    /// How many an entity has: 1 for one-to-one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The property of the entity that there is one of these records for each value of, as for a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// What tells the records of one entity apart, such as a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long one is, roughly.
    pub bytes: u64,
}

/// A range that a query asks for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RangeOf {
    /// The property that is compared.
    pub property: String,
    /// Which part of all values is in the range, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How long the range is, for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// A query.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// What it is called.
    pub name: String,
    /// The properties that must equal a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<String>,
    /// The range that one property must be in; a prefix of a text is a range too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeOf>,
    /// The property that results are sorted by; with `-` before it the greatest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// How many results are wanted, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<u64>,
    /// How many entities match, if that does not follow from the properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<u64>,
    /// The properties that are needed. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returns: Vec<String>,
    /// The related records that are read with the entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// What it is called.
    pub name: String,
    /// What it does.
    #[serde(rename = "does")]
    pub kind: WriteKind,
    /// The related record that it writes. Default: the entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The properties that are known of the entity that is changed or deleted. Default: its identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// The properties that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The related records that should change in the same transaction; for a related record also the entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
    /// Several entities with the same values of these properties should change in one transaction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<String>,
    /// How often it happens.
    #[serde(default)]
    pub rate: Rate,
}

/// The names of types in descriptions: `string`, `int64`, `datetime`.
mod type_names {
    use larimar_model::EdmType;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    const NAMES: [&str; 8] = ["string", "int32", "int64", "double", "boolean", "datetime", "guid", "binary"];

    pub(super) fn serialize<S: Serializer>(kind: &EdmType, serializer: S) -> Result<S::Ok, S::Error> {
        let place = EdmType::ALL.iter().position(|it| it == kind).expect("one of the eight types");
        serializer.serialize_str(NAMES[place])
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EdmType, D::Error> {
        let name = String::deserialize(deserializer)?;
        let place = NAMES.iter().position(|it| *it == name);
        place.map(|place| EdmType::ALL[place]).ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
    }
}
