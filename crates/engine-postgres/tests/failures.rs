//! A database that is cut off, hangs, restarts or refuses: every answer of the engine is true.
//!
//! After each failure the rows are read over a working connection. `Ok` means that the write took effect, a failed
//! condition or `Unavailable` that it did not; only after `Ambiguous` it is unknown.

use crate::support::{NOW, create, name, open, open_with, read, through, upstream, write};
use larimar_engine::queue::{Messages as _, NewMessage};
use larimar_engine::{
    Act, Budget, Engine, Expect, Fault, Flow, KeyRange, Op, ReadError, Rows as _, SpaceId, SpaceKind, SpaceName,
    Spaces as _, WriteError,
};
use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_testkit::postgres::{Cluster, Stop};
use larimar_testkit::proxy::{Direction, Mode, Proxy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// An engine behind a proxy and one without, over the same tables.
struct Pair {
    proxy: Proxy,
    cut: PostgresEngine,
    sound: PostgresEngine,
    space: SpaceId,
}

impl Pair {
    async fn open(timeout: Duration) -> Self {
        let url = Cluster::shared().fresh_url();
        let proxy = Proxy::start(upstream(&url));
        let sound = open(&url).await;
        let space = create(&sound, "t").await;
        let cut = open_with(&through(&url, proxy.address()), timeout).await;
        Self { proxy, cut, sound, space }
    }

    /// Makes a call while connections are cut; connections opened a little later work again.
    async fn while_cut<T>(&self, bytes: u64, direction: Direction, call: impl Future<Output = T>) -> T {
        self.proxy.set(Mode::CutAfter { bytes, direction });
        let end = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            self.proxy.set(Mode::Pass);
        };
        tokio::join!(call, end).0
    }

    /// Waits until the engine has working connections again.
    async fn heal(&self) {
        self.proxy.set(Mode::Pass);
        let until = Instant::now() + Duration::from_secs(20);
        while write(&self.cut, self.space, "probe", Expect::Any, Act::Put(b"")).await.is_err() {
            assert!(Instant::now() < until, "the engine does not come back");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn is_open<T>(outcome: &Result<T, WriteError>) -> bool {
    matches!(outcome, Err(WriteError::Fault(Fault::Ambiguous(_))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_of_an_insert_gives_no_false_answer() {
    let pair = Pair::open(Duration::from_secs(15)).await;
    let (mut done, mut unknown) = (0, 0);
    for step in 0..40 {
        for direction in [Direction::ToServer, Direction::ToClient] {
            pair.heal().await;
            let row = format!("{step}{direction:?}");
            let insert = write(&pair.cut, pair.space, &row, Expect::Absent, Act::Put(row.as_bytes()));
            let outcome = pair.while_cut(step * 13, direction, insert).await;
            let found = read(&pair.sound, pair.space, &row).await;
            match &outcome {
                Ok(version) => {
                    done += 1;
                    assert_eq!(found, Some((*version, row.into_bytes())));
                }
                Err(WriteError::Fault(Fault::Unavailable(_))) => assert_eq!(found, None, "refused, yet there"),
                _ if is_open(&outcome) => unknown += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(done > 0 && pair.proxy.cuts() > 0, "{done} done, {unknown} unknown, {} cuts", pair.proxy.cuts());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_of_a_transaction_leaves_it_whole_or_not_at_all() {
    let pair = Pair::open(Duration::from_secs(15)).await;
    for step in 0..50 {
        pair.heal().await;
        let rows: Vec<String> = (0..4).map(|row| format!("{step:03}-{row}")).collect();
        write(&pair.sound, pair.space, &rows[0], Expect::Any, Act::Put(b"old")).await.expect("no condition");
        write(&pair.sound, pair.space, &rows[1], Expect::Any, Act::Put(b"old")).await.expect("no condition");
        let op = |row: usize, expect, act| Op { row: &rows[row], expect, act };
        let ops = [
            op(0, Expect::Present, Act::Put(b"new")),
            op(1, Expect::Present, Act::Delete),
            op(2, Expect::Absent, Act::Put(b"new")),
            op(3, Expect::Any, Act::Put(b"new")),
        ];
        let direction = if step % 2 == 0 { Direction::ToServer } else { Direction::ToClient };
        let outcome = pair.while_cut(step * 23, direction, pair.cut.apply(pair.space, "p", &ops, NOW)).await;
        let (mut bodies, mut versions) = (Vec::new(), Vec::new());
        for row in &rows {
            let (version, body) = read(&pair.sound, pair.space, row).await.unzip();
            bodies.push(body);
            versions.push(version);
        }
        let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
        let before = [old.clone(), old, None, None];
        let after = [new.clone(), None, new.clone(), new];
        match &outcome {
            Ok(returned) => {
                assert_eq!(bodies, after);
                // Each statement asks for the time, so the rows have different versions; each must be returned.
                for row in [0, 2, 3] {
                    assert_eq!(versions[row], Some(returned[row]), "row {row}");
                }
            }
            Err(WriteError::Fault(Fault::Unavailable(_))) => assert_eq!(bodies, before),
            _ if is_open(&outcome) => assert!(bodies == before || bodies == after, "half of it: {bodies:?}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_takes_effect_at_most_once_whatever_is_cut() {
    let pair = Pair::open(Duration::from_secs(15)).await;
    write(&pair.sound, pair.space, "r", Expect::Absent, Act::Put(b"")).await.expect("no row is there");
    let (mut least, mut most) = (0, 0);
    for step in 0..60 {
        pair.heal().await;
        let direction = if step % 2 == 0 { Direction::ToServer } else { Direction::ToClient };
        let append = |old: Option<&[u8]>| Ok([old.unwrap_or_default(), b"+"].concat());
        let edit = write(&pair.cut, pair.space, "r", Expect::Present, Act::Edit(&append));
        let outcome = pair.while_cut(step * 17, direction, edit).await;
        least += usize::from(outcome.is_ok());
        most += usize::from(outcome.is_ok() || is_open(&outcome));
        let (_, body) = read(&pair.sound, pair.space, "r").await.expect("the row is there");
        assert!((least..=most).contains(&body.len()), "{} of {least} to {most}", body.len());
        // Unknown outcomes are known now.
        (least, most) = (body.len(), body.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spaces_are_created_changed_and_dropped_once_whatever_is_cut() {
    let pair = Pair::open(Duration::from_secs(15)).await;
    for step in 0..40_u64 {
        pair.heal().await;
        let table = format!("t{step}");
        let direction = if step % 2 == 0 { Direction::ToServer } else { Direction::ToClient };
        let created = pair.while_cut(step * 13, direction, pair.cut.create_space(name(&table), b"made")).await;
        let found = pair.sound.space(name(&table)).await.expect("no fault");
        match created {
            Ok(id) => assert_eq!(id, found.map(|space| space.id), "created with the returned id"),
            Err(Fault::Unavailable(reason)) => assert_eq!(found, None, "{reason}"),
            Err(Fault::Ambiguous(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_without_traffic_is_closed_in_time() {
    let pair = Pair::open(Duration::from_secs(1)).await;
    write(&pair.cut, pair.space, "r", Expect::Absent, Act::Put(b"1")).await.expect("no row is there");
    for direction in [Direction::ToServer, Direction::ToClient, Direction::Both] {
        pair.heal().await;
        read(&pair.cut, pair.space, "r").await.expect("the row is there");
        pair.proxy.set(Mode::HalfOpen(direction));
        let key = larimar_engine::Key { space: pair.space, partition: "p", row: "r" };
        let all = KeyRange::all();
        let budget = Budget { rows_max: 10, deadline: Instant::now() + Duration::from_secs(5) };
        let patience = Duration::from_secs(60);
        let (got, scanned, written) = tokio::time::timeout(patience, async {
            tokio::join!(
                pair.cut.get(key, |row| row.is_some()),
                pair.cut.scan(pair.space, &all, budget, |_| Flow::Continue),
                write(&pair.cut, pair.space, "r", Expect::Present, Act::Put(b"2"))
            )
        })
        .await
        .expect("every call ends");
        assert!(matches!(got, Err(ReadError::Fault(Fault::Unavailable(_)))), "{got:?}");
        assert!(matches!(scanned, Err(ReadError::Fault(Fault::Unavailable(_)))), "{scanned:?}");
        assert!(matches!(written, Err(WriteError::Fault(_))), "{written:?}");
    }
    pair.heal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_loses_nothing_and_is_found_again() {
    let cluster = Cluster::start();
    let engine = open(&cluster.fresh_url()).await;
    let space = create(&engine, "t").await;
    let mut kept = Vec::new();
    for (round, how) in [Stop::Fast, Stop::Immediate, Stop::Fast].into_iter().enumerate() {
        let writer = async {
            let mut acknowledged = Vec::new();
            for number in 0..400 {
                let row = format!("{round}-{number}");
                match write(&engine, space, &row, Expect::Absent, Act::Put(b"x")).await {
                    Ok(version) => acknowledged.push((row, version)),
                    Err(WriteError::Fault(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                    Err(other) => panic!("{other}"),
                }
            }
            acknowledged
        };
        let restart = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            tokio::task::block_in_place(|| {
                cluster.stop(how);
                cluster.start_again();
            });
        };
        let (acknowledged, ()) = tokio::join!(writer, restart);
        kept.extend(acknowledged);
        for (row, version) in &kept {
            let found = read(&engine, space, row).await;
            assert_eq!(found.map(|(version, _)| version), Some(*version), "{row} was acknowledged");
        }
    }
    assert!(kept.len() > 100, "most writes succeed: {}", kept.len());
    engine.ready().expect("the engine takes writes again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_breaks_again_and_again_is_tried_at_intervals() {
    let pair = Pair::open(Duration::from_secs(4)).await;
    let body = vec![b'x'; 300_000];
    write(&pair.sound, pair.space, "r", Expect::Absent, Act::Put(&body)).await.expect("no row is there");
    // Enough bytes to connect and to send the statement, and not enough for the row.
    pair.proxy.set(Mode::CutAfter { bytes: 100_000, direction: Direction::ToClient });
    let before = pair.proxy.connections();
    let budget = Budget { rows_max: 10, deadline: Instant::now() + Duration::from_secs(60) };
    let page = pair.cut.scan(pair.space, &KeyRange::all(), budget, |_| Flow::Continue).await;
    assert!(matches!(page, Err(ReadError::Fault(Fault::Unavailable(_)))), "{page:?}");
    let tried = pair.proxy.connections() - before;
    assert!((2..60).contains(&tried), "{tried} connections");
    pair.heal().await;
    let budget = Budget { rows_max: 10, deadline: Instant::now() + Duration::from_secs(60) };
    pair.cut.scan(pair.space, &KeyRange::all(), budget, |_| Flow::Continue).await.expect("it works again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_queries_and_queues_wait_for_a_database_that_restarts() {
    let cluster = Arc::new(Cluster::start());
    let engine = open(&cluster.fresh_url()).await;
    let space = create(&engine, "t").await;
    write(&engine, space, "r", Expect::Absent, Act::Put(b"1")).await.expect("no row is there");
    let queue = SpaceName { account: "account", kind: SpaceKind::Queue, name: "q" };
    let queue = engine.create_space(queue, b"").await.expect("no fault").expect("the name is free");
    let is_done = AtomicBool::new(false);
    let new = NewMessage { text: b"x", hidden_for: Duration::ZERO, lives_for: None };
    let rounds = AtomicUsize::new(0);
    let readers = async || {
        let key = larimar_engine::Key { space, partition: "p", row: "r" };
        while !is_done.load(Ordering::Relaxed) {
            engine.get(key, |_| ()).await.expect("a read waits");
            let budget = Budget { rows_max: 10, deadline: Instant::now() + Duration::from_secs(60) };
            engine.scan(space, &KeyRange::all(), budget, |_| Flow::Continue).await.expect("a query waits");
            engine.peek(queue, 1, NOW).await.expect("a peek waits");
            engine.claim(queue, 1, Duration::from_secs(600), NOW).await.expect("a claim waits");
            engine.count_messages(queue, NOW).await.expect("a count waits");
            engine.list_spaces(name("t"), 10).await.expect("a listing waits");
            // The outcome of a write that was sent and not answered is unknown; all others wait.
            let put = engine.put_message(queue, new, NOW).await;
            assert!(put.is_ok() || is_open(&put), "a put waits: {put:?}");
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    };
    let restarts = async {
        for _ in 0..3 {
            let before = rounds.load(Ordering::Relaxed);
            while rounds.load(Ordering::Relaxed) < before + 20 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // On a thread of its own, so that requests continue.
            let cluster = Arc::clone(&cluster);
            tokio::task::spawn_blocking(move || cluster.restart()).await.expect("it restarts");
        }
        is_done.store(true, Ordering::Relaxed);
    };
    tokio::join!(readers(), readers(), readers(), readers(), restarts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_a_locked_row_is_refused_in_time_and_changes_nothing() {
    let database = Cluster::shared();
    let url = database.fresh_url();
    let engine = open_with(&url, Duration::from_secs(1)).await;
    let space = create(&engine, "t").await;
    let version = write(&engine, space, "r", Expect::Absent, Act::Put(b"1")).await.expect("no row is there");
    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    other.batch_execute("BEGIN; SELECT 1 FROM larimar_entity FOR UPDATE").await.expect("the rows are held");
    let refused = write(&engine, space, "r", Expect::Present, Act::Put(b"2")).await;
    assert!(matches!(refused, Err(WriteError::Fault(Fault::Unavailable(_)))), "{refused:?}");
    let ops = [
        Op { row: "a", expect: Expect::Any, act: Act::Put(b"2") },
        Op { row: "r", expect: Expect::Present, act: Act::Put(b"2") },
    ];
    let refused = engine.apply(space, "p", &ops, NOW).await;
    assert!(matches!(refused, Err(WriteError::Fault(Fault::Unavailable(_)))), "{refused:?}");
    other.batch_execute("ROLLBACK").await.expect("the rows are let go");
    assert_eq!(read(&engine, space, "r").await, Some((version, b"1".to_vec())));
    assert_eq!(read(&engine, space, "a").await, None);
    write(&engine, space, "r", Expect::Version(version), Act::Put(b"2")).await.expect("nobody holds it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_hangs_is_reported_and_waited_for() {
    let cluster = Cluster::start();
    let engine = open_with(&cluster.fresh_url(), Duration::from_secs(1)).await;
    let space = create(&engine, "t").await;
    write(&engine, space, "r", Expect::Absent, Act::Put(b"1")).await.expect("no row is there");
    cluster.pause();
    let key = larimar_engine::Key { space, partition: "p", row: "r" };
    let got = tokio::time::timeout(Duration::from_secs(60), engine.get(key, |_| ())).await.expect("it ends");
    assert!(matches!(got, Err(ReadError::Fault(Fault::Unavailable(_)))), "{got:?}");
    // The request ends at its limit; the connection that waits for the database ends a little later.
    let until = Instant::now() + Duration::from_secs(30);
    while engine.ready().is_ok() {
        assert!(Instant::now() < until, "the engine should not be ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cluster.resume();
    let until = Instant::now() + Duration::from_secs(30);
    while engine.ready().is_err() || engine.get(key, |_| ()).await.is_err() {
        assert!(Instant::now() < until, "the engine does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(read(&engine, space, "r").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_callers_than_connections_take_turns() {
    let engine = open(&Cluster::shared().fresh_url()).await;
    let space = create(&engine, "t").await;
    for row in 0..50 {
        write(&engine, space, &format!("{row:03}"), Expect::Absent, Act::Put(b"x")).await.expect("no row is there");
    }
    let all = KeyRange::all();
    let scan = async || {
        let mut rows = 0;
        let budget = Budget { rows_max: 1000, deadline: Instant::now() + Duration::from_secs(60) };
        let visit = |_: larimar_engine::RowRef<'_>| {
            rows += 1;
            Flow::Continue
        };
        engine.scan(space, &all, budget, visit).await.expect("no fault");
        rows
    };
    let counts = futures_util::future::join_all((0..200).map(|_| scan())).await;
    assert!(counts.iter().all(|count| *count == 50));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_caller_leaves_no_write_half_done() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    let space = create(&engine, "t").await;
    let rows: Vec<String> = (0..20).map(|row| format!("{row:02}")).collect();
    for round in 0..100_u8 {
        let body = [round];
        let ops: Vec<Op<'_>> = rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(&body) }).collect();
        let patience = Duration::from_micros(u64::from(round) * 40);
        let _ = tokio::time::timeout(patience, engine.apply(space, "p", &ops, NOW)).await;
        let mut bodies = Vec::new();
        let all = KeyRange::all();
        let budget = Budget { rows_max: 1000, deadline: Instant::now() + Duration::from_secs(60) };
        let scan = engine.scan(space, &all, budget, |row| {
            bodies.push(row.body.to_vec());
            Flow::Continue
        });
        scan.await.expect("no fault");
        assert!(bodies.is_empty() || bodies.len() == rows.len() && bodies.iter().all(|body| *body == bodies[0]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_database_is_named_in_the_error_of_open() {
    let refused = PostgresEngine::open(&Settings::new("postgres://u@127.0.0.1:1/d")).await;
    let Err(error) = refused else { panic!("it opened") };
    assert!(error.to_string().contains("cannot connect"), "{error}");
}
