//! One delivery of a message: its steps carried out while it is kept from others, and what becomes of it.

use super::envelope::{self, Envelope, Head};
use super::queue::is_lost;
use super::{Event, Work, WorkError, Worker};
use futures_util::FutureExt as _;
use futures_util::future::{self, Either};
use larimar_client::{Message, PutOptions, Queue, Timestamp};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How the steps ended.
enum Outcome {
    Done,
    Failed(WorkError),
    /// Another worker has the message.
    Lost,
}

impl<W: Work> Worker<W> {
    /// Handles one delivery of a message.
    pub(super) async fn handle(&self, message: Message) {
        let Envelope { head, intent } = match envelope::decode::<W::Intent>(&message.text) {
            Ok(envelope) => envelope,
            Err(error) => {
                let text = message.text.clone();
                return self.poison("", &message, text, &format!("no intent: {error}")).await;
            }
        };
        let (deliveries, age) = (message.dequeue_count, Timestamp::now().since(head.at));
        self.report(&Event::Received { id: &head.id, deliveries, age });
        if deliveries > self.attempts_max {
            // Earlier workers crashed on it, or lost it before they could report a failure.
            let reason = format!("delivered {deliveries} times without coming to an end");
            return self.poison_intent(&head, &intent, &message, &reason).await;
        }
        let held = Held::new(&self.queue.queue, message, self.visibility);
        let outcome = self.keep(&held, &head, self.perform(&held, &head, &intent)).await;
        let message = held.message.into_inner();
        match outcome {
            Outcome::Done => self.acknowledge(&head, &message).await,
            Outcome::Failed(WorkError::Retry(error)) if deliveries < self.attempts_max => {
                self.put_off(&head, message, WorkError::Retry(error)).await;
            }
            Outcome::Failed(error) => self.poison_intent(&head, &intent, &message, &error.to_string()).await,
            Outcome::Lost => self.report(&Event::Lost { id: &head.id }),
        }
    }

    /// The steps that are left.
    async fn perform(&self, held: &Held<'_>, head: &Head, intent: &W::Intent) -> Outcome {
        // A panic is a failure like others: the intent is tried again, and poison in the end.
        let panicked = |_| WorkError::retry("the step panicked");
        let steps = match std::panic::catch_unwind(AssertUnwindSafe(|| self.work.steps(intent))) {
            Ok(steps) => steps,
            Err(panic) => return Outcome::Failed(panicked(panic)),
        };
        for step in head.done..steps {
            let performed = AssertUnwindSafe(async { self.work.perform(intent, step).await }).catch_unwind().await;
            if let Err(error) = performed.map_err(panicked).flatten() {
                return Outcome::Failed(error);
            }
            self.report(&Event::StepDone { id: &head.id, step });
            if self.saves_progress && step + 1 < steps {
                let head = Head { done: step + 1, ..head.clone() };
                // What cannot be saved is done again.
                let Ok(text) = envelope::encode(&head, intent) else { continue };
                if held.update(Some(&text)).await.is_err_and(|error| is_lost(&error)) {
                    return Outcome::Lost;
                }
            }
        }
        Outcome::Done
    }

    /// Runs the steps and renews the message meanwhile. Steps are dropped when the message is lost.
    async fn keep(&self, held: &Held<'_>, head: &Head, steps: impl Future<Output = Outcome>) -> Outcome {
        let mut steps = pin!(steps);
        loop {
            let sleep = pin!(tokio::time::sleep(self.visibility / 3));
            if let Either::Left((outcome, _)) = future::select(&mut steps, sleep).await {
                return outcome;
            }
            let renewal = pin!(held.update(None));
            // A pending renewal is waited for: if it were cancelled, the valid receipt would be unknown.
            let (renewed, outcome) = match future::select(&mut steps, renewal).await {
                Either::Left((outcome, renewal)) => (renewal.await, Some(outcome)),
                Either::Right((renewed, _)) => (renewed, None),
            };
            match renewed {
                Ok(()) => self.report(&Event::Renewed { id: &head.id }),
                Err(error) if is_lost(&error) => return Outcome::Lost,
                Err(error) => {
                    self.report(&Event::QueueFailed { error: &error });
                    if held.is_over().await {
                        return Outcome::Lost;
                    }
                }
            }
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    async fn acknowledge(&self, head: &Head, message: &Message) {
        match self.queue.queue.delete(message).await {
            Ok(()) => self.report(&Event::Done { id: &head.id, age: Timestamp::now().since(head.at) }),
            Err(error) if is_lost(&error) => self.report(&Event::Lost { id: &head.id }),
            // It will be delivered again, and its steps find everything done.
            Err(error) => self.report(&Event::QueueFailed { error: &error }),
        }
    }

    /// Lets the message come back later.
    async fn put_off(&self, head: &Head, mut message: Message, error: WorkError) {
        let doublings = message.dequeue_count.saturating_sub(1).min(16);
        let retry_in = self.backoff.0.saturating_mul(1 << doublings).min(self.backoff.1);
        self.report(&Event::Failed { id: &head.id, error: &error, retry_in });
        if let Err(error) = self.queue.queue.update(&mut message, retry_in, None).await {
            self.report(&Event::QueueFailed { error: &error });
        }
    }

    async fn poison_intent(&self, head: &Head, intent: &W::Intent, message: &Message, reason: &str) {
        // There is room for the reason; should there be none, the message goes as it is.
        let text = envelope::encode(&head.failed(reason), intent).unwrap_or_else(|_| message.text.clone());
        self.poison(&head.id, message, text, reason).await;
    }

    /// Puts the message into the poison queue and then deletes it, so that a crash in between doubles and never loses
    /// it.
    async fn poison(&self, id: &str, message: &Message, text: String, reason: &str) {
        let moved = async {
            self.queue.poison.put_with(text, PutOptions::default().lives_forever()).await?;
            self.queue.queue.delete(message).await
        };
        match moved.await {
            Ok(()) => self.report(&Event::Poisoned { id, reason }),
            Err(error) => self.report(&Event::QueueFailed { error: &error }),
        }
    }
}

/// A message that is ours for a while.
struct Held<'a> {
    queue: &'a Queue,
    message: Mutex<Message>,
    visibility: Duration,
    /// Until when it is ours at least, by our clock.
    until: Mutex<Instant>,
}

impl<'a> Held<'a> {
    fn new(queue: &'a Queue, message: Message, visibility: Duration) -> Self {
        let until = Mutex::new(Instant::now() + visibility);
        Self { queue, message: Mutex::new(message), visibility, until }
    }

    /// Keeps the message for longer, with another text if one is given.
    async fn update(&self, text: Option<&str>) -> larimar_client::Result<()> {
        let mut message = self.message.lock().await;
        let from = Instant::now();
        self.queue.update(&mut message, self.visibility, text).await?;
        *self.until.lock().await = from + self.visibility;
        Ok(())
    }

    async fn is_over(&self) -> bool {
        *self.until.lock().await <= Instant::now()
    }
}
