//! What a query costs on a structure: how it is answered, the rows read and the requests.
//!
//! The kinds are those of the server's planner (`engine/src/table/plan.rs`); a test runs designs on a server and compares.

use crate::key::{Part, Period};
use crate::layout::{Layout, Placement, Role};
use crate::limits::{LISTED_KEY_BYTES, PAGE_ENTITIES, PAGE_ROWS_READ};
use crate::model::{Model, PropertySet, QueryModel, Relation};
use serde::Serialize;

/// How a query is answered, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Both keys are known (Q1).
    Point,
    /// Several entities by both keys.
    Points,
    /// A range of row keys in one partition (Q2).
    Range,
    /// Such a range in each of several partitions.
    Ranges,
    /// Blobs of a range of time (T13).
    Blobs,
    /// All of a partition, filtered (Q3).
    PartitionScan,
    /// All of the table, or of a range of partitions, filtered (Q4).
    TableScan,
}

impl Kind {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Points => "points",
            Self::Range => "range",
            Self::Ranges => "ranges",
            Self::Blobs => "blobs",
            Self::PartitionScan => "partition scan",
            Self::TableScan => "table scan",
        }
    }
}

/// What one query costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// How it is answered.
    pub kind: Kind,
    /// The structure that answers it.
    pub structure: usize,
    /// Partitions, or tables, that are asked.
    pub seeks: f64,
    /// Rows that are read.
    pub rows: f64,
    /// Requests that are sent.
    pub requests: f64,
    /// Entities that match and are returned.
    pub returned: f64,
    /// Bytes that are read.
    pub bytes: f64,
    /// Whether the client has to sort, having read everything.
    pub is_sorted_by_client: bool,
}

impl Access {
    /// What it costs in requests; a row read counts as a hundredth, a mebibyte as one.
    #[must_use]
    pub fn cost(&self) -> f64 {
        let sorting = if self.is_sorted_by_client { self.rows * ROW_COST } else { 0.0 };
        self.requests + self.rows * ROW_COST + self.bytes * BYTE_COST + sorting
    }

    /// The kind in words. All of a partition, or the first rows of it, is no scan if all that is read is wanted (Q10).
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self.kind {
            Kind::PartitionScan if self.rows <= self.returned.ceil() * self.seeks && !self.is_sorted_by_client => {
                if self.seeks > 1.0 {
                    "partitions"
                } else {
                    "partition"
                }
            }
            kind => kind.name(),
        }
    }
}

const ROW_COST: f64 = 0.01;
pub(crate) const BYTE_COST: f64 = 1.0 / 1024.0 / 1024.0;

/// The cheapest way to answer a query with a layout.
pub(crate) fn cheapest(model: &Model<'_>, layout: &Layout, query: &QueryModel) -> Access {
    if layout.is_in_blobs {
        return of_blobs(model, query);
    }
    let all = (0..layout.structures.len()).filter_map(|index| of_structure(model, layout, index, query));
    let best = all.min_by(|a, b| a.cost().total_cmp(&b.cost()).then(a.kind.cmp(&b.kind)));
    best.expect("the primary answers every query")
}

/// What a query costs on one structure; none if the structure cannot answer it.
pub(crate) fn of_structure(model: &Model<'_>, layout: &Layout, index: usize, query: &QueryModel) -> Option<Access> {
    let structure = &layout.structures[index];
    let mut walk = Walk::new(model, layout, query);
    walk.partition(&structure.template.partition);
    walk.row(&layout.row_parts(index));
    if structure.role.is_list() {
        return walk.of_list(index);
    }
    if structure.stores.is_some_and(|stored| !serves(model, structure.template.whole_properties(), stored, query)) {
        return None;
    }
    let mut access = walk.finish(index);
    if structure.stores.is_none() {
        walk.add_parts(&mut access);
    }
    if structure.role != Role::OtherCopy {
        walk.add_related(&mut access);
    } else if !query.with.is_empty() {
        return None;
    }
    walk.add_large(&mut access);
    Some(access)
}

/// Whether a structure has every property that a query compares or returns.
fn serves(model: &Model<'_>, keys: PropertySet, stored: PropertySet, query: &QueryModel) -> bool {
    let compared = query.range.iter().map(|range| range.property).chain(query.order.iter().map(|it| it.property));
    let needed = compared.fold(query.equals.union(query.returns), PropertySet::with);
    let everything = query.returns.is_empty() && model.description.properties.len() > stored.union(keys).iter().count();
    !everything && keys.union(stored).contains(needed)
}

