//! Pages over PostgreSQL: how much the database sends for them, and what they leave on their connections.

use crate::support::{self, create, open, through, upstream, write};
use larimar_engine::table::{Page, PageLimits, Plan, query};
use larimar_engine::{
    Act, Budget, Expect, Fault, Flow, Key, KeyRange, Reads, RowRef, Rows as _, Snapshot as _, SpaceId, Spaces as _,
};
use larimar_engine_postgres::PostgresEngine;
use larimar_model::{Entity, EntityKey, Filter, PartitionKey, RowKey, Timestamp, Value};
use larimar_testkit::postgres::Cluster;
use larimar_testkit::proxy::Proxy;
use std::time::{Duration, Instant};

/// The server ends a page after this many bytes.
const PAGE_BYTES: u64 = 4 << 20;
/// What a page may cost beyond twice what it uses: the bytes of one statement and a row.
const CONSTANT_BYTES: u64 = 6 << 20;

/// An entity of about `bytes` bytes, with a number for filters.
fn entity(row: &str, bytes: usize) -> Entity {
    let key = EntityKey { partition: PartitionKey::new("p").expect("a key"), row: RowKey::new(row).expect("a key") };
    let names: Vec<String> = (0..bytes / 60_000).map(|number| format!("B{number:02}")).collect();
    let parts = names.iter().map(|name| (name.as_str(), Value::Binary(vec![7; 60_000])));
    Entity::from_properties(key, parts.chain([("Number", Value::Int32(1))])).expect("an entity")
}

async fn store(engine: &PostgresEngine, space: SpaceId, rows: impl Iterator<Item = (String, usize)>) {
    let entities: Vec<Entity> = rows.map(|(row, bytes)| entity(&row, bytes)).collect();
    for entities in entities.chunks(20) {
        let row = |entity: &'_ Entity| -> (String, Vec<u8>) {
            (entity.key.row.as_str().to_owned(), entity.body().as_bytes().to_vec())
        };
        let rows: Vec<(String, Vec<u8>)> = entities.iter().map(row).collect();
        let version = Timestamp::from_ticks(638_500_000_000_000_000);
        let rows: Vec<RowRef<'_>> =
            rows.iter().map(|(row, body)| RowRef { partition: "p", row, version, body }).collect();
        engine.restore(space, &rows).await.expect("the space is there");
    }
}

/// Asks for a page as the server does. Returns it and the bytes of its rows.
async fn page(engine: &PostgresEngine, space: SpaceId, filter: &str, entities_max: usize) -> (Page, u64) {
    let filter = (!filter.is_empty()).then(|| Filter::parse(filter).expect("a filter"));
    let plan = Plan::new(filter.as_ref());
    let deadline = Instant::now() + Duration::from_secs(600);
    let limits = PageLimits { entities_max, deadline, steps_max: PageLimits::STEPS_MAX };
    let mut used = 0;
    let page = query(engine, space, &plan, limits, |row| {
        if used > PAGE_BYTES {
            return Flow::StopHere;
        }
        used += row.body.as_bytes().len() as u64;
        Flow::Continue
    });
    (page.await.expect("no fault"), used)
}

