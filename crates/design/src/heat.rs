//! What a layout costs in all: queries, writes, bytes, and the load of its busiest partition.

use crate::access::{self, Access, Kind};
use crate::description::WriteKind;
use crate::key::Part;
use crate::layout::{Layout, Role};
use crate::limits::{
    ACCOUNT_REQUESTS_PER_SECOND, PARTITION_ENTITIES_PER_SECOND, WASTEFUL_ROWS, WASTEFUL_ROWS_PER_SECOND,
};
use crate::model::Model;
use crate::writes::{self, Consistency, WriteAccess};

/// A layout with its costs.
#[derive(Clone, Debug)]
pub(crate) struct Costed {
    pub(crate) layout: Layout,
    pub(crate) queries: Vec<Access>,
    pub(crate) writes: Vec<WriteAccess>,
    pub(crate) expiry: Option<WriteAccess>,
    /// Requests a second for queries, with rows counted in.
    pub(crate) read_cost: f64,
    /// The same for writes.
    pub(crate) write_cost: f64,
    pub(crate) bytes: f64,
    /// Entities a second in the busiest partition.
    pub(crate) partition_heat: f64,
    /// Requests a second in all.
    pub(crate) account_heat: f64,
    /// Structures and records that follow eventually.
    pub(crate) eventual: usize,
    pub(crate) violations: usize,
    pub(crate) is_append_only: bool,
    /// How far inserts are from being spread: 1 if append-only, 2 if there is one partition only.
    pub(crate) concentration: f64,
    /// Records inside each entity, whose number the size of an entity limits.
    pub(crate) inside_records: f64,
}

impl Costed {
    pub(crate) fn new(model: &Model<'_>, layout: Layout) -> Self {
        let queries: Vec<Access> = model.queries.iter().map(|it| access::cheapest(model, &layout, it)).collect();
        let writes: Vec<WriteAccess> = model.writes.iter().map(|it| writes::of(model, &layout, it)).collect();
        let expiry = writes::expiry(model, &layout);
        let rated = || model.queries.iter().zip(&queries);
        let rated_writes = || model.writes.iter().zip(&writes);
        let expired = |of: fn(&WriteAccess) -> f64| expiry.as_ref().map_or(0.0, |it| of(it) * model.expiry_rate);
        let requests = rated().map(|(it, access)| it.rate * access.requests).sum::<f64>()
            + rated_writes().map(|(it, access)| it.rate * access.requests).sum::<f64>();
        let partition_heat = if layout.is_in_blobs { 0.0 } else { heat(model, &layout, &queries, &writes) };
        let account_heat = requests + expired(|it| it.requests);
        let wasteful = rated().filter(|(it, access)| is_wasteful(access, it.rate)).count();
        let refused = writes.iter().filter(|it| it.is_transaction_possible == Some(false)).count();
        let is_hot = usize::from(partition_heat > PARTITION_ENTITIES_PER_SECOND);
        let is_growing = !layout.is_in_blobs && insert_rate(model) > 0.0;
        let is_append_only = is_growing && is_append_only(model, &layout.primary().partition);
        let is_single = is_growing && writes::partitions(model, &layout.primary().partition) <= 1.0;
        let is_over = usize::from(account_heat > ACCOUNT_REQUESTS_PER_SECOND);
        Self {
            read_cost: rated().map(|(it, access)| it.rate * access.cost()).sum(),
            write_cost: rated_writes().map(|(it, access)| it.rate * access.cost()).sum::<f64>()
                + expired(WriteAccess::cost),
            bytes: writes::bytes(model, &layout),
            partition_heat,
            account_heat,
            eventual: writes.iter().filter(|it| it.consistency == Consistency::Eventual).count(),
            violations: wasteful + refused + is_hot + is_over,
            is_append_only,
            concentration: if is_single { 2.0 } else { f64::from(u8::from(is_append_only)) },
            inside_records: layout.inside_records(model),
            queries,
            writes,
            expiry,
            layout,
        }
    }

