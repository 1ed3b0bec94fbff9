//! Load generator and comparison benchmark: Larimar, Azurite and a bare HTTP server in the same run, or Larimar over
//! PostgreSQL and pgbench (`postgres`). The Queue and Blob services are measured by `storage`, the Rust client beside raw
//! requests by `client`.
//!
//! `cargo xtask bench` builds the server and runs this. The flow: `settings` decides what to measure, `run`
//! starts the servers (`target`) and measures them in turns (`measure`, `workload`, `request`, `http`),
//! `goals` compares with what the project promises, `report` and `chart` write it down.

#![allow(clippy::disallowed_methods, reason = "a tool takes its settings from the environment, and the time as it is")]

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::settings::Engine;
use crate::target::Service;

mod azurite;
mod bare;
mod chart;
mod check;
mod client;
mod dataset;
mod goals;
mod histogram;
mod http;
mod machine;
mod measure;
mod postgres;
mod processes;
mod report;
mod request;
mod results;
mod run;
mod settings;
mod sign;
mod storage;
mod target;
mod workload;

/// The server's allocator: the engine alone, which runs in this program, is to have the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Larimar beside Azurite and a bare HTTP server, or over PostgreSQL beside pgbench.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: settings::Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Answers every request with the same bytes (started by a run, as a process of its own).
    Bare {
        #[arg(long)]
        port: u16,
        #[arg(long)]
        body_bytes: usize,
    },
    /// Serves the files of a folder, and takes new ones (started by a run likewise).
    Files {
        #[arg(long)]
        port: u16,
        #[arg(long)]
        folder: PathBuf,
    },
    /// Makes so many point gets, one after another, for a tool that counts instructions.
    Gets {
        by: client::gets::By,
        gets: u64,
        #[command(flatten)]
        flags: Box<settings::Flags>,
    },
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Bare { port, body_bytes }) => return bare::serve(port, body_bytes),
        Some(Command::Files { port, folder }) => return storage::files::serve(port, &folder),
        Some(Command::Gets { by, gets, flags }) => {
            let settings = settings::Settings::new(*flags)?;
            return runtime()?.block_on(until_stopped(client::gets::run(&settings, by, gets)));
        }
        None => {}
    }
    let settings = settings::Settings::new(cli.flags)?;
    let runtime = runtime()?;
    let facts = machine::facts(&settings)?;
    match settings.engine {
        Engine::Local if settings.client => {
            let pairs = runtime.block_on(until_stopped(client::run(&settings)))?;
            client::report::write(&settings, &facts, &pairs)
        }
        Engine::Local => {
            if settings.services.contains(&Service::Table) {
                let results = runtime.block_on(until_stopped(run::run(&settings)))?;
                report::write(&settings, &facts, &results)?;
            }
            if settings.services.iter().any(|&service| service != Service::Table) {
                let results = runtime.block_on(until_stopped(storage::run(&settings)))?;
                storage::report::write(&settings, &facts, &results)?;
            }
            Ok(())
        }
        Engine::Postgres => {
            let results = runtime.block_on(until_stopped(postgres::run(&settings)))?;
            postgres::report::write(&settings, &facts, &results)
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs until the end or until a signal; ending drops the servers, which ends their processes.
async fn until_stopped<T>(run: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::select! {
        results = run => results,
        stopped = stop_signal() => Err(stopped.map_or_else(Into::into, |()| anyhow::anyhow!("stopped by a signal"))),
    }
}

/// Returns when the process gets a signal to stop.
async fn stop_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