/// The bytes that the database has sent, read when it sends no more.
async fn sent(proxy: &Proxy) -> u64 {
    let mut last = proxy.bytes_to_client();
    loop {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let now = proxy.bytes_to_client();
        if now == last {
            return now;
        }
        last = now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_sends_little_more_than_a_page_uses() {
    let url = Cluster::shared().fresh_url();
    let proxy = Proxy::start(upstream(&url));
    let engine = open(&through(&url, proxy.address())).await;
    let large = create(&engine, "large").await;
    store(&engine, large, (0..60).map(|row| (format!("r{row:04}"), 900 << 10))).await;
    // Small rows first, so that the engine expects small rows, then large ones among them.
    let mixed = create(&engine, "mixed").await;
    let sizes = (0..1600).map(|row| (format!("r{row:04}"), if row > 1000 && row % 10 == 0 { 900 << 10 } else { 0 }));
    store(&engine, mixed, sizes).await;
    let (keys_of_large, all) = (30, "");
    let points: Vec<String> = (0..keys_of_large).map(|row| format!("RowKey eq 'r{row:04}'")).collect();
    let points = format!("PartitionKey eq 'p' and ({})", points.join(" or "));
    let ranges = "PartitionKey eq 'p' and (RowKey lt 'r0003' or RowKey gt 'r0004')";
    for space in [large, mixed] {
        for round in 0..3 {
            for (filter, entities_max) in [
                (all, 1000),
                (all, 2),
                ("Number eq 1", 1000),
                ("Number eq 1", 1),
                ("PartitionKey eq 'p' and RowKey gt 'r1000' and Number eq 1", 1000),
                ("PartitionKey eq 'p' and RowKey gt 'r1000'", 1000),
                (&points, 1000),
                (ranges, 1000),
            ] {
                let before = sent(&proxy).await;
                let (page, used) = page(&engine, space, filter, entities_max).await;
                let moved = sent(&proxy).await - before;
                println!(
                    "{space:?} {filter:.40} {entities_max}: {} rows, {used} used, {moved} sent",
                    page.rows_returned
                );
                assert!(moved <= 2 * used + CONSTANT_BYTES, "round {round}, {filter}: {moved} for {used}");
            }
        }
    }
    // Concurrent pages cost as much as each alone.
    let before = sent(&proxy).await;
    let pages = futures_util::future::join_all((0..8).map(|_| page(&engine, large, "Number eq 1", 1000))).await;
    let used: u64 = pages.iter().map(|(_, used)| used).sum();
    let moved = sent(&proxy).await - before;
    assert!(moved <= 2 * used + 8 * CONSTANT_BYTES, "{moved} for {used}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_over_large_rows_have_every_row_once() {
    let engine = open(&Cluster::shared().fresh_url()).await;
    let space = create(&engine, "t").await;
    store(&engine, space, (0..30).map(|row| (format!("r{row:04}"), if row % 3 == 0 { 900 << 10 } else { 9000 }))).await;
    let points: Vec<String> = (0..30).map(|row| format!("RowKey eq 'r{row:04}'")).collect();
    for filter in ["", "Number eq 1", &format!("PartitionKey eq 'p' and ({})", points.join(" or "))] {
        let parsed = (!filter.is_empty()).then(|| Filter::parse(filter).expect("a filter"));
        let (mut plan, mut found, mut pages) = (Plan::new(parsed.as_ref()), Vec::new(), 0);
        loop {
            let deadline = Instant::now() + Duration::from_secs(600);
            let limits = PageLimits { entities_max: 1000, deadline, steps_max: PageLimits::STEPS_MAX };
            let read = query(&engine, space, &plan, limits, |row| {
                found.push(row.row.to_owned());
                Flow::Continue
            });
            pages += 1;
            match read.await.expect("no fault").next {
                Some(next) => plan = Plan::new(parsed.as_ref()).resumed_at(next),
                None => break,
            }
        }
        let expected: Vec<String> = (0..30).map(|row| format!("r{row:04}")).collect();
        assert_eq!(found, expected, "{filter}, {pages} pages");
    }
}

/// The sessions with an open transaction, according to the database.
async fn open_transactions(url: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
    client.query_one(sql, &[]).await.expect("an answer").get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_leaves_no_transaction_behind_however_it_ends() {
    let cluster = Cluster::start();
    let url = cluster.fresh_url();
    let engine = open(&url).await;
    let space = create(&engine, "t").await;
    store(&engine, space, (0..1200).map(|row| (format!("r{row:04}"), 0))).await;
    let scan_all = async |budget: Budget| {
        let mut snapshot = engine.snapshot(Reads::Many, budget.deadline).await?;
        let mut rest = KeyRange::all();
        while let Some(place) =
            snapshot.scan(space, &rest, Budget { rows_max: 100, ..budget }, |_| Flow::Continue).await?
        {
            rest.start = place;
        }
        Ok::<(), larimar_engine::ReadError>(())
    };
    let budget = || Budget { rows_max: 100, deadline: Instant::now() + Duration::from_secs(60) };
    for round in 0..60_u64 {
        // Dropped at any moment.
        let _ = tokio::time::timeout(Duration::from_micros(round * 300), scan_all(budget())).await;
        // Stopped by the visitor, and never read at all.
        let mut snapshot = engine.snapshot(Reads::Many, budget().deadline).await.expect("no fault");
        let stopped = snapshot.scan(space, &KeyRange::all(), budget(), |_| Flow::StopHere).await.expect("no fault");
        assert!(stopped.is_some());
        drop(snapshot);
        drop(engine.snapshot(Reads::Many, budget().deadline).await.expect("no fault"));
        // Past its deadline, and of a space that does not exist.
        let late = Budget { rows_max: 100, deadline: Instant::now() };
        let mut snapshot = engine.snapshot(Reads::Many, budget().deadline).await.expect("no fault");
        snapshot.scan(space, &KeyRange::all(), late, |_| Flow::Continue).await.expect("no fault");
        let gone = snapshot.scan(SpaceId(space.0 + 1000), &KeyRange::all(), budget(), |_| Flow::Continue).await;
        assert_eq!(gone, Err(larimar_engine::ReadError::SpaceGone));
        drop(snapshot);
        // The next user of the connection sees the current state.
        let row = format!("x{round}");
        write(&engine, space, &row, Expect::Absent, Act::Put(b"")).await.expect("a new row");
        for _ in 0..4 {
            let mut last = String::new();
            let all = Budget { rows_max: 5000, ..budget() };
            let range = KeyRange::between(Some(("p", "x")), None);
            let scan = engine.scan(space, &range, all, |found| {
                last = last.clone().max(format!("{:0>4}", &found.row[1..]));
                Flow::Continue
            });
            scan.await.expect("no fault");
            assert_eq!(last, format!("{round:0>4}"), "an old moment");
        }
    }
    let until = Instant::now() + Duration::from_secs(60);
    while open_transactions(&url).await > 0 {
        assert!(Instant::now() < until, "a transaction stays open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_snapshots_leave_connections_to_others() {
    let engine = open(&Cluster::shared().fresh_url()).await;
    let space = create(&engine, "t").await;
    write(&engine, space, "r", Expect::Absent, Act::Put(b"x")).await.expect("a new row");
    let budget = || Budget { rows_max: 100, deadline: Instant::now() + Duration::from_secs(600) };
    let mut open = Vec::new();
    // As many as are allowed.
    let busy = loop {
        let patience = Duration::from_millis(if open.is_empty() { 60_000 } else { 300 });
        match engine.snapshot(Reads::Many, Instant::now() + patience).await {
            Ok(mut snapshot) => {
                assert_eq!(snapshot.scan(space, &KeyRange::all(), budget(), |_| Flow::Continue).await, Ok(None));
                open.push(snapshot);
            }
            Err(fault) => break fault,
        }
        assert!(open.len() < 100, "there is no limit");
    };
    assert!(matches!(busy, Fault::Unavailable(_)), "{busy:?}");
    // Other requests are served.
    assert_eq!(engine.get(Key { space, partition: "p", row: "r" }, |row| row.is_some()).await, Ok(true));
    assert_eq!(engine.scan(space, &KeyRange::all(), budget(), |_| Flow::Continue).await, Ok(None));
    assert!(engine.create_space(support::name("other"), b"").await.expect("no fault").is_some());
    let (pages, _) = page(&engine, space, "", 1000).await;
    assert_eq!(pages.rows_returned, 1);
    // A waiting page is admitted when another ends.
    let waiting = engine.snapshot(Reads::Many, Instant::now() + Duration::from_secs(60));
    let ended = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(open.pop());
    };
    let (waited, ()) = tokio::join!(waiting, ended);
    assert!(waited.is_ok());
}
