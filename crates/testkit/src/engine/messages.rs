//! Promises about messages: who gets them, when, how often, and what their receipts are good for.
//!
//! An engine in one process uses the time it is given, so the tests turn the clock; for a shared one time passes.

use super::rows::{NOW, parallel};
use crate::ManualClock;
use larimar_engine::queue::{Change, Message, MessageError, MessageHandle, NewMessage, Placed, Updated};
use larimar_engine::{Clock as _, Engine, Moment, ReadError, SpaceId, SpaceKind, SpaceName, WriteError};
use larimar_model::queue::Receipt;
use larimar_model::{Guid, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A queue, and the time that passes for it.
pub(super) struct Desk<'a, E> {
    pub(super) engine: &'a E,
    pub(super) queue: SpaceId,
    clock: ManualClock,
    /// Whether the engine uses the time it is given; otherwise time passes by itself.
    uses_given_time: bool,
}

pub(super) const fn name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "account", kind: SpaceKind::Queue, name }
}

impl<'a, E: Engine> Desk<'a, E> {
    pub(super) async fn open(engine: &'a E, queue: &str) -> Self {
        let queue = engine.create_space(name(queue), b"").await.expect("no fault").expect("the name is free");
        let uses_given_time = engine.now(NOW).await.expect("no fault") == Moment::exactly(NOW);
        Self { engine, queue, clock: ManualClock::new(NOW), uses_given_time }
    }

    /// Time passes.
    async fn wait(&self, span: Duration) {
        self.clock.advance(span);
        if !self.uses_given_time {
            tokio::time::sleep(span).await;
        }
    }

    async fn put(&self, text: &str) -> Placed {
        self.put_for(text, Duration::ZERO, None).await
    }

    async fn put_for(&self, text: &str, hidden_for: Duration, lives_for: Option<Duration>) -> Placed {
        let new = NewMessage { text: text.as_bytes(), hidden_for, lives_for };
        self.engine.put_message(self.queue, new, self.clock.now()).await.expect("the queue is there")
    }

    async fn claim(&self, max: usize, hidden_for: Duration) -> Vec<Message> {
        self.engine.claim(self.queue, max, hidden_for, self.clock.now()).await.expect("the queue is there")
    }

    async fn claim_one(&self) -> Message {
        let mut claimed = self.claim(1, LONG).await;
        assert_eq!(claimed.len(), 1, "a message is visible");
        claimed.remove(0)
    }

    async fn peek(&self, max: usize) -> Vec<Message> {
        self.engine.peek(self.queue, max, self.clock.now()).await.expect("the queue is there")
    }

    async fn update(&self, handle: MessageHandle, text: Option<&str>, span: Duration) -> Result<Updated, MessageError> {
        let change = Change { text: text.map(str::as_bytes), hidden_for: span };
        self.engine.update_message(self.queue, handle, change, self.clock.now()).await
    }

    async fn delete(&self, handle: MessageHandle) -> Result<(), MessageError> {
        self.engine.delete_message(self.queue, handle, self.clock.now()).await
    }

    async fn count(&self) -> u64 {
        self.engine.count_messages(self.queue, self.clock.now()).await.expect("the queue is there")
    }

    /// Counts until it is this many: a count may be a moment old.
    async fn count_becomes(&self, expected: u64) {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let count = self.count().await;
            if count == expected {
                return;
            }
            assert!(Instant::now() < patience, "counted {count}, expected {expected}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a message to be visible; time passes meanwhile.
    async fn claim_when_visible(&self) -> Message {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(message) = self.claim(1, LONG).await.pop() {
                return message;
            }
            assert!(Instant::now() < patience, "waited in vain for a message");
            self.wait(Duration::from_millis(20)).await;
        }
    }
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| std::str::from_utf8(&message.text).expect("the tests put text")).collect()
}

fn placed(placed: &Placed) -> MessageHandle {
    MessageHandle { id: placed.id, receipt: placed.receipt }
}

fn delivered(message: &Message) -> MessageHandle {
    MessageHandle { id: message.id, receipt: message.receipt }
}

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_nanos(100);

