//! The queue of intents, and the poison queue beside it.

use super::envelope::{self, Envelope, Head};
use crate::Result;
use larimar_client::{Account, Message, PutOptions, Queue, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A queue of intents, with the poison queue that belongs to it. It is cheap to clone.
pub struct WorkQueue<I> {
    pub(super) queue: Queue,
    pub(super) poison: Queue,
    intent: PhantomData<fn() -> I>,
}

impl<I> Clone for WorkQueue<I> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), poison: self.poison.clone(), intent: PhantomData }
    }
}

impl<I> fmt::Debug for WorkQueue<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkQueue").field(&self.queue.name()).finish()
    }
}

/// An intent that is durable.
#[derive(Clone, Debug)]
pub struct Submitted {
    id: String,
    message: Message,
}

impl Submitted {
    /// The intent's id, which workers and the poison queue tell too.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// An intent that no worker could carry out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Poisoned<I> {
    /// The intent's id; empty if the message is none of ours.
    pub id: String,
    /// When it was submitted.
    pub submitted_on: Timestamp,
    /// Why the last attempt failed.
    pub error: String,
    /// The intent; `None` if the message is not such an intent.
    pub intent: Option<I>,
    /// The text of the message.
    pub text: String,
}

impl<I> WorkQueue<I> {
    /// The queue of this name. The poison queue has `-poison` at its end.
    #[must_use]
    pub fn new(account: &Account, name: &str) -> Self {
        Self { queue: account.queue(name), poison: account.queue(format!("{name}-poison")), intent: PhantomData }
    }

    /// The queue's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.queue.name()
    }

    /// Creates both queues if they do not exist.
    ///
    /// # Errors
    /// A name that the service refuses.
    pub async fn create_if_missing(&self) -> Result<()> {
        self.queue.create_if_missing().await?;
        self.poison.create_if_missing().await?;
        Ok(())
    }

    /// How many intents wait or are being carried out, hidden ones included; it may be too high for a moment.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn backlog(&self) -> Result<u64> {
        Ok(self.queue.approximate_count().await?)
    }

    /// How many messages are in the poison queue; it may be too high for a moment.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn poison_backlog(&self) -> Result<u64> {
        Ok(self.poison.approximate_count().await?)
    }

    /// Shows a hidden intent to the workers at once.
    ///
    /// # Errors
    /// What the service refuses. The intent is shown when its time is over all the same.
    pub async fn reveal(&self, submitted: &mut Submitted) -> Result<()> {
        self.hide(submitted, Duration::ZERO).await
    }

    /// Hides a hidden intent for longer, from now on, unless a worker has it already.
    pub(crate) async fn hide(&self, submitted: &mut Submitted, hidden_for: Duration) -> Result<()> {
        match self.queue.update(&mut submitted.message, hidden_for.min(HIDDEN_MAX), None).await {
            Err(error) if is_lost(&error) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Takes an intent back that is of no use any more. If a worker has it already, it is carried out all the same.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn withdraw(&self, submitted: &Submitted) -> Result<()> {
        match self.queue.delete(&submitted.message).await {
            Err(error) if is_lost(&error) => Ok(()),
            other => Ok(other?),
        }
    }
}

impl<I: Serialize> WorkQueue<I> {
    /// Puts an intent into the queue. When this returns, it is durable and will be carried out.
    ///
    /// # Errors
    /// An intent that is larger than a message may be ([`Error::IntentTooLarge`](crate::Error::IntentTooLarge)): put
    /// what is large into an entity or a blob first, and its address into the intent.
    pub async fn submit(&self, intent: &I) -> Result<Submitted> {
        self.submit_hidden(intent, Duration::ZERO).await
    }

    /// Puts an intent into the queue that workers do not see for a while, seven days at most.
    ///
    /// Do what starts the work meanwhile, then [`reveal`](Self::reveal) the intent. If the caller crashes in between, a
    /// worker sees it when the time is over.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn submit_hidden(&self, intent: &I, hidden_for: Duration) -> Result<Submitted> {
        let head = Head::new();
        let text = envelope::encode(&head, intent)?;
        let options = PutOptions::default().hidden_for(hidden_for.min(HIDDEN_MAX)).lives_forever();
        let message = self.queue.put_with(text, options).await?;
        tracing::debug!(queue = self.name(), intent = head.id, "an intent is durable");
        Ok(Submitted { id: head.id, message })
    }
}

impl<I: Serialize + DeserializeOwned> WorkQueue<I> {
    /// Looks at the first messages of the poison queue, at most 32.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn poisoned(&self, count: usize) -> Result<Vec<Poisoned<I>>> {
        let messages = self.poison.peek(count.clamp(1, 32)).await?;
        let read = |text: String, put: Timestamp| match envelope::decode::<I>(&text) {
            Ok(Envelope { head, intent }) => Poisoned {
                id: head.id,
                submitted_on: head.at,
                error: head.error.unwrap_or_default(),
                intent: Some(intent),
                text,
            },
            Err(error) => {
                Poisoned { id: String::new(), submitted_on: put, error: error.to_string(), intent: None, text }
            }
        };
        Ok(messages.into_iter().map(|message| read(message.text, message.inserted_on)).collect())
    }

    /// Brings messages back from the poison queue, to be carried out from the start; says how many. Those that are no
    /// intents stay, and [`poisoned`](Self::poisoned) shows them again after a minute. Those that come there meanwhile
    /// stay too, so a call ends though workers fail as fast as it brings them work.
    ///
    /// A message is put back before it is taken away, so a crash in between doubles it.
    ///
    /// # Errors
    /// What the service refuses; what was brought back before stays so.
    pub async fn redrive(&self, count_max: usize) -> Result<usize> {
        let mut left = self.poison_backlog().await?;
        let mut brought = 0;
        while brought < count_max && left > 0 {
            let messages = self.poison.receive((count_max - brought).min(32), REDRIVE_TIME).await?;
            if messages.is_empty() {
                break;
            }
            left = left.saturating_sub(messages.len() as u64);
            for message in messages {
                let Ok(Envelope { head, intent }) = envelope::decode::<I>(&message.text) else { continue };
                let text = envelope::encode(&Head { done: 0, error: None, ..head }, &intent)?;
                self.queue.put_with(text, PutOptions::default().lives_forever()).await?;
                self.poison.delete(&message).await?;
                brought += 1;
            }
        }
        Ok(brought)
    }
}

/// Whether a message no longer belongs to its receiver: another consumer received it, or it was deleted.
pub(super) fn is_lost(error: &larimar_client::Error) -> bool {
    matches!(error.code(), Some("PopReceiptMismatch" | "MessageNotFound"))
}

/// The longest time that the service hides a message for.
pub(super) const HIDDEN_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
const REDRIVE_TIME: Duration = Duration::from_secs(60);
