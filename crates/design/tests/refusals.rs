//! Wrong descriptions are refused, with the place and what was expected.

use crate::shape::described;
use larimar_design::{Description, limits, propose};

fn refused(text: &str) -> String {
    match Description::from_toml(text) {
        Err(error) => error.to_string(),
        Ok(description) => propose(&description).expect_err(text).to_string(),
    }
}

const HEAD: &str = "entity = 'E'\n[volume]\nentities = 10\n";

#[test]
fn a_refusal_names_the_place_and_what_was_expected() {
    let property = "[[property]]\nname = 'A'\ntype = 'string'\n";
    for (rest, words) in [
        ("[[query]]\nname = 'q'\nequals = ['B']", &["query 'q'", "unknown property 'B'"][..]),
        ("[[query]]\nname = 'q'\nequals = ['A']\nrange = { property = 'A' }", &["query 'q'", "both"]),
        ("[[query]]\nname = 'q'\nwith = ['X']", &["query 'q'", "unknown related record 'X'"]),
        ("[[query]]\nname = 'q'\ntop = 0", &["query 'q'", "top"]),
        ("[[query]]\nname = 'q'\nrate = 'often'", &["often", "20/s"]),
        ("[[query]]\nname = 'q'\nequal = ['A']", &["unknown field `equal`", "`equals`"]),
        ("[[query]]\nname = 'q'\n[[query]]\nname = 'q'", &["query 'q'", "once"]),
        ("[[write]]\nname = 'w'\ndoes = 'upsert'", &["upsert", "`insert`"]),
        ("[[write]]\nname = 'w'\ndoes = 'insert'\nchanges = ['A']", &["write 'w'", "update"]),
        ("[[property]]\nname = 'x y'\ntype = 'string'", &["property 'x y'", "letters"]),
        ("[[property]]\nname = 'B'\ntype = 'text'", &["text", "`string`"]),
        ("[[property]]\nname = 'B'\ntype = 'string'\ndistinct = 0", &["property 'B'", "distinct"]),
        ("[[property]]\nname = 'B'\ntype = 'int32'\nevery = '1h'", &["property 'B'", "datetime"]),
        ("[[property]]\nname = 'B'\ntype = 'string'\nmost_common = 1.5", &["property 'B'", "0 to 1"]),
        ("[[related]]\nname = 'R'\nbytes = 1\ncount = 2\nper = 'A'", &["related 'R'", "both"]),
    ] {
        let error = refused(&format!("{HEAD}{property}{rest}"));
        assert!(words.iter().all(|word| error.contains(word)), "{rest}: {error}");
    }
    let error = refused("entity = 'E'\n[volume]\nentities = 0");
    assert!(error.contains("volume") && error.contains("entities"), "{error}");
    let error =
        refused("identity = ['B']\nentity = 'E'\n[volume]\nentities = 9\n[[property]]\nname = 'B'\ntype = 'binary'");
    assert!(error.contains("identity") && error.contains("'B'"), "{error}");
}

#[test]
fn a_limit_is_named() {
    let mut description = described("employees");
    let property = description.properties[4].clone();
    description.properties.extend((0..1000).map(|number| {
        let mut property = property.clone();
        property.name = format!("P{number}");
        property
    }));
    let error = propose(&description).expect_err("too many").to_string();
    assert_eq!(error, format!("expected at most {} properties, found 1005", limits::PROPERTIES_MAX));
    let mut description = described("employees");
    let query = description.queries[0].clone();
    description.queries = vec![query; limits::QUERIES_MAX + 1];
    let error = propose(&description).expect_err("too many").to_string();
    assert!(error.contains("queries"), "{error}");
}

#[test]
fn the_greatest_numbers_have_finite_costs() {
    for name in larimar_design::examples::ALL.iter().map(|example| example.name) {
        let mut description = described(name);
        description.volume.entities = u64::MAX;
        description.volume.growth_per_day = u64::MAX;
        description.queries.iter_mut().for_each(|query| query.rate.0 = 1e12);
        description.writes.iter_mut().for_each(|write| write.rate.0 = 1e12);
        description.properties.iter_mut().for_each(|it| it.bytes = it.bytes.map(|_| u64::MAX));
        for design in propose(&description).expect(name).designs {
            assert!(design.cost.is_finite() && design.bytes.is_finite(), "{name}: {design:?}");
            assert!(design.queries.iter().all(|it| it.access.cost().is_finite()), "{name}: {design:?}");
        }
    }
}

#[test]
fn an_entity_without_anything_has_a_design() {
    let description = Description::from_toml(HEAD).expect("TOML");
    let proposal = propose(&description).expect("a design");
    assert!(!proposal.designs.is_empty());
    assert!(proposal.designs[0].structures[0].row_key.contains("id"), "{:?}", proposal.designs[0].structures);
}
