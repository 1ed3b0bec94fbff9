//! The binary: reads the settings, chooses the engine, starts the services, ends them cleanly.
//!
//! Exit codes: 0 after a clean end, 2 for a setting or a command line that is refused, 130 after an
//! interrupt, 1 for any other failure.

mod banner;
mod command_line;
mod data_dir;
mod engines;
mod file_limit;
mod logging;
mod migrate;
mod reload;
mod repair;
mod serve;
mod settings;
mod signals;
mod storage;

use command_line::{Command, CommandLine};
use larimar_server::TlsError;
use migrate::Interrupted;
use serve::EndedEarly;
use settings::{Resolved, SettingsError};
use std::io::Write;
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
            } else if error.is::<Interrupted>() || error.is::<EndedEarly>() {
                ExitCode::from(EXIT_INTERRUPTED)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run(line: &CommandLine) -> anyhow::Result<()> {
    match &line.command {
        Command::Completions(shell) => return print(|out| command_line::write_completions(*shell, out)),
        Command::Man => return print(|out| command_line::write_man(out)),
        _ => {}
    }
    data_dir::make_files_private();
    let resolved = resolve(line)?;
    match &line.command {
        Command::Serve => serve::run(line, &resolved),
        Command::Config => print(|out| write!(out, "{resolved}")),
        Command::Repair { reset_clock: true, .. } => repair::reset_clock(&resolved),
        Command::Repair { force, .. } => repair::run(&resolved, *force),
        Command::Migrate(migration) => migrate::run(&resolved, migration),
        Command::Completions(_) | Command::Man => Ok(()),
    }
}

/// The settings as they are now in file, environment and flags.
fn resolve(line: &CommandLine) -> Result<Resolved, SettingsError> {
    let environment = std::env::vars_os().collect();
    let file = line.config_file(&environment)?;
    settings::resolve(file.as_ref(), &environment, &line.flags)
}

/// Writes to standard output. A reader that has seen enough, such as `head`, is no error.
fn print(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    match std::io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// The code with which `clap` refuses a command line, used for every setting.
const EXIT_REFUSED: u8 = 2;

/// What shells report for a process that an interrupt ended.
const EXIT_INTERRUPTED: u8 = 130;
