//! A snapshot that is held for long: what is dropped and reclaimed meanwhile stays readable in it, and goes afterwards.

use std::time::{Duration, Instant};

use larimar_engine::{
    Act, Budget, Clock as _, Engine as _, Expect, Flow, KeyRange, Op, Position, Rows as _, SpaceId, SpaceKind,
    SpaceName, Spaces as _, SystemClock,
};
use larimar_engine_local::{Durability, HeldSnapshot, LocalEngine, Settings};

const TABLE: SpaceName<'static> = SpaceName { account: "one", kind: SpaceKind::Table, name: "t" };

fn open(folder: &std::path::Path) -> LocalEngine {
    let folder = folder.join("data");
    let settings = Settings { folder, durability: Durability::Async, memory_bytes: Some(64 << 20), reserve_bytes: 0 };
    LocalEngine::open(&settings).expect("an engine")
}

async fn count(snapshot: &HeldSnapshot, space: SpaceId) -> usize {
    let (mut count, mut next) = (0, Some(Position::new("", "")));
    while let Some(start) = next {
        let range = KeyRange { start, end: None };
        let budget = Budget { rows_max: 1000, deadline: Instant::now() + Duration::from_secs(30) };
        let scanned = snapshot.scan(space, &range, budget, |_| {
            count += 1;
            Flow::Continue
        });
        next = scanned.await.expect("rows");
    }
    count
}

async fn fill(engine: &LocalEngine) -> SpaceId {
    let space = engine.create_space(TABLE, b"meta").await.expect("no fault").expect("a table");
    for hundred in 0..ROWS / 100 {
        let rows: Vec<String> = (0..100).map(|row| format!("{:06}", hundred * 100 + row)).collect();
        let ops: Vec<_> = rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(&[7; 100]) }).collect();
        engine.apply(space, "p", &ops, SystemClock.now()).await.expect("rows");
    }
    space
}

/// Waits until nothing is left to reclaim.
async fn reclaimed(engine: &LocalEngine) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while engine.statistics().dropped_spaces > 0 {
        assert!(Instant::now() < deadline, "dropped rows are not reclaimed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_dropped_stays_in_the_snapshot_until_it_is_released() {
    let folder = tempfile::tempdir().expect("a directory");
    let engine = open(folder.path());
    let space = fill(&engine).await;
    // The rows are in tables of the store, which a drop removes whole.
    engine.compact().await.expect("a compaction");
    let before = engine.hold_snapshot().await.expect("a snapshot");
    engine.drop_space(TABLE).await.expect("a drop");
    tokio::time::sleep(Duration::from_millis(1200)).await;
    engine.compact().await.expect("a compaction");
    assert_eq!(engine.statistics().dropped_spaces, 1, "it waits");
    assert_eq!(count(&before, space).await, ROWS);
    let spaces = before.spaces(None, 10).expect("spaces");
    assert_eq!((spaces.len(), spaces[0].name(), &*spaces[0].space.meta), (1, TABLE, &b"meta"[..]));
    assert_eq!(before.spaces(spaces.last(), 10).expect("spaces"), []);
    let after = engine.hold_snapshot().await.expect("a snapshot");
    assert_eq!(after.spaces(None, 10).expect("spaces"), []);
    drop(before);
    assert_eq!(engine.statistics().dropped_spaces, 1, "another snapshot is held");
    drop(after);
    reclaimed(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_are_numbered_across_restarts() {
    let folder = tempfile::tempdir().expect("a directory");
    let engine = open(folder.path());
    let point =
        async |engine: &LocalEngine| engine.hold_snapshot().await.expect("a snapshot").point().expect("a point").1;
    assert_eq!(point(&engine).await.sequence, 0);
    let started = SystemClock.now();
    let space = engine.create_space(TABLE, b"").await.expect("no fault").expect("a table");
    let first = point(&engine).await;
    assert_eq!(first.sequence, 1);
    assert!(first.time >= started && first.time <= SystemClock.now());
    engine.close().expect("closed");
    drop(engine);
    let engine = open(folder.path());
    assert_eq!(point(&engine).await, first);
    let op = |row| [Op { row, expect: Expect::Any, act: Act::Put(b"") }];
    let (one, two) = (op("1"), op("2"));
    let (one, two) = tokio::join!(
        engine.apply(space, "p", &one, SystemClock.now()),
        engine.apply(space, "q", &two, SystemClock.now())
    );
    one.and(two).expect("rows");
    assert_eq!(point(&engine).await.sequence, 3);
    assert!(point(&engine).await.time >= first.time);
}

/// More than the reclaiming thread calls a large table.
const ROWS: usize = 25_000;
