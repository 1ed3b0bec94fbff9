//! The guide's recommendations do not depend on exact numbers: with every volume, size and rate up to twice as large or as
//! small, each on its own, the recommended design is still among those that are shown.

use crate::shape::{Proposed, changed};
use larimar_design::{Description, Design, Kind, Pattern, Period, Placement, Role};
use proptest::prelude::*;

/// Whether a design is what the guide recommends.
type Recommended = fn(&Proposed, &Design) -> bool;

/// The worked examples of the guide.
const EXAMPLES: [(&str, Recommended); 13] = [
    ("employees", |it, design| {
        it.has_primary(design, &["Department"], &["EmployeeId"]) && design.layout.placements == [Placement::Together]
    }),
    ("email", |it, design| {
        it.has_primary(design, &["Department"], &["EmployeeId"])
            && it.has(design, Role::Copy, &["Department"], &["Email"])
    }),
    // Half of the employees are in one department. Above 2,000 look-ups a second there, the copies have to be in other
    // partitions; which of the two is called the copy does not matter. Below, large entities still need it.
    ("email-busy", |it, design| {
        let busiest = it.description.queries.iter().map(|query| query.rate.0 / 2.0).sum::<f64>();
        let is_near = it.has(design, Role::Copy, &["Department"], &["Email"]);
        let is_far = design.uses(Pattern::T2) && design.queries[..2].iter().all(|it| it.access.kind == Kind::Point);
        is_far || is_near && busiest <= 2000.0
    }),
    ("last-name", |it, design| it.has(design, Role::List, &["Department"], &["LastName"])),
    ("reviews", |it, design| {
        it.has_primary(design, &["Department"], &["EmployeeId"]) && design.layout.placements == [Placement::Together]
    }),
    ("manager", |_, design| design.layout.placements == [Placement::Inside]),
    ("expense-claims", |it, design| it.has_primary(design, &["EmployeeId"], &["-Submitted"])),
    ("logins", |it, design| design.layout.tables == Some(Period::Day) && it.has_primary(design, &["User"], &["Time"])),
    ("messages-per-hour", |it, design| {
        design.layout.packed == Some(Period::Day) && it.has_primary(design, &["EmployeeId"], &["day of Hour"])
    }),
    ("daily-counts", |_, design| design.uses(Pattern::T10)),
    ("photos", |it, design| design.uses(Pattern::T11) && it.has_primary(design, &["Department"], &["EmployeeId"])),
    ("access-log", |it, design| it.has_primary(design, &["Department", "EmployeeId"], &["Time"])),
    ("log-data", |_, design| design.uses(Pattern::T13)),
];

/// Multiplies each volume, size and rate by the next factor.
fn scale(description: &mut Description, factors: &[f64]) {
    let mut factors = factors.iter().cycle();
    let mut next = || *factors.next().expect("an endless row");
    for count in [&mut description.volume.entities, &mut description.volume.growth_per_day] {
        *count = scaled(*count, next());
    }
    for property in &mut description.properties {
        property.distinct = property.distinct.map(|count| scaled(count, next()));
        property.bytes = property.bytes.map(|count| scaled(count, next()));
    }
    for related in &mut description.related {
        // One for each stays one.
        related.count = related.count.map(|count| if count > 1 { scaled(count, next()).max(2) } else { count });
        related.bytes = scaled(related.bytes, next());
    }
    let queries = description.queries.iter_mut().map(|query| &mut query.rate);
    queries.chain(description.writes.iter_mut().map(|write| &mut write.rate)).for_each(|rate| rate.0 *= next());
}

fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).round() as u64
}

fn factor() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.5), Just(2.0), (-1.0..1.0_f64).prop_map(f64::exp2)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_guide_recommends_is_shown_for_other_volumes_and_rates(factors in prop::collection::vec(factor(), 24)) {
        for (name, is_recommended) in EXAMPLES {
            let proposed = changed(name, |description| scale(description, &factors));
            let is_shown = proposed.proposal.designs.iter().any(|design| is_recommended(&proposed, design));
            let shown: Vec<_> = proposed.proposal.designs.iter().map(|it| (&it.patterns, &it.structures)).collect();
            prop_assert!(is_shown, "{name}: {shown:?} for {:?}", proposed.description);
        }
    }
}
