//! A planned query returns exactly what a full scan with the naive filter returns, page by page.

use larimar_engine::table::{PageLimits, Plan, Write, create_table, query, transact};
use larimar_engine::{Flow, KeyRange, MemoryEngine, Position, SpaceId};
use larimar_model::filter::{Comparison, Operator, Row};
use larimar_model::{Entity, EntityKey, Filter, PartitionKey, RowKey, TableName, Timestamp, Value};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Texts that are near each other in the order of keys.
fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "aa", "ab", "b", "ba", "\u{E000}", "\u{1F600}", "z"]).prop_map(str::to_owned)
}

fn operator() -> impl Strategy<Value = Operator> {
    use Operator::{Eq, Ge, Gt, Le, Lt, Ne};
    prop::sample::select(vec![Eq, Ne, Gt, Ge, Lt, Le])
}

fn comparison() -> impl Strategy<Value = Filter> {
    let names = vec!["PartitionKey", "RowKey", "PartitionKey", "RowKey", "Age", "Name", "Gone"];
    let literal = prop_oneof![
        4 => text().prop_map(Value::String),
        1 => (0..4).prop_map(Value::Int32),
        1 => Just(Value::Boolean(true)),
    ];
    (prop::sample::select(names), operator(), literal).prop_map(|(property, operator, literal)| {
        Filter::Compare(Comparison { property: property.to_owned(), operator, literal })
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        12 => comparison(),
        1 => any::<bool>().prop_map(Filter::Constant),
        1 => prop::sample::select(vec!["Flag", "PartitionKey"]).prop_map(|name| Filter::Flag(name.to_owned())),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::Or),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

fn entity() -> impl Strategy<Value = Entity> {
    let properties = (prop::option::of(0..4), prop::option::of(text()), any::<bool>());
    (text(), text(), properties).prop_map(|(p, r, (age, name, flag))| {
        let key = EntityKey { partition: PartitionKey::new(p).expect("a key"), row: RowKey::new(r).expect("a key") };
        let properties = age
            .map(|age| ("Age", Value::Int32(age)))
            .into_iter()
            .chain(name.map(|name| ("Name", Value::String(name))))
            .chain([("Flag", Value::Boolean(flag))]);
        Entity::from_properties(key, properties).expect("an entity")
    })
}

async fn filled(entities: &[Entity]) -> (MemoryEngine, SpaceId) {
    let engine = MemoryEngine::new();
    let name: TableName = "people".parse().expect("a name");
    let table = create_table(&engine, "account", &name).await.expect("a new table");
    for entity in entities {
        let write = Write::Replace(entity.clone(), None);
        transact(&engine, table, &[write], Timestamp::EDM_MIN).await.expect("a write");
    }
    (engine, table)
}

/// All pages of a plan, at most `page` entities each.
async fn read(engine: &MemoryEngine, table: SpaceId, plan: &Plan, page: usize) -> Vec<Position> {
    let mut found = Vec::new();
    let mut from = Position::new("", "");
    loop {
        let limits = PageLimits { entities_max: page, deadline: Instant::now() + Duration::from_secs(60) };
        let visit = |row: &Row<'_>| {
            found.push(Position::new(row.partition, row.row));
            Flow::Continue
        };
        let done = query(engine, table, &plan.clone().resumed_at(from), limits, visit).await.expect("a page");
        let Some(next) = done.next else { return found };
        from = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_planned_query_finds_what_a_full_scan_finds(
        entities in prop::collection::vec(entity(), 0..40),
        filter in filter(),
        page in 1usize..6,
        from in (text(), text()),
        is_limited: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (engine, table) = filled(&entities).await;
            let naive = Plan { residual: Some(filter.clone()), ..Plan::new(None) };
            let mut plan = Plan::new(Some(&filter));
            let mut expected = read(&engine, table, &naive, 1000).await;
            if is_limited {
                let range = KeyRange { start: Position::new(from.0, from.1), end: None };
                expected.retain(|place| range.contains(place));
                plan = plan.limited_to(&range);
            }
            prop_assert_eq!(read(&engine, table, &plan, page).await, expected, "{}", plan);
            let in_order = |pair: &[KeyRange]| pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start);
            prop_assert!(plan.ranges.windows(2).all(in_order), "{}", plan);
            Ok(())
        })?;
    }

    #[test]
    fn a_filter_reads_back_as_it_is_written(filter in filter()) {
        // Reading flattens nested conjunctions, so the second reading is compared with the first.
        let once = Filter::parse(&filter.to_string()).expect("a filter");
        prop_assert_eq!(Filter::parse(&once.to_string()), Ok(once));
    }
}
