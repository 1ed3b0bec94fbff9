//! The events and figures of a worker.

use super::WorkError;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Watches a worker, to count or to record. Every event is written by `tracing` as well.
pub trait Observer: Send + Sync {
    /// Something happened. This runs between steps: it should not block.
    fn observe(&self, event: &Event<'_>);
}

/// What happens to a message in a worker.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A message came in.
    #[non_exhaustive]
    Received {
        /// The intent's id.
        id: &'a str,
        /// How often the message was delivered, this time included.
        deliveries: u32,
        /// How long ago the intent was submitted.
        age: Duration,
    },
    /// A step was carried out.
    #[non_exhaustive]
    StepDone {
        /// The intent's id.
        id: &'a str,
        /// The step, counted from 0.
        step: usize,
    },
    /// The visibility timeout of the message was extended.
    #[non_exhaustive]
    Renewed {
        /// The intent's id.
        id: &'a str,
    },
    /// All steps are done and the message is deleted.
    #[non_exhaustive]
    Done {
        /// The intent's id.
        id: &'a str,
        /// How long ago the intent was submitted.
        age: Duration,
    },
    /// A step failed; the message comes back.
    #[non_exhaustive]
    Failed {
        /// The intent's id.
        id: &'a str,
        /// Why.
        error: &'a WorkError,
        /// When it comes back.
        retry_in: Duration,
    },
    /// Another worker has the message by now, and the work on it was dropped.
    #[non_exhaustive]
    Lost {
        /// The intent's id.
        id: &'a str,
    },
    /// The message is in the poison queue now.
    #[non_exhaustive]
    Poisoned {
        /// The intent's id; empty if the message is not an intent.
        id: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A request to the queue failed. A message that was being handled will be delivered again.
    #[non_exhaustive]
    QueueFailed {
        /// Why.
        error: &'a larimar_client::Error,
    },
}

/// What a worker has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Messages received.
    pub received: u64,
    /// Intents carried out.
    pub done: u64,
    /// Attempts that failed and will be made again.
    pub failed: u64,
    /// Messages put into the poison queue.
    pub poisoned: u64,
    /// Renewals of visibility.
    pub renewed: u64,
    /// Messages that another worker received while they were worked on.
    pub lost: u64,
    /// Failed requests to the queue.
    pub queue_failures: u64,
    /// How old the last received intent was: how far the worker is behind.
    pub last_age: Duration,
    /// How old the oldest received intent was.
    pub oldest_age: Duration,
}

/// The figures as they grow.
#[derive(Debug, Default)]
pub(super) struct Counters {
    received: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    poisoned: AtomicU64,
    renewed: AtomicU64,
    lost: AtomicU64,
    queue_failures: AtomicU64,
    last_age: AtomicU64,
    oldest_age: AtomicU64,
}

impl Counters {
    pub(super) fn stats(&self) -> WorkerStats {
        WorkerStats {
            received: self.received.load(Relaxed),
            done: self.done.load(Relaxed),
            failed: self.failed.load(Relaxed),
            poisoned: self.poisoned.load(Relaxed),
            renewed: self.renewed.load(Relaxed),
            lost: self.lost.load(Relaxed),
            queue_failures: self.queue_failures.load(Relaxed),
            last_age: Duration::from_millis(self.last_age.load(Relaxed)),
            oldest_age: Duration::from_millis(self.oldest_age.load(Relaxed)),
        }
    }
}

impl Observer for Counters {
    fn observe(&self, event: &Event<'_>) {
        let counter = match event {
            Event::Received { age, .. } => {
                let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                self.last_age.store(age, Relaxed);
                self.oldest_age.fetch_max(age, Relaxed);
                &self.received
            }
            Event::StepDone { .. } => return,
            Event::Renewed { .. } => &self.renewed,
            Event::Done { .. } => &self.done,
            Event::Failed { .. } => &self.failed,
            Event::Lost { .. } => &self.lost,
            Event::Poisoned { .. } => &self.poisoned,
            Event::QueueFailed { .. } => &self.queue_failures,
        };
        counter.fetch_add(1, Relaxed);
    }
}

/// Writes the event to the log.
pub(super) fn trace(queue: &str, event: &Event<'_>) {
    match event {
        Event::Received { id, deliveries, age } => {
            tracing::debug!(queue, intent = id, deliveries, ?age, "an intent was received");
        }
        Event::StepDone { id, step } => tracing::trace!(queue, intent = id, step, "a step is done"),
        Event::Renewed { id } => tracing::trace!(queue, intent = id, "a message was renewed"),
        Event::Done { id, age } => tracing::debug!(queue, intent = id, ?age, "an intent is done"),
        Event::Failed { id, error, retry_in } => {
            tracing::warn!(queue, intent = id, %error, ?retry_in, "an intent failed and will be tried again");
        }
        Event::Lost { id } => tracing::warn!(queue, intent = id, "another worker has received the message"),
        Event::Poisoned { id, reason } => {
            tracing::error!(queue, intent = id, reason, "a message was put into the poison queue");
        }
        Event::QueueFailed { error } => tracing::warn!(queue, %error, "a request to the queue failed"),
    }
}
