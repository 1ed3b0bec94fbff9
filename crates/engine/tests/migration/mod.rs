//! Copies between reference engines: whole, interrupted anywhere, refused, and checked.

mod blobs;
mod failing;
mod queues;

use failing::{Control as _, Failing};
use larimar_engine::blob::bytes::MemoryBytes;
use larimar_engine::migration::{
    MigrationError, MigrationOptions, Part, PartReport, Progress, Side, Stage, compare, migrate,
};
use larimar_engine::{
    Act, Budget, Changed, Engine, Expect, Flow, KeyRange, MemoryEngine, Op, Position, RowRef, Rows as _, SpaceId,
    SpaceKind, SpaceName, Spaces as _, SystemClock,
};
use larimar_model::Timestamp;
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts").block_on(future)
}

const OPTIONS: MigrationOptions<'_> =
    MigrationOptions { source: "here", clock: &SystemClock, counts_first: true, restarts: false };

/// A store without bytes of blobs.
const fn plain<E>(engine: &E) -> Side<'_, E, MemoryBytes> {
    Side { engine, bytes: None }
}

async fn copied(from: &impl Engine, to: &impl Engine) -> Result<Vec<PartReport>, MigrationError> {
    migrate(&plain(from), &plain(to), OPTIONS, &mut |_| ()).await
}

async fn compared(from: &impl Engine, to: &impl Engine) -> Result<Vec<PartReport>, MigrationError> {
    compare(&plain(from), &plain(to), &SystemClock, &mut |_| ()).await
}

fn table(account: &str, name: &str) -> Part {
    Part::Space { kind: SpaceKind::Table, account: account.into(), name: name.into() }
}

const fn table_name<'a>(account: &'a str, name: &'a str) -> SpaceName<'a> {
    SpaceName { account, kind: SpaceKind::Table, name }
}

/// A table with rows of many partitions, each in a version of its own.
async fn fill(engine: &MemoryEngine, account: &str, name: &str, rows: usize) -> SpaceId {
    let meta = format!("{name}'s list");
    let space = engine.create_space(table_name(account, name), meta.as_bytes()).await;
    let space = space.expect("no fault").expect("a new table");
    for number in 0..rows {
        put(engine, space, &format!("p{}", number / 700), &format!("{number:06}"), &number.to_be_bytes()).await;
    }
    space
}

async fn put(engine: &impl Engine, space: SpaceId, partition: &str, row: &str, body: &[u8]) {
    let ops = [Op { row, expect: Expect::Any, act: Act::Put(body) }];
    engine.apply(space, partition, &ops, Timestamp::from_ticks(1)).await.expect("a write");
}

/// Every row of a space.
async fn rows(engine: &impl Engine, space: SpaceId) -> Vec<(Position, Timestamp, Vec<u8>)> {
    let (mut rows, range) = (Vec::new(), KeyRange::all());
    let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(60) };
    let scanned = engine.scan(space, &range, budget, |row| {
        rows.push((Position::new(row.partition, row.row), row.version, row.body.to_vec()));
        Flow::Continue
    });
    assert_eq!(scanned.await, Ok(None));
    rows
}

/// How many records of copies there are.
async fn records(engine: &impl Engine) -> usize {
    rows(engine, SpaceId::SYSTEM).await.iter().filter(|(place, ..)| place.row.starts_with("migration/")).count()
}

/// Two accounts with settings, three tables of which one is large and one empty.
async fn store(large: usize) -> MemoryEngine {
    let engine = MemoryEngine::new();
    fill(&engine, "one", "large", large).await;
    fill(&engine, "one", "empty", 0).await;
    fill(&engine, "two", "large", 3).await;
    put(&engine, SpaceId::SYSTEM, "one", "properties", b"<xml/>").await;
    put(&engine, SpaceId::SYSTEM, "three", "properties", b"<xml/>").await;
    put(&engine, SpaceId::SYSTEM, "", "lease", b"the engine's own").await;
    engine
}

