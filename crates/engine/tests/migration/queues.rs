//! Copies of queues: every message with all that belongs to it.

use super::failing::{Control as _, Failing};
use super::{block_on, compared, copied, records};
use larimar_engine::migration::{MigrationError, Part};
use larimar_engine::queue::{Message, NewMessage};
use larimar_engine::{Clock as _, MemoryEngine, Messages, SpaceId, SpaceKind, SpaceName, Spaces as _, SystemClock};
use std::sync::atomic::Ordering;
use std::time::Duration;

const fn name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "one", kind: SpaceKind::Queue, name }
}

/// A queue with visible, claimed, hidden and expired messages.
async fn fill(engine: &MemoryEngine, queue: &str, messages: usize) -> SpaceId {
    let queue = engine.create_space(name(queue), b"its metadata").await.expect("no fault").expect("a new queue");
    let now = SystemClock.now();
    for number in 0..messages {
        let hour = Duration::from_secs(3600);
        let lives_for = (number % 3 == 0).then_some(hour);
        let hidden_for = if number % 5 == 4 { hour / 2 } else { Duration::ZERO };
        let text = format!("message {number}");
        let new = NewMessage { text: text.as_bytes(), hidden_for, lives_for };
        engine.put_message(queue, new, now).await.expect("a message");
    }
    engine.claim(queue, messages / 4, Duration::from_secs(60), now).await.expect("a claim");
    queue
}

async fn put_expired(engine: &MemoryEngine, queue: SpaceId) {
    let new = NewMessage { text: b"gone", hidden_for: Duration::ZERO, lives_for: Some(Duration::from_secs(1)) };
    let long_ago = SystemClock.now().before(Duration::from_secs(86_400));
    engine.put_message(queue, new, long_ago).await.expect("a message");
}

async fn read(engine: &impl Messages, queue: SpaceId) -> Vec<Message> {
    engine.read_messages(queue, None, 100_000).await.expect("the queue is there")
}

#[test]
fn messages_keep_ids_times_counts_and_receipts_and_expired_ones_stay_behind() {
    block_on(async {
        let (from, to) = (MemoryEngine::new(), MemoryEngine::new());
        let full = fill(&from, "full", 300).await;
        let empty = fill(&from, "empty", 0).await;
        let expected = read(&from, full).await;
        put_expired(&from, full).await;
        put_expired(&from, empty).await;
        let reports = copied(&from, &to).await.expect("a good end");
        let shown: Vec<_> = reports.iter().map(|report| (report.part.to_string(), report.digest.items)).collect();
        assert_eq!(shown, [("queue one/empty".to_owned(), 0), ("queue one/full".to_owned(), 300)]);
        let copy = to.space(name("full")).await.expect("no fault").expect("a queue");
        assert_eq!(read(&to, copy.id).await, expected);
        assert_eq!(&*copy.meta, b"its metadata");
        assert_eq!(compared(&from, &to).await.expect("alike"), reports);
        assert_eq!(records(&to).await, 0);
    });
}

#[test]
fn a_message_that_differs_is_found() {
    block_on(async {
        let (from, to) = (MemoryEngine::new(), MemoryEngine::new());
        fill(&from, "queue", 10).await;
        copied(&from, &to).await.expect("a good end");
        let copy = to.space(name("queue")).await.expect("no fault").expect("a queue");
        let message = read(&to, copy.id).await.remove(3);
        let changes: [fn(&mut Message); 4] = [
            |message| message.text.push(b'!'),
            |message| message.dequeue_count += 1,
            |message| message.receipt.nonce ^= 1,
            |message| message.expires = message.inserted.after(Duration::from_secs(7200)),
        ];
        for change in changes {
            let mut other = message.clone();
            change(&mut other);
            to.restore_messages(copy.id, &[other], SystemClock.now()).await.expect("the queue is there");
            let found = compared(&from, &to).await.expect_err("a message differs");
            let MigrationError::Differs(found) = found else { panic!("{found}") };
            assert_eq!(
                found[0].part,
                Part::Space { kind: SpaceKind::Queue, account: "one".into(), name: "queue".into() }
            );
            to.restore_messages(copy.id, std::slice::from_ref(&message), SystemClock.now()).await.expect("a queue");
            compared(&from, &to).await.expect("alike again");
        }
    });
}

#[test]
fn a_queue_goes_on_where_the_last_run_was_interrupted() {
    block_on(async {
        let from = MemoryEngine::new();
        let queue = fill(&from, "queue", 500).await;
        let expected = read(&from, queue).await;
        for fails_at in 1.. {
            let to = Failing::after(fails_at);
            match copied(&from, &to).await {
                Ok(_) => {
                    assert!(fails_at > 8, "{fails_at}");
                    return;
                }
                Err(error) => assert!(error.to_string().contains("interrupted"), "{error}"),
            }
            if records(&to).await > 0 {
                copied(&from, &to).await.unwrap_or_else(|error| panic!("after failure {fails_at}: {error}"));
                let written = to.0.rows.load(Ordering::Relaxed);
                assert!((500..=628).contains(&written), "{written} after failure {fails_at}");
            }
            let copy = to.space(name("queue")).await.expect("no fault").expect("a queue");
            assert_eq!(read(&to, copy.id).await, expected, "after failure {fails_at}");
        }
    });
}

#[test]
fn a_queue_of_the_same_name_is_refused_before_anything_is_written() {
    block_on(async {
        let (from, to) = (MemoryEngine::new(), MemoryEngine::new());
        fill(&from, "apart", 3).await;
        fill(&from, "same", 3).await;
        fill(&to, "same", 0).await;
        let error = copied(&from, &to).await.expect_err("the queue is there");
        assert!(matches!(error, MigrationError::Exists(_)) && error.to_string().contains("queue one/same"), "{error}");
        assert!(to.space(name("apart")).await.expect("no fault").is_none());
        assert_eq!(records(&to).await, 0);
    });
}
