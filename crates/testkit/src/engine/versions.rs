//! Promises about versions: a row never has the same one twice, whatever the clock does.

use super::rows::{NOW, create, name, put, read, store, write};
use crate::ManualClock;
use larimar_engine::{Act, Clock as _, Engine, Expect, Op, RowRef, WriteError};
use larimar_model::Timestamp;
use std::time::Duration;

/// A version is at least the time that came with the write.
pub async fn versions_are_not_before_the_time_of_the_write(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let clock = ManualClock::new(NOW);
    for _ in 0..10 {
        let version = write(engine, space, "p", put("r", b"x"), clock.now()).await.expect("no condition");
        assert!(version >= clock.now());
        clock.advance(Duration::from_secs(60));
    }
}

/// Writes within one tick of the clock still have different versions.
pub async fn versions_increase_when_the_clock_stands_still(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let mut last = Timestamp::from_ticks(0);
    for _ in 0..100 {
        let version = write(engine, space, "p", put("r", b"x"), NOW).await.expect("no condition");
        assert!(version > last, "{version} after {last}");
        last = version;
    }
}

/// A clock that jumps back by an hour, or to the year 1, does not take versions with it.
pub async fn versions_increase_when_the_clock_jumps_back(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let clock = ManualClock::new(NOW);
    let mut last = Timestamp::from_ticks(0);
    for jump in [0, 3600, 1, 86_400 * 365, 60, u64::MAX / 100_000_000] {
        clock.turn_back(Duration::from_secs(jump));
        for row in ["r", "r", "other", "r"] {
            let version = write(engine, space, "p", put(row, b"x"), clock.now()).await.expect("no condition");
            if row == "r" {
                assert!(version > last, "{version} after {last}");
                last = version;
            }
        }
    }
}

/// A row that was removed and comes back, with the clock behind, has a version it never had.
pub async fn versions_increase_over_delete_and_insert(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let clock = ManualClock::new(NOW);
    let mut seen = Vec::new();
    for round in 0..20 {
        let insert = Op { row: "r", expect: Expect::Absent, act: Act::Put(b"x") };
        seen.push(write(engine, space, "p", insert, clock.now()).await.expect("no row is there"));
        let delete = Op { row: "r", expect: Expect::Present, act: Act::Delete };
        write(engine, space, "p", delete, clock.now()).await.expect("the row is there");
        if round % 3 == 0 {
            clock.turn_back(Duration::from_secs(100));
        }
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
}

/// Transactions and single writes draw from the same increasing versions.
pub async fn versions_increase_over_transactions(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let clock = ManualClock::new(NOW);
    let (mut last_a, mut last_b) = (Timestamp::from_ticks(0), Timestamp::from_ticks(0));
    for round in 0..30 {
        clock.turn_back(Duration::from_millis(1));
        if round % 2 == 0 {
            let versions = engine.apply(space, "p", &[put("a", b"x"), put("b", b"x")], clock.now()).await;
            let versions = versions.expect("no condition");
            assert!(versions[0] > last_a && versions[1] > last_b);
            (last_a, last_b) = (versions[0], versions[1]);
        } else {
            let version = write(engine, space, "p", put("a", b"x"), clock.now()).await.expect("no condition");
            assert!(version > last_a);
            last_a = version;
        }
    }
}

/// A write that fails leaves the version that clients hold valid.
pub async fn a_failed_write_does_not_change_the_version(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let version = write(engine, space, "p", put("r", b"x"), NOW).await.expect("no condition");
    let later = NOW.after(Duration::from_secs(5));
    let insert = Op { row: "r", expect: Expect::Absent, act: Act::Put(b"y") };
    assert!(write(engine, space, "p", insert, later).await.is_err());
    assert_eq!(read(engine, space, "p", "r").await, Some((version, b"x".to_vec())));
    let replace = Op { row: "r", expect: Expect::Version(version), act: Act::Put(b"z") };
    assert!(write(engine, space, "p", replace, later).await.is_ok_and(|new| new > version));
}

/// The versions a batch returns are, by position, those its rows have.
pub async fn every_row_of_a_batch_gets_its_version(engine: &impl Engine) {
    let space = create(engine, "t").await;
    write(engine, space, "p", put("old", b"x"), NOW).await.expect("no condition");
    let ops = [
        put("b", b"1"),
        Op { row: "old", expect: Expect::Present, act: Act::Delete },
        put("a", b"2"),
        Op { row: "none", expect: Expect::Absent, act: Act::Check },
        put("c", b"3"),
    ];
    let versions = engine.apply(space, "p", &ops, NOW).await.expect("the conditions hold");
    assert_eq!(versions.len(), ops.len());
    for (position, row) in [(0, "b"), (2, "a"), (4, "c")] {
        assert_eq!(read(engine, space, "p", row).await.map(|(version, _)| version), Some(versions[position]));
        assert!(versions[position] >= NOW);
    }
}

/// A copied row is the row that was copied; what is written over it later is newer, and a dropped space takes none.
pub async fn restored_rows_keep_their_versions_and_later_ones_are_greater(engine: &impl Engine) {
    let space = create(engine, "t").await;
    store(engine, space, "p", "kept", b"old").await;
    let at = |seconds| NOW.after(Duration::from_secs(seconds));
    let row = |partition, row, version, body| RowRef { partition, row, version, body };
    let rows = [row("p", "kept", at(7), b"new".as_slice()), row("p", "past", at(3), b""), row("q", "a", at(5), b"x")];
    engine.restore(space, &rows).await.expect("the space is there");
    for RowRef { partition, row, version, body } in rows {
        assert_eq!(read(engine, space, partition, row).await, Some((version, body.to_vec())));
        let later = write(engine, space, partition, put(row, b"later"), NOW).await.expect("no condition");
        assert!(later > version, "{later} after {version}");
    }
    assert_eq!(engine.drop_space(name("t")).await, Ok(true));
    assert_eq!(engine.restore(space, &rows).await, Err(WriteError::SpaceGone));
}

/// The time of the store is that of its versions, and its two bounds lie around it.
pub async fn the_time_of_the_store_is_that_of_its_versions(engine: &impl Engine) {
    let space = create(engine, "t").await;
    for minute in 0..3 {
        let caller = NOW.after(Duration::from_secs(60 * minute));
        let before = engine.now(caller).await.expect("no fault");
        let name = format!("r{minute}");
        let version = write(engine, space, "p", put(&name, b"x"), caller).await.expect("no condition");
        let after = engine.now(caller.after(Duration::from_secs(1))).await.expect("no fault");
        assert!(before.earliest <= before.latest && after.earliest <= after.latest, "{before:?} {after:?}");
        assert!(before.earliest <= version, "{version} before {before:?}");
        assert!(version <= after.latest, "{version} after {after:?}");
    }
}