#[test]
fn a_copy_holds_the_same_rows_in_the_same_versions_and_nothing_else() {
    block_on(async {
        let (from, to) = (store(9_000).await, MemoryEngine::new());
        let mut seen = Vec::new();
        let mut tell = |progress: Progress<'_>| seen.push((progress.stage, progress.items, progress.items_total));
        let reports = migrate(&plain(&from), &plain(&to), OPTIONS, &mut tell).await.expect("a good end");
        let shown: Vec<_> = reports.iter().map(|report| (report.part.to_string(), report.digest.items)).collect();
        let expected = [
            ("the settings of account one", 1),
            ("the settings of account three", 1),
            ("table one/empty", 0),
            ("table one/large", 9_000),
            ("table two/large", 3),
        ];
        assert_eq!(shown, expected.map(|(part, rows)| (part.to_owned(), rows)));
        for (account, name) in [("one", "large"), ("one", "empty"), ("two", "large")] {
            let ours = from.space(table_name(account, name)).await.expect("no fault").expect("a table");
            let theirs = to.space(table_name(account, name)).await.expect("no fault").expect("a table");
            assert_eq!(ours.meta, theirs.meta);
            assert_eq!(rows(&from, ours.id).await, rows(&to, theirs.id).await);
        }
        let settings = rows(&to, SpaceId::SYSTEM).await;
        let partitions: Vec<_> = settings.iter().map(|(place, ..)| place.partition.as_str()).collect();
        assert_eq!(partitions, ["one", "three"], "neither the engine's own rows nor records are left");
        assert_eq!(compared(&from, &to).await.expect("alike"), reports);
        let last = |stage: Stage| seen.iter().rfind(|(of, ..)| *of == stage).expect("told").to_owned();
        assert_eq!(last(Stage::Count), (Stage::Count, 9_005, None));
        assert_eq!(last(Stage::Copy), (Stage::Copy, 9_005, Some(9_005)));
        assert_eq!(last(Stage::Verify), (Stage::Verify, 9_005, Some(9_005)));
    });
}

#[test]
fn a_run_that_another_one_overtakes_does_not_claim_that_nothing_was_copied() {
    block_on(async {
        let (from, to) = (store(10).await, Failing::after(0));
        // Another run planned the same before, and creates the second table just before this one does.
        to.overtake("large");
        let raced = copied(&from, &to).await.expect_err("the table is there");
        assert_eq!(raced, MigrationError::Raced(table("one", "large")));
        assert!(to.space(table_name("one", "empty")).await.expect("no fault").is_some(), "the first was copied");
        assert!(!raced.to_string().contains("nothing was"), "{raced}");
        // The other one's table has rows, so it is not taken for one that this run created.
        let refused = copied(&from, &to).await.expect_err("the table is there");
        assert!(matches!(refused, MigrationError::Exists(_)), "{refused}");
    });
}

#[test]
fn what_the_destination_has_already_is_refused_before_anything_is_written() {
    block_on(async {
        let from = store(9_000).await;
        let to = MemoryEngine::new();
        fill(&to, "two", "large", 1).await;
        let error = copied(&from, &to).await.expect_err("there is a table");
        assert_eq!(error, MigrationError::Exists(table("two", "large")));
        assert!(error.to_string().contains("table two/large"), "{error}");
        assert_eq!(rows(&to, SpaceId::SYSTEM).await, []);
        assert_eq!(to.accounts().await, Ok(vec!["two".to_owned()]));

        let to = MemoryEngine::new();
        put(&to, SpaceId::SYSTEM, "three", "properties", b"others").await;
        let error = copied(&from, &to).await.expect_err("there are settings");
        assert_eq!(error, MigrationError::Exists(Part::Settings { account: "three".into() }));
        assert_eq!(to.accounts().await, Ok(Vec::new()));

        // Other tables and accounts do not matter, and a copy that is done is not ours any more.
        let to = MemoryEngine::new();
        fill(&to, "two", "other", 1).await;
        put(&to, SpaceId::SYSTEM, "four", "properties", b"others").await;
        copied(&from, &to).await.expect("a good end");
        assert!(matches!(copied(&from, &to).await, Err(MigrationError::Exists(_))));
    });
}

