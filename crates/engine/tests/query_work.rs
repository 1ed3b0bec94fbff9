//! What a query may cost: its work is counted, cut into slices with a turn for others between them, and ends the page.

use larimar_engine::table::{Page, PageLimits, Plan, SLICE_STEPS, query};
use larimar_engine::{Flow, MemoryEngine, RowRef, Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _};
use larimar_model::{Entity, EntityKey, Filter, PartitionKey, RowKey, Timestamp, Value};
use larimar_testkit::Polls;
use std::time::{Duration, Instant};

const ROWS: usize = 100;
const PROPERTIES: usize = 250;

/// A table of wide rows, the last of which has `Last eq 1`.
async fn wide_table(engine: &MemoryEngine) -> SpaceId {
    let name = SpaceName { account: "account", kind: SpaceKind::Table, name: "wide" };
    let table = engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    let names: Vec<String> = (0..PROPERTIES).map(|i| format!("P{i}")).collect();
    for number in 0..ROWS {
        let key = EntityKey {
            partition: PartitionKey::new("p").expect("a key"),
            row: RowKey::new(format!("{number:04}")).expect("a key"),
        };
        let properties = names.iter().map(|name| (name.as_str(), Value::Int32(7)));
        let last = ("Last", Value::Int32(i32::from(number + 1 == ROWS)));
        let entity = Entity::from_properties(key, properties.chain([last])).expect("an entity");
        let (partition, row) = (entity.key.partition.as_str(), entity.key.row.as_str());
        let row = RowRef { partition, row, version: Timestamp::EDM_MIN, body: entity.body().as_bytes() };
        engine.restore(table, &[row]).await.expect("the table is there");
    }
    table
}

/// A filter of so many comparisons, of which only the last one may hold.
fn long_filter(comparisons: usize) -> Filter {
    let parts =
        (1..comparisons).map(|i| Filter::parse(&format!("P{} eq {}", i % PROPERTIES, 8 + i)).expect("a filter"));
    Filter::Or(parts.chain([Filter::parse("Last eq 1").expect("a filter")]).collect())
}

async fn page(engine: &MemoryEngine, table: SpaceId, plan: &Plan, steps_max: u64) -> (Page, Vec<String>, Polls) {
    let limits = PageLimits { entities_max: 1000, deadline: Instant::now() + Duration::from_secs(600), steps_max };
    let mut found = Vec::new();
    let reading = query(engine, table, plan, limits, |row| {
        found.push(row.row.to_owned());
        Flow::Continue
    });
    let (page, polls) = Polls::watch(reading).await;
    (page.expect("no fault"), found, polls)
}

#[tokio::test]
async fn q9_a_long_filter_over_wide_rows_lets_others_run() {
    let engine = MemoryEngine::new();
    let table = wide_table(&engine).await;
    for comparisons in [1, 100, 5000] {
        let filter = long_filter(comparisons);
        let (page, found, polls) = page(&engine, table, &Plan::new(Some(&filter)), u64::MAX).await;
        assert_eq!(found, [format!("{:04}", ROWS - 1)]);
        // Each property is found once for each row, however often the filter names it.
        let row_steps = (2 * comparisons + PROPERTIES + 100) as u64;
        assert!(page.steps <= ROWS as u64 * row_steps, "{page:?}");
        assert!(page.slice_steps_max < SLICE_STEPS + row_steps, "{page:?}");
        assert!(polls.count >= page.steps / (SLICE_STEPS + row_steps), "{page:?} in {polls:?}");
    }
}

#[tokio::test]
async fn q9_rows_that_are_returned_count_by_their_bytes() {
    let engine = MemoryEngine::new();
    let name = SpaceName { account: "account", kind: SpaceKind::Table, name: "large" };
    let table = engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    let body = vec![1; 1 << 20];
    for row in ["a", "b", "c", "d"] {
        let row = RowRef { partition: "p", row, version: Timestamp::EDM_MIN, body: &body };
        engine.restore(table, &[row]).await.expect("the table is there");
    }
    let (page, found, polls) = page(&engine, table, &Plan::new(None), u64::MAX).await;
    assert_eq!(found, ["a", "b", "c", "d"]);
    assert!(polls.count >= 4, "a turn for others after each: {page:?} in {polls:?}");
}

#[tokio::test]
async fn q9_a_page_that_has_used_up_its_work_is_short_and_goes_on() {
    let engine = MemoryEngine::new();
    let table = wide_table(&engine).await;
    let filter = long_filter(1000);
    let (mut plan, mut pages, mut all) = (Plan::new(Some(&filter)), 0, Vec::new());
    loop {
        let (page, found, _) = page(&engine, table, &plan, 10_000).await;
        assert!(page.steps < 10_000 + 3_000, "{page:?}");
        pages += 1;
        all.extend(found);
        match page.next {
            Some(next) => plan = Plan::new(Some(&filter)).resumed_at(next),
            None => break,
        }
    }
    assert_eq!(all, [format!("{:04}", ROWS - 1)]);
    assert!((10..=ROWS).contains(&pages), "{pages} pages");
}