/// What is put is what is claimed, and both tell the same times.
pub async fn a_message_is_claimed_as_it_was_put(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    assert_eq!(desk.claim(32, LONG).await, []);
    let put = desk.put_for("hello", Duration::ZERO, Some(LONG)).await;
    assert_eq!(put.expires, put.inserted.after(LONG));
    assert_eq!(put.visible_at, put.inserted);
    let message = desk.claim_one().await;
    assert_eq!((message.id, message.inserted, message.expires), (put.id, put.inserted, put.expires));
    assert_eq!((message.text.as_slice(), message.dequeue_count), (b"hello".as_slice(), 1));
    assert_eq!(message.receipt.visible_at, message.visible_at);
    assert!(message.visible_at >= put.inserted.after(LONG));
    assert_ne!(message.receipt, put.receipt);
    if desk.uses_given_time {
        assert_eq!((put.inserted, message.visible_at), (NOW, NOW.after(LONG)));
    }
}

/// A text is bytes, also none and 64 KiB of them.
pub async fn texts_of_any_bytes_up_to_64_kib_come_back(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let texts = [vec![], vec![0], every_byte.clone(), every_byte.repeat(256), vec![0xFF; 65_536], "日本🦀".into()];
    for text in &texts {
        let new = NewMessage { text, hidden_for: Duration::ZERO, lives_for: None };
        engine.put_message(desk.queue, new, desk.clock.now()).await.expect("the queue is there");
    }
    for messages in [desk.peek(32).await, desk.claim(32, LONG).await] {
        let found: BTreeSet<Vec<u8>> = messages.into_iter().map(|message| message.text).collect();
        assert_eq!(found, texts.clone().into());
    }
}

/// A claimed message is invisible until its time is over, and visible to all consumers from then on.
pub async fn a_claimed_message_is_visible_again_exactly_when_its_time_is_over(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    desk.put("x").await;
    assert_eq!(desk.claim(1, LONG).await.len(), 1);
    assert_eq!(desk.claim(1, LONG).await, []);
    assert_eq!(desk.peek(1).await, []);
    if !desk.uses_given_time {
        desk.put("y").await;
        let first = desk.claim(1, SHORT).await.remove(0);
        let again = desk.claim_when_visible().await;
        assert_eq!((again.id, again.dequeue_count), (first.id, 2));
        assert!(again.visible_at >= first.visible_at.after(LONG), "visible too early");
        return;
    }
    desk.wait(LONG - TICK).await;
    assert_eq!(desk.claim(1, LONG).await, []);
    assert_eq!(desk.peek(1).await, []);
    desk.wait(TICK).await;
    assert_eq!(desk.peek(1).await.len(), 1);
    assert_eq!(desk.claim_one().await.dequeue_count, 2);
}

/// A message can be put to be seen later.
pub async fn a_delayed_message_is_visible_when_its_time_has_come(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let put = desk.put_for("later", SHORT, None).await;
    assert_eq!(put.visible_at, put.inserted.after(SHORT));
    if desk.uses_given_time {
        desk.wait(SHORT - TICK).await;
        assert_eq!(desk.claim(32, LONG).await, []);
    }
    let message = desk.claim_when_visible().await;
    assert_eq!((message.id, message.dequeue_count), (put.id, 1));
    assert!(message.visible_at >= put.visible_at.after(LONG));
    desk.put_for("much later", LONG, None).await;
    assert_eq!(desk.claim(32, LONG).await, []);
    desk.count_becomes(2).await;
}

/// Looking and changing are no deliveries.
pub async fn the_dequeue_count_counts_claims_only(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let mut handle = placed(&desk.put("x").await);
    for count in 1..5 {
        assert_eq!(desk.peek(1).await[0].dequeue_count, count - 1);
        let message = desk.claim_one().await;
        assert_eq!(message.dequeue_count, count);
        handle.receipt = message.receipt;
        let updated = desk.update(handle, None, Duration::ZERO).await.expect("the receipt holds");
        assert_eq!(desk.peek(1).await[0].dequeue_count, count);
        handle.receipt = updated.receipt;
    }
}