#[test]
fn a_changed_bit_is_found_and_named() {
    block_on(async {
        let (from, to) = (store(50).await, MemoryEngine::new());
        copied(&from, &to).await.expect("a good end");
        let found = to.space(table_name("one", "large")).await.expect("no fault").expect("a table");
        let mut all = rows(&to, found.id).await;
        let (place, version, body) = &mut all[4];
        let good = body.clone();
        let restore = async |version: Timestamp, body: &[u8]| {
            let row = RowRef { partition: &place.partition, row: &place.row, version, body };
            to.restore(found.id, &[row]).await.expect("a write");
        };
        let differing = async || match compared(&from, &to).await {
            Err(MigrationError::Differs(found)) => found.iter().map(|found| found.part.to_string()).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        body[0] ^= 1;
        restore(*version, body).await;
        assert_eq!(differing().await, ["table one/large"]);
        restore(Timestamp::from_ticks(version.ticks() + 1), &good).await;
        assert_eq!(differing().await, ["table one/large"]);
        restore(*version, &good).await;
        compared(&from, &to).await.expect("alike again");
        let empty = to.space(table_name("one", "empty")).await.expect("no fault").expect("it is there");
        let changed = to.change_space(table_name("one", "empty"), &empty.meta, b"another list").await;
        assert_eq!(changed, Ok(Changed::Yes));
        assert_eq!(differing().await, ["table one/empty"]);
        to.drop_space(table_name("one", "empty")).await.expect("no fault");
        assert_eq!(differing().await, ["table one/empty"]);
        fill(&to, "one", "more", 1).await;
        assert_eq!(differing().await, ["table one/empty"], "what only the destination has is not looked at");
    });
}

#[test]
fn a_source_that_changed_meanwhile_is_told_and_the_next_run_mends_it() {
    block_on(async {
        let from = store(50).await;
        let to = Failing::after(0);
        let found = from.space(table_name("one", "large")).await.expect("no fault").expect("a table");
        let ops = [Op { row: "000000", expect: Expect::Present, act: Act::Delete }];
        let mut is_changed = false;
        let mut change = |progress: Progress<'_>| {
            if progress.stage == Stage::Verify && !is_changed {
                is_changed = true;
                without_waiting(from.apply(found.id, "p0", &ops, Timestamp::from_ticks(1))).expect("a write");
            }
        };
        let error = migrate(&plain(&from), &plain(&to), OPTIONS, &mut change)
            .await
            .expect_err("the source changed")
            .to_string();
        assert!(error.contains("table one/large") && error.contains("the source has changed"), "{error}");
        assert!(!error.contains("empty"), "{error}");
        let before = to.0.rows.load(Ordering::Relaxed);
        copied(&from, &to).await.expect("a good end");
        assert_eq!(to.0.rows.load(Ordering::Relaxed) - before, 49, "only what differed is copied again");
        assert_eq!(rows(&to, SpaceId::SYSTEM).await.len(), 2);
    });
}

/// A future of the reference engine never waits.
fn without_waiting<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("the reference engine waits"),
    }
}

#[test]
fn a_run_goes_on_where_the_last_one_was_interrupted() {
    block_on(async {
        let large = SLICE_ROWS_MAX + 10;
        let from = store(large).await;
        for fails_at in 1.. {
            let to = Failing::after(fails_at);
            match copied(&from, &to).await {
                // More writes than a whole run takes.
                Ok(_) => {
                    assert!(fails_at > 10);
                    return;
                }
                Err(error) => assert!(error.to_string().contains("interrupted"), "{error}"),
            }
            if records(&to).await == 0 {
                // The last record went, only the answer was lost.
                assert!(matches!(copied(&from, &to).await, Err(MigrationError::Exists(_))));
                compared(&from, &to).await.expect("alike");
                continue;
            }
            copied(&from, &to).await.unwrap_or_else(|error| panic!("after failure {fails_at}: {error}"));
            let rows_written = to.0.rows.load(Ordering::Relaxed);
            let (all, slice) = (large as u64 + 5, SLICE_ROWS_MAX as u64);
            assert!((all..=all + slice).contains(&rows_written), "{rows_written} after failure {fails_at}");
        }
    });
}

