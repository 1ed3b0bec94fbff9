//! Which layouts are shown: of those with the fewest violations the Pareto-optimal ones, and of these a few that differ.

use crate::heat::Costed;
use crate::key::Part;
use crate::layout::{Layout, Placement, Role};
use crate::limits::{DESIGNS_MAX, PARTITION_ENTITIES_PER_SECOND};
use crate::model::Model;
use crate::report::Design;

/// The designs to show, the one with the least cost first.
pub(crate) fn designs(model: &Model<'_>, all: &[Costed]) -> Vec<Design> {
    let fewest = all.iter().map(|it| it.violations).min().unwrap_or(0);
    let good: Vec<&Costed> = all.iter().filter(|it| it.violations == fewest).collect();
    let mut front: Vec<&Costed> =
        good.iter().filter(|it| !good.iter().any(|other| dominates(other, it))).copied().collect();
    front.sort_by(|a, b| a.total().total_cmp(&b.total()).then_with(|| a.layout.cmp(&b.layout)));
    let mut chosen: Vec<(&Costed, Vec<&'static str>)> = Vec::new();
    for (name, measure) in MEASURES {
        let best = front.iter().min_by(|a, b| measure(a).total_cmp(&measure(b)).then(a.total().total_cmp(&b.total())));
        let Some(best) = best else { continue };
        let alike = |it: &&mut (&Costed, Vec<&'static str>)| {
            it.0.layout == best.layout
                || shape(&it.0.layout) == shape(&best.layout)
                || measure(it.0) <= measure(best) * 1.05
        };
        match chosen.iter_mut().find(alike) {
            Some((_, names)) => names.push(name),
            None => chosen.push((best, vec![name])),
        }
    }
    for other in &front {
        let is_new =
            chosen.iter().all(|(it, _)| substance(&it.layout) != substance(&other.layout) && !is_as_good(it, other));
        if chosen.len() < DESIGNS_MAX && is_new {
            chosen.push((other, Vec::new()));
        }
    }
    chosen.truncate(DESIGNS_MAX);
    chosen.into_iter().map(|(costed, best_at)| Design::new(model, costed, best_at)).collect()
}

type Measure = fn(&Costed) -> f64;

/// What a design can be best at. The first is the order of the designs.
const MEASURES: [(&str, Measure); 5] = [
    ("least cost", Costed::total),
    ("cheapest reads", |it| it.read_cost),
    ("cheapest writes", |it| it.write_cost),
    ("least storage", |it| it.bytes),
    ("most transactions", |it| it.eventual as f64),
];

/// What layouts are compared by. A partition that is far from its target is not hot.
const COMPARED: [Measure; 8] = [
    |it| it.read_cost,
    |it| it.write_cost,
    |it| it.bytes,
    |it| it.eventual as f64,
    |it| it.partition_heat.max(PARTITION_ENTITIES_PER_SECOND / 4.0),
    |it| it.concentration,
    // Records with rows of their own (T6) have no bound; those inside an entity (T5) have.
    |it| it.inside_records,
    |it| it.layout.structures.len() as f64,
];

/// Whether a layout is better than another in something and worse in nothing. Blobs are not compared with tables.
fn dominates(a: &Costed, b: &Costed) -> bool {
    let is_better = COMPARED.iter().any(|measure| measure(a) < measure(b));
    is_better && a.layout.is_in_blobs == b.layout.is_in_blobs && COMPARED.iter().all(|it| it(a) <= it(b))
}

/// Whether a layout is hardly worse than another in anything.
fn is_as_good(a: &Costed, b: &Costed) -> bool {
    a.layout.is_in_blobs == b.layout.is_in_blobs && COMPARED.iter().all(|measure| measure(a) <= measure(b) * 1.02)
}

/// Everything that two layouts must share to be called the same.
fn shape(layout: &Layout) -> impl PartialEq {
    let structures: Vec<(Role, Vec<Part>, Option<Part>)> = layout
        .structures
        .iter()
        .map(|it| (it.role, it.template.partition.clone(), it.template.row.first().copied()))
        .collect();
    (structures, layout.tables, layout.packed, layout.placements.clone(), layout.is_in_blobs)
}

/// What makes two layouts different designs: how partitions are made, and which patterns serve the rest.
fn substance(layout: &Layout) -> impl PartialEq {
    let mut roles: Vec<Role> = layout.structures.iter().map(|it| it.role).collect();
    roles.sort_unstable();
    roles.dedup();
    let is_apart = layout.placements.contains(&Placement::Apart);
    let is_inside = layout.placements.contains(&Placement::Inside);
    (layout.primary().partition.clone(), roles, layout.tables, layout.packed, is_apart, is_inside, layout.is_in_blobs)
}
