//! Queues and their messages.

mod encoding;
mod message;
mod service;
mod settings;

pub use message::{Message, PeekedMessage, PutOptions};
pub use service::{QueueItem, QueueService};

use crate::pipeline::{Call, Failed, Pipeline, Reply};
use crate::{Error, Result};
use encoding::Encoding;
use http::Method;
use larimar_model::limits;
use larimar_model::queue::QueueName;
use larimar_wire::uri;
use std::sync::Arc;
use std::time::Duration;

/// A queue. It is cheap to clone.
///
/// A received message is hidden from others for a while. Its receiver deletes it when the work is done;
/// if that does not happen in time, the message is delivered again. So every message is delivered at least once, and
/// now and then more often: work on messages has to be idempotent.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// use std::time::Duration;
///
/// let queue = account.queue("archive");
/// queue.create_if_missing().await?;
/// queue.put("move Sales 000123").await?;
///
/// for message in queue.receive(10, Duration::from_secs(60)).await? {
///     println!("{}, for the {}. time", message.text, message.dequeue_count);
///     queue.delete(&message).await?;
/// }
/// assert_eq!(queue.approximate_count().await?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    pipeline: Arc<Pipeline>,
    name: Arc<str>,
    encoding: Encoding,
    timeout: Option<Duration>,
}

impl Queue {
    pub(crate) fn new(pipeline: Arc<Pipeline>, name: String) -> Self {
        Self { pipeline, name: name.into(), encoding: Encoding::Plain, timeout: None }
    }