/// A look leaves messages visible, in order, and shows no more than was asked for.
pub async fn peek_shows_visible_messages_and_changes_nothing(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    for text in ["a", "b", "c"] {
        desk.put(text).await;
        desk.wait(TICK).await;
    }
    desk.put_for("hidden", LONG, None).await;
    for _ in 0..3 {
        assert_eq!(desk.peek(32).await.len(), 3);
        assert_eq!(desk.peek(2).await.len(), 2);
    }
    let claimed = desk.claim(1, LONG).await;
    let left = desk.peek(32).await;
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|message| message.id != claimed[0].id));
}

/// The producer of a message can delete or change it before it is claimed.
pub async fn the_receipt_of_a_put_is_good_at_once(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    for hidden_for in [Duration::ZERO, LONG] {
        let put = desk.put_for("delete me", hidden_for, None).await;
        assert_eq!(desk.delete(placed(&put)).await, Ok(()));
        assert_eq!(desk.delete(placed(&put)).await, Err(MessageError::NotFound));
        let put = desk.put_for("change me", hidden_for, None).await;
        let updated = desk.update(placed(&put), Some("changed"), LONG).await.expect("the receipt holds");
        assert_eq!(desk.update(placed(&put), None, LONG).await, Err(MessageError::ReceiptMismatch));
        let handle = MessageHandle { receipt: updated.receipt, ..placed(&put) };
        assert_eq!(desk.delete(handle).await, Ok(()));
    }
    assert_eq!(desk.claim(32, LONG).await, []);
}

/// After the next claim, only the new receipt can delete the message.
pub async fn a_receipt_dies_when_the_message_is_claimed_again(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let put = desk.put("x").await;
    let first = desk.claim(1, Duration::ZERO).await.remove(0);
    assert_eq!(desk.delete(placed(&put)).await, Err(MessageError::ReceiptMismatch));
    // A claim that hides for no time at all ends at the same moment as the one before.
    let second = desk.claim(1, Duration::ZERO).await.remove(0);
    assert_eq!((first.id, second.dequeue_count), (second.id, 2));
    assert_eq!(desk.delete(delivered(&first)).await, Err(MessageError::ReceiptMismatch));
    assert_eq!(desk.update(delivered(&first), None, LONG).await, Err(MessageError::ReceiptMismatch));
    assert_eq!(desk.delete(delivered(&second)).await, Ok(()));
    assert_eq!(desk.delete(delivered(&second)).await, Err(MessageError::NotFound));
    assert_eq!(desk.update(delivered(&second), None, LONG).await, Err(MessageError::NotFound));
}

/// A consumer that took too long may still finish, unless another has begun.
pub async fn a_receipt_survives_the_end_of_its_timeout(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    desk.put("x").await;
    let message = desk.claim(1, SHORT).await.remove(0);
    desk.wait(SHORT * 2).await;
    assert_eq!(desk.peek(1).await.len(), 1);
    assert_eq!(desk.delete(delivered(&message)).await, Ok(()));
    assert_eq!(desk.claim(1, LONG).await, []);
    desk.put("y").await;
    let message = desk.claim(1, SHORT).await.remove(0);
    desk.wait(SHORT * 2).await;
    assert!(desk.update(delivered(&message), None, LONG).await.is_ok());
    assert_eq!(desk.claim(1, LONG).await, []);
}

/// A change is of the text, if one is given, and of the time; the rest of the message stays.
pub async fn an_update_changes_text_and_visibility_only(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let put = desk.put_for("old", Duration::ZERO, Some(LONG * 10)).await;
    let first = desk.claim_one().await;
    let updated = desk.update(delivered(&first), Some("new"), LONG).await.expect("the receipt holds");
    assert_eq!(updated.receipt.visible_at, updated.visible_at);
    assert_eq!(desk.claim(1, LONG).await, []);
    assert_eq!(desk.update(delivered(&first), None, LONG).await, Err(MessageError::ReceiptMismatch));
    let handle = MessageHandle { receipt: updated.receipt, ..delivered(&first) };
    let updated = desk.update(handle, None, Duration::ZERO).await.expect("the receipt holds");
    let second = desk.claim_one().await;
    assert_eq!(texts(std::slice::from_ref(&second)), ["new"]);
    assert_eq!((second.id, second.inserted, second.expires), (put.id, put.inserted, put.expires));
    assert_eq!(second.dequeue_count, 2);
    assert_ne!(second.receipt, updated.receipt);
    // An empty text is a text.
    desk.update(delivered(&second), Some(""), Duration::ZERO).await.expect("the receipt holds");
    assert_eq!(desk.claim_one().await.text, b"");
}

