//! The binary: reads the settings, chooses the engine, starts the services, ends them cleanly.
//!
//! Exit codes: 0 after a clean end, 2 for a setting or a command line that is refused, 130 after an
//! interrupt, 1 for any other failure.

mod banner;
mod command_line;
mod engines;
mod file_limit;
mod logging;
mod migrate;
mod repair;
mod serve;
mod settings;
mod signals;
mod storage;

use command_line::{Command, CommandLine};
use larimar_server::TlsError;
use migrate::Interrupted;
use settings::{Resolved, SettingsError};
use std::process::ExitCode;

/// A request makes dozens of small allocations; the system's allocator showed up with several percent in profiles.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(&CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("larimar: {error:#}");
            if error.is::<SettingsError>() || error.is::<TlsError>() {
                ExitCode::from(EXIT_REFUSED)
            } else if error.is::<Interrupted>() {
                ExitCode::from(EXIT_INTERRUPTED)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run(line: &CommandLine) -> anyhow::Result<()> {
    let file = line.config_file(|variable| std::env::var_os(variable))?;
    let resolved: Resolved = settings::resolve(file.as_ref(), |variable| std::env::var_os(variable), &line.flags)?;
    match &line.command {
        Command::Serve => serve::run(&resolved),
        Command::Config => {
            print!("{resolved}");
            Ok(())
        }
        Command::Repair { reset_clock: true, .. } => repair::reset_clock(&resolved),
        Command::Repair { force, .. } => repair::run(&resolved, *force),
        Command::Migrate(migration) => migrate::run(&resolved, migration),
    }
}

/// The code with which `clap` refuses a command line, used for every setting.
const EXIT_REFUSED: u8 = 2;

/// What shells report for a process that an interrupt ended.
const EXIT_INTERRUPTED: u8 = 130;
