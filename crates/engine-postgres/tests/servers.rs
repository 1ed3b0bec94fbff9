//! Several engines over one database, as several servers have them.

use crate::support::{NOW, create, name, open, read, write};
use larimar_engine::{
    Act, Changed, Expect, Fault, Key, KeyRange, Op, Position, ReadError, Rows as _, SpaceId, SpaceKind, SpaceName,
    Spaces as _, WriteError,
};
use larimar_engine_postgres::{OpenError, PostgresEngine, Settings};
use larimar_model::Timestamp;
use larimar_testkit::postgres::Cluster;
use std::time::{Duration, Instant};

async fn pair() -> (PostgresEngine, PostgresEngine, String) {
    let url = Cluster::shared().fresh_url();
    (open(&url).await, open(&url).await, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_servers_may_start_at_once_on_an_empty_database() {
    let url = Cluster::shared().fresh_url();
    let engines = futures_util::future::join_all((0..8).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { PostgresEngine::open(&Settings::new(url)).await })
    }))
    .await;
    let engines: Vec<_> = engines.into_iter().map(|opened| opened.expect("no panic").expect("it opens")).collect();
    let space = create(&engines[0], "t").await;
    for (number, engine) in engines.iter().enumerate() {
        write(engine, space, &number.to_string(), Expect::Absent, Act::Put(b"x")).await.expect("the tables are there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_later_release_are_refused() {
    let database = Cluster::shared();
    let url = database.fresh_url();
    open(&url).await;
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client.batch_execute("UPDATE larimar_format SET format = 99").await.expect("the table is there");
    let refused = PostgresEngine::open(&Settings::new(&url)).await;
    assert!(matches!(refused, Err(OpenError::Schema(reason)) if reason.contains("99")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drop_on_one_server_refuses_reads_and_writes_on_the_other_at_once() {
    let (one, two, _) = pair().await;
    for round in 0..20 {
        let space = create(&one, "t").await;
        // The other server has it in its cache.
        assert_eq!(two.recent_space(name("t")).await.expect("no fault").map(|space| space.id), Some(space));
        write(&two, space, "r", Expect::Absent, Act::Put(b"x")).await.expect("the space is there");
        assert_eq!(one.drop_space(name("t")).await, Ok(true));
        let write_refused = write(&two, space, "s", Expect::Any, Act::Put(b"x")).await;
        assert_eq!(write_refused, Err(WriteError::SpaceGone), "round {round}");
        let key = Key { space, partition: "p", row: "r" };
        assert_eq!(two.get(key, |_| ()).await, Err(ReadError::SpaceGone));
        // After a refusal the name is looked up again, so a space created meanwhile is found at once.
        let again = create(&one, "t").await;
        assert_eq!(two.recent_space(name("t")).await.expect("no fault").map(|space| space.id), Some(again));
        assert_eq!(read(&two, again, "r").await, None);
        assert_eq!(two.drop_space(name("t")).await, Ok(true));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_on_one_server_is_seen_on_the_other_within_a_second_or_so() {
    let (one, two, _) = pair().await;
    create(&one, "t").await;
    for round in 0..4_u8 {
        let before = two.recent_space(name("t")).await.expect("no fault").expect("the space is there").meta;
        assert_eq!(one.change_space(name("t"), &before, &[round]).await, Ok(Changed::Yes));
        let changed = Instant::now();
        loop {
            let space = two.recent_space(name("t")).await.expect("no fault").expect("the space is there");
            if *space.meta == [round] {
                break;
            }
            // Generous for a busy machine; the cache itself keeps nothing for longer than 800 ms.
            assert!(changed.elapsed() < Duration::from_secs(5), "the change is not seen");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A change, a creation and a drop on one server are seen by a later lookup on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_looked_up_now_is_as_the_last_server_left_it() {
    let (one, two, _) = pair().await;
    for round in 0..8_u8 {
        let id = create(&one, "t").await;
        let seen = two.recent_space(name("t")).await.expect("no fault").expect("the space is there");
        assert_eq!(seen.id, id);
        assert_eq!(one.change_space(name("t"), &seen.meta, &[round]).await, Ok(Changed::Yes));
        assert_eq!(two.space(name("t")).await.expect("no fault").map(|space| space.meta.to_vec()), Some(vec![round]));
        // The result of this lookup is cached as well.
        assert_eq!(
            two.recent_space(name("t")).await.expect("no fault").map(|space| space.meta.to_vec()),
            Some(vec![round])
        );
        assert_eq!(two.drop_space_if(name("t"), &seen.meta).await, Ok(Changed::Other), "those bytes are gone");
        assert_eq!(two.drop_space_if(name("t"), &[round]).await, Ok(Changed::Yes));
        assert_eq!(one.space(name("t")).await, Ok(None));
        assert_eq!(one.drop_space_if(name("t"), &[round]).await, Ok(Changed::Missing));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_only_grow_whatever_time_the_servers_think_it_is() {
    let (one, two, _) = pair().await;
    let space = create(&one, "t").await;
    let mut last = Timestamp::from_ticks(0);
    for round in 0..60_u64 {
        let (engine, now) = if round % 2 == 0 {
            (&one, NOW.after(Duration::from_secs(100 * 365 * 86_400)))
        } else {
            (&two, Timestamp::from_ticks(1))
        };
        let op = |expect, act| Op { row: "r", expect, act };
        let versions = engine.apply(space, "p", &[op(Expect::Any, Act::Put(b"x"))], now).await.expect("no condition");
        assert!(versions[0] > last, "{} after {last} in round {round}", versions[0]);
        last = versions[0];
        if round % 3 == 0 {
            engine.apply(space, "p", &[op(Expect::Present, Act::Delete)], now).await.expect("the row is there");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transactions_of_all_kinds_that_meet_head_on_all_succeed() {
    let (one, two, _) = pair().await;
    let space = create(&one, "t").await;
    let rows: Vec<String> = (0..6).map(|row| format!("r{row}")).collect();
    for row in &rows {
        write(&one, space, row, Expect::Absent, Act::Put(b"0")).await.expect("no row is there");
    }
    let work = async |engine: &PostgresEngine, number: usize| {
        for round in 0..25 {
            let body = format!("{number}-{round}");
            // Each engine updates what the other upserts, so that locks taken kind by kind would cross.
            let op = |index: usize| {
                let is_update = (index + number + round).is_multiple_of(2);
                let expect = if is_update { Expect::Present } else { Expect::Any };
                Op { row: &rows[index], expect, act: Act::Put(body.as_bytes()) }
            };
            let ops: Vec<Op<'_>> = (0..rows.len()).map(op).collect();
            engine.apply(space, "p", &ops, NOW).await.expect("the rows are there");
        }
    };
    tokio::join!(work(&one, 0), work(&two, 1), work(&one, 2), work(&two, 3));
    let mut bodies = Vec::new();
    for row in &rows {
        bodies.push(read(&two, space, row).await.map(|(_, body)| body));
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn merges_on_two_servers_lose_no_update() {
    let (one, two, _) = pair().await;
    let space = create(&one, "t").await;
    let add = |old: Option<&[u8]>| {
        let old = old.map_or(0, |old| u64::from_be_bytes(old.try_into().unwrap_or_default()));
        Ok((old + 1).to_be_bytes().to_vec())
    };
    let work = async |engine: &PostgresEngine| {
        for _ in 0..40 {
            write(engine, space, "n", Expect::Any, Act::Edit(&add)).await.expect("the edit agrees");
        }
    };
    tokio::join!(work(&one), work(&two), work(&one), work(&two));
    assert_eq!(read(&one, space, "n").await.map(|(_, body)| body), Some(160_u64.to_be_bytes().to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_at_a_time_takes_up_a_dropped_container() {
    let (one, two, _) = pair().await;
    let container = SpaceName { account: "account", kind: SpaceKind::Container, name: "c" };
    let dropped = one.create_space(container, b"").await.expect("no fault").expect("the name is free");
    write(&one, dropped, "row", Expect::Absent, Act::Put(b"x")).await.expect("it is written");
    assert_eq!(two.drop_space(container).await, Ok(true));
    assert_eq!(one.claim_dropped(SpaceId::SYSTEM).await, Ok(Some(dropped)));
    assert_eq!(two.claim_dropped(SpaceId::SYSTEM).await, Ok(None), "the other server is at work");
    let start = Position::new("", "");
    assert_eq!(two.read_dropped(dropped, &start, |_| ()).await, Err(ReadError::SpaceGone));
    two.forget_dropped(dropped).await.expect("nothing happens");
    // The rows of tables are removed meanwhile, those of the container are not.
    let table = create(&two, "table").await;
    write(&two, table, "row", Expect::Absent, Act::Put(b"x")).await.expect("it is written");
    assert_eq!(two.drop_space(name("table")).await, Ok(true));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut rows = 0;
    assert_eq!(one.read_dropped(dropped, &start, |_| rows += 1).await, Ok(None));
    assert_eq!(rows, 1);
    one.forget_dropped(dropped).await.expect("no fault");
    assert_eq!(one.claim_dropped(SpaceId::SYSTEM).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_dropped_spaces_are_removed_by_one_server_or_another() {
    let (one, two, url) = pair().await;
    let mut spaces: Vec<SpaceId> = Vec::new();
    for (number, engine) in [&one, &two, &one, &two].into_iter().enumerate() {
        let space = create(engine, &format!("t{number}")).await;
        for batch in 0..12 {
            let rows: Vec<String> = (0..100).map(|row| format!("{batch:02}{row:03}")).collect();
            let put = |row| Op { row, expect: Expect::Absent, act: Act::Put(b"x") };
            let ops: Vec<Op<'_>> = rows.iter().map(|row| put(row)).collect();
            engine.apply(space, &format!("p{}", batch / 4), &ops, NOW).await.expect("no row is there");
        }
        spaces.push(space);
    }
    for number in [0, 1, 2] {
        assert_eq!(two.drop_space(name(&format!("t{number}"))).await, Ok(true));
    }
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let count: i64 = client.query_one("SELECT count(*) FROM larimar_entity", &[]).await.expect("a count").get(0);
        if count == 1200 {
            break;
        }
        assert!(Instant::now() < until, "{count} rows are left");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut rows = 0;
    let all = KeyRange::all();
    let budget = larimar_engine::Budget { rows_max: 5000, deadline: until };
    let scan = one.scan(spaces[3], &all, budget, |_| {
        rows += 1;
        larimar_engine::Flow::Continue
    });
    assert_eq!(scan.await, Ok(None));
    assert_eq!(rows, 1200, "the space that is left has all its rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_engine_refuses_and_does_not_hang() {
    let (one, two, _) = pair().await;
    let space = create(&one, "t").await;
    one.close().await;
    let refused = write(&one, space, "r", Expect::Any, Act::Put(b"x")).await;
    assert!(matches!(refused, Err(WriteError::Fault(Fault::Unavailable(_)))), "{refused:?}");
    write(&two, space, "r", Expect::Any, Act::Put(b"x")).await.expect("the other goes on");
}