/// Earlier releases copied settings and tables only, and left the same records of them.
#[test]
fn a_copy_that_was_begun_without_queues_goes_on_with_them() {
    block_on(async {
        let from = store(50).await;
        let to = Failing::after(12);
        copied(&from, &to).await.expect_err("interrupted");
        let queue = SpaceName { account: "one", kind: SpaceKind::Queue, name: "queue" };
        from.create_space(queue, b"").await.expect("no fault").expect("a new queue");
        let reports = copied(&from, &to).await.expect("a good end");
        assert!(reports.iter().any(|report| report.part.to_string() == "queue one/queue"));
    });
}

#[test]
fn an_unfinished_copy_from_elsewhere_is_refused_unless_it_restarts() {
    block_on(async {
        let from = store(50).await;
        let to = Failing::after(12);
        copied(&from, &to).await.expect_err("interrupted");
        let other = MemoryEngine::new();
        fill(&other, "one", "large", 5).await;
        let elsewhere = MigrationOptions { source: "elsewhere", ..OPTIONS };
        let refused = migrate(&plain(&other), &plain(&to), elsewhere, &mut |_| ()).await;
        assert_eq!(refused, Err(MigrationError::OtherSource("here".into())));
        let restarted =
            migrate(&plain(&other), &plain(&to), MigrationOptions { restarts: true, ..elsewhere }, &mut |_| ()).await;
        assert_eq!(restarted.expect("a good end").len(), 1);
        assert_eq!(to.accounts().await, Ok(vec!["one".to_owned()]), "the rest of the first copy is gone");
        assert_eq!(rows(&to, SpaceId::SYSTEM).await, []);
    });
}

#[test]
fn a_table_of_the_copy_that_was_dropped_comes_back_and_one_that_was_replaced_is_refused() {
    block_on(async {
        let from = store(50).await;
        let to = Failing::after(14);
        copied(&from, &to).await.expect_err("interrupted");
        assert!(to.drop_space(table_name("one", "large")).await.expect("no fault"), "the table was begun");
        fill(&to.0.inner, "one", "large", 1).await;
        assert!(matches!(copied(&from, &to).await, Err(MigrationError::Exists(_))));
        to.drop_space(table_name("one", "large")).await.expect("no fault");
        copied(&from, &to).await.expect("a good end");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_stored_and_wherever_it_is_interrupted_the_copy_is_alike(
        tables in prop::collection::btree_map("[a-c]/[a-d]", prop::collection::vec(row(), 0..12), 0..6),
        settings in prop::collection::vec(("[a-c]", ".{0,3}", any::<Vec<u8>>()), 0..5),
        failures in prop::collection::vec(1..20_u64, 0..4),
    ) {
        block_on(async {
            let from = MemoryEngine::new();
            for (name, rows) in &tables {
                let (account, name) = name.split_once('/').expect("an account and a name");
                let space = from.create_space(table_name(account, name), name.as_bytes()).await;
                let space = space.expect("no fault").expect("a new table");
                for (partition, row, body) in rows {
                    put(&from, space, partition, row, body).await;
                }
            }
            for (account, row, body) in &settings {
                put(&from, SpaceId::SYSTEM, account, row, body).await;
            }
            let to = Failing::after(0);
            for fails_at in failures {
                to.0.writes.store(fails_at, Ordering::Relaxed);
                match copied(&from, &to).await {
                    Ok(_) => break,
                    Err(error) => assert!(error.to_string().contains("interrupted"), "{error}"),
                }
                if records(&to).await == 0 && fails_at > 1 {
                    break;
                }
            }
            to.0.writes.store(0, Ordering::Relaxed);
            if records(&to).await > 0 || to.accounts().await == Ok(Vec::new()) {
                let _ = copied(&from, &to).await;
            }
            let reports = compared(&from, &to).await.expect("alike");
            assert_eq!(reports, compared(&to, &from).await.expect("alike in both directions"));
            assert_eq!(rows(&from, SpaceId::SYSTEM).await, rows(&to, SpaceId::SYSTEM).await);
        });
    }
}

/// Rows of a slice, at most.
const SLICE_ROWS_MAX: usize = 4000;

/// A row of any keys; a few of them meet.
fn row() -> impl Strategy<Value = (String, String, Vec<u8>)> {
    let key = || prop_oneof!["[ab]{0,1}", ".{0,3}"];
    (key(), key(), any::<Vec<u8>>())
}
