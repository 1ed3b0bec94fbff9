//! Rows that another session has locked: writes of other rows are not delayed, and writes of the locked rows succeed
//! once they are unlocked.

use crate::support::{NOW, create, write};
use larimar_engine::queue::{MessageHandle, Messages as _, NewMessage};
use larimar_engine::{Act, Expect, Op, Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _};
use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_testkit::postgres::Cluster;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// A limit for a test that hangs; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(600);

/// An engine with the default number of connections that waits long for locks.
async fn open(url: &str) -> Arc<PostgresEngine> {
    let settings = Settings { timeout: LONG, ..Settings::new(url) };
    Arc::new(PostgresEngine::open(&settings).await.expect("the database is there"))
}

async fn session(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// Waits until `expected` sessions wait for a lock.
async fn sessions_wait(client: &Client, expected: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let rows = client.query("SELECT DISTINCT pid FROM pg_locks WHERE NOT granted", &[]).await.expect("an answer");
        if rows.len() >= expected {
            return;
        }
        assert!(Instant::now() < until, "{} sessions wait for a lock", rows.len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn put(engine: &PostgresEngine, space: SpaceId, row: &str) {
    write(engine, space, row, Expect::Any, Act::Put(b"new")).await.unwrap_or_else(|error| panic!("{row}: {error}"));
}

/// A table whose rows `held0` and `held1` another session has locked.
async fn held_rows(cluster: &Cluster) -> (Arc<PostgresEngine>, SpaceId, Client) {
    let url = cluster.fresh_url();
    let engine = open(&url).await;
    let space = create(&engine, "t").await;
    for row in ["held0", "held1"] {
        write(&engine, space, row, Expect::Absent, Act::Put(b"old")).await.expect("no row is there");
    }
    let other = session(&url).await;
    other.batch_execute("BEGIN; SELECT 1 FROM larimar_entity FOR UPDATE").await.expect("the rows are held");
    (engine, space, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_locked_rows_do_not_delay_writes_of_other_rows() {
    let cluster = Cluster::start();
    let (engine, space, other) = held_rows(&cluster).await;
    let mut held = Vec::new();
    for row in ["held0", "held1"] {
        let engine = Arc::clone(&engine);
        held.push(tokio::spawn(async move { put(&engine, space, row).await }));
        // One after the other, so that they do not share a statement.
        sessions_wait(&other, held.len()).await;
    }
    // Fewer writers than a group should have, and all of them wait for their answers.
    let writer = async |writer: usize| {
        for number in 0..63 {
            put(&engine, space, &format!("{writer}-{number}")).await;
        }
    };
    let writers = futures_util::future::join_all((0..8).map(writer));
    tokio::time::timeout(PATIENCE, writers).await.expect("504 writes of other rows go on");
    assert!(held.iter().all(|write| !write.is_finished()), "the rows are still held");
    other.batch_execute("ROLLBACK").await.expect("the rows are let go");
    for write in held {
        tokio::time::timeout(PATIENCE, write).await.expect("it goes on").expect("it succeeds");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_does_not_stop_writes_that_share_its_statement() {
    let cluster = Cluster::start();
    let (engine, space, other) = held_rows(&cluster).await;
    let rows = (0..300).map(|number| match number {
        7 => "held0".to_owned(),
        150 => "held1".to_owned(),
        _ => format!("free{number}"),
    });
    let writes: Vec<_> = rows
        .map(|row| {
            let engine = Arc::clone(&engine);
            (row.clone(), tokio::spawn(async move { put(&engine, space, &row).await }))
        })
        .collect();
    let mut held = Vec::new();
    for (row, write) in writes {
        if row.starts_with("held") {
            held.push(write);
        } else {
            tokio::time::timeout(PATIENCE, write).await.expect("it goes on").expect("it succeeds");
        }
    }
    assert!(held.iter().all(|write| !write.is_finished()), "the rows are still held");
    other.batch_execute("ROLLBACK").await.expect("the rows are let go");
    for write in held {
        tokio::time::timeout(PATIENCE, write).await.expect("it goes on").expect("it succeeds");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_on_a_locked_row_leave_connections_to_others() {
    let cluster = Cluster::start();
    let (engine, space, other) = held_rows(&cluster).await;
    // More than there are connections for transactions.
    let held: Vec<_> = (0..20)
        .map(|number: usize| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let (held, free) = (format!("held{}", number % 2), format!("beside{number}"));
                let put = |row| Op { row, expect: Expect::Any, act: Act::Put(b"new") };
                engine.apply(space, "p", &[put(&held), put(&free)], NOW).await
            })
        })
        .collect();
    sessions_wait(&other, 1).await;
    let transaction = async |number: usize| {
        for step in 0..25 {
            let rows = [0, 1].map(|row| format!("free{number}-{step}-{row}"));
            let ops = [0, 1].map(|row: usize| Op { row: &rows[row], expect: Expect::Absent, act: Act::Put(b"new") });
            engine.apply(space, "p", &ops, NOW).await.expect("nobody holds these rows");
        }
    };
    let others = futures_util::future::join_all((0..4).map(transaction));
    tokio::time::timeout(PATIENCE, others).await.expect("100 transactions of other rows go on");
    assert!(held.iter().all(|write| !write.is_finished()), "the rows are still held");
    other.batch_execute("ROLLBACK").await.expect("the rows are let go");
    for write in held {
        let outcome = tokio::time::timeout(PATIENCE, write).await.expect("it goes on").expect("no panic");
        outcome.expect("nobody holds the rows any more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_messages_do_not_delay_puts_and_deletes_of_others() {
    let cluster = Cluster::start();
    let url = cluster.fresh_url();
    let engine = open(&url).await;
    let name = SpaceName { account: "account", kind: SpaceKind::Queue, name: "queue" };
    let queue = engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    let put = async || {
        let new = NewMessage { text: b"x", hidden_for: Duration::ZERO, lives_for: None };
        engine.put_message(queue, new, NOW).await.expect("the queue is there");
    };
    for _ in 0..12 {
        put().await;
    }
    let handles: Vec<MessageHandle> = (engine.claim(queue, 12, LONG, NOW).await.expect("the queue is there"))
        .iter()
        .map(|message| MessageHandle { id: message.id, receipt: message.receipt })
        .collect();
    assert_eq!(handles.len(), 12);
    let other = session(&url).await;
    other.batch_execute("BEGIN; SELECT 1 FROM larimar_message FOR UPDATE").await.expect("the messages are held");
    let mut held = Vec::new();
    for handle in &handles {
        let (engine, handle) = (Arc::clone(&engine), *handle);
        held.push(tokio::spawn(async move { while engine.delete_message(queue, handle, NOW).await.is_err() {} }));
        // One after the other, so that they do not share a statement.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let work = async {
        for _ in 0..100 {
            put().await;
            let claimed = engine.claim(queue, 1, LONG, NOW).await.expect("the queue is there");
            let handle = MessageHandle { id: claimed[0].id, receipt: claimed[0].receipt };
            engine.delete_message(queue, handle, NOW).await.expect("nobody holds this one");
        }
    };
    tokio::time::timeout(PATIENCE, work).await.expect("100 messages are put, claimed and deleted");
    other.batch_execute("ROLLBACK").await.expect("the messages are let go");
    for delete in held {
        tokio::time::timeout(PATIENCE, delete).await.expect("it goes on").expect("no panic");
    }
    assert_eq!(engine.count_messages(queue, NOW).await, Ok(0));
}
