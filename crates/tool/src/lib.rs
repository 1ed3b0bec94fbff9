//! The commands of the `larimar` binary that work on data: they talk to any endpoint of the protocol through
//! `larimar-client`.
//!
//! The binary adds [`add_commands`] to its own and gives the rest to [`run`]. `endpoint.rs` finds the account,
//! `output.rs` prints records, `progress.rs` shows how far a command is, `ranges.rs` reads a table in parallel, and
//! `error.rs` has the exit codes.

pub mod admin;
mod blob;
mod confirm;
mod copy;
pub mod design;
pub mod endpoint;
mod error;
mod export;
pub mod format;
mod import;
pub mod location;
pub mod output;
pub mod progress;
mod queue;
pub mod ranges;
pub mod seed;
mod table;
pub mod value;

pub use endpoint::{Context, Environment, LocalServer};
pub use error::{Error, Result};

use clap::{ArgMatches, FromArgMatches as _, Subcommand};

/// The commands that work on data.
#[derive(Subcommand)]
enum DataCommand {
    /// Show and change tables and their entities
    #[command(subcommand, arg_required_else_help = true)]
    Table(table::TableCommand),
    /// Copy tables, queues and blobs from one account to another
    Copy(copy::CopyCommand),
    /// Show, put, drain and move messages
    #[command(subcommand, arg_required_else_help = true)]
    Queue(queue::QueueCommand),
    /// Show, read, write and delete blobs
    #[command(subcommand, arg_required_else_help = true)]
    Blob(blob::BlobCommand),
    /// Write tables to files: CSV, JSON lines or Parquet
    Export(export::Export),
    /// Write the rows of files to a table
    Import(import::Import),
    /// Propose keys for an entity from its queries and writes
    Design(Box<design::DesignCommand>),
}

/// Adds the commands that work on data to the commands of a binary.
#[must_use]
pub fn add_commands(command: clap::Command) -> clap::Command {
    let about = command.get_about().cloned();
    // The description of the enumeration would take the place of the command's own.
    DataCommand::augment_subcommands(command).about(about.unwrap_or_default())
}

/// Whether a command of this name works on data.
#[must_use]
pub fn is_command(name: &str) -> bool {
    DataCommand::has_subcommand(name)
}

/// Runs the command that was given. Dropping the future interrupts it, at any point.
///
/// # Errors
/// Why the command failed; the error has the exit code.
pub async fn run(matches: ArgMatches, context: Context) -> Result<()> {
    let command = DataCommand::from_arg_matches(&matches).map_err(|error| Error::Usage(error.to_string()))?;
    match command {
        DataCommand::Table(command) => command.run(&context).await,
        DataCommand::Copy(command) => command.run(&context).await,
        DataCommand::Queue(command) => command.run(&context).await,
        DataCommand::Blob(command) => command.run(&context).await,
        DataCommand::Export(command) => command.run(&context).await,
        DataCommand::Import(command) => command.run(&context).await,
        DataCommand::Design(command) => command.run(&context).await,
    }
}
