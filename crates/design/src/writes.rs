//! What a write costs with a layout: requests, rows, and whether everything changes in one transaction.
//!
//! Numbers of requests are those of the crate `larimar-patterns`, which its tests count: a transaction is one; a change of
//! copies in other partitions is eight (read, intent, write, mark, and four of the worker) and two for each copy.

use crate::access::{self, BLOB_BYTES, Kind};
use crate::description::WriteKind;
use crate::key::Part;
use crate::layout::{Layout, Placement, Role};
use crate::limits::TRANSACTION_OPERATIONS;
use crate::model::{Model, PropertySet, QueryModel, Relation, WriteModel};
use serde::Serialize;

/// When all structures show a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// One entity changes.
    Single,
    /// Several entities change in one transaction.
    Transaction,
    /// Other partitions, tables or blobs follow eventually (T3).
    Eventual,
}

/// What one write costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct WriteAccess {
    pub(crate) requests: f64,
    pub(crate) rows: f64,
    /// Rows written in the primary's partition.
    pub(crate) rows_in_partition: f64,
    /// Bytes of the rows written.
    pub(crate) bytes: f64,
    pub(crate) consistency: Consistency,
    /// Whether the transaction that is wanted is possible; none if none is wanted.
    pub(crate) is_transaction_possible: Option<bool>,
}

impl WriteAccess {
    /// What it costs in requests; a row written counts as a fifth, a mebibyte as one.
    pub(crate) fn cost(&self) -> f64 {
        self.requests + self.rows * 0.2 + self.bytes * access::BYTE_COST
    }
}

/// What a write costs.
pub(crate) fn of(model: &Model<'_>, layout: &Layout, write: &WriteModel) -> WriteAccess {
    let mut cost = match (layout.is_in_blobs, write.of) {
        (true, _) => return to_blobs(model, write),
        (false, Some(related)) => of_related(model, layout, related),
        (false, None) => of_entity(model, layout, write),
    };
    if write.kind != WriteKind::Insert && write.of.is_none() {
        cost.requests += lookup(model, layout, write);
    }
    cost.is_transaction_possible = wanted(model, layout, write);
    let entity = write.of.filter(|_| write.is_with_entity);
    for related in write.together.iter().chain(&entity) {
        let is_inside = layout.placement(model, *related) == Placement::Inside;
        cost.rows += if is_inside { 0.0 } else { 1.0 };
        if cost.is_transaction_possible == Some(true) {
            cost.consistency = cost.consistency.max(Consistency::Transaction);
            cost.rows_in_partition += if is_inside { 0.0 } else { 1.0 };
        } else {
            cost.requests += EVENTUAL_REQUESTS;
            cost.consistency = Consistency::Eventual;
        }
    }
    cost
}

/// Requests to find the entity that is changed, if what is known of it is not its key.
fn lookup(model: &Model<'_>, layout: &Layout, write: &WriteModel) -> f64 {
    let find = access::cheapest(model, layout, &QueryModel::by(write.by, write.rate));
    let is_key = find.structure == 0 && find.seeks <= 1.0 && find.kind <= Kind::Points;
    if is_key { 0.0 } else { find.cost() }
}

