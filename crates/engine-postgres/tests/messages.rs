//! Queues over PostgreSQL, besides the conformance suite: several servers, lost connections, older tables, and removal
//! in the background.

use crate::support::{NOW, create, open, read, through, upstream, write};
use larimar_engine::queue::{Change, MessageError, MessageHandle, Messages, NewMessage, Placed};
use larimar_engine::{Act, Expect, Fault, SpaceId, SpaceKind, SpaceName, Spaces as _, WriteError};
use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_testkit::postgres::Cluster;
use larimar_testkit::proxy::{Direction, Mode, Proxy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(600);

fn name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "account", kind: SpaceKind::Queue, name }
}

async fn create_queue(engine: &PostgresEngine, queue: &str) -> SpaceId {
    engine.create_space(name(queue), b"").await.expect("no fault").expect("the name is free")
}

async fn put(engine: &PostgresEngine, queue: SpaceId, text: &str) -> Result<Placed, WriteError> {
    put_for(engine, queue, text, None).await
}

async fn put_for(
    engine: &PostgresEngine,
    queue: SpaceId,
    text: &str,
    lives_for: Option<Duration>,
) -> Result<Placed, WriteError> {
    let new = NewMessage { text: text.as_bytes(), hidden_for: Duration::ZERO, lives_for };
    engine.put_message(queue, new, NOW).await
}

