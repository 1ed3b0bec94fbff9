//! The commands of the `larimar` binary that work on data: they talk to any endpoint of the protocol through
//! `larimar-client`.
//!
//! The binary adds [`add_commands`] to its own and gives the rest to [`run`]. `endpoint.rs` finds the account,
//! `output.rs` prints records, `progress.rs` shows how far a command is, `ranges.rs` reads a table in parallel, and
//! `error.rs` has the exit codes.

pub mod admin;
mod confirm;
mod copy;
pub mod endpoint;
mod error;
pub mod output;
pub mod progress;
pub mod ranges;
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
}

/// Adds the commands that work on data to the commands of a binary.
#[must_use]
pub fn add_commands(command: clap::Command) -> clap::Command {
    DataCommand::augment_subcommands(command)
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
    }
}
