//! The clock of versions when the machine's clock is wrong: warned of, shown, taken back, and never a panic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use crate::support::{name, read, settings};
use larimar_engine::{Act, Engine, Expect, Op, Rows as _, SpaceId, Spaces as _};
use larimar_engine_local::LocalEngine;
use larimar_engine_local::repair::reset_clock;
use larimar_model::{ETag, Timestamp};
use tempfile::TempDir;

const NOW: &str = "2026-11-16T00:00:00Z";
const WRONG: &str = "2036-11-16T00:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

async fn write(engine: &LocalEngine, table: SpaceId, rows: &[&str], now: Timestamp) -> Timestamp {
    let op = |row| Op { row, expect: Expect::Any, act: Act::Put(b"body") };
    let ops: Vec<Op<'_>> = rows.iter().map(|row| op(*row)).collect();
    engine.apply(table, "p", &ops, now).await.unwrap()[0]
}

#[tokio::test]
async fn one_wrong_reading_is_taken_back_and_no_row_goes_back_with_it() {
    let folder = TempDir::new().unwrap();
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    write(&engine, table, &["before"], at(NOW)).await;
    let ahead = write(&engine, table, &["ahead", "deleted"], at(WRONG)).await;
    assert!(write(&engine, table, &["after"], at(NOW)).await > ahead, "the wrong reading stays");
    assert!(engine.statistics().last_version.unwrap() > ahead);
    drop(engine);

    let later = at(NOW).after(Duration::from_secs(60));
    let reset = reset_clock(folder.path(), later).unwrap();
    assert!(reset.is_reset && reset.rows_ahead == 3, "{reset}");
    assert!(reset.to_string().contains("3 rows keep versions after that"), "{reset}");
    assert!(!reset_clock(folder.path(), later).unwrap().is_reset, "once is enough");

    for round in 0..2 {
        let now = later.after(Duration::from_secs(60 * (round + 1)));
        let engine = LocalEngine::open(&settings(folder.path())).unwrap();
        let new = format!("new{round}");
        assert_eq!(write(&engine, table, &[&new], now).await, now, "new rows have the time again");
        let (kept, _) = read(&engine, table, "p", "ahead").await.unwrap();
        let raised = write(&engine, table, &["ahead"], now).await;
        assert!(raised.ticks() > kept, "versions of a row only grow, also of one that is written blindly");
        let both = write(&engine, table, &["before", "after"], now).await;
        assert!(both > at(WRONG), "of a transaction all rows get the version above all of theirs");
        let newer = format!("newer{round}");
        assert!(write(&engine, table, &[&newer], now).await < at(WRONG), "and the clock stays where it was reset");
        assert!(engine.statistics().last_version.unwrap() < at(WRONG));
    }
}

#[tokio::test]
async fn no_reading_of_the_clock_panics_or_repeats_an_etag() {
    let folder = TempDir::new().unwrap();
    let year_9999 = at("9999-01-01T00:00:00Z");
    let mut last = Timestamp::from_ticks(0);
    let mut etags = std::collections::BTreeSet::new();
    for now in [
        Timestamp::from_ticks(0),
        at("1969-12-31T00:00:00Z"),
        at(NOW),
        year_9999,
        Timestamp::CLOCK_MAX,
        Timestamp::MAX,
        Timestamp::from_ticks(Timestamp::MAX.ticks() + 1),
        Timestamp::from_ticks(u64::MAX - 1),
        Timestamp::from_ticks(u64::MAX),
        at(NOW),
    ] {
        let engine = LocalEngine::open(&settings(folder.path())).unwrap();
        let table = match engine.create_space(name("t"), b"").await.unwrap() {
            Some(table) => table,
            None => engine.space(name("t")).await.unwrap().unwrap().id,
        };
        for _ in 0..3 {
            let version = write(&engine, table, &["row"], now).await;
            assert!(version > last && version <= Timestamp::MAX, "{version} after {last} at {now}");
            assert!(etags.insert(ETag(version).to_string()), "{version}");
            last = version;
        }
    }
    assert!(last > Timestamp::CLOCK_MAX && reset_clock(folder.path(), at(NOW)).unwrap().is_reset);
}