    /// Everything in requests a second. A gibibyte is charged like half a request a second (list prices of the service).
    pub(crate) fn total(&self) -> f64 {
        self.read_cost + self.write_cost + self.bytes / f64::from(1 << 30) * 0.5
    }
}

/// Whether a query reads far more rows than it returns, often enough to matter.
pub(crate) fn is_wasteful(access: &Access, rate: f64) -> bool {
    let is_scan = access.rows > WASTEFUL_ROWS && access.rows > 10.0 * access.returned;
    is_scan && access.rows * rate > WASTEFUL_ROWS_PER_SECOND
}

/// Whether inserts all go to the end of the table: its first changing part grows with time (T12).
pub(crate) fn is_append_only(model: &Model<'_>, parts: &[Part]) -> bool {
    match parts.iter().find(|part| !matches!(part, Part::Fixed | Part::Tag(_))) {
        Some(Part::Value(property) | Part::Inverted(property)) => model.is_growing(*property),
        Some(Part::Period(..)) => true,
        _ => false,
    }
}

/// Which part of the requests goes to the busiest partition.
pub(crate) fn share(model: &Model<'_>, parts: &[Part], is_insert: bool) -> f64 {
    let of_part = |part: &Part| match *part {
        Part::Value(property) | Part::Inverted(property) => match is_insert && model.is_growing(property) {
            true => 1.0,
            false => model.most_common(property),
        },
        Part::Bucket(_, buckets) => 1.0 / f64::from(buckets),
        Part::Period(..) | Part::Fixed | Part::Tag(_) => 1.0,
    };
    parts.iter().map(of_part).product()
}

/// As how many entities one counts: the targets are for entities of 1 KiB.
pub(crate) fn weight(model: &Model<'_>, layout: &Layout) -> f64 {
    (access::row_bytes(model, layout, 0) / 1024.0).clamp(1.0, 1024.0)
}

/// Inserts a second.
pub(crate) fn insert_rate(model: &Model<'_>) -> f64 {
    let inserts = model.writes.iter().filter(|it| it.kind == WriteKind::Insert && it.of.is_none());
    inserts.map(|it| it.rate).sum()
}

/// Entities a second in the busiest partition of the busiest structure.
fn heat(model: &Model<'_>, layout: &Layout, queries: &[Access], writes: &[WriteAccess]) -> f64 {
    let size = |role: Role| match role.is_list() {
        true => 1.0,
        false => weight(model, layout),
    };
    let mut by_structure = vec![0.0; layout.structures.len()];
    for (query, access) in model.queries.iter().zip(queries) {
        let structure = &layout.structures[access.structure];
        let place = if structure.role.is_in_partition() { 0 } else { access.structure };
        let parts = &structure.template.partition;
        let rows = match access.kind {
            Kind::TableScan => access.rows / writes::partitions(model, parts) / share(model, parts, false).max(1e-12),
            _ => access.rows / access.seeks.max(1.0),
        };
        if structure.role == Role::OtherList {
            by_structure[place] += query.rate * share(model, parts, false);
            by_structure[0] += query.rate * (access.rows - 1.0) * share(model, &layout.primary().partition, false);
        } else {
            by_structure[place] += query.rate * rows * share(model, parts, false) * size(Role::Primary);
        }
    }
    for (write, access) in model.writes.iter().zip(writes) {
        let is_insert = write.kind == WriteKind::Insert;
        for (index, structure) in layout.structures.iter().enumerate() {
            let parts = &structure.template.partition;
            let rows = match index {
                0 => access.rows_in_partition,
                _ if structure.role.is_in_partition() || write.of.is_some() => 0.0,
                _ => 1.0,
            };
            let is_affected = is_insert
                || index == 0
                || write.kind == WriteKind::Delete
                || write.changes.meets(structure.template.properties())
                || !structure.role.is_list() && structure.stores.is_none_or(|stores| stores.meets(write.changes));
            if is_affected {
                by_structure[index] += write.rate * rows * share(model, parts, is_insert) * size(structure.role);
            }
        }
    }
    by_structure.into_iter().fold(0.0, f64::max)
}
