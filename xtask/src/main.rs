//! Repository chores: `cargo xtask <command>`.
//!
//! Each command is a module, named like it; `everything` is `test`, `gate` is `check`, `chores` are the long runs. They
//! share `build` (what Cargo built), `runner` (tests side by side), `shell` (processes), `output` (what is printed) and
//! `tally` (what passed, failed and was skipped).

#![allow(clippy::disallowed_methods, reason = "a tool takes its settings from the environment, and the time as it is")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod advisories;
mod api;
mod azurite;
mod build;
mod chores;
mod compat;
mod console;
mod debian;
mod deploy;
mod everything;
mod examples;
mod features;
mod gate;
mod output;
mod packages;
mod postgres;
mod programs;
mod replay;
mod runner;
mod sdk;
mod shell;
mod tally;
mod tidy;

use shell::Repo;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Repository chores", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The gate before a commit: fmt, clippy, doc, tidy, unit tests
    Check,
    /// House rules: dependency directions, licences, sizes, opening comments, machine paths, secrets
    Tidy {
        /// Lower the ratchet to today's sizes; it never raises one
        #[arg(long)]
        tighten: bool,
    },
    /// All tests: of the workspace, on both engines, of the examples, the SDKs and other programs; lints and house rules;
    /// freshness of docs/compat.md. Takes up to 15 minutes; `--full` takes up to 40
    Test(everything::TestOptions),
    /// One SDK's suite against the built server, or against one that runs already
    Sdk(sdk::SdkOptions),
    /// Programs that others wrote against the built server: the Azure CLI, rclone, DuckDB, restic and others
    Programs(programs::ProgramOptions),
    /// The web console: its lints and unit tests, whether the page in the server is current, its tests in a browser
    Console(console::ConsoleOptions),
    /// Recordings of the real service against the built server, on both engines
    Replay {
        /// The folder or archive of recordings
        recordings: PathBuf,
    },
    /// The crates for users: interfaces as listed in docs/api and free of inner crates; packages ready to publish
    Api {
        /// Rewrite the listings
        #[arg(long)]
        bless: bool,
    },
    /// Builds and runs the examples of the crates for users
    Examples,
    /// The client's suite and the examples of the patterns over Azurite, which is installed if it is missing
    Azurite,
    /// Saves a small store of today's formats, embedded and in PostgreSQL, as test data for later releases
    Stores,
    /// The crash test for this many rounds of kill and restart
    Crash { rounds: u32 },
    /// A fuzz target for this many seconds (needs a nightly toolchain)
    Fuzz { target: String, seconds: u32 },
    /// The load generator on release builds; arguments go to it, `--help` too
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the command's work came out well; an error is a command that could not do its work.
fn run(command: Command) -> Result<bool> {
    let repo = Repo::find()?;
    match command {
        Command::Check => Ok(gate::check(&repo).finish()),
        Command::Tidy { tighten } => tidy::run(&repo, tighten),
        Command::Test(options) => Ok(everything::test(&repo, &options).finish()),
        Command::Sdk(options) => Ok(sdk::command(&repo, &options)?.finish()),
        Command::Programs(options) => Ok(programs::command(&repo, &options)?.finish()),
        Command::Console(options) => Ok(console::command(&repo, &options)?.finish()),
        Command::Replay { recordings } => Ok(replay::command(&repo, &recordings)?.finish()),
        Command::Api { bless } => {
            let mut tally = api::check(&repo, bless);
            tally += packages::check(&repo);
            Ok(tally.finish())
        }
        Command::Examples => Ok(examples::command(&repo)?.finish()),
        Command::Azurite => Ok(azurite::command(&repo)?.finish()),
        Command::Stores => chores::stores(&repo),
        Command::Crash { rounds } => chores::crash(&repo, rounds),
        Command::Fuzz { target, seconds } => chores::fuzz(&repo, &target, seconds),
        Command::Bench { arguments } => chores::bench(&repo, &arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn bench_hands_its_arguments_on() {
        let arguments = Arguments::parse_from(["xtask", "bench", "--connections", "16", "--help"]);
        let Command::Bench { arguments } = arguments.command else { panic!("not bench") };
        assert_eq!(arguments, ["--connections", "16", "--help"]);
    }
}