/// A message that would never be seen again is not hidden that long.
pub async fn an_update_may_not_hide_a_message_beyond_its_expiry(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let put = desk.put_for("x", Duration::ZERO, Some(LONG)).await;
    let refused = desk.update(placed(&put), Some("y"), LONG * 2).await;
    assert_eq!(refused, Err(MessageError::ExpiresBefore));
    let message = desk.claim_one().await;
    assert_eq!(texts(std::slice::from_ref(&message)), ["x"]);
    assert!(desk.update(delivered(&message), None, LONG / 2).await.is_ok());
}

/// Whether the message is gone or the receipt is old makes a difference to clients.
pub async fn a_stale_receipt_is_told_from_a_missing_message(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let put = desk.put("x").await;
    let other = Receipt { nonce: put.receipt.nonce ^ 1, ..put.receipt };
    let elsewhere = Receipt { visible_at: put.receipt.visible_at.after(LONG), ..put.receipt };
    let never = Receipt { visible_at: Timestamp::from_ticks(u64::MAX), nonce: u64::MAX };
    for receipt in [other, elsewhere, never] {
        let handle = MessageHandle { id: put.id, receipt };
        assert_eq!(desk.delete(handle).await, Err(MessageError::ReceiptMismatch));
        assert_eq!(desk.update(handle, Some("y"), LONG).await, Err(MessageError::ReceiptMismatch));
        let handle = MessageHandle { id: Guid([7; 16]), receipt };
        assert_eq!(desk.delete(handle).await, Err(MessageError::NotFound));
        assert_eq!(desk.update(handle, None, LONG).await, Err(MessageError::NotFound));
    }
    assert_eq!(texts(&desk.claim(1, LONG).await), ["x"]);
}

/// A message that has expired is gone for everybody, and soon no longer counted.
pub async fn an_expired_message_is_gone(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let mut handles = Vec::new();
    for _ in 0..10 {
        handles.push(placed(&desk.put_for("mortal", Duration::ZERO, Some(SHORT)).await));
    }
    handles.push(placed(&desk.put_for("hidden", SHORT, Some(SHORT)).await));
    desk.put_for("lasting", Duration::ZERO, Some(LONG)).await;
    if desk.uses_given_time {
        desk.wait(SHORT - TICK).await;
        assert_eq!(desk.peek(32).await.len(), 11);
        desk.wait(TICK).await;
    }
    desk.wait(SHORT).await;
    assert_eq!(texts(&desk.peek(32).await), ["lasting"]);
    for handle in handles {
        assert_eq!(desk.update(handle, None, Duration::ZERO).await, Err(MessageError::NotFound));
        assert_eq!(desk.delete(handle).await, Err(MessageError::NotFound));
        let stale = MessageHandle { receipt: Receipt { nonce: 1, ..handle.receipt }, ..handle };
        assert_eq!(desk.delete(stale).await, Err(MessageError::NotFound));
    }
    assert_eq!(texts(&desk.claim(32, LONG).await), ["lasting"]);
    desk.count_becomes(1).await;
}

/// A message without an end expires in the year 9999.
pub async fn a_message_may_live_for_ever(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let put = desk.put("x").await;
    assert_eq!(put.expires, Timestamp::MAX);
    let far = desk.put_for("y", Duration::ZERO, Some(Duration::from_secs(u64::MAX))).await;
    assert_eq!(far.expires, Timestamp::MAX);
    if desk.uses_given_time {
        desk.wait(Duration::from_secs(100 * 365 * 86_400)).await;
    }
    let claimed = desk.claim(32, Duration::from_secs(7 * 86_400)).await;
    assert_eq!(claimed.len(), 2);
    assert!(claimed.iter().all(|message| message.expires == Timestamp::MAX));
}