/// The parts of the keys, compared with a query one after the other.
struct Walk<'m> {
    model: &'m Model<'m>,
    layout: &'m Layout,
    query: &'m QueryModel,
    /// Equalities that narrow the rows.
    applied: PropertySet,
    /// Which part of them the range leaves.
    fraction: f64,
    is_range_exact: bool,
    seeks: f64,
    is_scan: bool,
    is_narrowed: bool,
    is_point: bool,
    is_ordered: bool,
}

impl<'m> Walk<'m> {
    fn new(model: &'m Model<'m>, layout: &'m Layout, query: &'m QueryModel) -> Self {
        Self {
            model,
            layout,
            query,
            applied: PropertySet::default(),
            fraction: 1.0,
            is_range_exact: false,
            seeks: 1.0,
            is_scan: false,
            is_narrowed: false,
            is_point: true,
            is_ordered: false,
        }
    }

    fn partition(&mut self, parts: &[Part]) {
        let is_period = |part: &&Part| matches!(part, Part::Period(..));
        for part in parts.iter().filter(|part| !is_period(part)) {
            match *part {
                Part::Fixed | Part::Tag(_) | Part::Period(..) => {}
                Part::Value(property) | Part::Inverted(property) => match self.query.equals.has(property) {
                    true => self.applied = self.applied.with(property),
                    false => self.is_scan = true,
                },
                Part::Bucket(property, buckets) => {
                    if !self.query.equals.has(property) {
                        self.seeks *= f64::from(buckets);
                    }
                }
            }
        }
        for part in parts.iter().filter(is_period) {
            if let Part::Period(property, period) = *part {
                self.periods(property, period);
            }
        }
        // A range of partitions is read as a part of the table: only the first part of the key narrows it.
        if let (true, Some(range), Some(Part::Value(first))) = (self.is_scan, self.query.range, parts.first())
            && range.property == *first
        {
            self.fraction = self.fraction.min(range.share);
        }
    }

    /// How many periods of a partition key are asked for.
    fn periods(&mut self, property: u8, period: Period) {
        let all = (self.model.days / period.days()).ceil().max(1.0);
        match asked_periods(self.model, self.query, property, period, all) {
            Some(asked) => {
                self.seeks *= asked;
                self.fraction = self.fraction.min(asked / all);
            }
            None => self.is_scan = true,
        }
    }

    fn row(&mut self, parts: &[Part]) {
        if self.is_scan {
            self.is_point = false;
            return;
        }
        for part in parts {
            match *part {
                Part::Tag(_) | Part::Fixed => self.is_narrowed = true,
                Part::Value(property) | Part::Inverted(property) | Part::Period(property, _)
                    if self.query.equals.has(property) =>
                {
                    self.applied = self.applied.with(property);
                    self.is_narrowed = true;
                }
                Part::Bucket(property, _) if self.query.equals.has(property) => self.is_narrowed = true,
                _ => {
                    self.open(*part);
                    return;
                }
            }
        }
    }

    /// The first part of the row key that is not known: a range or an order may still use it.
    fn open(&mut self, part: Part) {
        self.is_point = false;
        let Some(property) = part.property() else { return };
        if matches!(part, Part::Bucket(..)) {
            return;
        }
        if let Some(range) = self.query.range.filter(|range| range.property == property) {
            self.fraction = self.fraction.min(range.share);
            self.is_range_exact = true;
            self.is_narrowed = true;
        }
        let is_inverted = matches!(part, Part::Inverted(_));
        let order = self.query.order.filter(|order| order.property == property);
        self.is_ordered = order.is_some_and(|order| order.is_descending == is_inverted);
    }

    /// Entities in what the keys narrow the query to.
    fn entities(&self) -> f64 {
        let is_exact = self.applied.contains(self.query.equals) && (self.query.range.is_none() || self.is_range_exact);
        if is_exact {
            return self.query.matches;
        }
        (self.model.entities / self.model.combinations(self.applied) * self.fraction).max(self.query.matches)
    }

