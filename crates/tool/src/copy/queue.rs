//! Copies a queue: its settings, then its messages, each exactly once.
//!
//! Messages are read into a spool file first (`spool.rs`), given back if they were received, and then put. Putting has
//! no request that could be repeated without harm, so after an interruption the destination, which was empty at the
//! start, is cleared and filled again from the spool. The service may still carry out requests of the interrupted
//! attempt meanwhile, so it is counted what is there after that: if there are too many, it is done once more.

use super::spool::{self, Expired, Spool, Spooled};
use super::state::{Prepared, QueueStep, Ticks};
use super::{Copier, Difference, Messages, checksum, prepare};
use crate::{Error, Result};
use futures_util::future::ready;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use larimar_client::{Message, PutOptions, Queue, Timestamp};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

impl Copier {
    pub(super) async fn copy_queue(&self, name: &str) -> Result<()> {
        let (from, to) = (self.from.account.queue(name), self.to.account.queue(name));
        self.prepare_queue(name, &from, &to).await?;
        if self.messages == Messages::None {
            self.step(name, QueueStep::Done)?;
        }
        loop {
            match self.state.with(|state| state.queues[name].step) {
                QueueStep::Start => match self.messages {
                    Messages::Receive => self.receive(name, &from, None).await?,
                    Messages::Peek | Messages::None => self.peek(name, &from).await?,
                },
                QueueStep::Receiving { hidden_until } => {
                    self.give_back(name, &from).await?;
                    self.receive(name, &from, Some(hidden_until)).await?;
                }
                QueueStep::Spooled => {
                    self.give_back(name, &from).await?;
                    self.step(name, QueueStep::Putting)?;
                    self.put_all(name, &to, false).await?;
                }
                QueueStep::Putting => self.put_all(name, &to, true).await?,
                QueueStep::Done => return Ok(()),
            }
        }
    }

    async fn prepare_queue(&self, name: &str, from: &Queue, to: &Queue) -> Result<()> {
        let prepared = self.state.with(|state| state.queues[name].prepared);
        if prepared == Prepared::Yes {
            return Ok(());
        }
        if prepared == Prepared::Replace {
            to.delete_queue_if_exists().await?;
        }
        prepare::create(|| to.create_if_missing()).await?;
        let metadata = from.metadata().await?;
        if !metadata.is_empty() {
            to.set_metadata(&metadata).await?;
        }
        let policies = async {
            let policies = from.policies().await?;
            if policies.is_empty() { Ok(()) } else { to.set_policies(&policies).await }
        };
        self.note_refusal(policies.await, || format!("stored policies of queue '{name}'"))?;
        self.state.with(|state| state.queues.get_mut(name).expect("the plan has it").prepared = Prepared::Yes);
        self.state.save()
    }

    fn step(&self, name: &str, step: QueueStep) -> Result<()> {
        self.state.with(|state| state.queues.get_mut(name).expect("the plan has it").step = step);
        self.state.save()
    }

    fn spool_path(&self, name: &str) -> PathBuf {
        self.state.beside(&format!("messages-{name}"))
    }

    /// Reads what can be seen without touching the queue.
    async fn peek(&self, name: &str, from: &Queue) -> Result<()> {
        let messages: Vec<_> = from
            .peek(PEEKED_MAX)
            .await?
            .into_iter()
            .map(|message| Spooled {
                id: message.id,
                receipt: None,
                text: message.text,
                expires: message.expires_on.map(Timestamp::ticks),
            })
            .collect();
        Spool::create(&self.spool_path(name))?.add(&messages)?;
        self.spooled(name, from, messages.len() as u64).await
    }

    /// Receives all visible messages, each once. `left_hidden_until` is when those are visible again that an
    /// interrupted copy received and did not note down.
    async fn receive(&self, name: &str, from: &Queue, left_hidden_until: Option<Ticks>) -> Result<()> {
        let received = self.receive_visible(name, from, left_hidden_until).await?;
        let Some(until) = left_hidden_until else { return self.spooled(name, from, received).await };
        if from.approximate_count().await? <= received {
            return self.spooled(name, from, received).await;
        }
        // Some are hidden, perhaps by the interrupted copy. Consumers have the others meanwhile.
        self.give_back(name, from).await?;
        while until > Timestamp::now().into() {
            tokio::time::sleep(POLL).await;
        }
        let received = self.receive_visible(name, from, None).await?;
        self.spooled(name, from, received).await
    }

