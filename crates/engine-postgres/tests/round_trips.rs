//! How often each call waits for the database: once, and twice for a merge.
//!
//! A proxy between the engine and the database counts turns: a turn begins when something is sent after an answer.
//! Statements that are sent together are one turn.

use crate::support::{NOW, create, open, through, upstream, write};
use larimar_engine::queue::{Change, MessageHandle, Messages as _, NewMessage};
use larimar_engine::table::{PageLimits, Plan, query};
use larimar_engine::{
    Act, Budget, Engine, Expect, Flow, Key, KeyRange, Op, Rows as _, SpaceKind, SpaceName, Spaces as _,
};
use larimar_model::{EntityBody, Filter};
use larimar_testkit::postgres::Cluster;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards connections and counts the turns of all of them.
async fn counting_relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let turns = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&turns);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let database = TcpStream::connect(to).await.expect("the database is there");
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_database, mut to_database) = database.into_split();
            let is_answered = Arc::new(AtomicBool::new(true));
            let (answered, count) = (Arc::clone(&is_answered), Arc::clone(&count));
            tokio::spawn(async move {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(bytes @ 1..) = from_client.read(&mut buffer).await {
                    if answered.swap(false, Ordering::AcqRel) {
                        count.fetch_add(1, Ordering::AcqRel);
                    }
                    if to_database.write_all(&buffer[..bytes]).await.is_err() {
                        return;
                    }
                }
            });
            tokio::spawn(async move {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(bytes @ 1..) = from_database.read(&mut buffer).await {
                    is_answered.store(true, Ordering::Release);
                    if to_client.write_all(&buffer[..bytes]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, turns)
}

/// The fewest turns of 40 runs of a call: the first ones also connect and prepare, and background work may add turns.
async fn fewest_turns(turns: &AtomicU64, mut call: impl AsyncFnMut(usize)) -> u64 {
    let mut fewest = u64::MAX;
    for round in 0..40 {
        let before = turns.load(Ordering::Acquire);
        call(round).await;
        fewest = fewest.min(turns.load(Ordering::Acquire) - before);
    }
    fewest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_take_the_round_trips_they_should() {
    let url = Cluster::shared().fresh_url();
    let (address, turns) = counting_relay(upstream(&url)).await;
    let engine = open(&through(&url, address)).await;
    let space = create(&engine, "t").await;
    let key = Key { space, partition: "p", row: "r" };
    let put = async |row: &str, expect| {
        write(&engine, space, row, expect, Act::Put(b"x")).await.expect("the condition holds");
    };
    let insert = fewest_turns(&turns, async |round| put(&format!("i{round}"), Expect::Absent).await).await;
    let upsert = fewest_turns(&turns, async |_| put("r", Expect::Any).await).await;
    let replace = fewest_turns(&turns, async |_| put("r", Expect::Present).await).await;
    let get = fewest_turns(&turns, async |_| assert!(engine.get(key, |row| row.is_some()).await == Ok(true))).await;
    let delete = fewest_turns(&turns, async |round| {
        let row = format!("i{round}");
        write(&engine, space, &row, Expect::Present, Act::Delete).await.expect("the row is there");
    })
    .await;
    let append = |old: Option<&[u8]>| Ok([old.unwrap_or_default(), b"+"].concat());
    let merge = fewest_turns(&turns, async |_| {
        write(&engine, space, "r", Expect::Present, Act::Edit(&append)).await.expect("the row is there");
    })
    .await;
    let transaction = fewest_turns(&turns, async |round| {
        let (insert, delete) = (format!("t{round}"), format!("t{}", round.wrapping_sub(1)));
        let op = |row, expect, act| Op { row, expect, act };
        let ops = [
            op(&insert, Expect::Absent, Act::Put(b"x")),
            op("r", Expect::Present, Act::Put(b"x")),
            op("u", Expect::Any, Act::Put(b"x")),
            op(&delete, if round == 0 { Expect::Any } else { Expect::Present }, Act::Delete),
        ];
        engine.apply(space, "p", &ops, NOW).await.expect("the conditions hold");
    })
    .await;
    let page = fewest_turns(&turns, async |_| {
        let budget = Budget { rows_max: 100, deadline: Instant::now() + Duration::from_secs(60) };
        engine.scan(space, &KeyRange::all(), budget, |_| Flow::Continue).await.expect("no fault");
    })
    .await;
    let now = fewest_turns(&turns, async |_| assert!(engine.now(NOW).await.is_ok())).await;
    assert_eq!(now, 0, "the database's time is known between two measurements");
    let counted = [insert, upsert, replace, get, delete, transaction, page, merge];
    assert_eq!(counted, [1, 1, 1, 1, 1, 1, 1, 2], "insert, upsert, replace, get, delete, transaction, page, merge");
}

/// A page of one statement is that statement. A page of several begins its transaction together with the first; the end
/// of the transaction is not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_waits_for_the_database_once() {
    let url = Cluster::shared().fresh_url();
    let (address, turns) = counting_relay(upstream(&url)).await;
    let engine = open(&through(&url, address)).await;
    let space = create(&engine, "t").await;
    for row in ["a", "b", "c", "d"] {
        let entity: &[u8] = EMPTY.as_bytes();
        write(&engine, space, row, Expect::Absent, Act::Put(entity)).await.expect("the row is new");
    }
    for (filter, rows) in [
        ("PartitionKey eq 'p'", 4),
        ("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'c' or RowKey eq 'x')", 2),
        ("PartitionKey eq 'p' and not (Missing eq 1)", 4),
    ] {
        let plan = Plan::new(Some(&Filter::parse(filter).expect("a filter")));
        let waits = fewest_turns(&turns, async |_| {
            let deadline = Instant::now() + Duration::from_secs(60);
            let limits = PageLimits { entities_max: 1000, deadline, steps_max: PageLimits::STEPS_MAX };
            let page = query(&engine, space, &plan, limits, |_| Flow::Continue).await.expect("no fault");
            assert_eq!(page.rows_returned, rows);
        });
        // The end of the transaction may be counted.
        assert!(waits.await <= if plan.residual.is_some() { 2 } else { 1 }, "{filter}");
    }
}

/// An entity without properties.
const EMPTY: EntityBody<'_> = EntityBody::from_trusted(&[]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_on_a_queue_take_one_round_trip() {
    let url = Cluster::shared().fresh_url();
    let (address, turns) = counting_relay(upstream(&url)).await;
    let engine = open(&through(&url, address)).await;
    let name = SpaceName { account: "account", kind: SpaceKind::Queue, name: "queue" };
    let queue = engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    let long = Duration::from_secs(600);
    let new = NewMessage { text: b"x", hidden_for: Duration::ZERO, lives_for: None };
    let put = fewest_turns(&turns, async |_| assert!(engine.put_message(queue, new, NOW).await.is_ok())).await;
    let peek = fewest_turns(&turns, async |_| {
        assert_eq!(engine.peek(queue, 32, NOW).await.expect("no fault").len(), 32);
    })
    .await;
    let mut handles = Vec::new();
    let claim = fewest_turns(&turns, async |_| {
        for message in engine.claim(queue, 1, long, NOW).await.expect("no fault") {
            handles.push(MessageHandle { id: message.id, receipt: message.receipt });
        }
    })
    .await;
    let empty = fewest_turns(&turns, async |_| {
        assert!(engine.claim(queue, 32, long, NOW).await.expect("no fault").is_empty());
    })
    .await;
    assert_eq!(handles.len(), 40);
    let update = fewest_turns(&turns, async |round| {
        let change = Change { text: Some(b"y"), hidden_for: long };
        let updated = engine.update_message(queue, handles[round], change, NOW).await.expect("the receipt holds");
        handles[round].receipt = updated.receipt;
    })
    .await;
    let delete = fewest_turns(&turns, async |round| {
        engine.delete_message(queue, handles[round], NOW).await.expect("the receipt holds");
    })
    .await;
    assert_eq!([put, peek, claim, empty, update, delete], [1; 6], "put, peek, claim, empty, update, delete");
}