fn of_entity(model: &Model<'_>, layout: &Layout, write: &WriteModel) -> WriteAccess {
    let large = model.large();
    let changes_large = match write.kind {
        WriteKind::Update => large.meets(write.changes),
        WriteKind::Insert | WriteKind::Delete => !large.is_empty(),
    };
    let (mut near, mut far, mut read_lists) = (0.0, 0.0, 0.0);
    let (mut far_structures, mut is_read_first) = (0.0, write.kind == WriteKind::Delete);
    for structure in &layout.structures {
        let keys = structure.template.properties();
        // A list has the keys of the entities.
        let keys = if structure.role.is_list() { keys.union(layout.primary().properties()) } else { keys };
        let rows = rows_changed(write, keys, structure.stores, structure.role);
        if rows == 0.0 {
            continue;
        }
        let moves_partition = write.changes.meets(structure.template.partition_properties());
        is_read_first |= rows > 1.0 || structure.role != Role::Primary && write.kind == WriteKind::Update;
        match structure.role {
            Role::Primary if moves_partition => {
                near += 1.0;
                far += 1.0;
                far_structures += 1.0;
            }
            Role::Primary => near += rows * if write.kind == WriteKind::Update { 1.0 } else { model.parts() },
            Role::Copy | Role::List if moves_partition => far += 2.0,
            Role::Copy => near += rows,
            Role::List => {
                near += rows;
                read_lists += rows;
            }
            Role::OtherCopy | Role::OtherList => {
                far += rows;
                far_structures += 1.0;
            }
        }
    }
    if changes_large {
        far_structures += 1.0;
    }
    let only_primary = layout.structures.len() == 1 && far_structures == 0.0;
    let reads = if is_read_first && !only_primary { 1.0 } else { 0.0 } + read_lists;
    let is_eventual = far_structures > 0.0;
    let requests = if is_eventual { EVENTUAL_REQUESTS + 2.0 * far_structures } else { 1.0 + reads };
    let consistency = match (is_eventual, near > 1.0) {
        (true, _) => Consistency::Eventual,
        (false, true) => Consistency::Transaction,
        (false, false) => Consistency::Single,
    };
    let rows = near + far;
    let bytes = rows * access::row_bytes(model, layout, 0);
    WriteAccess { requests, rows, rows_in_partition: near, bytes, consistency, is_transaction_possible: None }
}

/// Rows of a structure that a write changes: two if its key changes, for the old row goes and a new one comes.
fn rows_changed(write: &WriteModel, keys: PropertySet, stores: Option<PropertySet>, role: Role) -> f64 {
    match write.kind {
        WriteKind::Insert | WriteKind::Delete => 1.0,
        WriteKind::Update if write.changes.meets(keys) => 2.0,
        WriteKind::Update if role.is_list() => 0.0,
        WriteKind::Update if write.changes.is_empty() || stores.is_none_or(|stores| stores.meets(write.changes)) => 1.0,
        WriteKind::Update => 0.0,
    }
}

fn of_related(model: &Model<'_>, layout: &Layout, related: usize) -> WriteAccess {
    let placement = layout.placement(model, related);
    let rows_in_partition = if placement == Placement::Apart { 0.0 } else { 1.0 };
    // Every copy of the entity holds what is inside of it.
    let copies = layout.structures.iter().filter(|it| it.role == Role::Copy && it.stores.is_none()).count() as f64;
    let rows = if placement == Placement::Inside { 1.0 + copies } else { 1.0 };
    let consistency = if rows > 1.0 { Consistency::Transaction } else { Consistency::Single };
    let bytes = match placement {
        Placement::Inside => rows * access::row_bytes(model, layout, 0),
        _ => model.description.related[related].bytes as f64,
    };
    WriteAccess { requests: 1.0, rows, rows_in_partition, bytes, consistency, is_transaction_possible: None }
}

/// Whether the transaction that a write wants is possible.
fn wanted(model: &Model<'_>, layout: &Layout, write: &WriteModel) -> Option<bool> {
    if write.together.is_empty() && write.same.is_empty() && !write.is_with_entity {
        return None;
    }
    let partition = layout.primary().partition_properties();
    let shares_partition = |related: &usize| match layout.placement(model, *related) {
        Placement::Inside => true,
        Placement::Together => !write.changes.meets(partition),
        Placement::Apart => false,
    };
    let related = write.together.iter().chain(&write.of).all(shares_partition);
    let same = write.same.is_empty() || write.same.contains(partition) && layout.tables.is_none();
    Some(related && same)
}

/// A record in a blob that is written when a mebibyte or a minute of them is there.
fn to_blobs(model: &Model<'_>, write: &WriteModel) -> WriteAccess {
    let per_blob = (BLOB_BYTES / model.bytes_of(None)).min((write.rate * 60.0).max(1.0)).max(1.0);
    WriteAccess {
        requests: 1.0 / per_blob,
        rows: 0.0,
        rows_in_partition: 0.0,
        bytes: model.bytes_of(None),
        consistency: Consistency::Single,
        is_transaction_possible: None,
    }
}