    fn finish(&mut self, index: usize) -> Access {
        let (model, query) = (self.model, self.query);
        let slots = self.layout.slots(model);
        if !self.is_scan && self.is_point {
            let tables = self.tables();
            let seeks = self.seeks * tables;
            let kind = if seeks > 1.0 { Kind::Points } else { Kind::Point };
            let (rows, returned, bytes) = (1.0, 1.0, self.row_bytes(index));
            let (requests, is_sorted_by_client) = (seeks, false);
            return Access { kind, structure: index, seeks, rows, requests, returned, bytes, is_sorted_by_client };
        }
        let tables = self.tables();
        let mut entities = self.entities();
        if self.is_scan {
            let sharing = self.layout.structures[index].role.is_in_partition();
            let rows_each = if sharing { self.layout.rows_per_entity(model) * slots } else { 1.0 };
            entities = model.entities * self.fraction * rows_each.max(1.0);
            self.seeks = 1.0;
        }
        let seeks = self.seeks * tables;
        let is_sorted = query.order.is_none() || self.is_ordered;
        let (mut rows, mut sent) = (entities, query.matches);
        if let Some(top) = query.top.filter(|_| is_sorted) {
            rows = entities.min(top * seeks * (entities / query.matches).max(1.0));
            sent = query.matches.min(top * seeks);
        }
        let (rows, sent) = ((rows / slots).ceil().max(1.0), (sent / slots).ceil().max(1.0));
        let pages = (sent / seeks / PAGE_ENTITIES).max(rows / seeks / PAGE_ROWS_READ).ceil().max(1.0);
        let kind = match (self.is_scan, self.is_narrowed, seeks > 1.0) {
            (true, ..) => Kind::TableScan,
            (false, true, false) => Kind::Range,
            (false, true, true) => Kind::Ranges,
            (false, false, _) => Kind::PartitionScan,
        };
        Access {
            kind,
            structure: index,
            seeks,
            rows,
            requests: pages * seeks,
            returned: query.returned(),
            bytes: rows * self.row_bytes(index),
            is_sorted_by_client: !is_sorted && query.matches > 1.0,
        }
    }

    /// Bytes of one row of a structure.
    fn row_bytes(&self, index: usize) -> f64 {
        row_bytes(self.model, self.layout, index)
    }

    /// How many tables are asked, if there is one for each period.
    fn tables(&self) -> f64 {
        let (Some(period), Some(time)) = (self.layout.tables, self.model.time) else { return 1.0 };
        let all = self.layout.table_count(self.model);
        asked_periods(self.model, self.query, time, period, all).unwrap_or(all)
    }

    /// A list of keys: one row, then each entity of the list.
    fn of_list(&mut self, index: usize) -> Option<Access> {
        let query = self.query;
        let is_answer = !self.is_scan && self.is_point && query.range.is_none();
        let is_covered = self.applied.contains(query.equals);
        if !is_answer || !is_covered || query.matches > PAGE_ENTITIES || !query.with.is_empty() {
            return None;
        }
        let primary = self.layout.primary().whole_properties();
        let keys_are_enough = !query.returns.is_empty() && primary.contains(query.returns);
        // The list has no order of its own, so all of its entities are read.
        let fetched = if keys_are_enough { 0.0 } else { query.matches };
        let lists = self.seeks * self.tables();
        let mut access = Access {
            kind: Kind::Points,
            structure: index,
            seeks: lists,
            rows: 1.0 + fetched,
            requests: lists + fetched,
            returned: query.returned(),
            bytes: query.matches * LISTED_KEY_BYTES + fetched * self.row_bytes(0),
            is_sorted_by_client: query.order.is_some() && query.matches > 1.0,
        };
        if query.matches * LISTED_KEY_BYTES > crate::limits::ENTITY_BYTES {
            access.requests += 1.0;
        }
        self.add_large(&mut access);
        Some(access)
    }

    /// Physical entities of one that is too wide (T10).
    fn add_parts(&self, access: &mut Access) {
        let parts = self.model.parts();
        if parts > 1.0 && access.kind != Kind::TableScan {
            access.rows *= parts;
            if access.kind == Kind::Point {
                access.kind = Kind::Points;
            }
            if access.kind == Kind::Points {
                access.requests *= parts;
            }
        }
    }

    /// Bytes of the records that a query reads with an entity.
    fn related_bytes(&self, related: usize) -> f64 {
        self.model.description.related[related].bytes as f64
    }

