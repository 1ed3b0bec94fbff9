//! `larimar blob`: containers and blobs. A blob is named by its container and its name: `photos/2026/a.jpg`.

mod transfer;

use crate::confirm::ConfirmArgs;
use crate::endpoint::{Context, EndpointArgs, Service};
use crate::output::{Fields, OutputArgs, counted};
use crate::progress::Progress;
use crate::{Error, Result};
use clap::{Args, Subcommand};
use futures_util::{StreamExt as _, TryStreamExt as _};
use larimar_client::{Account, BlobCondition};

/// The commands of `larimar blob`.
#[derive(Subcommand)]
pub(crate) enum BlobCommand {
    /// List the containers of the account, or the blobs of a container
    List(List),
    /// Write a blob to a file or to standard output
    Get(transfer::Get),
    /// Make a block blob of a file or of standard input
    Put(transfer::Put),
    /// Delete a blob, or all blobs with a prefix
    Remove(Remove),
    /// Add up the sizes of blobs, by container
    Du(Du),
}

impl BlobCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::List(command) => command.run(context).await,
            Self::Get(command) => command.run(context).await,
            Self::Put(command) => command.run(context).await,
            Self::Remove(command) => command.run(context).await,
            Self::Du(command) => command.run(context).await,
        }
    }
}

/// A container and the name of a blob, or the beginning of names.
fn split(path: &str) -> (&str, &str) {
    path.split_once('/').unwrap_or((path, ""))
}

#[derive(Args)]
pub(crate) struct List {
    /// Container, or container and beginning of names: CONTAINER/PREFIX
    #[arg(value_name = "PATH")]
    path: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl List {
    async fn run(self, context: &Context) -> Result<()> {
        let account = self.endpoint.connect(context, Service::Blob).await?;
        let Some(path) = &self.path else {
            let mut containers = account.blobs().list("");
            let mut output = self.output.open().with_columns(["name"]);
            while let Some(container) = containers.try_next().await? {
                output.write(&Fields::new().with("name", container.name))?;
            }
            return output.finish().map(drop);
        };
        let (container, prefix) = split(path);
        let mut blobs = account.container(container).list(prefix);
        let mut output = self.output.open().with_columns(["name", "bytes", "modified", "type"]);
        while let Some(blob) = blobs.try_next().await? {
            let fields = Fields::new().with("name", blob.name).with("bytes", blob.size);
            output.write(&fields.with("modified", blob.last_modified.to_string()).with("type", blob.content_type))?;
        }
        output.finish().map(drop)
    }
}

#[derive(Args)]
pub(crate) struct Remove {
    /// Blob to delete: CONTAINER/NAME; with --all the beginning of names
    #[arg(value_name = "PATH")]
    path: String,
    /// Delete all blobs of the container whose names begin with the name given
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl Remove {
    async fn run(self, context: &Context) -> Result<()> {
        let account = self.endpoint.connect(context, Service::Blob).await?;
        let (container, name) = split(&self.path);
        let container = account.container(container);
        if !self.all {
            if name.is_empty() {
                return Err(Error::Usage("expected CONTAINER/NAME, or --all for every blob".to_owned()));
            }
            return Ok(container.blob(name).delete(BlobCondition::Always).await?);
        }
        self.confirm.ask(&format!("Delete all blobs of {} that begin with '{name}'", container.url()))?;
        let progress = Progress::new("blobs deleted", None);
        let deleted = container.list(name).map_err(Error::from).try_for_each_concurrent(DELETES_AT_ONCE, |blob| {
            let (container, progress) = (&container, &progress);
            async move {
                progress.add(u64::from(container.blob(blob.name).delete_if_exists().await?));
                Ok::<(), Error>(())
            }
        });
        let outcome = deleted.await;
        let count = progress.count();
        drop(progress);
        eprintln!("{} deleted", counted(count, "blob", "blobs"));
        outcome
    }
}

#[derive(Args)]
pub(crate) struct Du {
    /// Container, or container and beginning of names [default: all containers]
    #[arg(value_name = "PATH")]
    path: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl Du {
    async fn run(self, context: &Context) -> Result<()> {
        let account = self.endpoint.connect(context, Service::Blob).await?;
        let mut output = self.output.open().with_columns(["name", "blobs", "bytes"]);
        let progress = Progress::new("blobs", None);
        if let Some(path) = &self.path {
            let (container, prefix) = split(path);
            let (blobs, bytes) = sum(&account, container, prefix, &progress).await?;
            output.write(&Fields::new().with("name", path.as_str()).with("blobs", blobs).with("bytes", bytes))?;
            return output.finish().map(drop);
        }
        let mut containers = account
            .blobs()
            .list("")
            .map_ok(|container| {
                let (account, progress) = (&account, &progress);
                async move { sum(account, &container.name, "", progress).await.map(|sum| (container.name, sum)) }
            })
            .map_err(Error::from)
            .try_buffered(LISTS_AT_ONCE);
        while let Some(container) = containers.next().await {
            let (name, (blobs, bytes)) = container?;
            output.write(&Fields::new().with("name", name).with("blobs", blobs).with("bytes", bytes))?;
        }
        output.finish().map(drop)
    }
}

/// The number of blobs and their bytes.
async fn sum(account: &Account, container: &str, prefix: &str, progress: &Progress) -> Result<(u64, u64)> {
    let mut list = account.container(container).list(prefix);
    let (mut blobs, mut bytes) = (0, 0);
    while let Some(blob) = list.try_next().await? {
        blobs += 1;
        bytes += blob.size;
        progress.add(1);
    }
    Ok((blobs, bytes))
}

const DELETES_AT_ONCE: usize = 8;
const LISTS_AT_ONCE: usize = 4;
