//! The rows of insights on the engines that store: those of servers that are gone age out, and a server without requests
//! writes nothing.

use larimar_engine::{Act, Budget, Clock, Engine, Expect, Flow, KeyRange, Op, SpaceId, SystemClock};
use larimar_engine_local::LocalEngine;
use larimar_server::{InsightsWriter, Settings, Storage};
use larimar_testkit::ManualClock;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The rows of insights with their versions, which change with every write.
async fn rows(engine: &impl Engine) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    let (all, budget) = (KeyRange::all(), Budget { rows_max: 1000, deadline: Instant::now() + MINUTE });
    let scan = engine.scan(SpaceId::SYSTEM, &all, budget, |row| {
        if row.row.starts_with("insights") {
            rows.push((row.row.to_owned(), row.version.ticks()));
        }
        Flow::Continue
    });
    assert!(scan.await.is_ok_and(|next| next.is_none()));
    rows
}

/// The row of a server that is gone, of a slot that began this long ago.
fn row_of(clock: &ManualClock, letter: char, seconds: u64, age: Duration) -> String {
    let start = clock.now().before(age).to_unix().as_secs();
    format!("insights/{letter}/{:015}/devstoreaccount1/3", start - start % seconds)
}

async fn check(engine: Arc<impl Engine>) {
    // Versions do not come before the time of the machine.
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let [fresh, stale_hour, stale_minute] = [('h', 3600, DAY), ('h', 3600, 8 * DAY), ('m', 60, 62 * MINUTE)]
        .map(|(letter, seconds, age)| row_of(&clock, letter, seconds, age));
    let ops: Vec<_> = [&fresh, &stale_hour, &stale_minute]
        .map(|row| Op { row, expect: Expect::Any, act: Act::Put(b"figures") })
        .into();
    engine.apply(SpaceId::SYSTEM, "", &ops, clock.now()).await.expect("rows");
    let settings = Settings::default();
    let storage = Storage::new(Arc::clone(&engine), Arc::clone(&clock) as Arc<dyn Clock>, settings, Arc::default());
    let mut writer = InsightsWriter::new(storage);
    writer.prepare().await;
    assert_eq!(rows(&*engine).await.len(), 4);
    clock.advance(MINUTE);
    writer.tick().await;
    let left = rows(&*engine).await;
    assert_eq!(left.iter().map(|(row, _)| row.as_str()).collect::<Vec<_>>(), ["insights-key", fresh.as_str()]);
    for _ in 0..25 {
        clock.advance(MINUTE);
        writer.tick().await;
    }
    assert_eq!(rows(&*engine).await, left, "nothing happened, so nothing was written");
    clock.advance(7 * DAY);
    for _ in 0..10 {
        clock.advance(MINUTE);
        writer.tick().await;
    }
    assert_eq!(rows(&*engine).await, left[..1]);
}

#[tokio::test]
async fn rows_of_servers_that_are_gone_age_out_and_an_idle_server_writes_none() {
    let folder = tempfile::tempdir().expect("a directory");
    let settings = larimar_engine_local::Settings {
        folder: folder.path().into(),
        durability: larimar_engine_local::Durability::Sync,
        memory_bytes: Some(64 << 20),
        reserve_bytes: 0,
    };
    check(Arc::new(LocalEngine::open(&settings).expect("the store opens"))).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test]
async fn rows_of_servers_that_are_gone_age_out_of_a_database() {
    use larimar_engine_postgres::{PostgresEngine, Settings};
    let settings = Settings::new(larimar_testkit::postgres::Cluster::shared().fresh_url());
    check(Arc::new(PostgresEngine::open(&settings).await.expect("the database"))).await;
}