async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// Waits until the table of messages has the expected number of rows.
async fn rows_become(client: &tokio_postgres::Client, expected: i64) {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let row = client.query_one("SELECT count(*) FROM larimar_message", &[]).await.expect("an answer");
        let count: i64 = row.get(0);
        if count == expected {
            return;
        }
        assert!(Instant::now() < patience, "{count} rows, expected {expected}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the sessions of an application have ended.
async fn ends(client: &tokio_postgres::Client, application: &str) {
    let patience = Instant::now() + Duration::from_secs(60);
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    while client.query_one(sql, &[&application]).await.expect("an answer").get::<_, i64>(0) > 0 {
        assert!(Instant::now() < patience, "sessions of {application} are left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_an_older_release_get_queues_and_keep_what_they_have() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    let space = create(&engine, "t").await;
    write(&engine, space, "r", Expect::Absent, Act::Put(b"kept")).await.expect("no row is there");
    engine.close().await;
    // As they were before queues were added.
    let client = session(&url).await;
    client
        .batch_execute("DROP TABLE larimar_message; UPDATE larimar_format SET format = 1 WHERE id = 1")
        .await
        .expect("the tables are there");
    // Servers that start together migrate one after the other.
    let engines = futures_util::future::join_all((0..4).map(|_| open(&url))).await;
    let row = client.query_one("SELECT format FROM larimar_format", &[]).await.expect("an answer");
    assert_eq!(row.get::<_, i64>(0), 2);
    assert_eq!(read(&engines[0], space, "r").await.map(|(_, body)| body), Some(b"kept".to_vec()));
    let queue = create_queue(&engines[1], "queue").await;
    put(&engines[2], queue, "x").await.expect("the queue is there");
    assert_eq!(engines[3].claim(queue, 32, LONG, NOW).await.expect("the queue is there").len(), 1);
    client.batch_execute("UPDATE larimar_format SET format = 3").await.expect("the tables are there");
    let refused = PostgresEngine::open(&larimar_engine_postgres::Settings::new(&url)).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("their format is 3")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_on_several_servers_get_every_message_once() {
    let url = Cluster::shared().fresh_url();
    let servers = futures_util::future::join_all((0..3).map(|_| open(&url))).await;
    let queue = create_queue(&servers[0], "queue").await;
    let taken = AtomicUsize::new(0);
    let produce = async |server: usize| {
        for number in 0..100 {
            put(&servers[server], queue, &format!("{server}-{number}")).await.expect("the queue is there");
        }
    };
    let consume = async |consumer: usize| {
        let server = &servers[consumer % 3];
        let patience = Instant::now() + Duration::from_secs(120);
        let mut got = Vec::new();
        while taken.load(Ordering::SeqCst) < 300 {
            assert!(Instant::now() < patience, "a message is lost");
            let claimed = server.claim(queue, 1 + consumer % 4, LONG, NOW).await.expect("the queue is there");
            taken.fetch_add(claimed.len(), Ordering::SeqCst);
            for message in claimed {
                let handle = MessageHandle { id: message.id, receipt: message.receipt };
                // Deleted on any of the servers.
                servers[(consumer + 1) % 3].delete_message(queue, handle, NOW).await.expect("the receipt holds");
                got.push(message.text);
            }
        }
        got
    };
    let producers = futures_util::future::join_all((0..3).map(produce));
    let consumers = futures_util::future::join_all((0..12).map(consume));
    let (_, got) = tokio::join!(producers, consumers);
    let mut times = BTreeMap::<Vec<u8>, usize>::new();
    for text in got.into_iter().flatten() {
        *times.entry(text).or_default() += 1;
    }
    assert_eq!(times.len(), 300);
    assert!(times.values().all(|times| *times == 1));
}

/// An engine behind a proxy and one without, over the same queue.
struct Pair {
    proxy: Proxy,
    cut: PostgresEngine,
    sound: PostgresEngine,
    queue: SpaceId,
}

impl Pair {
    async fn open() -> Self {
        let url = Cluster::shared().fresh_url();
        let proxy = Proxy::start(upstream(&url));
        let sound = open(&url).await;
        let queue = create_queue(&sound, "queue").await;
        let cut = open(&through(&url, proxy.address())).await;
        Self { proxy, cut, sound, queue }
    }

    /// Makes a call while connections are cut; connections opened a little later work again.
    async fn while_cut<T>(&self, step: u64, call: impl Future<Output = T>) -> T {
        let direction = if step.is_multiple_of(2) { Direction::ToServer } else { Direction::ToClient };
        self.proxy.set(Mode::CutAfter { bytes: step * 11, direction });
        let end = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            self.proxy.set(Mode::Pass);
        };
        let answer = tokio::join!(call, end).0;
        let until = Instant::now() + Duration::from_secs(20);
        while self.cut.peek(self.queue, 1, NOW).await.is_err() {
            assert!(Instant::now() < until, "the engine does not come back");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        answer
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_of_a_put_adds_the_message_once_or_not_at_all() {
    let pair = Pair::open().await;
    let (mut acknowledged, mut open) = (BTreeSet::new(), BTreeSet::new());
    for step in 0..80 {
        let text = format!("{step}");
        match pair.while_cut(step, put(&pair.cut, pair.queue, &text)).await {
            Ok(_) => drop(acknowledged.insert(text)),
            Err(WriteError::Fault(Fault::Ambiguous(_))) => drop(open.insert(text)),
            Err(WriteError::Fault(Fault::Unavailable(_))) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(
        pair.proxy.cuts() > 0 && !acknowledged.is_empty(),
        "{} cuts, {} acknowledged",
        pair.proxy.cuts(),
        acknowledged.len()
    );
    let mut found = BTreeSet::new();
    loop {
        let claimed = pair.sound.claim(pair.queue, 32, LONG, NOW).await.expect("the queue is there");
        if claimed.is_empty() {
            break;
        }
        for message in claimed {
            assert!(found.insert(String::from_utf8(message.text).expect("text")), "a message was added twice");
        }
    }
    assert!(found.is_superset(&acknowledged), "acknowledged and lost: {:?}", acknowledged.difference(&found));
    let possible: BTreeSet<String> = acknowledged.union(&open).cloned().collect();
    assert!(possible.is_superset(&found), "refused, yet there: {:?}", found.difference(&possible));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_of_a_change_or_a_delete_gives_no_false_answer() {
    let pair = Pair::open().await;
    for step in 0..50 {
        put(&pair.sound, pair.queue, "old").await.expect("the queue is there");
        let message = pair.sound.claim(pair.queue, 1, LONG, NOW).await.expect("the queue is there").remove(0);
        let handle = MessageHandle { id: message.id, receipt: message.receipt };
        let change = Change { text: Some(b"new"), hidden_for: LONG };
        let changed = pair.while_cut(step, pair.cut.update_message(pair.queue, handle, change, NOW)).await;
        let handle = match changed {
            Ok(updated) => {
                let stale = pair.sound.delete_message(pair.queue, handle, NOW).await;
                assert_eq!(stale, Err(MessageError::ReceiptMismatch), "step {step}: acknowledged and not done");
                MessageHandle { receipt: updated.receipt, ..handle }
            }
            Err(MessageError::Fault(Fault::Unavailable(_))) => handle,
            Err(MessageError::Fault(Fault::Ambiguous(_))) => {
                // In both cases the message is deleted.
                pair.sound.clear_messages(pair.queue, NOW).await.expect("the queue is there");
                continue;
            }
            Err(other) => panic!("step {step}: {other}"),
        };
        let deleted = pair.while_cut(step, pair.cut.delete_message(pair.queue, handle, NOW)).await;
        let again = pair.sound.delete_message(pair.queue, handle, NOW).await;
        match deleted {
            Ok(()) => assert_eq!(again, Err(MessageError::NotFound), "step {step}: acknowledged and not done"),
            Err(MessageError::Fault(Fault::Unavailable(_))) => {
                assert_eq!(again, Ok(()), "step {step}: refused, yet done")
            }
            Err(MessageError::Fault(Fault::Ambiguous(_))) => {}
            Err(other) => panic!("step {step}: {other}"),
        }
    }
    assert!(pair.proxy.cuts() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_expired_or_whose_queue_is_gone_are_removed_in_the_background() {
    let url = Cluster::shared().fresh_url();
    let engine = open(&url).await;
    let (queue, doomed) = (create_queue(&engine, "queue").await, create_queue(&engine, "doomed").await);
    let ends = [Some(Duration::from_secs(1)), None];
    for number in 0..1500 {
        put_for(&engine, doomed, "x", ends[number % 2]).await.expect("the queue is there");
    }
    for number in 0..10 {
        put_for(&engine, queue, "x", ends[number % 2]).await.expect("the queue is there");
    }
    assert_eq!(engine.drop_space(name("doomed")).await, Ok(true));
    let client = session(&url).await;
    rows_become(&client, 5).await;
    assert_eq!(engine.claim(queue, 32, LONG, NOW).await.expect("the queue is there").len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_does_not_pass_over_messages_that_are_gone_while_a_snapshot_is_held() {
    let url = Cluster::shared().fresh_url();
    let (_, schema) = url.rsplit_once("%3D").expect("a schema of its own");
    let writer = open(&format!("{url}&application_name={schema}")).await;
    let queue = create_queue(&writer, "queue").await;
    let holder = session(&url).await;
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM larimar_message";
    holder.batch_execute(hold).await.expect("a snapshot");
    for _ in 0..40 {
        let puts = futures_util::future::join_all((0..100).map(|_| put(&writer, queue, "x")));
        assert!(puts.await.iter().all(Result::is_ok));
        loop {
            let claimed = writer.claim(queue, 32, LONG, NOW).await.expect("the queue is there");
            if claimed.is_empty() {
                break;
            }
            let deletes = claimed.iter().map(|message| {
                let handle = MessageHandle { id: message.id, receipt: message.receipt };
                writer.delete_message(queue, handle, NOW)
            });
            assert!(futures_util::future::join_all(deletes).await.iter().all(Result::is_ok));
        }
    }
    // A session reports its statistics when it is idle for ten seconds, or ends. Those of the writer end first.
    writer.close().await;
    let counter = session(&url).await;
    ends(&counter, schema).await;
    let engine = open(&url).await;
    let pages = async || {
        // The session of the claims reports its statistics with the first statement after a second.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert!(engine.claim(queue, 32, LONG, NOW).await.expect("the queue is there").is_empty());
        let sql = "SELECT idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes \
                   WHERE indexrelid = 'larimar_message_order'::regclass";
        counter.query_one(sql, &[]).await.expect("an answer").get::<_, i64>(0)
    };
    // Messages of the last moments are looked at again.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = pages().await;
    for _ in 0..200 {
        assert!(engine.claim(queue, 32, LONG, NOW).await.expect("the queue is there").is_empty());
    }
    let read = pages().await - before;
    // 4,000 messages leave 8,000 entries on about 50 pages; all of them are passed over once in five seconds.
    assert!(read < 200 * 20, "200 claims read {read} pages");
    holder.batch_execute("ROLLBACK").await.expect("the snapshot is let go");
    put(&engine, queue, "last").await.expect("the queue is there");
    assert_eq!(engine.claim(queue, 32, LONG, NOW).await.expect("the queue is there").len(), 1);
}

/// Workers that always have messages to write pass their connections on to requests of other kinds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_without_end_leave_connections_to_other_requests() {
    let url = Cluster::shared().fresh_url();
    let settings = Settings { connections_max: 8, timeout: Duration::from_secs(60), ..Settings::new(&url) };
    let engine = Arc::new(PostgresEngine::open(&settings).await.expect("the database is there"));
    let (queue, other) = (create_queue(&engine, "queue").await, create_queue(&engine, "other").await);
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1500 {
        let (engine, done) = (Arc::clone(&engine), Arc::clone(&done));
        tasks.spawn(async move {
            while put(&engine, queue, "x").await.is_ok() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while done.load(Ordering::Relaxed) < 3000 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..3 {
        assert_eq!(engine.claim(other, 1, LONG, NOW).await.map(|messages| messages.len()), Ok(0));
    }
    tasks.shutdown().await;
}