/// Nothing is left of a cleared queue, and it goes on.
pub async fn clear_removes_visible_and_hidden_messages(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let other = Desk::open(engine, "other").await;
    other.put("stays").await;
    for number in 0..2500 {
        let hidden_for = if number % 3 == 0 { LONG } else { Duration::ZERO };
        desk.put_for("x", hidden_for, None).await;
    }
    let claimed = desk.claim_one().await;
    assert_eq!(engine.clear_messages(desk.queue, desk.clock.now()).await, Ok(()));
    desk.count_becomes(0).await;
    assert_eq!(desk.delete(delivered(&claimed)).await, Err(MessageError::NotFound));
    desk.wait(if !desk.uses_given_time { Duration::ZERO } else { LONG * 2 }).await;
    assert_eq!(desk.claim(32, LONG).await, []);
    assert_eq!(engine.clear_messages(desk.queue, desk.clock.now()).await, Ok(()), "an empty queue is cleared too");
    desk.put("again").await;
    assert_eq!(texts(&desk.claim(32, LONG).await), ["again"]);
    assert_eq!(texts(&other.claim(32, LONG).await), ["stays"]);
}

/// Hidden messages count, deleted ones do not.
pub async fn the_count_follows_the_messages(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    desk.count_becomes(0).await;
    for _ in 0..10 {
        desk.put("x").await;
    }
    desk.put_for("y", LONG, None).await;
    desk.count_becomes(11).await;
    let claimed = desk.claim(5, LONG).await;
    desk.count_becomes(11).await;
    for message in &claimed[..3] {
        desk.delete(delivered(message)).await.expect("the receipt holds");
    }
    desk.count_becomes(8).await;
    desk.update(delivered(&claimed[3]), Some("z"), Duration::ZERO).await.expect("the receipt holds");
    desk.put("x").await;
    desk.count_becomes(9).await;
}

/// Without haste, messages come in the order in which they became visible.
pub async fn messages_come_in_the_order_they_became_visible(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let mut expected = Vec::new();
    for number in 0..100 {
        let text = format!("{number:03}");
        desk.put(&text).await;
        expected.push(text);
        // Several of one moment come in the order of their insertion.
        if number % 7 == 0 {
            desk.wait(TICK).await;
        }
    }
    desk.wait(Duration::from_millis(1)).await;
    assert_eq!(texts(&desk.peek(100).await), expected);
    let mut found = Vec::new();
    loop {
        let claimed = desk.claim(32, LONG).await;
        if claimed.is_empty() {
            break;
        }
        found.extend(texts(&claimed).into_iter().map(str::to_owned));
    }
    assert_eq!(found, expected);
}

/// A claim takes no more than it was asked for.
pub async fn a_claim_returns_at_most_as_many_as_asked(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    for _ in 0..40 {
        desk.put("x").await;
    }
    let mut seen = BTreeSet::new();
    for (max, expected) in [(1, 1), (0, 0), (32, 32), (32, 7), (32, 0)] {
        let claimed = desk.claim(max, LONG).await;
        assert_eq!(claimed.len(), expected, "of {max}");
        assert!(claimed.iter().all(|message| seen.insert(message.id)), "a message came twice");
    }
}

/// A number that was dropped takes and gives no message, and its name comes back empty.
pub async fn a_dropped_queue_is_refused_everywhere(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let handle = placed(&desk.put("x").await);
    desk.count_becomes(1).await;
    assert_eq!(engine.drop_space(name("queue")).await, Ok(true));
    let again = Desk::open(engine, "queue").await;
    let now = desk.clock.now();
    let new = NewMessage { text: b"y", hidden_for: Duration::ZERO, lives_for: None };
    assert_eq!(engine.put_message(desk.queue, new, now).await, Err(WriteError::SpaceGone));
    assert_eq!(engine.claim(desk.queue, 1, LONG, now).await, Err(WriteError::SpaceGone));
    assert_eq!(engine.peek(desk.queue, 1, now).await, Err(ReadError::SpaceGone));
    assert_eq!(desk.update(handle, None, LONG).await, Err(MessageError::SpaceGone));
    assert_eq!(desk.delete(handle).await, Err(MessageError::SpaceGone));
    assert_eq!(engine.clear_messages(desk.queue, now).await, Err(WriteError::SpaceGone));
    assert_eq!(engine.count_messages(desk.queue, now).await, Err(ReadError::SpaceGone));
    assert_eq!(again.claim(32, LONG).await, []);
    assert_eq!(again.count().await, 0);
    assert_eq!(again.delete(handle).await, Err(MessageError::NotFound));
}

