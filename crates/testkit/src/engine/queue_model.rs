//! Random sequences of calls on a queue, run on an engine and on a plain map; the two must agree after each step.
//!
//! For engines that use the time that the caller passes. [`steps`] draws a sequence, [`run`] runs it.

use super::messages::name;
use super::model::Harness;
use super::rows::NOW;
use larimar_engine::SpaceId;
use larimar_engine::queue::{Change, Message, MessageError, MessageHandle, NewMessage};
use larimar_engine::{Engine, Spaces as _};
use larimar_model::{Guid, Timestamp};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// One step of a sequence. Spans are seconds.
#[derive(Clone, Debug)]
pub enum Step {
    /// Adds a message: text, hidden for, lives for.
    Put(Vec<u8>, u8, Option<u8>),
    /// Claims so many, and hides them.
    Claim(u8, u8),
    /// Looks at so many.
    Peek(u8),
    /// Uses one of the receipts given so far to change text and visibility.
    Update(u16, Option<Vec<u8>>, u8),
    /// Uses one of the receipts given so far to delete.
    Delete(u16),
    /// Removes all.
    Clear,
    /// Counts.
    Count,
    /// Time passes.
    Wait(u8),
    /// Closes and opens the engine.
    Restart,
}

/// Sequences of steps, with restarts among them or not.
pub fn steps(restarts: bool) -> impl Strategy<Value = Vec<Step>> {
    let text = || prop::collection::vec(any::<u8>(), 0..20);
    let span = || prop_oneof![3 => Just(0_u8), 2 => 1..10_u8];
    let step = prop_oneof![
        10 => (text(), span(), prop::option::of(1..60_u8)).prop_map(|(text, hidden, lives)| Step::Put(text, hidden, lives)),
        8 => (0..5_u8, span()).prop_map(|(max, hidden)| Step::Claim(max, hidden)),
        3 => (0..5_u8).prop_map(Step::Peek),
        6 => (any::<u16>(), prop::option::of(text()), span()).prop_map(|(at, text, hidden)| Step::Update(at, text, hidden)),
        6 => any::<u16>().prop_map(Step::Delete),
        1 => Just(Step::Clear),
        2 => Just(Step::Count),
        6 => (1..10_u8).prop_map(Step::Wait),
        u32::from(restarts) => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..150).prop_map(move |mut steps| {
        steps.retain(|step| restarts || !matches!(step, Step::Restart));
        steps
    })
}

/// A message as the model has it.
#[derive(Clone, Debug)]
struct Kept {
    number: usize,
    text: Vec<u8>,
    inserted: Timestamp,
    visible_at: Timestamp,
    expires: Timestamp,
    dequeue_count: u32,
    /// The index of the receipt that holds.
    receipt: usize,
}

struct Model {
    queue: SpaceId,
    now: Timestamp,
    messages: BTreeMap<Guid, Kept>,
    receipts: Vec<MessageHandle>,
    put: usize,
}

/// Runs a sequence on an engine and on the model, and compares every answer.
pub async fn run(harness: &mut impl Harness, steps: &[Step]) {
    let queue = harness.engine().create_space(name("queue"), b"").await.expect("no fault").expect("the name is free");
    let mut model = Model { queue, now: NOW, messages: BTreeMap::new(), receipts: Vec::new(), put: 0 };
    for step in steps {
        match step {
            Step::Restart => {
                harness.restart().await;
                // It takes time; only within one process do messages of the same moment come in order.
                model.now = model.now.after(Duration::from_millis(1));
            }
            step => model.step(harness.engine(), step).await,
        }
    }
    // Everything that is left comes, in order, once its time is over.
    model.now = model.now.after(Duration::from_secs(15));
    while model.claim(harness.engine(), 32, 600).await > 0 {}
}

impl Model {
    async fn step(&mut self, engine: &impl Engine, step: &Step) {
        match step {
            Step::Put(text, hidden, lives) => self.put(engine, text, *hidden, *lives).await,
            Step::Claim(max, hidden) => drop(self.claim(engine, (*max).into(), (*hidden).into()).await),
            Step::Peek(max) => {
                let found = engine.peek(self.queue, (*max).into(), self.now).await.expect("the queue is there");
                let expected = self.visible((*max).into());
                assert_eq!(found.iter().map(|message| message.id).collect::<Vec<_>>(), expected);
                found.iter().for_each(|message| self.same(message));
            }
            Step::Update(at, text, hidden) => self.update(engine, *at, text.as_deref(), *hidden).await,
            Step::Delete(at) => self.delete(engine, *at).await,
            Step::Clear => {
                engine.clear_messages(self.queue, self.now).await.expect("the queue is there");
                self.messages.clear();
            }
            Step::Count => {
                let count = engine.count_messages(self.queue, self.now).await.expect("the queue is there");
                let living = self.messages.values().filter(|kept| kept.expires > self.now).count() as u64;
                let all = self.messages.len() as u64;
                assert!((living..=all).contains(&count), "{count} of {living} to {all}");
            }
            Step::Wait(seconds) => self.now = self.now.after(Duration::from_secs((*seconds).into())),
            Step::Restart => unreachable!("the caller restarts"),
        }
    }

