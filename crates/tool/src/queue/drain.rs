//! `larimar queue drain` and `move`: messages are received, printed or put elsewhere, and only then deleted. Whenever the
//! process is killed, no message is lost; one that was not deleted yet becomes visible again and comes twice.

use super::QueueArgs;
use crate::confirm::ConfirmArgs;
use crate::endpoint::{Context, EndpointArgs, Service};
use crate::output::{Fields, OutputArgs, counted};
use crate::progress::Progress;
use crate::{Error, Result};
use clap::Args;
use larimar_client::{Message, PutOptions, Queue, Timestamp};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Drain {
    #[command(flatten)]
    queue: QueueArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Drain {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let queue = self.queue.queue(context).await?;
        self.confirm.ask(&format!("Delete the messages of {}", queue.url()))?;
        let mut output = self.output.open().with_columns(["id", "inserted", "dequeued", "text"]);
        loop {
            let messages = queue.receive(RECEIVED_MAX, HIDDEN_FOR).await?;
            if messages.is_empty() {
                return output.finish().map(drop);
            }
            for message in &messages {
                let fields = Fields::new()
                    .with("id", message.id.as_str())
                    .with("inserted", message.inserted_on.to_string())
                    .with("dequeued", u64::from(message.dequeue_count))
                    .with("text", message.text.as_str());
                output.write(&fields)?;
            }
            // A message is deleted after its text has left the process.
            output.flush_held()?;
            for message in &messages {
                delete(&queue, message).await?;
            }
        }
    }
}

#[derive(Args)]
pub(crate) struct Move {
    /// Queue to take messages from
    #[arg(value_name = "FROM")]
    from: String,
    /// Queue to put them into, which must exist [default: FROM without "-poison" at its end]
    #[arg(value_name = "TO")]
    to: Option<String>,
    /// At most this many messages [default: as many as there were at the start]
    #[arg(long, value_name = "COUNT")]
    top: Option<u64>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl Move {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let to = match (&self.to, self.from.strip_suffix("-poison")) {
            (Some(to), _) => to.clone(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => {
                let reason = format!("'{}' does not end with -poison, so name the queue to move to", self.from);
                return Err(Error::Usage(reason));
            }
        };
        if to == self.from {
            return Err(Error::Usage("the two queues are the same".to_owned()));
        }
        let account = self.endpoint.connect(context, Service::Queue).await?;
        let (from, to) = (account.queue(&self.from), account.queue(&to));
        // Before the first message is hidden: a queue that does not exist is an error that changes nothing.
        to.approximate_count().await?;
        let total = from.approximate_count().await?;
        // Consumers may return messages to the first queue as fast as they come, so there is an end.
        let most = self.top.unwrap_or(total);
        let progress = Progress::new("messages", Some(most));
        let outcome = move_messages(&from, &to, most, &progress).await;
        let moved = progress.count();
        drop(progress);
        eprintln!("{} moved", counted(moved, "message", "messages"));
        outcome
    }
}

async fn move_messages(from: &Queue, to: &Queue, most: u64, progress: &Progress) -> Result<()> {
    while progress.count() < most {
        let count = usize::try_from(most - progress.count()).unwrap_or(RECEIVED_MAX).min(RECEIVED_MAX);
        let messages = from.receive(count, HIDDEN_FOR).await?;
        if messages.is_empty() {
            break;
        }
        for message in &messages {
            to.put_with(&message.text, options_of(message)).await?;
            delete(from, message).await?;
            progress.add(1);
        }
    }
    Ok(())
}

/// The moved message expires when the first one would have.
fn options_of(message: &Message) -> PutOptions {
    match message.expires_on {
        None => PutOptions::default().lives_forever(),
        Some(time) => {
            let seconds = time.ticks().saturating_sub(Timestamp::now().ticks()) / TICKS_A_SECOND;
            PutOptions::default().lives_for(Duration::from_secs(seconds.max(1)))
        }
    }
}

/// Deletes a message that was received. One that another consumer has received since is left to it.
async fn delete(queue: &Queue, message: &Message) -> Result<()> {
    match queue.delete(message).await {
        Err(error) if matches!(error.code(), Some("PopReceiptMismatch" | "MessageNotFound")) => Ok(()),
        other => Ok(other?),
    }
}

/// How many messages are received at once.
const RECEIVED_MAX: usize = 32;
/// How long received messages are hidden: far longer than it takes to print or put a few of them.
const HIDDEN_FOR: Duration = Duration::from_secs(120);
const TICKS_A_SECOND: u64 = 10_000_000;
