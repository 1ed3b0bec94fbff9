//! Work on one queue: putting messages, and getting and deleting them, each exactly once.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::rc::Rc;

use anyhow::{Context as _, ensure};

use super::request::StorageRequests;
use crate::check::{element, expect_status};
use crate::dataset::{Random, write_words};
use crate::http::{Connection, broke};
use crate::measure::{Outcome, Work};

/// The queue that every task uses.
const QUEUE: &str = "bench";
/// Digits of the number that a message's text begins with.
const DIGITS: usize = 10;
/// The header with the number of messages of a queue.
const COUNT: &str = "x-ms-approximate-messages-count";

/// What is known of the messages of one server.
#[derive(Default)]
pub(crate) struct QueueStore {
    /// Numbers of messages that were sent.
    next: Cell<u64>,
    /// Messages whose put was answered, and those whose delete was.
    put: Cell<u64>,
    deleted: Cell<u64>,
    /// Which numbers came out, by number.
    seen: RefCell<Vec<bool>>,
    /// How many messages may still be put or taken in this turn.
    left: Cell<u64>,
    /// Operations whose connection broke: whether they were carried out is not known.
    unknown: Cell<u64>,
}

impl QueueStore {
    /// Messages that are there, as far as is known.
    pub(crate) fn there(&self) -> u64 {
        self.put.get().saturating_sub(self.deleted.get())
    }

    /// Allows so many operations in the next turn.
    pub(crate) fn allow(&self, operations: u64) {
        self.left.set(operations);
    }

    /// Notes that a message came out; the error says that it cannot have.
    fn note(&self, number: u64) -> anyhow::Result<()> {
        ensure!(number < self.next.get(), "message {number}, which nobody put");
        let mut seen = self.seen.borrow_mut();
        let index = usize::try_from(number)?;
        if seen.len() <= index {
            seen.resize(index + 1, false);
        }
        ensure!(!std::mem::replace(&mut seen[index], true), "message {number} came twice");
        Ok(())
    }
}

/// What a connection does with the queue.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Action {
    Put,
    /// Get and delete.
    Take,
}

/// One connection at work.
pub(crate) struct QueueWorker {
    action: Action,
    connection: Connection,
    requests: StorageRequests,
    store: Rc<QueueStore>,
    id: String,
    receipt: String,
}

impl QueueWorker {
    /// A worker on a connection of its own.
    pub(crate) fn new(
        action: Action,
        connection: Connection,
        requests: StorageRequests,
        store: Rc<QueueStore>,
    ) -> Self {
        Self { action, connection, requests, store, id: String::new(), receipt: String::new() }
    }

    /// Creates the queue.
    pub(crate) async fn create(&mut self) -> anyhow::Result<()> {
        let answer = self.connection.exchange(self.requests.create_queue(QUEUE)).await?;
        expect_status(&answer, 201)
    }

    /// The server has as many messages as were put and not deleted.
    pub(crate) async fn verify(&mut self) -> anyhow::Result<()> {
        let answer = self.connection.exchange(self.requests.queue_metadata(QUEUE)).await?;
        expect_status(&answer, 200)?;
        let count: u64 = answer.header(COUNT).context("a number of messages")?.parse()?;
        let (there, unknown) = (self.store.there(), self.store.unknown.get());
        ensure!(count.abs_diff(there) <= unknown, "{count} messages are there instead of {there}");
        Ok(())
    }

    async fn put(&mut self) -> anyhow::Result<()> {
        let number = self.store.next.replace(self.store.next.get() + 1);
        let request = self.requests.put_message(QUEUE, |text| write_text(text, number));
        let answer = self.connection.exchange(request).await?;
        expect_status(&answer, 201)?;
        self.store.put.set(self.store.put.get() + 1);
        Ok(())
    }

    async fn take(&mut self) -> anyhow::Result<Outcome> {
        let answer = self.connection.exchange(self.requests.get_message(QUEUE)).await.context("getting a message")?;
        expect_status(&answer, 200)?;
        let Some(text) = element(&answer, b"<MessageText>") else {
            // A message whose get was not answered is hidden.
            ensure!(self.store.unknown.get() > 0, "no message, and {} should be there", self.store.there());
            return Ok(Outcome::Exhausted);
        };
        let number = text.get(..DIGITS).and_then(|digits| digits.parse().ok()).context("a number in the message")?;
        self.id.clear();
        self.id.push_str(element(&answer, b"<MessageId>").context("a message id")?);
        self.receipt.clear();
        self.receipt.push_str(element(&answer, b"<PopReceipt>").context("a pop receipt")?);
        self.store.note(number)?;
        let request = self.requests.delete_message(QUEUE, &self.id, &self.receipt);
        let answer = self.connection.exchange(request).await.context("deleting a message")?;
        expect_status(&answer, 204)?;
        self.store.deleted.set(self.store.deleted.get() + 1);
        Ok(Outcome::Done)
    }
}

impl Work for QueueWorker {
    async fn operate(&mut self) -> anyhow::Result<Outcome> {
        let Some(left) = self.store.left.get().checked_sub(1) else { return Ok(Outcome::Exhausted) };
        self.store.left.set(left);
        let outcome = match self.action {
            Action::Put => self.put().await.map(|()| Outcome::Done),
            Action::Take => self.take().await,
        };
        if let Err(error) = &outcome
            && broke(error)
        {
            self.store.unknown.set(self.store.unknown.get() + 1);
        }
        outcome
    }

    fn reconnect(&mut self, connection: Connection) {
        self.connection = connection;
    }
}

/// About 120 bytes that begin with the message's number.
fn write_text(out: &mut Vec<u8>, number: u64) {
    let _ = write!(out, "{number:0width$} ", width = DIGITS);
    write_words(out, Random::new(number).next());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Answer;

    #[test]
    fn a_message_may_come_once_and_only_if_it_was_put() {
        let store = QueueStore::default();
        store.next.set(3);
        assert!(store.note(2).is_ok());
        assert!(store.note(0).is_ok());
        assert!(store.note(2).is_err());
        assert!(store.note(3).is_err());
    }

    #[test]
    fn elements_of_an_answer_are_found() {
        let mut body = b"<QueueMessage><MessageId>a-b</MessageId><MessageText>".to_vec();
        write_text(&mut body, 42);
        body.extend_from_slice(b"</MessageText></QueueMessage>");
        let answer = Answer { status: 200, head: b"", body: &body, next_partition: None, next_row: None };
        assert_eq!(element(&answer, b"<MessageId>"), Some("a-b"));
        assert!(element(&answer, b"<MessageText>").is_some_and(|text| text.starts_with("0000000042 ")));
        assert_eq!(element(&answer, b"<PopReceipt>"), None);
    }
}
