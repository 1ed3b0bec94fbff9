//! Trials are bounded, and their rows have keys that the service takes.

use crate::shape::{changed, example};
use larimar_design::trial::{ENTITIES_MAX, REQUESTS_MAX, ROWS_MAX, trial};
use larimar_design::{Placement, examples, propose};
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

#[test]
fn proposals_and_trials_have_a_form_for_programs() {
    let proposed = example("orders");
    let json = serde_json::to_value(propose(&proposed.description).expect("designs")).expect("JSON");
    let design = &json["designs"][0];
    for member in ["bestAt", "patterns", "structures", "queries", "writes", "rowsPerPartition", "requestsPerSecond"] {
        assert!(!design[member].is_null(), "{member}: {design}");
    }
    assert!(design["structures"][0]["partitionKey"].is_string() && design["queries"][0]["isWasteful"].is_boolean());
    assert!(design["queries"][0]["isSortedByClient"].is_boolean() && design["layout"].is_null(), "{design}");
    let trial = trial(&proposed.description, &proposed.proposal.designs[0].layout, 20).expect("a trial");
    let json = serde_json::to_value(&trial).expect("JSON");
    assert!(json["notTried"].is_array() && json["queries"][0]["predicted"]["kind"].is_string(), "{json}");
    assert!(json["queries"][0]["requests"][0]["filter"].is_string(), "{json}");
    let entity = &json["rows"][0]["entity"];
    assert_eq!(entity["PartitionKey"], trial.rows[0].partition);
    // What JSON does not show has its type, as the service takes it.
    for (name, value) in &trial.rows[0].properties {
        let edm = value.as_ref().edm_type().name();
        let is_shown = matches!(edm, "Edm.String" | "Edm.Int32" | "Edm.Boolean");
        let named = &entity[format!("{name}@odata.type")];
        assert!(!entity[name].is_null() && (is_shown && named.is_null() || named == edm), "{name}: {entity}");
    }
}
