//! Trials are bounded, and their rows have keys that the service takes.

use crate::shape::{changed, example};
use larimar_design::trial::{ENTITIES_MAX, REQUESTS_MAX, ROWS_MAX, trial};
use larimar_design::{Placement, examples};
use std::collections::BTreeSet;

#[test]
fn a_trial_is_bounded() {
    let proposed = example("email");
    let layout = &proposed.proposal.designs[0].layout;
    for (entities, word) in [(0, "1 to"), (ENTITIES_MAX + 1, "1 to")] {
        let error = trial(&proposed.description, layout, entities).expect_err("a bound").to_string();
        assert!(error.contains(word), "{error}");
    }
    // A billion records beside each entity.
    let proposed = changed("reviews", |it| it.related[0].count = Some(1_000_000_000));
    let design = proposed.find("with reviews beside", |it| it.layout.placements == [Placement::Together]);
    let error = trial(&proposed.description, &design.layout, 10).expect_err("a bound").to_string();
    assert!(error.contains(&ROWS_MAX.to_string()), "{error}");
}

#[test]
fn every_row_of_a_trial_has_keys_of_its_own() {
    for name in examples::ALL.iter().map(|example| example.name) {
        let proposed = example(name);
        for design in &proposed.proposal.designs {
            let Ok(trial) = trial(&proposed.description, &design.layout, 200) else { continue };
            let mut seen = BTreeSet::new();
            for row in &trial.rows {
                let key = (&row.table, &row.partition, &row.row);
                assert!(seen.insert(key), "{name}: {key:?} twice");
                let is_key = |key: &str| key.len() <= 512 && !key.contains(['/', '\\', '#', '?']);
                assert!(is_key(&row.partition) && is_key(&row.row), "{name}: {key:?}");
            }
            for query in &trial.queries {
                assert!((1..=2 * REQUESTS_MAX).contains(&query.requests.len()), "{name}: {}", query.name);
            }
        }
    }
}
