//! Stores that are filled and then used: by the engine, a compaction, a repair and a restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use larimar_engine::{Budget, Engine as _, Flow, KeyRange, Rows as _, SpaceKind, Spaces as _};

use super::*;
use crate::open::{Durability, Settings};
use crate::repair::{Action, repair};
use crate::restoring::{Restoring, leftover_bytes};
use crate::store::{Mode, Reopen, Snapshot};

const COMMIT: CommitPoint = CommitPoint { sequence: 77, time: Timestamp::EDM_MIN };

fn name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "one", kind: SpaceKind::Table, name }
}

fn settings(folder: &std::path::Path) -> Settings {
    let folder = folder.to_owned();
    Settings { folder, durability: Durability::Sync, memory_bytes: Some(64 << 20), reserve_bytes: 0 }
}

fn version(row: usize) -> Timestamp {
    Timestamp::from_ticks(1_000_000 + row as u64)
}

/// Adds rows with these numbers, of 1,000 bytes each.
async fn add(loader: &mut Loader, space: u64, rows: impl IntoIterator<Item = usize>, text: &str) {
    for row in rows {
        let body = format!("{text}{row:0>1000}");
        let row = RowRef { partition: "p", row: &format!("{row:06}"), version: version(row), body: body.as_bytes() };
        loader.add(SpaceId(space), row).expect("a row");
        if loader.is_full() {
            loader.send().await.expect("sent");
        }
    }
}

/// The numbers and the first letters of the rows of a space.
async fn seen(engine: &LocalEngine, space: u64) -> Vec<(usize, char)> {
    let mut rows = Vec::new();
    let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(60) };
    let range = KeyRange::all();
    let scanned = engine.scan(SpaceId(space), &range, budget, |row| {
        let number = row.row.parse().expect("a number");
        assert_eq!((row.version, row.body.len()), (version(number), 1001));
        rows.push((number, char::from(row.body[0])));
        Flow::Continue
    });
    assert_eq!(scanned.await.expect("rows"), None);
    rows
}

/// Names and numbers that are taken, and what is too long for a key; space 9 is there.
fn refuses_what_cannot_be_stored(loader: &mut Loader) {
    for (text, number) in [("long", 10), ("other", 9), ("other", 0)] {
        assert_eq!(loader.create_space(name(text), SpaceId(number), b""), Ok(false), "{text} {number}");
    }
    assert!(loader.create_space(name("other"), SpaceId(u64::MAX), b"").is_err());
    let long = "x".repeat(1 << 16);
    assert!(loader.create_space(name(&long), SpaceId(8), b"").is_err());
    for (partition, row) in [(&long[..], ""), ("p", &long)] {
        let row = RowRef { partition, row, version: version(0), body: b"" };
        assert!(loader.add(SpaceId(9), row).is_err());
    }
}

#[tokio::test]
async fn rows_that_arrive_in_any_order_are_there_after_a_compaction_and_a_restart() {
    let folder = larimar_testkit::memory_directory();
    let data = folder.path().join("data");
    let restoring = Restoring::begin(&data).expect("an empty directory");
    let mut loader = restoring.load(false).expect("a store");
    let spaces = [("long", 9), ("longest", 300), ("between", 7), ("small", 2), ("mixed", 5), ("empty", 4)];
    for (text, number) in spaces {
        assert_eq!(loader.create_space(name(text), SpaceId(number), b"meta"), Ok(true));
    }
    refuses_what_cannot_be_stored(&mut loader);
    add(&mut loader, 9, 0..100, "a").await;
    add(&mut loader, 300, 0..1000, "b").await;
    add(&mut loader, 7, 0..10, "c").await;
    add(&mut loader, 2, 0..3, "d").await;
    // Backwards, and some of them twice: what comes last counts.
    add(&mut loader, 5, (0..20).rev(), "e").await;
    add(&mut loader, 5, 10..200, "f").await;
    add(&mut loader, 5, 150..160, "g").await;
    add(&mut loader, 5, [0, 199], "h").await;
    loader.finish(version(5000), COMMIT).await.expect("a whole store");
    restoring.finish().expect("a data directory");
    let all = |count, letter| (0..count).map(|row| (row, letter)).collect::<Vec<_>>();
    let mixed: Vec<_> = (0..200)
        .map(|row| match row {
            0 | 199 => (row, 'h'),
            1..10 => (row, 'e'),
            150..160 => (row, 'g'),
            _ => (row, 'f'),
        })
        .collect();
    assert_eq!(repair(&data, false).expect("a store").action, Action::None);
    for round in 0..3 {
        let engine = LocalEngine::open(&settings(&data)).expect("a data directory");
        assert_eq!(seen(&engine, 9).await, all(100, 'a'), "{round}");
        assert_eq!(seen(&engine, 300).await, all(1000, 'b'), "{round}");
        assert_eq!(seen(&engine, 7).await, all(10, 'c'), "{round}");
        assert_eq!(seen(&engine, 2).await, all(3, 'd'), "{round}");
        assert_eq!(seen(&engine, 5).await, mixed, "{round}");
        assert_eq!(seen(&engine, 4).await, [], "{round}");
        let found = engine.space(name("longest")).await.expect("no fault").expect("a space");
        assert_eq!((found.id, &*found.meta), (SpaceId(300), &b"meta"[..]));
        assert!(engine.statistics().last_version >= Some(version(5000)));
        if round == 0 {
            assert_eq!(engine.commits_until_now().0, COMMIT);
        }
        let created = engine.create_space(name(&format!("new{round}")), b"").await.expect("no fault");
        assert_eq!(created, Some(SpaceId(301 + round)));
        if round == 1 {
            engine.compact().await.expect("a compaction");
        }
        // The last round ends like a process that is killed.
        if round < 2 {
            engine.close().expect("closed");
        }
        drop(engine);
        assert_eq!(repair(&data, false).expect("a store").action, Action::None);
    }
}

