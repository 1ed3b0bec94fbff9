//! Why a design is as it is, and what to mind, in the terms of the guide.

use crate::access::Kind;
use crate::heat::{Costed, is_wasteful};
use crate::key::Part;
use crate::layout::{Placement, Role};
use crate::limits::{ACCOUNT_REQUESTS_PER_SECOND, PARTITION_ENTITIES_PER_SECOND};
use crate::model::{Model, Relation};
use crate::writes::{Consistency, partitions};

/// The reasons for a design.
pub(crate) fn reasons(model: &Model<'_>, costed: &Costed) -> Vec<String> {
    let layout = &costed.layout;
    if layout.is_in_blobs {
        return vec![
            "T13: records that are only added and read by time go to blobs named after the hour; a writer sends them in blocks, \
             so that no partition is hot"
                .to_owned(),
        ];
    }
    let mut reasons = Vec::new();
    let names = |wanted: &dyn Fn(usize) -> bool| {
        let named = model.description.queries.iter().enumerate().filter(|(index, _)| wanted(*index));
        named.map(|(_, query)| format!("'{}'", query.name)).collect::<Vec<_>>().join(", ")
    };
    let points = names(&|index| matches!(costed.queries[index].kind, Kind::Point));
    if !points.is_empty() {
        reasons.push(format!("Q1: both keys are known for {points}"));
    }
    let ranges = names(&|index| matches!(costed.queries[index].kind, Kind::Range));
    if !ranges.is_empty() {
        reasons.push(format!("Q2: one range of row keys answers {ranges}"));
    }
    for (index, structure) in layout.structures.iter().enumerate().skip(1) {
        let served = names(&|query| costed.queries[query].structure == index);
        reasons.push(match structure.role {
            Role::Copy => format!("T1: copies under another row key serve {served}; one transaction keeps them equal"),
            Role::OtherCopy => format!("T2: copies in another table serve {served}; they follow eventually (T3)"),
            Role::List => {
                format!("T4: lists of keys in the partition serve {served}; one transaction keeps them right")
            }
            Role::OtherList => {
                format!("T4: lists of keys in another table serve {served}; they follow eventually (T3)")
            }
            Role::Primary => continue,
        });
    }
    related_reasons(model, costed, &mut reasons);
    pattern_reasons(model, costed, &mut reasons);
    reasons
}

/// The reasons for patterns that concern the layout as a whole.
fn pattern_reasons(model: &Model<'_>, costed: &Costed, reasons: &mut Vec<String>) {
    let layout = &costed.layout;
    if layout.structures.iter().flat_map(|it| &it.template.row).any(|part| matches!(part, Part::Inverted(_))) {
        reasons.push(
            "T7: inverted values in the row key put the latest or greatest first, so that $top reads no others"
                .to_owned(),
        );
    }
    if let Some(period) = layout.tables {
        let name = period.name();
        reasons.push(format!("T8: a table for each {name}; old entities go with their table, in one request"));
    }
    if let Some(period) = layout.packed {
        let (slots, name) = (layout.slots(model), period.name());
        reasons.push(format!("T9: one entity has the {slots:.0} values of a {name}; Merge writes one of them"));
    }
    if model.parts() > 1.0 {
        reasons.push(format!("T10: the properties need {:.0} physical entities in one partition", model.parts()));
    }
    if !model.large().is_empty() {
        let large: Vec<&str> = model.large().iter().map(|property| model.name(property)).collect();
        reasons.push(format!("T11: {} goes to a blob, its address to the entity", large.join(", ")));
    }
    if layout.primary().partition.iter().any(|part| matches!(part, Part::Bucket(..))) {
        reasons.push("T12: a hash before the partition key spreads inserts; reads of all ask each bucket".to_owned());
    }
}

fn related_reasons(model: &Model<'_>, costed: &Costed, reasons: &mut Vec<String>) {
    for (index, related) in model.description.related.iter().enumerate() {
        let name = &related.name;
        reasons.push(match (costed.layout.placement(model, index), model.relations[index]) {
            (Placement::Together, Relation::Parent(_)) => {
                format!("R1: {name} is in the partition of its entities, so that one transaction changes both")
            }
            (Placement::Together, _) => {
                format!("T6: {name} has the entity's row key and its own key after it; one range reads all of them")
            }
            (Placement::Inside, _) => format!("T5: {name} is stored in properties of the entity and read with it"),
            (Placement::Apart, _) => format!("{name} is in a table of its own: another request reads it"),
        });
    }
}

/// What to mind about a design.
pub(crate) fn warnings(model: &Model<'_>, costed: &Costed) -> Vec<String> {
    let layout = &costed.layout;
    let mut warnings = Vec::new();
    for ((query, access), described) in model.queries.iter().zip(&costed.queries).zip(&model.description.queries) {
        let (name, rows) = (&described.name, access.rows);
        if is_wasteful(access, query.rate) {
            warnings.push(format!(
                "'{name}' is a {} that reads {rows:.0} rows for {:.0}",
                access.kind.name(),
                access.returned
            ));
        } else if access.kind == Kind::TableScan {
            warnings.push(format!("Q4: '{name}' scans the table: {rows:.0} rows"));
        }
        if access.is_sorted_by_client {
            warnings.push(format!("the client sorts the results of '{name}'"));
        }
    }
    for (write, described) in costed.writes.iter().zip(&model.description.writes) {
        if write.is_transaction_possible == Some(false) {
            warnings.push(format!("'{}' cannot be one transaction: it reaches over partitions (T3)", described.name));
        }
    }
    if layout.is_in_blobs {
        return warnings;
    }
    warnings.extend(related_warnings(model, costed));
    let partition = &layout.primary().partition;
    if costed.is_append_only {
        warnings.push(
            "T12: inserts all go to the last partitions (append-only); the service cannot spread them".to_owned(),
        );
    }
    if costed.partition_heat > PARTITION_ENTITIES_PER_SECOND {
        let heat = costed.partition_heat;
        warnings.push(format!("T12: the busiest partition has {heat:.0} entities/s; the service's target is 2,000"));
    }
    if costed.account_heat > ACCOUNT_REQUESTS_PER_SECOND {
        let heat = costed.account_heat;
        warnings.push(format!("P2: {heat:.0} requests/s in all; the service's target for an account is 20,000"));
    }
    if partitions(model, partition) <= 1.0 && model.entities > 1000.0 {
        warnings.push("all entities are in one partition, which one server serves".to_owned());
    }
    for (write, described) in model.writes.iter().zip(&model.description.writes) {
        if write.changes.meets(layout.primary().properties()) {
            warnings.push(format!("'{}' changes a key: the entity is deleted and inserted again", described.name));
        }
    }
    if costed.writes.iter().any(|write| write.consistency == Consistency::Eventual) {
        warnings.push(
            "T3: what is in other partitions, tables or blobs follows eventually, by a queue and a worker".to_owned(),
        );
    }
    warnings
}

/// What to mind about records inside an entity.
fn related_warnings(model: &Model<'_>, costed: &Costed) -> Vec<String> {
    let related = model.description.related.iter().enumerate();
    let inside = related.filter(|(index, _)| {
        let placed = (costed.layout.placement(model, *index), model.relations[*index]);
        matches!(placed, (Placement::Inside, Relation::Many(_)))
    });
    let warning = |(_, related): (usize, &crate::description::Related)| {
        let name = &related.name;
        format!("T5: the entity has room for 252 properties and 1 MiB, which bounds the number of {name}")
    };
    inside.map(warning).collect()
}