/// Sixteen consumers and four producers at once: every message is delivered, and each to one consumer.
pub async fn many_consumers_get_every_message_once(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let taken = AtomicUsize::new(0);
    let work = async |worker: usize| {
        let mut got = Vec::new();
        if worker < 4 {
            for number in 0..100 {
                desk.put(&format!("{worker}-{number}")).await;
            }
            return got;
        }
        let patience = Instant::now() + Duration::from_secs(120);
        while taken.load(Ordering::SeqCst) < 400 {
            assert!(Instant::now() < patience, "a message is lost");
            let claimed = desk.claim(1 + worker % 5, LONG).await;
            taken.fetch_add(claimed.len(), Ordering::SeqCst);
            for message in claimed {
                assert_eq!(message.dequeue_count, 1);
                if worker.is_multiple_of(2) {
                    desk.delete(delivered(&message)).await.expect("the receipt holds");
                }
                got.push(String::from_utf8(message.text).expect("the tests put text"));
            }
        }
        got
    };
    let got = parallel(20, work);
    let mut times = BTreeMap::<String, usize>::new();
    for text in got.into_iter().flatten() {
        *times.entry(text).or_default() += 1;
    }
    assert_eq!(times.len(), 400, "every message was delivered");
    assert!(times.values().all(|times| *times == 1), "and each once");
}

/// Of several who use one receipt at once, one succeeds.
pub async fn one_of_many_concurrent_uses_of_a_receipt_wins(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    for round in 0..20 {
        desk.put("x").await;
        let message = desk.claim_one().await;
        let handle = delivered(&message);
        let use_it = async |user: usize| match user % 2 {
            0 => desk.delete(handle).await.map(|()| None),
            _ => desk.update(handle, Some("y"), LONG).await.map(Some),
        };
        let outcomes = parallel(8, use_it);
        let won: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "round {round}: {outcomes:?}");
        if let Some(updated) = won[0] {
            desk.delete(MessageHandle { receipt: updated.receipt, ..handle }).await.expect("the new receipt holds");
        }
    }
    desk.count_becomes(0).await;
}

/// A caller that is dropped in the middle leaves a whole message or none, and messages of others are not skipped.
pub async fn a_caller_who_goes_away_loses_no_message(engine: &impl Engine) {
    let desk = Desk::open(engine, "queue").await;
    let mut kept = BTreeSet::new();
    for round in 0..60_u64 {
        let patience = Duration::from_micros(round * 20);
        let (abandoned, put, claimed) = tokio::join!(
            tokio::time::timeout(patience, desk.put("abandoned")),
            desk.put("kept"),
            desk.claim(1, Duration::ZERO)
        );
        kept.insert(put.id);
        kept.extend(abandoned.ok().map(|put| put.id));
        assert!(claimed.len() <= 1);
        desk.wait(TICK).await;
        let _ = tokio::time::timeout(patience, desk.claim(2, Duration::ZERO)).await;
    }
    let mut found = BTreeSet::new();
    let patience = Instant::now() + Duration::from_secs(60);
    while !kept.is_subset(&found) {
        assert!(Instant::now() < patience, "lost: {} of {}", kept.difference(&found).count(), kept.len());
        for message in desk.claim(32, LONG).await {
            assert!(found.insert(message.id), "a message came twice");
            desk.delete(delivered(&message)).await.expect("the receipt holds");
        }
    }
    // A put without an answer has stored the whole message, if any.
    while let Some(message) = desk.claim(1, LONG).await.pop() {
        desk.delete(delivered(&message)).await.expect("the receipt holds");
    }
    desk.count_becomes(0).await;
}
