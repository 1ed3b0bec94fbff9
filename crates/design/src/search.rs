//! Combines key templates with the patterns into layouts: for each of the most promising primaries, each way to place
//! series, old data and related records, and each way to serve the queries that the primary does not serve.
//!
//! Bounded by construction: at most [`limits::LAYOUTS_MAX`] layouts, each with at most [`STRUCTURES_MAX`] structures.

use crate::access::{self, Access};
use crate::candidates::{knows, row_for, templates, with_buckets};
use crate::description::WriteKind;
use crate::heat::{self, Costed, is_wasteful};
use crate::key::{Part, Period, Template};
use crate::layout::{Layout, Placement, Role, Structure};
use crate::limits::{self, ENTITY_BYTES, ENTITY_PROPERTIES, PARTITION_ENTITIES_PER_SECOND, PRIMARIES_MAX};
use crate::model::{Model, PropertySet, QueryModel, Relation};
use larimar_model::EdmType;
use std::collections::BTreeSet;

/// What the search found.
pub(crate) struct Found {
    pub(crate) layouts: Vec<Costed>,
    pub(crate) evaluations: u64,
}

/// How queries are served that the primary does not serve well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// Not at all.
    None,
    /// By copies in the partition, where that is possible (T1).
    Near,
    /// By copies in other tables (T2).
    Far,
    /// By lists of keys (T4).
    Lists,
}

/// All layouts that are worth a comparison.
pub(crate) fn layouts(model: &Model<'_>) -> Found {
    let mut search = Search::new(model);
    let mut seen: BTreeSet<Layout> = BTreeSet::new();
    let mut layouts = Vec::new();
    for base in search.bases() {
        for (policy, is_eager) in POLICIES {
            let layout = search.complete(base.clone(), policy, is_eager);
            if !seen.contains(&layout) {
                seen.insert(layout.clone());
                search.evaluations +=
                    (model.queries.len() + model.writes.len()) as u64 * layout.structures.len() as u64;
                layouts.push(Costed::new(model, layout));
            }
        }
    }
    if is_log(model) {
        let template = search.templates[0].clone();
        let layout = Layout { is_in_blobs: true, ..Layout::new(template, 0) };
        layouts.push(Costed::new(model, layout));
    }
    Found { layouts, evaluations: search.evaluations }
}

struct Search<'m> {
    model: &'m Model<'m>,
    templates: Vec<Template>,
    /// For each query the best template of a copy in another table.
    best: Vec<Option<Template>>,
    evaluations: u64,
}

impl<'m> Search<'m> {
    fn new(model: &'m Model<'m>) -> Self {
        let mut search = Self { model, templates: templates(model), best: Vec::new(), evaluations: 0 };
        search.best = model.queries.iter().map(|query| search.best_template(query)).collect();
        search
    }

