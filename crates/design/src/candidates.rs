//! The key templates that are worth considering: each partition key follows from what queries and writes know, and
//! each row key from what a query asks for within such a partition.

use crate::heat;
use crate::key::{Part, Period, Template};
use crate::limits::PARTITION_ENTITIES_PER_SECOND;
use crate::model::{Model, PropertySet, QueryModel, Relation};

/// All templates, without duplicates, in an order that follows the description.
pub(crate) fn templates(model: &Model<'_>) -> Vec<Template> {
    let mut templates: Vec<Template> = Vec::new();
    for partition in partitions(model) {
        let mut rows = vec![completed(model, &partition, Vec::new())];
        for query in model.queries.iter().filter(|query| knows(query, &partition)) {
            let row = row_for(model, &partition, query);
            if rows.len() < ROWS_MAX && !rows.contains(&row) {
                rows.push(row);
            }
        }
        templates.extend(rows.into_iter().map(|row| Template { partition: partition.clone(), row }));
    }
    templates
}

/// Whether a query has a value, or a few periods, for every part of a partition key.
pub(crate) fn knows(query: &QueryModel, partition: &[Part]) -> bool {
    partition.iter().all(|part| match *part {
        Part::Value(property) | Part::Inverted(property) => query.equals.has(property),
        Part::Period(property, _) => {
            query.equals.has(property)
                || query.range.is_some_and(|range| range.property == property)
                || query.order.is_some_and(|order| order.property == property && query.top.is_some())
        }
        Part::Fixed | Part::Tag(_) | Part::Bucket(..) => true,
    })
}

/// The best row key for a query within a partition.
pub(crate) fn row_for(model: &Model<'_>, partition: &[Part], query: &QueryModel) -> Vec<Part> {
    let known: PropertySet =
        partition.iter().filter(|part| matches!(part, Part::Value(_))).filter_map(|part| part.property()).collect();
    let mut parts: Vec<Part> = coarse_first(model, query.equals.without(known)).into_iter().map(Part::Value).collect();
    let open = |property: u8| model.may_be_key(property) && !query.equals.has(property) && !known.has(property);
    let order = query.order.filter(|order| open(order.property));
    if let Some(range) = query.range.filter(|range| open(range.property)) {
        let is_inverted = order.is_some_and(|order| order.property == range.property && order.is_descending);
        parts.push(value(model, range.property, is_inverted));
    }
    if let Some(order) = order.filter(|order| parts.iter().all(|part| part.property() != Some(order.property))) {
        parts.push(value(model, order.property, order.is_descending));
    }
    completed(model, partition, parts)
}

fn value(model: &Model<'_>, property: u8, is_inverted: bool) -> Part {
    if is_inverted && model.can_be_inverted(property) { Part::Inverted(property) } else { Part::Value(property) }
}

/// The row key with what it needs so that no two entities have the same keys.
fn completed(model: &Model<'_>, partition: &[Part], mut row: Vec<Part>) -> Vec<Part> {
    let template = Template { partition: partition.to_vec(), row: row.clone() };
    let whole = template.whole_properties();
    if !model.identities.iter().any(|identity| whole.contains(*identity)) {
        row.extend(model.identity.iter().filter(|property| !whole.has(**property)).map(|it| Part::Value(*it)));
    }
    if row.is_empty() {
        row.push(Part::Fixed);
    }
    row
}