    /// Receives messages into the spool file until none is visible, and returns their number.
    async fn receive_visible(&self, name: &str, from: &Queue, left_hidden_until: Option<Ticks>) -> Result<u64> {
        let mut spool = Spool::create(&self.spool_path(name))?;
        let mut seen = HashSet::new();
        let mut noted_until = Timestamp::MIN;
        loop {
            let until = Timestamp::now().after(self.hide_for + CLOCKS_DIFFER);
            if until > noted_until {
                // Noted ahead of time, so that the state is not written for every request.
                noted_until = until.after(self.hide_for / 4);
                let hidden_until = left_hidden_until.unwrap_or_default().max(noted_until.into());
                self.step(name, QueueStep::Receiving { hidden_until })?;
            }
            let received = from.receive(PEEKED_MAX, self.hide_for).await?;
            if received.is_empty() {
                return Ok(seen.len() as u64);
            }
            if received.iter().any(|message| !seen.insert(checksum::text(&message.id))) {
                return Err(Error::Failed(format!(
                    "queue '{name}' takes longer to read than its messages are hidden: pass a longer --hide-for"
                )));
            }
            let received: Vec<_> = received.into_iter().map(Spooled::from).collect();
            spool.add(&received)?;
            self.progress.add(received.len() as u64);
        }
    }

    async fn spooled(&self, name: &str, from: &Queue, messages: u64) -> Result<()> {
        let hidden = from.approximate_count().await?.saturating_sub(messages);
        self.state.with(|state| {
            let queue = state.queues.get_mut(name).expect("the plan has it");
            (queue.messages, queue.hidden) = (messages, hidden);
        });
        self.step(name, QueueStep::Spooled)
    }

    /// Makes messages of the source visible again that were received. One that expired or that another consumer has
    /// received since is not an error.
    async fn give_back(&self, name: &str, from: &Queue) -> Result<()> {
        let received = spool::read(&self.spool_path(name))?;
        let released = received.map(|message| async {
            let Spooled { id, receipt: Some(receipt), .. } = message? else { return Ok(()) };
            match from.release(&id, &receipt).await {
                Err(error) if !matches!(error.status(), Some(400 | 404)) => Err(Error::from(error)),
                _ => Ok(()),
            }
        });
        // In their order, which is that in which they will be received.
        stream::iter(released).buffered(RELEASED_AT_ONCE).try_collect().await
    }

