//! The snapshot of a backup: rows of one moment in bounded slices, and a lock that other servers see.

use crate::support::{NOW, create, open};
use larimar_engine::queue::{Messages as _, NewMessage, RowQueues};
use larimar_engine::{
    Act, BackupSnapshot as _, BackupSource as _, Expect, Fault, MemoryEngine, Op, OwnedRow, Position, RowRef,
    Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _,
};
use larimar_engine_postgres::{PostgresBackup, PostgresEngine};
use larimar_testkit::postgres::Cluster;
use std::time::{Duration, Instant};

/// All rows of a space, and the number of slices.
async fn all_rows(held: &PostgresBackup, kind: Option<SpaceKind>, space: SpaceId) -> (Vec<OwnedRow>, usize) {
    let (mut rows, mut next, mut slices) = (Vec::new(), Some(Position::new("", "")), 0);
    while let Some(start) = next {
        let (slice, after) = held.slice(kind, space, start).await.expect("rows");
        let bytes: usize = slice.iter().map(|row| row.body.len()).sum();
        assert!(slice.len() <= 1000 && bytes <= 10 << 20, "{} rows, {bytes} bytes", slice.len());
        rows.extend(slice);
        next = after;
        slices += 1;
    }
    (rows, slices)
}

async fn put_rows(engine: &PostgresEngine, space: SpaceId, partition: &str, rows: &[(String, Vec<u8>)]) {
    for rows in rows.chunks(100) {
        let mut ops = Vec::new();
        for (row, body) in rows {
            ops.push(Op { row, expect: Expect::Any, act: Act::Put(body) });
        }
        engine.apply(space, partition, &ops, NOW).await.expect("rows");
    }
}

#[tokio::test]
async fn rows_and_messages_are_those_of_the_moment_whatever_is_written_and_dropped() {
    let engine = open(&Cluster::shared().fresh_url()).await;
    let table = create(&engine, "table").await;
    let many: Vec<_> = (0..2000).map(|number| (format!("{number:05}"), vec![7; 10])).collect();
    put_rows(&engine, table, "\u{1F600}", &many).await;
    let large: Vec<_> = (0..9).map(|number| (format!("{number}"), vec![number; 300 << 10])).collect();
    put_rows(&engine, table, "", &large).await;
    let name = SpaceName { account: "account", kind: SpaceKind::Queue, name: "queue" };
    let queue = engine.create_space(name, b"meta").await.expect("no fault").expect("a new name");
    for number in 0..150 {
        let text = format!("message {number}");
        let hidden_for = Duration::from_secs(number % 7);
        let new = NewMessage { text: text.as_bytes(), hidden_for, lives_for: None };
        engine.put_message(queue, new, NOW).await.expect("a message");
    }
    let claimed = engine.claim(queue, 5, Duration::from_secs(600), NOW).await.expect("messages");
    assert_eq!(claimed.len(), 5);
    let messages = engine.read_messages(queue, None, 1000).await.expect("messages");

    let held = engine.hold().await.expect("a snapshot");
    let point = held.point().expect("a point");
    assert!(point.taken <= point.version && point.sequence == 0);
    // All of it changes.
    put_rows(&engine, table, "p", &[("new".to_owned(), vec![1])]).await;
    engine.clear_messages(queue, NOW).await.expect("no messages");
    assert!(engine.drop_space(name).await.expect("no fault"));
    create(&engine, "another").await;

    let spaces = held.spaces(None, 1).await.expect("spaces");
    let more = held.spaces(spaces.last(), 100).await.expect("spaces");
    let names: Vec<_> = spaces.iter().chain(&more).map(|space| (space.kind, space.name.as_str())).collect();
    assert_eq!(names, [(SpaceKind::Table, "table"), (SpaceKind::Queue, "queue")]);
    assert_eq!(&*more[0].space.meta, b"meta");
    assert!(held.spaces(more.last(), 100).await.expect("spaces").is_empty());

    let (rows, slices) = all_rows(&held, Some(SpaceKind::Table), table).await;
    assert_eq!((rows.len(), slices), (2009, 5));
    assert!(rows.iter().all(|row| row.version <= point.version));
    let found: Vec<_> = rows.into_iter().map(|row| (row.partition, row.row, row.body)).collect();
    let expected = large.into_iter().map(|(row, body)| (String::new(), row, body));
    let expected: Vec<_> =
        expected.chain(many.into_iter().map(|(row, body)| ("\u{1F600}".to_owned(), row, body))).collect();
    assert!(found == expected, "other rows than were stored");

    // An engine that stores messages in rows reads these as the same messages.
    let (rows, slices) = all_rows(&held, Some(SpaceKind::Queue), queue).await;
    assert_eq!((rows.len(), slices), (300, 3));
    assert!(rows.is_sorted_by(|a, b| a.row < b.row));
    let memory = MemoryEngine::default();
    let copy = memory.create_space(name, b"").await.expect("no fault").expect("a new name");
    let rows: Vec<RowRef<'_>> = rows.iter().map(OwnedRow::as_ref).collect();
    memory.restore(copy, &rows).await.expect("rows");
    assert_eq!(RowQueues::default().read(&memory, copy, None, 1000).await.expect("messages"), messages);
}

#[tokio::test]
async fn one_backup_at_a_time_is_seen_by_all_servers_until_its_session_ends() {
    let url = Cluster::shared().fresh_url();
    let (one, two, other) = (open(&url).await, open(&url).await, open(&Cluster::shared().fresh_url()).await);
    assert!(!one.is_backed_up().await.expect("an answer"));
    let held = one.hold().await.expect("a snapshot");
    assert!(one.is_backed_up().await.expect("an answer") && two.is_backed_up().await.expect("an answer"));
    assert!(!other.is_backed_up().await.expect("an answer"), "other tables in the same database");
    let refused = two.hold().await.err();
    assert_eq!(refused, Some(Fault::Unavailable("another backup of this database is running".to_owned())));
    assert!(other.hold().await.is_ok() && !held.is_gone());
    drop(held);
    let patience = Instant::now() + Duration::from_secs(30);
    while two.is_backed_up().await.expect("an answer") {
        assert!(Instant::now() < patience, "the session has not ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(two.hold().await.is_ok());
}