    fn best_template(&mut self, query: &QueryModel) -> Option<Template> {
        let inserts = heat::insert_rate(self.model);
        let mut best: Option<(f64, usize)> = None;
        for (index, template) in self.templates.iter().enumerate() {
            let layout = Layout::new(template.clone(), self.model.relations.len());
            self.evaluations += 1;
            let Some(access) = access::of_structure(self.model, &layout, 0, query) else { continue };
            let load = inserts * heat::share(self.model, &template.partition, true)
                + query.rate * access.rows / access.seeks * heat::share(self.model, &template.partition, false);
            let load = load * heat::weight(self.model, &layout);
            let penalty = if load > PARTITION_ENTITIES_PER_SECOND { 1000.0 } else { 0.0 };
            let cost = access.cost() + penalty;
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, index));
            }
        }
        best.map(|(_, index)| self.templates[index].clone())
    }

    /// The primaries, each with every choice about series, old data and related records.
    fn bases(&mut self) -> Vec<Layout> {
        let related = placements(self.model);
        let tables = period_tables(self.model);
        let packed = series(self.model);
        let mut bases = Vec::new();
        let ways = related.len() * tables.len() * packed.len();
        for template in self.primaries(PRIMARIES_MAX.min(limits::BASES_MAX / ways)) {
            for placement in &related {
                for tables in &tables {
                    for packed in &packed {
                        let mut layout = Layout::new(template.clone(), 0);
                        layout.placements.clone_from(placement);
                        layout.tables = *tables;
                        if packed_template(self.model, &mut layout.structures[0].template, *packed) {
                            layout.packed = *packed;
                            bases.push(layout);
                        }
                    }
                }
            }
        }
        bases
    }

    /// The most promising templates, with variants that spread those that would be too hot.
    fn primaries(&mut self, primaries_max: usize) -> Vec<Template> {
        let model = self.model;
        let mut scored: Vec<(f64, f64, Costed)> = Vec::new();
        for template in &self.templates {
            let costed = Costed::new(model, Layout::new(template.clone(), model.relations.len()));
            self.evaluations += (model.queries.len() + model.writes.len()) as u64;
            // A copy can serve what a primary serves badly, at the price of a few requests.
            let capped = |(query, access): (&QueryModel, &Access)| query.rate * access.cost().min(CAPPED_COST);
            let capped: f64 = model.queries.iter().zip(&costed.queries).map(capped).sum();
            let penalty = costed.violations as f64 * costed.total() + costed.partition_heat;
            scored.push((costed.total() + penalty, capped + costed.write_cost, costed));
        }
        let by = |key: fn(&(f64, f64, Costed)) -> f64| {
            let mut order: Vec<usize> = (0..scored.len()).collect();
            order.sort_by(|a, b| key(&scored[*a]).total_cmp(&key(&scored[*b])).then(a.cmp(b)));
            order
        };
        let (by_total, by_capped) = (by(|it| it.0), by(|it| it.1));
        let mut chosen: Vec<Template> = Vec::new();
        for index in by_total.iter().zip(&by_capped).flat_map(|(a, b)| [*a, *b]) {
            let Costed { layout, partition_heat, .. } = &scored[index].2;
            let template = layout.primary();
            let alike = chosen.iter().filter(|it| it.partition == template.partition).count();
            if chosen.len() >= primaries_max || alike >= SAME_PARTITION_MAX || chosen.contains(template) {
                continue;
            }
            chosen.push(template.clone());
            let is_spread = template.partition.iter().any(|part| matches!(part, Part::Bucket(..)));
            if *partition_heat > PARTITION_ENTITIES_PER_SECOND && !is_spread && chosen.len() < primaries_max {
                let partition = with_buckets(model, &template.partition, *partition_heat);
                let spread = partition.map(|partition| Template { partition, row: template.row.clone() });
                chosen.extend(spread.filter(|spread| !chosen.contains(spread)));
            }
        }
        chosen
    }

    /// Adds structures for the queries that need them.
    fn complete(&mut self, mut layout: Layout, policy: Policy, is_eager: bool) -> Layout {
        let model = self.model;
        let mut current: Vec<Access> = Vec::new();
        for query in &model.queries {
            self.evaluations += 1;
            current.push(access::cheapest(model, &layout, query));
        }
        let mut order: Vec<usize> = (0..model.queries.len()).collect();
        let weight = |index: usize| model.queries[index].rate * current[index].cost();
        order.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)).then(a.cmp(b)));
        for index in order {
            let query = &model.queries[index];
            let is_needed = is_wasteful(&current[index], query.rate)
                || is_eager && current[index].cost() > 1.5 * (1.0 + 0.01 * query.returned());
            if policy == Policy::None || !is_needed || layout.structures.len() >= STRUCTURES_MAX {
                continue;
            }
            let Some(structure) = self.structure(&layout, index, policy) else { continue };
            let mut tried = layout.clone();
            tried.structures.push(structure);
            self.evaluations += 1;
            let access = access::of_structure(model, &tried, tried.structures.len() - 1, query);
            let Some(access) = access.filter(|access| access.cost() < 0.8 * current[index].cost()) else { continue };
            current[index] = access;
            layout = tried;
            for (other, access) in model.queries.iter().zip(&mut current) {
                self.evaluations += 1;
                let new = access::of_structure(model, &layout, layout.structures.len() - 1, other);
                if let Some(new) = new.filter(|new| new.cost() < access.cost()) {
                    *access = new;
                }
            }
        }
        self.pruned(layout)
    }

    /// A structure for a query.
    fn structure(&self, layout: &Layout, index: usize, policy: Policy) -> Option<Structure> {
        let (model, query) = (self.model, &self.model.queries[index]);
        let partition = &layout.primary().partition;
        let is_near = knows(query, partition);
        let known = layout.primary().partition_properties();
        let make = |role, template| Some(Structure { role, template, stores: None });
        match policy {
            Policy::None => None,
            Policy::Near if is_near => {
                let mut template = Template { partition: partition.clone(), row: row_for(model, partition, query) };
                packed_template(model, &mut template, layout.packed).then_some(())?;
                make(Role::Copy, template)
            }
            Policy::Lists if query.range.is_none() && !query.equals.is_empty() => {
                let listed: Vec<Part> = query.equals.without(known).iter().map(Part::Value).collect();
                if listed.is_empty() || !query.equals.iter().all(|it| model.may_be_key(it)) {
                    return None;
                }
                if is_near {
                    return make(Role::List, Template { partition: partition.clone(), row: listed });
                }
                let all = query.equals.iter().map(Part::Value).collect();
                make(Role::OtherList, Template { partition: all, row: vec![Part::Fixed] })
            }
            Policy::Near | Policy::Far | Policy::Lists => {
                let mut template = self.best[index].clone()?;
                packed_template(model, &mut template, layout.packed).then_some(())?;
                make(Role::OtherCopy, template)
            }
        }
    }

    /// Without structures that no query uses, and with only the properties in copies that their queries need.
    fn pruned(&mut self, mut layout: Layout) -> Layout {
        let model = self.model;
        let mut used: Vec<Option<Option<PropertySet>>> = vec![None; layout.structures.len()];
        for query in &model.queries {
            self.evaluations += layout.structures.len() as u64;
            let access = access::cheapest(model, &layout, query);
            let compared = query.range.iter().map(|it| it.property).chain(query.order.iter().map(|it| it.property));
            let needed = compared.fold(query.equals.union(query.returns), PropertySet::with);
            let needed = (!query.returns.is_empty()).then_some(needed);
            let entry = &mut used[access.structure];
            *entry = Some(match (*entry, needed) {
                (None, needed) => needed,
                (Some(Some(before)), Some(needed)) => Some(before.union(needed)),
                (Some(_), _) => None,
            });
        }
        let mut index = 0;
        layout.structures.retain_mut(|structure| {
            let use_of = used[index];
            index += 1;
            if matches!(structure.role, Role::Copy | Role::OtherCopy) && layout.packed.is_none() {
                structure.stores = use_of.flatten();
            }
            structure.role == Role::Primary || use_of.is_some()
        });
        layout
    }
}