    /// Related records: those that are asked for, and those that lie between the entities.
    fn add_related(&self, access: &mut Access) {
        let is_point = matches!(access.kind, Kind::Point | Kind::Points);
        // A copy in the partition has a range of row keys of its own, in which no records are.
        let is_between = access.structure == 0 && !is_point && access.kind != Kind::TableScan;
        if is_between {
            access.rows *= 1.0 + self.layout.related_rows(self.model);
        }
        for related in &self.query.with {
            let (records, parents) = match self.model.relations[*related] {
                Relation::Many(count) => (access.returned * count, 0.0),
                Relation::One => (access.returned, 0.0),
                Relation::Parent(property) => (0.0, access.returned.min(self.model.distinct(property))),
            };
            match self.layout.placement(self.model, *related) {
                Placement::Inside => {}
                Placement::Together if parents > 0.0 => {
                    access.rows += parents;
                    access.requests += if is_point { 1.0 } else { 0.0 };
                }
                Placement::Together if is_between => {}
                Placement::Together => {
                    access.rows += records;
                    access.bytes += records * self.related_bytes(*related);
                    access.kind = if access.seeks > 1.0 { Kind::Ranges } else { Kind::Range };
                    access.requests += (records / PAGE_ENTITIES).floor();
                }
                Placement::Apart => {
                    access.rows += records + parents;
                    access.bytes += (records + parents) * self.related_bytes(*related);
                    access.requests += if parents > 0.0 { parents } else { access.returned };
                }
            }
        }
    }

    /// Values that are in blobs (T11).
    fn add_large(&self, access: &mut Access) {
        let large = self.model.large();
        let needed = large.iter().filter(|it| self.query.returns.is_empty() || self.query.returns.has(*it)).count();
        access.requests += needed as f64 * access.returned;
    }
}

/// How many of all periods can have results of a query; none if the query does not say.
pub(crate) fn asked_periods(
    model: &Model<'_>,
    query: &QueryModel,
    property: u8,
    period: Period,
    all: f64,
) -> Option<f64> {
    if query.equals.has(property) {
        return Some(1.0);
    }
    if let Some(range) = query.range.filter(|range| range.property == property) {
        let days = range.days.unwrap_or(range.share * model.days);
        return Some((days / period.days()).ceil().clamp(1.0, all));
    }
    let top = query.top?;
    query.order.filter(|order| order.property == property && order.is_descending)?;
    // The latest ones: from the newest period back until there are enough.
    let rows = (model.entities / model.combinations(query.equals)).max(1.0);
    Some((top * all / rows).ceil().clamp(1.0, all))
}

/// Bytes of one row of a structure, without what is in blobs.
pub(crate) fn row_bytes(model: &Model<'_>, layout: &Layout, index: usize) -> f64 {
    let structure = &layout.structures[index];
    let inside = model.relations.iter().zip(&model.description.related).enumerate();
    let inside = inside.filter(|(related, _)| layout.placement(model, *related) == Placement::Inside);
    let inside = inside.map(|(_, (relation, related))| match relation {
        Relation::Many(count) => count * related.bytes as f64,
        Relation::One | Relation::Parent(_) => related.bytes as f64,
    });
    match structure.stores {
        Some(stores) => model.bytes_of(Some(stores.without(model.large()))),
        None => model.kept_bytes * layout.slots(model) / model.parts() + inside.sum::<f64>(),
    }
}

/// A query of records in blobs of an hour each: a listing, and the blobs with records of the range (T13).
fn of_blobs(model: &Model<'_>, query: &QueryModel) -> Access {
    let range = query.range.filter(|range| Some(range.property) == model.time);
    let share = match (range, model.time) {
        (Some(range), _) => range.share,
        (None, Some(time)) if query.equals.has(time) => Period::Hour.days() / model.days,
        _ => 1.0,
    };
    let record_bytes = model.bytes_of(None);
    let rows = (model.entities * share).max(BLOB_BYTES / record_bytes).min(model.entities);
    let blobs = (rows * record_bytes / BLOB_BYTES).ceil().max((share * model.days / Period::Hour.days()).ceil());
    Access {
        kind: Kind::Blobs,
        structure: 0,
        seeks: 1.0,
        rows: rows.max(query.matches),
        requests: 1.0 + blobs.max(1.0),
        returned: query.returned(),
        bytes: rows * record_bytes,
        is_sorted_by_client: query.order.is_some_and(|order| Some(order.property) != model.time),
    }
}

/// What the writer of a log collects before it writes a blob.
pub(crate) const BLOB_BYTES: f64 = 1024.0 * 1024.0;
