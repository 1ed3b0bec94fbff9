//! Key templates: of which parts a PartitionKey and a RowKey are made.

use crate::model::{Model, PropertySet};
use serde::Serialize;
use std::fmt::Write as _;

/// A span of time that keys or tables are named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Period {
    Hour,
    Day,
    Month,
}

impl Period {
    pub(crate) const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// How many days it has.
    #[must_use]
    pub const fn days(self) -> f64 {
        match self {
            Self::Hour => 1.0 / 24.0,
            Self::Day => 1.0,
            Self::Month => 30.0,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The shortest period that a span fits into.
    pub(crate) fn around(days: f64) -> Self {
        Self::ALL.into_iter().find(|period| period.days() >= days).unwrap_or(Self::Month)
    }
}

/// A part of a key. Properties are numbered as in the description; one beyond them is the generated id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The same text in every key: for a table with one partition.
    Fixed,
    /// A text that tells the copies in one partition apart; the number of the structure.
    Tag(u8),
    /// The value of a property, written so that texts sort as values do.
    Value(u8),
    /// The value of a property, written so that the greatest comes first (inverted ticks).
    Inverted(u8),
    /// The period that a time is in.
    Period(u8, Period),
    /// The hash of a property, modulo this number.
    Bucket(u8, u16),
}

impl Part {
    /// The property that the part is made of.
    #[must_use]
    pub const fn property(self) -> Option<u8> {
        match self {
            Self::Fixed | Self::Tag(_) => None,
            Self::Value(property)
            | Self::Inverted(property)
            | Self::Period(property, _)
            | Self::Bucket(property, _) => Some(property),
        }
    }

    /// Whether the part tells apart all values of its property.
    const fn is_whole(self) -> bool {
        matches!(self, Self::Value(_) | Self::Inverted(_))
    }
}

/// The parts of both keys of a structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Template {
    /// The parts of the PartitionKey.
    pub partition: Vec<Part>,
    /// The parts of the RowKey.
    pub row: Vec<Part>,
}

impl Template {
    /// The properties in the partition key.
    pub(crate) fn partition_properties(&self) -> PropertySet {
        self.partition.iter().filter_map(|part| part.property()).collect()
    }

    /// The properties in both keys.
    pub(crate) fn properties(&self) -> PropertySet {
        self.partition.iter().chain(&self.row).filter_map(|part| part.property()).collect()
    }

    /// The properties whose values can be read from the keys.
    pub(crate) fn whole_properties(&self) -> PropertySet {
        let whole = self.partition.iter().chain(&self.row).filter(|part| part.is_whole());
        whole.filter_map(|part| part.property()).collect()
    }

    /// The template of the partition key, as people read it: `{Department}`.
    pub(crate) fn partition_text(&self, model: &Model<'_>, tags: &[String]) -> String {
        text(&self.partition, model, tags)
    }

    /// The template of the row key.
    pub(crate) fn row_text(&self, model: &Model<'_>, tags: &[String]) -> String {
        text(&self.row, model, tags)
    }
}

/// The text of a key that is the same for all.
pub(crate) const FIXED: &str = "main";

/// The template of a key with the names of the properties.
fn text(parts: &[Part], model: &Model<'_>, tags: &[String]) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push('_');
        }
        let name = part.property().map_or("", |property| model.name(property));
        match part {
            Part::Fixed => text.push_str(FIXED),
            Part::Tag(tag) => text.push_str(&tags[usize::from(*tag)]),
            Part::Value(_) => write!(text, "{{{name}}}").expect("a string takes every write"),
            Part::Inverted(_) => write!(text, "{{{name} inverted}}").expect("a string takes every write"),
            Part::Period(_, period) => {
                write!(text, "{{{} of {name}}}", period.name()).expect("a string takes every write");
            }
            Part::Bucket(_, buckets) => {
                write!(text, "{{hash of {name} mod {buckets}}}").expect("a string takes every write");
            }
        }
    }
    text
}