    /// Puts all messages. What an interrupted attempt has put is removed before.
    async fn put_all(&self, name: &str, to: &Queue, mut is_repeated: bool) -> Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            if is_repeated {
                let expected = self.state.with(|state| state.queues[name].messages);
                let found = to.approximate_count().await?;
                // Messages of others would be lost.
                if found > expected + PUT_AT_ONCE as u64 {
                    return Err(Error::Failed(format!(
                        "queue '{name}' at TO has {found} messages, more than the {expected} that are copied: others \
                         write to it, so the copy cannot continue"
                    )));
                }
                to.clear().await?;
            }
            match self.put_once(name).await {
                Ok(put) if is_repeated && settled_count(to, 0..=put).await? > put => {}
                Ok(_) => return self.step(name, QueueStep::Done),
                // Whether the message is there is not known, so all of them are put again.
                Err(Error::Client(error)) if error.is_ambiguous() => is_repeated = true,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Failed(format!(
            "queue '{name}': the connection to TO breaks too often, or others write to the queue"
        )))
    }

    /// Puts each message once and returns their number.
    async fn put_once(&self, name: &str) -> Result<u64> {
        // Without retries: a request whose response is lost would put its message twice.
        let to = &self.to.once.queue(name);
        let has_failed = &AtomicBool::new(false);
        let puts = spool::read(&self.spool_path(name))?.map(|message| async move {
            let message = message?;
            if has_failed.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let options = match message.seconds_left(Timestamp::now()) {
                Ok(None) => PutOptions::default().lives_forever(),
                Ok(Some(seconds)) => PutOptions::default().lives_for(Duration::from_secs(seconds)),
                Err(Expired) => return Ok(0),
            };
            put(to, &message.text, options).await.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))?;
            self.progress.add(1);
            Ok(1)
        });
        // Requests that are under way are waited for, since they might put their messages after the queue is cleared.
        let sum_or_first_error = |sum: Result<u64>, next: Result<u64>| ready(sum.and_then(|sum| Ok(sum + next?)));
        stream::iter(puts).buffered(PUT_AT_ONCE).fold(Ok(0), sum_or_first_error).await
    }

    /// Compares the messages at the destination with the spool: their number, and the texts that a peek shows.
    pub(super) async fn verify_queue(&self, name: &str) -> Result<Option<Difference>> {
        let to = self.to.account.queue(name);
        let hidden = self.state.with(|state| state.queues[name].hidden);
        let path = self.spool_path(name);
        let mut texts = HashSet::new();
        let (mut expected, now) = (0..=0, Timestamp::now());
        for message in spool::read(&path)? {
            let message = message?;
            let is_alive = message.seconds_left(now.after(CLOCKS_DIFFER)).is_ok();
            expected = expected.start() + u64::from(is_alive)..=expected.end() + 1;
            texts.insert(checksum::text(&message.text));
        }
        if self.messages == Messages::None {
            return Ok(None);
        }
        let found = settled_count(&to, expected.clone()).await?;
        if !expected.contains(&found) {
            let text = format!("queue '{name}': FROM had {} messages, TO has {found}", expected.end());
            return Ok(Some(Difference(text)));
        }
        let peeked = to.peek(PEEKED_MAX).await?;
        if peeked.iter().any(|message| !texts.contains(&checksum::text(&message.text))) {
            return Ok(Some(Difference(format!("queue '{name}': TO has a message that FROM did not have"))));
        }
        match hidden {
            0 => Ok(None),
            _ => Ok(Some(Difference(format!(
                "queue '{name}': {hidden} messages were hidden at FROM (received by consumers, or delayed) and are not \
                 copied"
            )))),
        }
    }

    /// Removes what the copy kept of messages.
    pub(super) fn remove_spools(&self) -> Result<()> {
        for name in self.state.with(|state| state.queues.keys().cloned().collect::<Vec<_>>()) {
            let path = self.spool_path(&name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(path.display(), error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The number of messages, which is approximate and right after a while.
async fn settled_count(to: &Queue, expected: RangeInclusive<u64>) -> larimar_client::Result<u64> {
    let mut found = to.approximate_count().await?;
    for _ in 0..COUNTS_MAX {
        if !expected.contains(&found) {
            tokio::time::sleep(POLL).await;
            found = to.approximate_count().await?;
        }
    }
    Ok(found)
}

/// Puts a message; again only if the service said that it is busy, and so has not put it.
async fn put(to: &Queue, text: &str, options: PutOptions) -> larimar_client::Result<Message> {
    for pause in BUSY_PAUSES {
        match to.put_with(text, options.clone()).await {
            Err(error) if error.is_throttled() && !error.is_ambiguous() => tokio::time::sleep(pause).await,
            other => return other,
        }
    }
    to.put_with(text, options).await
}

impl From<Message> for Spooled {
    fn from(message: Message) -> Self {
        let Message { id, pop_receipt, text, expires_on, .. } = message;
        Self { id, receipt: Some(pop_receipt), text, expires: expires_on.map(Timestamp::ticks) }
    }
}

/// Messages that one request shows or receives at most.
pub(super) const PEEKED_MAX: usize = 32;
/// By how much the clocks of this machine and of the service may differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(500);
/// How often the messages at the destination are counted until the number is right.
const COUNTS_MAX: u32 = 4;
const RELEASED_AT_ONCE: usize = 8;
const PUT_AT_ONCE: usize = 8;
/// How long a service that is busy is left alone.
const BUSY_PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
/// How often the messages of a queue are put from the start.
const ATTEMPTS_MAX: u32 = 5;
