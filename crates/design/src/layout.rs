//! A layout: the structures that hold an entity, each with its key template, and the patterns beside them.

use crate::key::{Part, Period, Template};
use crate::model::{Model, PropertySet, Relation};

/// What a structure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The entity itself.
    Primary,
    /// A copy in the same partition, written in the same transaction (T1).
    Copy,
    /// A copy in another table, which follows eventually (T2).
    OtherCopy,
    /// A list of keys in the same partition (T4).
    List,
    /// A list of keys in another table, which follows eventually (T4).
    OtherList,
}

impl Role {
    /// Whether it shares partitions with the primary.
    #[must_use]
    pub const fn is_in_partition(self) -> bool {
        matches!(self, Self::Primary | Self::Copy | Self::List)
    }

    /// Whether it is a list of keys.
    #[must_use]
    pub const fn is_list(self) -> bool {
        matches!(self, Self::List | Self::OtherList)
    }
}

/// One structure of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Structure {
    /// What it is.
    pub role: Role,
    /// Its keys.
    pub template: Template,
    /// The properties that it has, if not all.
    pub(crate) stores: Option<PropertySet>,
}

/// Where a related record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placement {
    /// In a table of its own.
    Apart,
    /// In the entity's partition, found by a compound key (T6, R1).
    Together,
    /// In properties of the entity (T5).
    Inside,
}

/// A way to store the entity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// The structures; the first is the primary.
    pub structures: Vec<Structure>,
    /// A table for each of these periods (T8).
    pub tables: Option<Period>,
    /// The values of such a period are in one entity (T9).
    pub packed: Option<Period>,
    /// Where each related record is.
    pub placements: Vec<Placement>,
    /// Records are in blobs by their time, not in tables (T13).
    pub is_in_blobs: bool,
}

impl Layout {
    /// The layout with nothing but a primary.
    pub(crate) fn new(template: Template, related: usize) -> Self {
        let primary = Structure { role: Role::Primary, template, stores: None };
        let placements = vec![Placement::Apart; related];
        Self { structures: vec![primary], tables: None, packed: None, placements, is_in_blobs: false }
    }

    /// The keys of the entity itself.
    #[must_use]
    pub fn primary(&self) -> &Template {
        &self.structures[0].template
    }

    /// Whether the partition of the primary has other structures, so that row keys begin with a tag.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.structures[1..].iter().any(|structure| structure.role.is_in_partition())
    }

    /// The row key of a structure with its tag, if it needs one.
    pub(crate) fn row_parts(&self, index: usize) -> Vec<Part> {
        let structure = &self.structures[index];
        let tag = (self.is_tagged() && structure.role.is_in_partition()).then_some(Part::Tag(index as u8));
        tag.into_iter().chain(structure.template.row.iter().copied()).collect()
    }

    /// How many values of a series one entity has.
    pub(crate) fn slots(&self, model: &Model<'_>) -> f64 {
        match (self.packed, model.time.and_then(|time| model.property(time)).and_then(|time| time.every)) {
            (Some(period), Some(every)) => (period.days() / every.0).max(1.0),
            _ => 1.0,
        }
    }

    /// The number of tables that there are at a time: the first and the last are not full.
    pub(crate) fn table_count(&self, model: &Model<'_>) -> f64 {
        self.tables.map_or(1.0, |period| (model.days / period.days()).ceil() + 1.0)
    }

    /// The placement, as far as the keys allow it: a parent is in the partition only if that is named after it.
    pub(crate) fn placement(&self, model: &Model<'_>, related: usize) -> Placement {
        match (self.placements[related], model.relations[related]) {
            (Placement::Together, Relation::Parent(property)) => {
                match self.primary().partition == [Part::Value(property)] && self.tables.is_none() {
                    true => Placement::Together,
                    false => Placement::Apart,
                }
            }
            (Placement::Inside, Relation::Parent(_)) => Placement::Apart,
            (placement, _) => placement,
        }
    }

    /// Rows in the primary's partitions for each entity: itself, its copies, its related records and its physical parts.
    pub(crate) fn rows_per_entity(&self, model: &Model<'_>) -> f64 {
        let copies = self.structures.iter().filter(|it| matches!(it.role, Role::Primary | Role::Copy)).count() as f64;
        copies * model.parts() / self.slots(model) + self.related_rows(model)
    }

    /// Records of which an entity has several in its own properties (T5): more than fit cannot be added.
    pub(crate) fn inside_records(&self, model: &Model<'_>) -> f64 {
        let records = |(index, relation): (usize, &Relation)| match (self.placement(model, index), relation) {
            (Placement::Inside, Relation::Many(count)) => *count,
            _ => 0.0,
        };
        if self.is_in_blobs { 0.0 } else { model.relations.iter().enumerate().map(records).sum() }
    }

    /// Rows of related records between the entities, for each entity.
    pub(crate) fn related_rows(&self, model: &Model<'_>) -> f64 {
        let rows = |(index, relation): (usize, &Relation)| match (self.placement(model, index), relation) {
            (Placement::Together, Relation::Many(count)) => *count,
            (Placement::Together, Relation::One) => 1.0,
            _ => 0.0,
        };
        model.relations.iter().enumerate().map(rows).sum()
    }
}