#[tokio::test]
async fn a_store_that_is_not_whole_does_not_open_and_is_restored_again() {
    let folder = larimar_testkit::memory_directory();
    for rows in [0, 5, 500] {
        let restoring = Restoring::begin(folder.path()).expect("an empty directory");
        let mut loader = restoring.load(false).expect("a store");
        assert_eq!(loader.create_space(name("t"), SpaceId(1), b""), Ok(true));
        add(&mut loader, 1, 0..rows, "a").await;
        loader.send().await.expect("sent");
        loader.abandon().await;
        drop(restoring);
        let error = LocalEngine::open(&settings(folder.path())).err().expect("a refusal");
        let text = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(text.contains("was not finished"), "{error}: {text}");
        let left = leftover_bytes(folder.path()).expect("a directory");
        assert!(left >= 1000 * rows as u64, "{left} bytes of {rows} rows");
    }
    let restoring = Restoring::begin(folder.path()).expect("what is left is removed");
    restoring.load(false).expect("a store").finish(version(0), COMMIT).await.expect("an empty store");
    restoring.finish().expect("a data directory");
    let engine = LocalEngine::open(&settings(folder.path())).expect("a data directory");
    assert!(engine.accounts().await.expect("accounts").is_empty());
}

/// A store that fails to take rows.
struct Failing(MemoryStore);

impl Store for Failing {
    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.0.snapshot()
    }

    fn commit(&self, _: Batch, _: SyncTo) -> Result<(), StoreError> {
        Err(StoreError::io("there".as_ref(), std::io::ErrorKind::StorageFull.into()))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.0.sync()
    }

    fn discard(&self, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        self.0.discard(from, to)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.0.settle()
    }

    fn compact(&self, bytes: u64) -> Result<bool, StoreError> {
        self.0.compact(bytes)
    }

    fn disk_bytes(&self) -> u64 {
        self.0.disk_bytes()
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.0.probe()
    }

    fn stop(self: Box<Self>) -> Box<dyn Reopen> {
        self
    }

    fn finish(&self) -> Result<(), StoreError> {
        self.0.finish()
    }
}

impl Reopen for Failing {
    fn reopen(&mut self, _: Mode) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(Self(MemoryStore::default())))
    }
}

#[tokio::test]
async fn the_error_of_a_store_reaches_the_caller_that_adds_rows() {
    let mut loader = Loader::new(Box::new(Failing(MemoryStore::default())));
    add(&mut loader, 0, 0..1, "a").await;
    let error = loader.finish(version(0), COMMIT).await.expect_err("a full disk");
    assert!(error.to_string().contains("the disk is full at there"), "{error}");
    let mut loader = Loader::new(Box::new(Failing(MemoryStore::default())));
    let error = loop {
        loader.add(SpaceId(0), RowRef { partition: "p", row: "r", version: version(0), body: b"" }).expect("a row");
        if let Err(error) = loader.send().await {
            break error;
        }
    };
    assert!(error.to_string().contains("the disk is full at there"), "{error}");
    loader.abandon().await;
}
