//! `larimar queue`: queues and their messages.

mod drain;

use crate::endpoint::{Context, EndpointArgs, Service};
use crate::output::{Fields, OutputArgs};
use crate::{Error, Result};
use clap::{Args, Subcommand};
use futures_util::{StreamExt as _, TryStreamExt as _};
use larimar_client::{PutOptions, Queue};
use std::io::Read as _;
use std::time::Duration;

/// The commands of `larimar queue`.
#[derive(Subcommand)]
pub(crate) enum QueueCommand {
    /// List the queues of the account and about how many messages they have
    List(List),
    /// Print messages from the front of a queue and leave them there
    Peek(Peek),
    /// Put a message
    Put(Put),
    /// Print all messages and delete them
    Drain(drain::Drain),
    /// Move messages to another queue, such as from orders-poison to orders
    Move(drain::Move),
}

impl QueueCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::List(command) => command.run(context).await,
            Self::Peek(command) => command.run(context).await,
            Self::Put(command) => command.run(context).await,
            Self::Drain(command) => command.run(context).await,
            Self::Move(command) => command.run(context).await,
        }
    }
}

/// A queue of an account.
#[derive(Clone, Args)]
struct QueueArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    name: String,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl QueueArgs {
    async fn queue(&self, context: &Context) -> Result<Queue> {
        Ok(self.endpoint.connect(context, Service::Queue).await?.queue(&self.name))
    }
}

#[derive(Args)]
pub(crate) struct List {
    /// Only queues whose names begin with this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl List {
    async fn run(self, context: &Context) -> Result<()> {
        let account = self.endpoint.connect(context, Service::Queue).await?;
        let mut output = self.output.open().with_columns(["name", "messages"]);
        let mut queues = account
            .queues()
            .list(&self.prefix)
            .map_ok(|queue| {
                let handle = account.queue(&queue.name);
                async move {
                    match handle.approximate_count().await {
                        Ok(count) => Ok(Some((queue.name, count))),
                        // Deleted since the list was made.
                        Err(error) if error.is_not_found() => Ok(None),
                        Err(error) => Err(error),
                    }
                }
            })
            .try_buffered(COUNTS_AT_ONCE);
        while let Some(queue) = queues.next().await {
            if let Some((name, messages)) = queue? {
                output.write(&Fields::new().with("name", name).with("messages", messages))?;
            }
        }
        output.finish().map(drop)
    }
}

#[derive(Args)]
pub(crate) struct Peek {
    #[command(flatten)]
    queue: QueueArgs,
    /// How many messages
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=32))]
    top: u8,
    #[command(flatten)]
    output: OutputArgs,
}

impl Peek {
    async fn run(self, context: &Context) -> Result<()> {
        let messages = self.queue.queue(context).await?.peek(usize::from(self.top)).await?;
        let mut output = self.output.open().with_columns(["id", "inserted", "dequeued", "text"]);
        for message in messages {
            let fields = Fields::new().with("id", message.id).with("inserted", message.inserted_on.to_string());
            output.write(&fields.with("dequeued", u64::from(message.dequeue_count)).with("text", message.text))?;
        }
        output.finish().map(drop)
    }
}

#[derive(Args)]
pub(crate) struct Put {
    #[command(flatten)]
    queue: QueueArgs,
    /// Text of the message, or - for standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// Create the queue if it does not exist
    #[arg(long)]
    create: bool,
    /// Hide the message at first, for so many seconds
    #[arg(long, value_name = "SECONDS")]
    delay: Option<u64>,
    /// Let the message expire after so many seconds [default: seven days]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,
    /// Encode the text in base64, as consumers such as Azure Functions expect it
    #[arg(long)]
    base64: bool,
}

impl Put {
    async fn run(self, context: &Context) -> Result<()> {
        let mut text = self.text;
        if text == "-" {
            text = String::new();
            let read = std::io::stdin().lock().take(TEXT_BYTES_MAX).read_to_string(&mut text);
            read.map_err(|error| Error::io("standard input", error))?;
        }
        let queue = self.queue.queue(context).await?;
        let queue = if self.base64 { queue.with_base64() } else { queue };
        if self.create {
            queue.create_if_missing().await?;
        }
        let mut options = PutOptions::default();
        if let Some(delay) = self.delay {
            options = options.hidden_for(Duration::from_secs(delay));
        }
        if let Some(ttl) = self.ttl {
            options = options.lives_for(Duration::from_secs(ttl));
        }
        Ok(queue.put_with(text, options).await.map(drop)?)
    }
}

/// How many queues are asked for their number of messages at once.
const COUNTS_AT_ONCE: usize = 8;
/// More than a message has; the service refuses it.
const TEXT_BYTES_MAX: u64 = 1 << 20;