/// The partition keys.
fn partitions(model: &Model<'_>) -> Vec<Vec<Part>> {
    let mut found: Vec<Vec<Part>> = Vec::new();
    let mut add = |parts: Vec<Part>| {
        if !parts.is_empty() && found.len() < PARTITIONS_MAX && !found.contains(&parts) {
            found.push(parts);
        }
    };
    let identity: PropertySet = model.identity.iter().copied().collect();
    let mut sets: Vec<PropertySet> = model.queries.iter().map(|query| query.equals).collect();
    sets.extend(model.writes.iter().flat_map(|write| [write.same, write.by]));
    sets.push(identity);
    for set in &sets {
        for property in coarse_first(model, *set) {
            add(vec![Part::Value(property)]);
        }
    }
    for relation in &model.relations {
        if let Relation::Parent(property) = relation {
            add(vec![Part::Value(*property)]);
        }
    }
    for set in &sets {
        let properties = coarse_first(model, *set);
        if (2..=3).contains(&properties.len()) {
            add(properties.iter().map(|property| Part::Value(*property)).collect());
        }
        for (index, first) in properties.iter().enumerate().take(2) {
            for second in &properties[index + 1..] {
                add(vec![Part::Value(*first), Part::Value(*second)]);
            }
        }
    }
    for query in &model.queries {
        of_time(model, query).into_iter().for_each(&mut add);
    }
    if model.queries.iter().any(|query| query.equals.is_empty()) || model.queries.is_empty() {
        add(vec![Part::Fixed]);
    }
    let spread: Vec<Vec<Part>> = found.iter().filter_map(|parts| spread(model, parts)).collect();
    found.extend(spread);
    found
}

/// Partition keys that begin or end with the period of a query.
fn of_time(model: &Model<'_>, query: &QueryModel) -> Vec<Vec<Part>> {
    let Some(time) = model.time.filter(|time| !query.equals.has(*time)) else { return Vec::new() };
    let range = query.range.filter(|range| range.property == time);
    let is_latest = query.order.is_some_and(|order| order.property == time && order.is_descending);
    let period = match range.and_then(|range| range.days) {
        Some(days) => Period::around(days),
        None if is_latest && query.top.is_some() => Period::Day,
        None => return Vec::new(),
    };
    let with = |property: u8| vec![Part::Value(property), Part::Period(time, period)];
    let compound = coarse_first(model, query.equals).into_iter().take(2).map(with);
    std::iter::once(vec![Part::Period(time, period)]).chain(compound).collect()
}

/// The partition key with a bucket before it, if inserts alone are too many for one partition (T12).
fn spread(model: &Model<'_>, parts: &[Part]) -> Option<Vec<Part>> {
    let load = heat::insert_rate(model) * heat::share(model, parts, true);
    if load <= PARTITION_ENTITIES_PER_SECOND {
        return None;
    }
    with_buckets(model, parts, load)
}

/// The partition key with so many buckets before it that each is at half of the target at most. The hash is of a property
/// that the key does not have already.
pub(crate) fn with_buckets(model: &Model<'_>, parts: &[Part], load: f64) -> Option<Vec<Part>> {
    let buckets = (load / (PARTITION_ENTITIES_PER_SECOND / 2.0)).ceil().clamp(2.0, BUCKETS_MAX) as u16;
    let is_new = |property: &u8| !parts.contains(&Part::Value(*property)) && model.distinct(*property) > 1.0;
    let others = model.identity.iter().copied().filter(is_new);
    let finest = others.max_by(|a, b| model.distinct(*a).total_cmp(&model.distinct(*b)))?;
    let bucket = Part::Bucket(finest, buckets.next_power_of_two());
    Some(std::iter::once(bucket).chain(parts.iter().copied().filter(|part| *part != Part::Fixed)).collect())
}

/// Properties that can be keys, those with the fewest values first.
fn coarse_first(model: &Model<'_>, set: PropertySet) -> Vec<u8> {
    let mut properties: Vec<u8> = set.iter().filter(|property| model.may_be_key(*property)).collect();
    properties.sort_by(|a, b| model.distinct(*a).total_cmp(&model.distinct(*b)).then(a.cmp(b)));
    properties
}

/// Partition keys at most, before those with buckets.
const PARTITIONS_MAX: usize = 48;
/// Row keys for each of them at most.
const ROWS_MAX: usize = 8;
/// Every read of all buckets asks each of them.
const BUCKETS_MAX: f64 = 256.0;