    /// The queue's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of the queue.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.pipeline.primary.url(), self.path(""))
    }

    /// The same queue, with the text of messages in base64 on the wire, both ways.
    ///
    /// Azure Functions and the older SDKs (.NET before version 12 among them) put and expect messages like that. A
    /// text then has at most 48 KiB. It may hold any character, while plain text is bound to those that XML has.
    #[must_use]
    pub fn with_base64(&self) -> Self {
        Self { encoding: Encoding::Base64, ..self.clone() }
    }

    /// The same queue, with another limit of how long a call may take with all its retries.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// Creates the queue if missing; returns whether it was created.
    ///
    /// # Errors
    /// A text that is not a queue name (3 to 63 lower-case letters, digits and single dashes), or a queue that is still
    /// being deleted.
    pub async fn create_if_missing(&self) -> Result<bool> {
        let reply = self.send(Call::new("CreateQueue", Method::PUT, self.path(""))).await;
        match reply {
            // An attempt whose answer was lost may have made it.
            Ok(reply) => Ok(reply.status == 201 || reply.after_ambiguous),
            // A queue with metadata differs from the one that would be made, and is there all the same.
            Err(failed) if failed.error.code() == Some("QueueAlreadyExists") => Ok(failed.after_ambiguous),
            Err(failed) => Err(failed.error),
        }
    }

    /// Deletes the queue with all its messages.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn delete_queue(&self) -> Result<()> {
        match self.send(Call::new("DeleteQueue", Method::DELETE, self.path(""))).await {
            Err(failed) if failed.after_ambiguous && failed.error.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Deletes the queue if it exists; returns whether it did.
    ///
    /// # Errors
    /// Any other refusal of the service.
    pub async fn delete_queue_if_exists(&self) -> Result<bool> {
        match self.delete_queue().await {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts a message of this text, visible at once and for seven days.
    ///
    /// If the answer is lost the message is put again, so that it may be there twice: what a queue promises is that it
    /// is delivered at least once.
    ///
    /// # Errors
    /// A queue that does not exist, a text of more than 64 KiB, or one with characters that XML does not have.
    pub async fn put(&self, text: impl AsRef<str>) -> Result<Message> {
        self.put_with(text, PutOptions::default()).await
    }

    /// Puts a message of this text, as [`Queue::put`] does, with options.
    ///
    /// # Errors
    /// Those of [`Queue::put`], and times that the service does not keep.
    pub async fn put_with(&self, text: impl AsRef<str>, options: PutOptions) -> Result<Message> {
        let text = text.as_ref();
        let body = message::body(&self.encoding.encode(text)?);
        let mut call = Call::new("PutMessage", Method::POST, self.path("/messages")).body("application/xml", body);
        if let Some(hidden_for) = options.hidden_for {
            call = call.parameter("visibilitytimeout", &hidden_seconds(hidden_for, 0)?.to_string());
        }
        if let Some(seconds) = options.lives_for.seconds()? {
            call = call.parameter("messagettl", &seconds.to_string());
        }
        let mut put = message::read(&self.send(call).await?.body)?;
        match (put.pop(), put.is_empty()) {
            (Some(message), true) => message.put(text.to_owned()),
            _ => Err(Error::Answer("expected the one message that was put".to_owned())),
        }
    }

    /// Receives up to 32 messages, and hides them from others for at least a second and at most seven days.
    ///
    /// Fewer messages come, or none, if no more are visible. If the answer is lost, the messages in it stay hidden for
    /// as long as was asked and then come again.
    ///
    /// # Errors
    /// A queue that does not exist, or a number or time out of bounds.
    pub async fn receive(&self, count: usize, hidden_for: Duration) -> Result<Vec<Message>> {
        let call = Call::new("GetMessages", Method::GET, self.path("/messages"))
            .changing()
            .parameter("numofmessages", &checked_count(count)?)
            .parameter("visibilitytimeout", &hidden_seconds(hidden_for, 1)?.to_string());
        let messages = message::read(&self.send(call).await?.body)?;
        messages.into_iter().map(|message| message.received(self.encoding)).collect()
    }

    /// Looks at up to 32 visible messages from the front and leaves them as they are.
    ///
    /// # Errors
    /// A queue that does not exist, or a number out of bounds.
    pub async fn peek(&self, count: usize) -> Result<Vec<PeekedMessage>> {
        let call = Call::new("PeekMessages", Method::GET, self.path("/messages"))
            .parameter("peekonly", "true")
            .parameter("numofmessages", &checked_count(count)?);
        let messages = message::read(&self.send(call).await?.body)?;
        messages.into_iter().map(|message| message.peeked(self.encoding)).collect()
    }

    /// Hides a message for this long from now on, and gives it another text if there is one.
    ///
    /// The message gets a new receipt, which takes the place of the old one in it. A time of zero makes it visible at
    /// once.
    ///
    /// # Errors
    /// A message that others received meanwhile, or that is gone: see [`Message`]. So does an update whose first answer
    /// was lost, since its new receipt was lost with it; the message then comes again in its time.
    pub async fn update(&self, message: &mut Message, hidden_for: Duration, text: Option<&str>) -> Result<()> {
        let mut call = Call::new("UpdateMessage", Method::PUT, self.message_path(&message.id))
            .parameter("popreceipt", &message.pop_receipt)
            .parameter("visibilitytimeout", &hidden_seconds(hidden_for, 0)?.to_string());
        if let Some(text) = text {
            call = call.body("application/xml", message::body(&self.encoding.encode(text)?));
        }
        let reply = self.send(call).await?;
        let header = |name: &str| reply.headers.get(name).and_then(|value| value.to_str().ok());
        let (Some(receipt), Some(visible)) = (header("x-ms-popreceipt"), header("x-ms-time-next-visible")) else {
            return Err(Error::Answer("expected a receipt and a time from an update".to_owned()));
        };
        message.next_visible_on = message::time(visible)?;
        receipt.clone_into(&mut message.pop_receipt);
        if let Some(text) = text {
            text.clone_into(&mut message.text);
            message.is_raw = false;
        }
        Ok(())
    }

    /// Makes a message that was received visible again at once, by its id and receipt alone: whoever kept these can
    /// give the message back after a restart.
    ///
    /// # Errors
    /// A message that others received meanwhile, or that is gone: see [`Message`].
    pub async fn release(&self, id: &str, pop_receipt: &str) -> Result<()> {
        let call = Call::new("UpdateMessage", Method::PUT, self.message_path(id))
            .parameter("popreceipt", pop_receipt)
            .parameter("visibilitytimeout", "0");
        Ok(self.send(call).await.map(drop)?)
    }

    /// Deletes a message that was received or put.
    ///
    /// If the answer is lost and the message is then not found, it counts as deleted.
    ///
    /// # Errors
    /// A message that others received meanwhile, or that is gone: see [`Message`].
    pub async fn delete(&self, message: &Message) -> Result<()> {
        let call = Call::new("DeleteMessage", Method::DELETE, self.message_path(&message.id))
            .parameter("popreceipt", &message.pop_receipt);
        match self.send(call).await {
            Err(failed) if failed.after_ambiguous && failed.error.code() == Some("MessageNotFound") => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Deletes all messages, hidden ones too.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn clear(&self) -> Result<()> {
        Ok(self.send(Call::new("ClearMessages", Method::DELETE, self.path("/messages"))).await.map(drop)?)
    }

    /// About how many messages there are, hidden ones among them. The number is not below the true one.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn approximate_count(&self) -> Result<u64> {
        let call = Call::new("GetQueueMetadata", Method::GET, self.path("")).parameter("comp", "metadata");
        let reply = self.send(call).await?;
        let count = reply.headers.get("x-ms-approximate-messages-count").and_then(|count| count.to_str().ok());
        let count = count.and_then(|count| count.parse().ok());
        count.ok_or_else(|| Error::Answer("expected the number of messages".to_owned()))
    }

    async fn send(&self, call: Call) -> Result<Reply, Failed> {
        if let Err(error) = self.name.parse::<QueueName>() {
            let error = Error::Invalid(format!("'{}' is not a name of a queue: {error}", self.name));
            return Err(Failed { error, after_ambiguous: false });
        }
        self.pipeline.send(call.timeout(self.timeout)).await
    }

    fn path(&self, rest: &str) -> String {
        let mut path = String::with_capacity(self.name.len() + rest.len() + 1);
        path.push('/');
        uri::encode(&mut path, &self.name, uri::is_unreserved);
        path.push_str(rest);
        path
    }

    fn message_path(&self, id: &str) -> String {
        let mut path = self.path("/messages/");
        uri::encode(&mut path, id, uri::is_unreserved);
        path
    }
}

fn checked_count(count: usize) -> Result<String> {
    match i64::try_from(count) {
        Ok(count) if limits::MESSAGES_OF_A_GET.contains(&count) => Ok(count.to_string()),
        _ => Err(Error::Invalid(format!("expected from 1 to {} messages", limits::MESSAGES_OF_A_GET.end()))),
    }
}

/// The whole seconds that a message is hidden, not less than asked for.
fn hidden_seconds(hidden_for: Duration, least: u64) -> Result<u64> {
    let seconds = whole_seconds(hidden_for);
    if !(least..=limits::MESSAGE_SECONDS_MAX).contains(&seconds) {
        return Err(Error::Invalid(format!("a message is hidden from {least} seconds to seven days")));
    }
    Ok(seconds)
}

fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}
