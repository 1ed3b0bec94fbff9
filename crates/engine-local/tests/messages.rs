//! Messages outlive the process, and a disk that fails loses none that was acknowledged.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::support::{FailingStore, eventually, settings};
use larimar_engine::queue::{Change, Message, MessageError, MessageHandle, Messages, NewMessage, Placed};
use larimar_engine::{Engine, SpaceId, SpaceKind, SpaceName, Spaces as _, WriteError};
use larimar_engine_local::LocalEngine;
use larimar_model::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_ticks(638_500_000_000_000_000);
const LONG: Duration = Duration::from_secs(600);
const QUEUE: SpaceName<'_> = SpaceName { account: "account", kind: SpaceKind::Queue, name: "queue" };

async fn put(engine: &LocalEngine, queue: SpaceId, text: &str) -> Result<Placed, WriteError> {
    let new = NewMessage { text: text.as_bytes(), hidden_for: Duration::ZERO, lives_for: None };
    engine.put_message(queue, new, NOW).await
}

async fn claim(engine: &LocalEngine, queue: SpaceId, max: usize, now: Timestamp) -> Vec<Message> {
    engine.claim(queue, max, LONG, now).await.unwrap()
}

fn handle(message: &Message) -> MessageHandle {
    MessageHandle { id: message.id, receipt: message.receipt }
}

#[tokio::test]
async fn messages_receipts_and_counts_are_the_same_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let engine = LocalEngine::open(&settings).unwrap();
    let queue = engine.create_space(QUEUE, b"").await.unwrap().unwrap();
    let placed = put(&engine, queue, "a").await.unwrap();
    for text in ["b", "c", "d", "e"] {
        put(&engine, queue, text).await.unwrap();
    }
    let claimed = claim(&engine, queue, 3, NOW).await;
    let change = Change { text: Some(b"B"), hidden_for: LONG * 2 };
    let updated = engine.update_message(queue, handle(&claimed[1]), change, NOW).await.unwrap();
    engine.delete_message(queue, handle(&claimed[2]), NOW).await.unwrap();
    drop(engine);

    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(engine.space(QUEUE).await.unwrap().unwrap().id, queue);
    assert_eq!(engine.count_messages(queue, NOW).await, Ok(4));
    let visible = engine.peek(queue, 32, NOW).await.unwrap();
    assert_eq!(visible.iter().map(|message| message.text.as_slice()).collect::<Vec<_>>(), [b"d", b"e"]);
    // Receipts hold or do not, as before.
    let old = MessageHandle { id: placed.id, receipt: placed.receipt };
    assert_eq!(engine.delete_message(queue, old, NOW).await, Err(MessageError::ReceiptMismatch));
    assert_eq!(engine.delete_message(queue, handle(&claimed[2]), NOW).await, Err(MessageError::NotFound));
    assert_eq!(engine.delete_message(queue, handle(&claimed[0]), NOW).await, Ok(()));
    let again = claim(&engine, queue, 32, NOW.after(LONG * 2)).await;
    let again: Vec<_> = again.iter().map(|message| (message.text.as_slice(), message.dequeue_count)).collect();
    assert_eq!(again, [(b"d".as_slice(), 1), (b"e", 1), (b"B", 2)]);
    let gone = MessageHandle { receipt: updated.receipt, ..handle(&claimed[1]) };
    assert_eq!(engine.delete_message(queue, gone, NOW).await, Err(MessageError::ReceiptMismatch));
    assert_eq!(engine.count_messages(queue, NOW).await, Ok(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_loses_no_acknowledged_message_and_delivers_none_twice() {
    let store = FailingStore::default();
    let engine = LocalEngine::on_store(Box::new(store.clone())).unwrap();
    let queue = engine.create_space(QUEUE, b"").await.unwrap().unwrap();
    let (mut kept, mut deleted) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..5 {
        for number in 0..20 {
            kept.insert(put(&engine, queue, &format!("{round}-{number}")).await.unwrap().id);
        }
        store.fail();
        let (claimed, added) = tokio::join!(engine.claim(queue, 5, LONG, NOW), put(&engine, queue, "lost"));
        assert!(matches!(claimed, Err(WriteError::Fault(_))), "{claimed:?}");
        assert!(matches!(added, Err(WriteError::Fault(_))), "{added:?}");
        assert_eq!(engine.peek(queue, 32, NOW).await.unwrap().len(), 20, "reads go on");
        store.heal();
        eventually("the engine takes writes again", || engine.ready().is_ok()).await;
        // What the failed claim meant to take is free, and each message comes once.
        for _ in 0..5 {
            for message in claim(&engine, queue, 4, NOW).await {
                assert_eq!(message.dequeue_count, 1);
                assert!(deleted.insert(message.id), "a message came twice");
                engine.delete_message(queue, handle(&message), NOW).await.unwrap();
            }
        }
        assert_eq!(deleted, kept);
        assert_eq!(engine.count_messages(queue, NOW).await, Ok(0), "round {round}");
    }
}