/// What it costs to delete an entity whose time is over, in requests and rows.
pub(crate) fn expiry(model: &Model<'_>, layout: &Layout) -> Option<WriteAccess> {
    let days = model.retention_days?;
    let per_day = model.entities / days;
    let done = |requests: f64, rows: f64| WriteAccess {
        requests,
        rows,
        rows_in_partition: rows,
        bytes: 0.0,
        consistency: Consistency::Single,
        is_transaction_possible: None,
    };
    if layout.is_in_blobs {
        return Some(done(24.0 / per_day, 0.0));
    }
    let slots = layout.slots(model);
    if let Some(period) = layout.tables {
        let tables = layout.structures.iter().filter(|it| matches!(it.role, Role::Primary | Role::OtherCopy)).count();
        return Some(done(tables as f64 / (per_day * period.days()), 0.0));
    }
    // Once a day the old ones are found and deleted, partition by partition.
    let partitions = partitions(model, &layout.primary().partition);
    let is_by_time =
        matches!(layout.primary().partition.first(), Some(Part::Period(property, _)) if Some(*property) == model.time);
    let rows = per_day / slots * layout.rows_per_entity(model);
    let scanned = if is_by_time { rows } else { model.entities / slots };
    let touched = if is_by_time { (partitions / days).max(1.0) } else { partitions.min(per_day / slots) };
    let others = layout.structures.iter().filter(|it| it.role == Role::OtherCopy).count() as f64 * per_day / slots;
    let transactions = (rows / TRANSACTION_OPERATIONS).max(touched);
    let requests = transactions + others + scanned / 1000.0;
    Some(done(requests / per_day, (rows + others) / per_day))
}

/// How many partitions a partition key makes.
pub(crate) fn partitions(model: &Model<'_>, parts: &[Part]) -> f64 {
    let values = parts.iter().filter(|part| matches!(part, Part::Value(_) | Part::Inverted(_)));
    let combinations = model.combinations(values.filter_map(|part| part.property()).collect());
    let others = parts.iter().fold(1.0, |product, part| match part {
        Part::Bucket(_, buckets) => product * f64::from(*buckets),
        Part::Period(_, period) => product * (model.days / period.days()).ceil().max(1.0),
        _ => product,
    });
    (combinations * others).min(model.entities)
}

/// Bytes of a layout, all structures together.
pub(crate) fn bytes(model: &Model<'_>, layout: &Layout) -> f64 {
    if layout.is_in_blobs {
        return model.bytes_of(None) * model.entities;
    }
    let slots = layout.slots(model);
    // Key, id and the like are in a row once, whatever number of values of a series it holds.
    let of_rows = |stores| (ROW_BYTES + (model.bytes_of(stores) - ROW_BYTES) * slots) * model.entities / slots;
    let of_structure = |it: &crate::layout::Structure| match it.role.is_list() {
        false => of_rows(it.stores),
        true => {
            let lists = model.combinations(it.template.properties());
            lists * ROW_BYTES + model.entities * crate::limits::LISTED_KEY_BYTES
        }
    };
    let structures: f64 = layout.structures.iter().map(of_structure).sum();
    let related = model.description.related.iter().zip(&model.relations).enumerate();
    let related = related.map(|(index, (related, relation))| {
        let records = match relation {
            Relation::Many(count) => count * model.entities,
            Relation::One => model.entities,
            Relation::Parent(property) => model.distinct(*property),
        };
        let copies = match layout.placement(model, index) {
            // A record inside of an entity has no row of its own.
            Placement::Inside => {
                layout.structures.iter().filter(|it| !it.role.is_list() && it.stores.is_none()).count() as f64
                    * related.bytes as f64
            }
            _ => related.bytes as f64 + ROW_BYTES,
        };
        records * copies
    });
    structures + related.sum::<f64>()
}

/// What a row costs besides its properties.
const ROW_BYTES: f64 = 84.0;
/// Requests of a change that is completed by a worker.
const EVENTUAL_REQUESTS: f64 = 8.0;
