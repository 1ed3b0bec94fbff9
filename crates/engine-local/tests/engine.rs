//! The embedded engine beyond the conformance suite: concurrency, restarts, dropped spaces, a failing store.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::{FailingStore, budget, eventually, keys, name, read, settings};
use larimar_engine::{
    Act, Changed, Engine, Expect, Fault, Flow, Key, KeyRange, Op, Position, ReadError, Reads, Rows as _, Snapshot as _,
    SpaceId, SpaceKind, SpaceName, Spaces as _, WriteError,
};
use larimar_engine_local::{Durability, LocalEngine, Settings};
use larimar_model::Timestamp;
use tempfile::TempDir;

fn open(folder: &TempDir) -> LocalEngine {
    LocalEngine::open(&settings(folder.path())).unwrap()
}

async fn space(engine: &LocalEngine, table: &str) -> SpaceId {
    engine.create_space(name(table), b"meta").await.unwrap().unwrap()
}

async fn write(
    engine: &LocalEngine,
    space: SpaceId,
    row: &str,
    expect: Expect,
    act: Act<'_>,
) -> Result<u64, WriteError> {
    let op = Op { row, expect, act };
    Ok(engine.apply(space, "p", &[op], Timestamp::from_ticks(1000)).await?[0].ticks())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_inserts_of_a_row_one_wins_and_the_losers_can_read_it() {
    let folder = TempDir::new().unwrap();
    let engine = Arc::new(open(&folder));
    let table = space(&engine, "t").await;
    for round in 0..20 {
        let row = format!("row{round}");
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (engine, row) = (Arc::clone(&engine), row.clone());
                tokio::spawn(async move {
                    let body = [task];
                    let result = write(&engine, table, &row, Expect::Absent, Act::Put(&body)).await;
                    (result.is_ok(), read(&*engine, table, "p", &row).await)
                })
            })
            .collect();
        let mut winners = 0;
        for task in tasks {
            let (won, seen) = task.await.unwrap();
            winners += usize::from(won);
            assert!(seen.is_some(), "a refused insert proves that there is a row");
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_edits_of_a_row_lose_none_and_versions_only_grow() {
    let folder = TempDir::new().unwrap();
    let engine = Arc::new(open(&folder));
    let table = space(&engine, "t").await;
    let add = |old: Option<&[u8]>| {
        let old = old.map_or(0, |old| u64::from_be_bytes(old.try_into().unwrap()));
        Ok((old + 1).to_be_bytes().to_vec())
    };
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let mut versions = Vec::new();
                for _ in 0..50 {
                    versions.push(write(&engine, table, "n", Expect::Any, Act::Edit(&add)).await.unwrap());
                }
                assert!(versions.is_sorted_by(|a, b| a < b));
                versions
            })
        })
        .collect();
    let mut versions = Vec::new();
    for task in tasks {
        versions.extend(task.await.unwrap());
    }
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), count, "no version is given twice");
    let (version, body) = read(&*engine, table, "p", "n").await.unwrap();
    assert_eq!(body, 400_u64.to_be_bytes());
    assert_eq!(Some(&version), versions.last());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_sees_all_of_a_transaction_or_nothing() {
    let folder = TempDir::new().unwrap();
    let engine = Arc::new(open(&folder));
    let table = space(&engine, "t").await;
    let rows: Vec<_> = (0..100).map(|row| format!("{row:03}")).collect();
    let writer = {
        let (engine, rows) = (Arc::clone(&engine), rows.clone());
        tokio::spawn(async move {
            for round in 0..100_u8 {
                let body = [round];
                let ops: Vec<_> =
                    rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(&body) }).collect();
                engine.apply(table, "p", &ops, Timestamp::from_ticks(1000)).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let mut bodies = Vec::new();
        engine
            .scan(table, &KeyRange::all(), budget(1000), |row| {
                bodies.push(row.body.to_vec());
                larimar_engine::Flow::Continue
            })
            .await
            .unwrap();
        assert!(bodies.is_empty() || bodies.len() == rows.len());
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn versions_continue_after_a_restart_with_a_clock_set_back() {
    let folder = TempDir::new().unwrap();
    let engine = open(&folder);
    let table = space(&engine, "t").await;
    let at = |ticks| Timestamp::from_ticks(ticks);
    let op = [Op { row: "r", expect: Expect::Any, act: Act::Put(b"1") }];
    let first = engine.apply(table, "p", &op, at(5000)).await.unwrap()[0];
    assert_eq!(first, at(5000));
    engine.apply(table, "p", &[Op { act: Act::Delete, ..op[0] }], at(5000)).await.unwrap();
    drop(engine);
    for clean in [true, false] {
        let engine = open(&folder);
        let again = engine.apply(table, "p", &op, at(10)).await.unwrap()[0];
        assert!(again > at(5001), "{again:?}");
        if clean {
            engine.close().unwrap();
        }
    }
}

#[tokio::test]
async fn spaces_and_rows_survive_a_restart_in_every_durable_mode() {
    for durability in [Durability::Sync, Durability::Async] {
        let folder = TempDir::new().unwrap();
        let engine = LocalEngine::open(&Settings { durability, ..settings(folder.path()) }).unwrap();
        let kept = space(&engine, "kept").await;
        let gone = space(&engine, "gone").await;
        write(&engine, kept, "r", Expect::Absent, Act::Put(b"1")).await.unwrap();
        assert!(engine.change_space(name("kept"), b"meta", b"changed").await.unwrap() == Changed::Yes);
        assert!(engine.drop_space(name("gone")).await.unwrap());
        drop(engine);
        let engine = LocalEngine::open(&Settings { durability, ..settings(folder.path()) }).unwrap();
        let found = engine.space(name("kept")).await.unwrap().unwrap();
        assert_eq!((found.id, &*found.meta), (kept, &b"changed"[..]));
        assert_eq!(read(&engine, kept, "p", "r").await.unwrap().1, b"1");
        assert_eq!(engine.space(name("gone")).await.unwrap(), None);
        let new = space(&engine, "gone").await;
        assert!(new > gone && new > kept, "numbers are never used twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_space_takes_no_write_and_its_rows_are_reclaimed() {
    let folder = TempDir::new().unwrap();
    let engine = open(&folder);
    let (kept, dropped) = (space(&engine, "kept").await, space(&engine, "dropped").await);
    for batch in 0..300 {
        for table in [kept, dropped] {
            let rows: Vec<_> = (0..100).map(|row| format!("{batch:05}{row:03}")).collect();
            let ops: Vec<_> =
                rows.iter().map(|row| Op { row, expect: Expect::Absent, act: Act::Put(&[7; 300]) }).collect();
            engine.apply(table, "p", &ops, Timestamp::from_ticks(1)).await.unwrap();
        }
    }
    let before = engine.statistics();
    assert!(engine.drop_space(name("dropped")).await.unwrap());
    assert!(!engine.drop_space(name("dropped")).await.unwrap());
    assert_eq!(write(&engine, dropped, "r", Expect::Any, Act::Put(b"1")).await, Err(WriteError::SpaceGone));
    let key = Key { space: dropped, partition: "p", row: "00000000" };
    assert_eq!(engine.get(key, |row| row.is_some()).await, Err(ReadError::SpaceGone));
    eventually("rows are reclaimed", || engine.statistics().dropped_spaces == 0).await;
    assert_eq!(keys(&engine, kept).await.len(), 30_000);
    drop(engine);
    let engine = open(&folder);
    assert_eq!(engine.statistics().dropped_spaces, 0);
    assert_eq!(keys(&engine, kept).await.len(), 30_000);
    // Also when the store was closed before the compaction that frees them.
    eventually("their bytes are reclaimed", || engine.statistics().store_bytes < before.store_bytes).await;
}

#[tokio::test]
async fn reclaiming_goes_on_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let engine = open(&folder);
    let dropped = space(&engine, "dropped").await;
    for row in 0..2000 {
        let row = format!("{row:05}");
        let rows: Vec<_> = (0..10).map(|n| format!("{row}{n}")).collect();
        let ops: Vec<_> = rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(b"1") }).collect();
        engine.apply(dropped, "p", &ops, Timestamp::from_ticks(1)).await.unwrap();
    }
    engine.drop_space(name("dropped")).await.unwrap();
    drop(engine);
    let engine = open(&folder);
    eventually("rows are reclaimed", || engine.statistics().dropped_spaces == 0).await;
}

#[tokio::test]
async fn rows_of_a_dropped_container_are_kept_over_a_restart_until_they_are_forgotten() {
    let folder = TempDir::new().unwrap();
    let engine = open(&folder);
    let container = SpaceName { account: "account", kind: SpaceKind::Container, name: "c" };
    let dropped = engine.create_space(container, b"").await.unwrap().unwrap();
    write(&engine, dropped, "row", Expect::Absent, Act::Put(b"1")).await.unwrap();
    engine.drop_space(container).await.unwrap();
    drop(engine);
    let engine = open(&folder);
    assert_eq!(engine.statistics().dropped_spaces, 1);
    assert_eq!(engine.claim_dropped(SpaceId::SYSTEM).await, Ok(Some(dropped)));
    let mut rows = Vec::new();
    let read = engine.read_dropped(dropped, &Position::new("", ""), |row| rows.push(row.row.to_owned())).await;
    assert_eq!((read, rows), (Ok(None), vec!["row".to_owned()]));
    engine.forget_dropped(dropped).await.unwrap();
    eventually("rows are reclaimed", || engine.statistics().dropped_spaces == 0).await;
    drop(engine);
    assert_eq!(open(&folder).claim_dropped(SpaceId::SYSTEM).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_commit_acknowledges_nothing_reads_go_on_and_writes_resume_by_themselves() {
    let store = FailingStore::default();
    let engine = Arc::new(LocalEngine::on_store(Box::new(store.clone())).unwrap());
    let table = space(&engine, "t").await;
    write(&engine, table, "before", Expect::Absent, Act::Put(b"1")).await.unwrap();

    store.fail();
    let tasks: Vec<_> = (0..8)
        .map(|row| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                write(&engine, table, &format!("lost{}", row % 2), Expect::Absent, Act::Put(b"1")).await
            })
        })
        .collect();
    for task in tasks {
        assert!(matches!(task.await.unwrap(), Err(WriteError::Fault(Fault::Unavailable(_)))));
    }
    assert!(matches!(engine.create_space(name("u"), b"").await, Err(Fault::Unavailable(_))));
    assert!(matches!(engine.drop_space(name("t")).await, Err(Fault::Unavailable(_))));
    assert!(engine.ready().is_err());
    assert_eq!(keys(&*engine, table).await, ["before"]);

    store.heal();
    eventually("writes resume", || engine.ready().is_ok()).await;
    assert_eq!(keys(&*engine, table).await, ["before"]);
    assert_eq!(engine.space(name("u")).await.unwrap(), None);
    write(&engine, table, "lost0", Expect::Absent, Act::Put(b"2")).await.unwrap();
    write(&engine, table, "before", Expect::Present, Act::Put(b"2")).await.unwrap();
    assert!(engine.create_space(name("u"), b"").await.unwrap().is_some());
    assert_eq!(keys(&*engine, table).await, ["before", "lost0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_snapshot_outlives_commits_and_ends_when_the_store_is_reopened() {
    let store = FailingStore::default();
    let engine = LocalEngine::on_store(Box::new(store.clone())).unwrap();
    let table = space(&engine, "t").await;
    write(&engine, table, "r", Expect::Absent, Act::Put(b"1")).await.unwrap();
    let mut snapshot = engine.snapshot(Reads::Many, budget(1).deadline).await.unwrap();
    write(&engine, table, "r", Expect::Present, Act::Put(b"2")).await.unwrap();
    let seen = snapshot.get(table, ("p", "r"), budget(1)).await.unwrap();
    assert_eq!(seen.map(|(_, body)| body), Some(b"1".to_vec()));

    store.fail();
    assert!(write(&engine, table, "r", Expect::Present, Act::Put(b"3")).await.is_err());
    store.heal();
    // The page that holds the snapshot does not prevent reopening the store.
    eventually("writes resume", || engine.ready().is_ok()).await;
    let refused = snapshot.scan(table, &KeyRange::all(), budget(1), |_| Flow::Continue).await;
    assert!(matches!(refused, Err(ReadError::Fault(Fault::Unavailable(_)))), "{refused:?}");
    let refused = snapshot.get(table, ("p", "r"), budget(1)).await;
    assert!(matches!(refused, Err(ReadError::Fault(Fault::Unavailable(_)))), "{refused:?}");
    let mut snapshot = engine.snapshot(Reads::Many, budget(1).deadline).await.unwrap();
    let seen = snapshot.get(table, ("p", "r"), budget(1)).await.unwrap();
    assert_eq!(seen.map(|(_, body)| body), Some(b"2".to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_defect_in_the_committer_leaves_nobody_waiting() {
    let store = FailingStore::default();
    let engine = LocalEngine::on_store(Box::new(store.clone())).unwrap();
    let table = space(&engine, "t").await;
    store.panic();
    for _ in 0..3 {
        let result = write(&engine, table, "r", Expect::Any, Act::Put(b"1")).await;
        assert!(matches!(result, Err(WriteError::Fault(_))));
    }
    assert!(engine.ready().is_err());
    assert_eq!(keys(&engine, table).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_engine_refuses_and_does_not_hang() {
    let engine = LocalEngine::in_memory().unwrap();
    let table = space(&engine, "t").await;
    engine.close().unwrap();
    assert!(write(&engine, table, "r", Expect::Any, Act::Put(b"1")).await.is_err());
    let key = Key { space: table, partition: "p", row: "r" };
    assert!(engine.get(key, |row| row.is_some()).await.is_err());
    assert!(engine.ready().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_goes_away_leaves_no_catalogue_change_half_done() {
    let folder = TempDir::new().unwrap();
    let engine = open(&folder);
    for round in 0..20 {
        let table = format!("t{round}");
        let created =
            tokio::time::timeout(Duration::from_micros(round * 50), engine.create_space(name(&table), b"")).await;
        // Whatever became of the first call, the second one finds a catalogue in order.
        let again = engine.create_space(name(&table), b"").await.unwrap();
        if let Ok(created) = created {
            assert_eq!((created.unwrap().is_some(), again.is_some()), (true, false));
        }
        let found = engine.space(name(&table)).await.unwrap().unwrap();
        write(&engine, found.id, "r", Expect::Absent, Act::Put(b"1")).await.unwrap();
    }
    drop(engine);
    let engine = open(&folder);
    let listed = engine.list_spaces(name(""), 100).await.unwrap();
    assert_eq!(listed.len(), 20);
    for (_, space) in listed {
        assert!(read(&engine, space.id, "p", "r").await.is_some());
    }
}