/// Replaces the time in a template by the period whose values one entity has; false if the template has no place for it.
fn packed_template(model: &Model<'_>, template: &mut Template, packed: Option<Period>) -> bool {
    let (Some(period), Some(time)) = (packed, model.time) else { return true };
    let mut is_there = false;
    for part in &mut template.row {
        if matches!(part, Part::Value(property) | Part::Inverted(property) if *property == time) {
            *part = Part::Period(time, period);
            is_there = true;
        }
    }
    is_there && template.partition.iter().all(|part| part.property() != Some(time))
}

/// The ways to place related records: all apart, all together, all inside where they fit.
fn placements(model: &Model<'_>) -> Vec<Vec<Placement>> {
    if model.relations.is_empty() {
        return vec![Vec::new()];
    }
    let all = |placement| vec![placement; model.relations.len()];
    let mut ways = vec![all(Placement::Together), all(Placement::Apart)];
    let fits = |relation: &Relation, bytes: u64| match relation {
        Relation::One => true,
        Relation::Many(count) => *count <= ENTITY_PROPERTIES as f64 / 2.0 && count * bytes as f64 <= ENTITY_BYTES / 2.0,
        Relation::Parent(_) => false,
    };
    let related = model.relations.iter().zip(&model.description.related);
    let inside: Vec<Placement> = related
        .map(|(relation, it)| if fits(relation, it.bytes) { Placement::Inside } else { Placement::Together })
        .collect();
    if inside.contains(&Placement::Inside) {
        ways.push(inside);
    }
    ways
}

/// The periods of which each may have a table of its own: none, and those that divide the retention.
fn period_tables(model: &Model<'_>) -> Vec<Option<Period>> {
    let (Some(days), Some(_)) = (model.retention_days, model.time) else { return vec![None] };
    let period = if days >= 120.0 { Period::Month } else { Period::Day };
    vec![None, Some(period)]
}

/// The periods whose values one entity may have: numbers at fixed distances that fit into its properties.
fn series(model: &Model<'_>) -> Vec<Option<Period>> {
    let Some((time, every)) = model.time.and_then(|time| Some((time, model.property(time)?.every?))) else {
        return vec![None];
    };
    let identity: PropertySet = model.identity.iter().copied().collect();
    let is_value = |kind| matches!(kind, EdmType::Int32 | EdmType::Int64 | EdmType::Double | EdmType::Boolean);
    let values: Vec<_> =
        model.description.properties.iter().enumerate().filter(|(it, _)| !identity.has(*it as u8)).collect();
    let is_compared = |property: u8| {
        let by = |query: &QueryModel| {
            query.equals.has(property)
                || query.range.is_some_and(|range| range.property == property)
                || query.order.is_some_and(|order| order.property == property)
        };
        model.queries.iter().any(by)
    };
    let is_series = identity.has(time)
        && identity.iter().count() > 1
        && !values.is_empty()
        && values.iter().all(|(index, it)| is_value(it.kind) && it.repeat.is_none() && !is_compared(*index as u8));
    if !is_series {
        return vec![None];
    }
    let fits = |period: &Period| {
        let slots = period.days() / every.0;
        slots >= 2.0 && slots * values.len() as f64 <= ENTITY_PROPERTIES as f64
    };
    std::iter::once(None).chain(Period::ALL.into_iter().filter(fits).max().map(Some)).collect()
}

/// Whether the entities are records of a log: only inserted, and read by time (T13).
fn is_log(model: &Model<'_>) -> bool {
    let Some(time) = model.time else { return false };
    let by_time = |query: &QueryModel| query.range.is_some_and(|range| range.property == time);
    model.relations.is_empty()
        && !model.writes.is_empty()
        && model.writes.iter().all(|write| write.kind == WriteKind::Insert)
        && model.queries.iter().any(by_time)
}

const POLICIES: [(Policy, bool); 7] = [
    (Policy::None, false),
    (Policy::Near, false),
    (Policy::Near, true),
    (Policy::Far, false),
    (Policy::Far, true),
    (Policy::Lists, false),
    (Policy::Lists, true),
];
/// Structures of a layout at most.
const STRUCTURES_MAX: usize = 6;
/// Primaries with the same partition key at most.
const SAME_PARTITION_MAX: usize = 3;
/// What a query counts at most when primaries are compared.
const CAPPED_COST: f64 = 10.0;
