//! Whatever the description: designs come out, always the same ones, in bounded steps, and costs grow with what they
//! are of.

use crate::shape::described;
use larimar_design::{
    Description, EdmType, Property, Query, RangeOf, Rate, Related, Span, Volume, Write, WriteKind, cost, examples,
    limits, propose,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const TYPES: [EdmType; 8] = [
    EdmType::String,
    EdmType::Int32,
    EdmType::Int64,
    EdmType::Double,
    EdmType::Boolean,
    EdmType::DateTime,
    EdmType::Guid,
    EdmType::Binary,
];

fn property() -> impl Strategy<Value = Property> {
    let numbers = (0..8usize, proptest::option::of(1..10_000_000u64), 0.0..1.0f64, 1..2_000_000u64);
    (numbers, any::<[bool; 5]>()).prop_map(|((kind, distinct, most_common, bytes), flags)| Property {
        name: String::new(),
        kind: TYPES[kind],
        distinct,
        unique: flags[0] && kind != 7,
        growing: flags[1],
        most_common: flags[2].then_some(most_common),
        bytes: flags[3].then_some(bytes),
        every: (flags[4] && TYPES[kind] == EdmType::DateTime).then_some(Span(1.0 / 24.0)),
        repeat: (bytes % 17 == 0 && !flags[0]).then_some(bytes % 600 + 1),
        example: None,
    })
}

/// Names of properties, by numbers that may be too great.
fn pick(names: &[String], numbers: &[usize]) -> Vec<String> {
    let mut picked: Vec<String> = numbers.iter().map(|number| names[number % names.len()].clone()).collect();
    picked.sort();
    picked.dedup();
    picked
}

fn query(names: Vec<String>) -> impl Strategy<Value = Query> {
    let numbers = || proptest::collection::vec(0..64usize, 0..4);
    let details =
        (proptest::option::of(0..64usize), proptest::option::of(1..2000u64), 0.0..5000.0f64, any::<[bool; 4]>());
    (numbers(), numbers(), details).prop_map(move |(equals, returns, (other, top, rate, flags))| {
        let equals = pick(&names, &equals);
        let other = other.map(|number| names[number % names.len()].clone()).filter(|name| !equals.contains(name));
        let range = other.clone().filter(|_| flags[0]).map(|property| RangeOf {
            property,
            share: (!flags[1]).then_some(0.01),
            span: flags[1].then_some(Span(1.0)),
        });
        let order = other.map(|name| if flags[2] { format!("-{name}") } else { name });
        let returns = if flags[3] { pick(&names, &returns) } else { Vec::new() };
        let (results, with, name) = (None, Vec::new(), String::new());
        Query { name, equals, range, order, top, results, returns, with, rate: Rate(rate) }
    })
}

fn write(names: Vec<String>) -> impl Strategy<Value = Write> {
    let numbers = || proptest::collection::vec(0..64usize, 0..3);
    (0..3u8, numbers(), numbers(), numbers(), 0.0..5000.0f64).prop_map(move |(kind, by, changes, same, rate)| {
        let kind = [WriteKind::Insert, WriteKind::Update, WriteKind::Delete][usize::from(kind)];
        let changes = if kind == WriteKind::Update { pick(&names, &changes) } else { Vec::new() };
        let (by, same, name) = (pick(&names, &by), pick(&names, &same), String::new());
        Write { name, kind, of: None, by, changes, together: Vec::new(), same, rate: Rate(rate) }
    })
}

fn description() -> impl Strategy<Value = Description> {
    let volume = (0..1_000_000_000u64, 0..1_000_000u64, proptest::option::of(1..1000u32));
    let related = proptest::collection::vec((proptest::option::of(1..400u64), 1..100_000u64), 0..3);
    let properties = proptest::collection::vec(property(), 1..9);
    (volume, related, properties).prop_flat_map(
        |((entities, growth_per_day, retention_days), related, mut properties)| {
            for (index, property) in properties.iter_mut().enumerate() {
                property.name = format!("P{index}");
            }
            let names: Vec<String> = properties.iter().map(|property| property.name.clone()).collect();
            let queries = proptest::collection::vec(query(names.clone()), 0..7);
            let writes = proptest::collection::vec(write(names), 0..5);
            (queries, writes).prop_map(move |(mut queries, mut writes)| {
                queries.iter_mut().enumerate().for_each(|(index, query)| query.name = format!("q{index}"));
                writes.iter_mut().enumerate().for_each(|(index, write)| write.name = format!("w{index}"));
                let related = related.iter().enumerate().map(|(index, (count, bytes))| {
                    let per = count.is_none().then(|| "P0".to_owned());
                    Related { name: format!("R{index}"), count: *count, per, key: None, bytes: *bytes }
                });
                let volume = Volume { entities: entities + 1, growth_per_day, retention_days };
                let (entity, identity, properties) = ("E".to_owned(), Vec::new(), properties.clone());
                Description { entity, identity, volume, properties, related: related.collect(), queries, writes }
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_description_has_designs_and_always_the_same_ones(description in description()) {
        let proposal = propose(&description).expect("a good description");
        prop_assert!((1..=limits::DESIGNS_MAX).contains(&proposal.designs.len()));
        prop_assert!(proposal.evaluations <= limits::EVALUATIONS_MAX);
        for design in &proposal.designs {
            let numbers = [design.cost, design.bytes, design.partitions, design.rows_per_partition];
            prop_assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{:?}", numbers);
            prop_assert!(design.partition_entities_per_second.is_finite());
            for query in &design.queries {
                let access = &query.access;
                prop_assert!(access.requests >= 1.0 && access.rows >= 1.0, "{:?}", query);
                prop_assert!(access.rows.is_finite() && access.requests.is_finite() && access.bytes.is_finite());
            }
            prop_assert_eq!(design.queries.len(), description.queries.len());
            let elsewhere = || design.structures.iter().filter(|it| it.is.contains("another table"));
            let tables: BTreeSet<&str> = elsewhere().map(|it| it.table.as_str()).collect();
            prop_assert_eq!(tables.len(), elsewhere().count(), "each copy elsewhere has a table of its own");
        }
        prop_assert_eq!(format!("{:?}", propose(&description).expect("again")), format!("{proposal:?}"));
    }
}

#[test]
fn costs_grow_with_rates_entities_and_queries() {
    for example in examples::ALL {
        let before = described(example.name);
        for design in propose(&before).expect(example.name).designs {
            let again = cost(&before, &design.layout).expect(example.name);
            assert_eq!(again.cost, design.cost, "{}: the costs of a layout are its own", example.name);
            let mut busier = before.clone();
            busier.queries.iter_mut().for_each(|query| query.rate.0 *= 2.0);
            busier.writes.iter_mut().for_each(|write| write.rate.0 *= 2.0);
            let busier = cost(&busier, &design.layout).expect(example.name);
            assert!(busier.cost >= design.cost, "{}", example.name);
            assert!(busier.partition_entities_per_second >= design.partition_entities_per_second, "{}", example.name);
            let mut larger = before.clone();
            larger.volume.entities *= 4;
            larger.volume.growth_per_day *= 4;
            let larger = cost(&larger, &design.layout).expect(example.name);
            assert!(larger.bytes > design.bytes, "{}", example.name);
            for (more, less) in larger.queries.iter().zip(&design.queries) {
                assert!(more.access.rows >= less.access.rows, "{}: {more:?} {less:?}", example.name);
            }
            let mut fewer = before.clone();
            fewer.queries.pop();
            let fewer = cost(&fewer, &design.layout).expect(example.name);
            assert!(fewer.cost <= design.cost, "{}", example.name);
        }
    }
}

#[test]
fn the_search_is_bounded_for_the_largest_descriptions() {
    for (properties, queries, evaluations_max) in [(20, 20, 200_000), (128, 64, limits::EVALUATIONS_MAX)] {
        let proposal = propose(&largest(properties, queries)).expect("designs");
        println!("{properties} properties, {queries} queries: {} evaluations", proposal.evaluations);
        assert!(proposal.evaluations <= evaluations_max, "{}", proposal.evaluations);
        assert!(!proposal.designs.is_empty());
    }
}

/// A description with everything that makes the search larger: every query differs, and so do related records, series and
/// old data.
fn largest(properties: usize, queries: usize) -> Description {
    let mut description = described("telemetry");
    description.identity = vec!["P0".to_owned(), "Time".to_owned()];
    let time = description.properties[1].clone();
    let plain = description.properties[0].clone();
    description.properties = vec![Property { every: Some(Span(1.0 / 24.0)), ..time }];
    description.properties.extend((0..properties - 1).map(|number| {
        let (name, distinct) = (format!("P{number}"), Some(1 << (number % 20)));
        Property { name, distinct, example: None, kind: EdmType::Int32, ..plain.clone() }
    }));
    let query = description.queries[0].clone();
    description.queries = (0..queries)
        .map(|number| Query {
            name: format!("q{number}"),
            equals: (0..1 + number % 4).map(|it| format!("P{}", (number * 3 + it * 5) % (properties - 1))).collect(),
            rate: Rate(100.0 + number as f64),
            ..query.clone()
        })
        .collect();
    description.queries.iter_mut().for_each(|query| {
        query.equals.sort();
        query.equals.dedup();
    });
    description.writes =
        (0..queries).map(|number| Write { name: format!("w{number}"), ..description.writes[0].clone() }).collect();
    description.related = (0..3)
        .map(|number| Related { name: format!("R{number}"), count: Some(1 + number), per: None, key: None, bytes: 100 })
        .collect();
    description
}
