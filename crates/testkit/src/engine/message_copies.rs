//! Promises about copies of messages: read as they are stored, and stored as they were read.

use super::messages::{Desk, name};
use super::rows::NOW;
use larimar_engine::queue::{Message, MessageError, MessageHandle, NewMessage};
use larimar_engine::{Act, Engine, Expect, Op, ReadError, SpaceId, SpaceKind, SpaceName, WriteError};
use larimar_model::queue::Receipt;
use larimar_model::{Guid, Timestamp};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);

/// Reads all messages of a queue in pages.
async fn read_all(engine: &impl Engine, queue: SpaceId, page: usize) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    loop {
        let after = all.last().map(|message| (message.visible_at, message.id));
        let messages = engine.read_messages(queue, after, page).await.expect("the queue is there");
        assert!(messages.len() <= page);
        if messages.is_empty() {
            return all;
        }
        all.extend(messages);
    }
}

async fn put(engine: &impl Engine, queue: SpaceId, text: &str, hidden_for: Duration, lives_for: Option<Duration>) {
    let new = NewMessage { text: text.as_bytes(), hidden_for, lives_for };
    engine.put_message(queue, new, NOW).await.expect("the queue is there");
}

/// A copy has every message with all that belongs to it, and consumers go on with the receipts that they have.
pub async fn restored_messages_are_as_they_were(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let queue = desk.queue;
    for number in 0..5 {
        put(engine, queue, &format!("visible {number}"), Duration::ZERO, None).await;
    }
    let claimed = engine.claim(queue, 2, LONG, NOW).await.expect("the queue is there");
    put(engine, queue, "hidden", LONG, Some(2 * LONG)).await;
    let stored = read_all(engine, queue, 32).await;
    assert_eq!(stored.len(), 6);
    assert!(stored.is_sorted_by_key(|message| (message.visible_at, message.id)));
    assert_eq!(read_all(engine, queue, 1).await, stored);
    assert_eq!(read_all(engine, queue, 4).await, stored);

    let copy = engine.create_space(name("copy"), b"").await.expect("no fault").expect("the name is free");
    for messages in [&stored[..4], &stored[4..], &stored[..2], &[]] {
        engine.restore_messages(copy, messages, NOW).await.expect("the queue is there");
    }
    assert_eq!(read_all(engine, copy, 32).await, stored);
    assert_eq!(read_all(engine, queue, 32).await, stored, "the source is as it was");
    for message in &claimed {
        let handle = MessageHandle { id: message.id, receipt: message.receipt };
        assert_eq!(engine.delete_message(copy, handle, NOW).await, Ok(()));
    }
    let rest = engine.claim(copy, 32, LONG, NOW).await.expect("the queue is there");
    assert_eq!(rest.len(), 3, "the hidden one is hidden in the copy");
    assert!(rest.iter().all(|message| message.dequeue_count == 1));

    assert!(engine.drop_space(name("copy")).await.expect("no fault"));
    assert_eq!(engine.read_messages(copy, None, 1).await, Err(ReadError::SpaceGone));
    assert_eq!(engine.restore_messages(copy, &stored, NOW).await, Err(WriteError::SpaceGone));
}

/// Engines choose the nonces of receipts in their own ways; a copy takes any, and its clock does not follow them.
pub async fn restored_receipts_of_any_nonce_hold(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let now = engine.now(NOW).await.expect("no fault").latest;
    let nonces = [0, 1, now.ticks(), now.ticks() + 1, i64::MAX.cast_unsigned(), u64::MAX];
    let messages = nonces.map(|nonce| Message {
        id: Guid(u128::from(nonce).to_be_bytes()),
        inserted: now,
        expires: Timestamp::MAX,
        dequeue_count: 7,
        receipt: Receipt { visible_at: now.after(LONG), nonce },
        visible_at: now.after(LONG),
        text: nonce.to_be_bytes().to_vec(),
    });
    engine.restore_messages(desk.queue, &messages, NOW).await.expect("the queue is there");
    assert_eq!(read_all(engine, desk.queue, 2).await, messages);
    for message in &messages {
        let wrong = Receipt { nonce: message.receipt.nonce ^ 2, ..message.receipt };
        let handle = MessageHandle { id: message.id, receipt: wrong };
        assert_eq!(engine.delete_message(desk.queue, handle, NOW).await, Err(MessageError::ReceiptMismatch));
        let handle = MessageHandle { id: message.id, receipt: message.receipt };
        assert_eq!(engine.delete_message(desk.queue, handle, NOW).await, Ok(()));
    }
    let table = SpaceName { kind: SpaceKind::Table, ..name("table") };
    let table = engine.create_space(table, b"").await.expect("no fault").expect("the name is free");
    let op = Op { row: "r", expect: Expect::Absent, act: Act::Put(b"") };
    let versions = engine.apply(table, "p", &[op], NOW).await.expect("a write");
    assert!(versions[0] < now.after(LONG), "{versions:?}");
}