    async fn put(&mut self, engine: &impl Engine, text: &[u8], hidden: u8, lives: Option<u8>) {
        let hidden_for = Duration::from_secs(hidden.into());
        let lives_for = lives.map(|seconds| Duration::from_secs(seconds.into()));
        let new = NewMessage { text, hidden_for, lives_for };
        let placed = engine.put_message(self.queue, new, self.now).await.expect("the queue is there");
        let expires = lives_for.map_or(Timestamp::MAX, |span| self.now.after(span));
        assert_eq!((placed.inserted, placed.expires), (self.now, expires));
        assert_eq!(placed.visible_at, self.now.after(hidden_for));
        self.put += 1;
        let receipt = self.given(MessageHandle { id: placed.id, receipt: placed.receipt });
        let kept = Kept {
            number: self.put,
            text: text.to_vec(),
            inserted: self.now,
            visible_at: placed.visible_at,
            expires,
            dequeue_count: 0,
            receipt,
        };
        assert!(self.messages.insert(placed.id, kept).is_none(), "a name came twice");
    }

    async fn claim(&mut self, engine: &impl Engine, max: usize, seconds: u64) -> usize {
        let hidden_for = Duration::from_secs(seconds);
        let found = engine.claim(self.queue, max, hidden_for, self.now).await.expect("the queue is there");
        let expected = self.visible(max);
        assert_eq!(found.iter().map(|message| message.id).collect::<Vec<_>>(), expected);
        for message in &found {
            let receipt = self.given(MessageHandle { id: message.id, receipt: message.receipt });
            let kept = self.messages.get_mut(&message.id).expect("it was expected");
            kept.dequeue_count += 1;
            kept.visible_at = self.now.after(hidden_for);
            kept.receipt = receipt;
            self.same(message);
        }
        found.len()
    }

    async fn update(&mut self, engine: &impl Engine, at: u16, text: Option<&[u8]>, seconds: u8) {
        let Some(at) = self.choose(at) else { return };
        let handle = self.receipts[at];
        let hidden_for = Duration::from_secs(seconds.into());
        let visible_at = self.now.after(hidden_for);
        let expected = match self.admitted(at) {
            Ok(kept) if visible_at > kept.expires => Err(MessageError::ExpiresBefore),
            other => other.map(|_| visible_at),
        };
        let change = Change { text, hidden_for };
        let updated = engine.update_message(self.queue, handle, change, self.now).await;
        assert_eq!(updated.as_ref().map(|updated| updated.visible_at).map_err(Clone::clone), expected);
        if let Ok(updated) = updated {
            let receipt = self.given(MessageHandle { receipt: updated.receipt, ..handle });
            let kept = self.messages.get_mut(&handle.id).expect("it was admitted");
            (kept.visible_at, kept.receipt) = (visible_at, receipt);
            if let Some(text) = text {
                kept.text = text.to_vec();
            }
        }
    }

    async fn delete(&mut self, engine: &impl Engine, at: u16) {
        let Some(at) = self.choose(at) else { return };
        let handle = self.receipts[at];
        let expected = self.admitted(at).map(|_| ());
        assert_eq!(engine.delete_message(self.queue, handle, self.now).await, expected);
        if expected.is_ok() {
            self.messages.remove(&handle.id);
        }
    }

    fn given(&mut self, handle: MessageHandle) -> usize {
        assert!(!self.receipts.contains(&handle), "a receipt was given twice");
        self.receipts.push(handle);
        self.receipts.len() - 1
    }

    /// The later receipts more often than the earlier ones, which mostly do not hold any more.
    fn choose(&self, at: u16) -> Option<usize> {
        let count = self.receipts.len();
        let within = if at.is_multiple_of(2) { count } else { count.min(8) };
        (count > 0).then(|| count - 1 - usize::from(at / 2) % within)
    }

    fn admitted(&self, at: usize) -> Result<&Kept, MessageError> {
        let kept = self.messages.get(&self.receipts[at].id).filter(|kept| kept.expires > self.now);
        let kept = kept.ok_or(MessageError::NotFound)?;
        if kept.receipt == at { Ok(kept) } else { Err(MessageError::ReceiptMismatch) }
    }

    fn visible(&self, max: usize) -> Vec<Guid> {
        let visible = self.messages.iter().filter(|(_, kept)| kept.visible_at <= self.now && kept.expires > self.now);
        let mut visible: Vec<_> = visible.map(|(id, kept)| (kept.visible_at, kept.number, *id)).collect();
        visible.sort_unstable();
        visible.into_iter().take(max).map(|(_, _, id)| id).collect()
    }

    fn same(&self, message: &Message) {
        let kept = &self.messages[&message.id];
        assert_eq!(message.text, kept.text);
        assert_eq!((message.inserted, message.expires), (kept.inserted, kept.expires));
        assert_eq!((message.dequeue_count, message.visible_at), (kept.dequeue_count, kept.visible_at));
        assert_eq!(message.receipt, self.receipts[kept.receipt].receipt);
    }
}
