//! The binary: reads the settings, chooses the engine, starts the services, shuts them down cleanly.
//!
//! Exit codes: 0 after a clean shutdown, 2 for a setting or a command line that is refused, 6 if `advise --fail-on` found
//! something, 130 after an interrupt, 1 for any other failure. Commands on data have others too
//! (`larimar_tool::Error::exit_code`).

mod admin_token;
mod advise;
mod backup;
mod banner;
mod command_line;
mod compact;
mod data;
mod data_dir;
mod engines;
mod file_limit;
mod insights;
mod logging;
mod migrate;
mod own_server;
mod reload;
mod repair;
mod seed;
mod serve;
mod settings;
mod signals;
mod storage;

use advise::Found;
use anyhow::Context as _;
use command_line::{Command, CommandLine};
use larimar_server::TlsError;
use larimar_tool::output::escape;
use migrate::Interrupted;
use serve::EndedEarly;
use settings::{Environment, Resolved, SettingsError};
use signals::Runtime;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// A request makes dozens of small allocations; the system's allocator showed up with several percent in profiles.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything that takes time: a SIGHUP that nothing handles ends the process.
    let outcome = Runtime::start().and_then(|runtime| run(&CommandLine::parse(), runtime));
    let is_log_read = logging::flush(LOG_FLUSH_MAX);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if is_log_read {
                // Words of a file or a server may be in it, which must not send commands to a terminal.
                let lines: Vec<_> = format!("{error:#}").split('\n').map(escape).collect();
                eprintln!("larimar: {}", lines.join("\n"));
            }
            if error.is::<SettingsError>() || error.is::<TlsError>() {
                ExitCode::from(EXIT_REFUSED)
            } else if error.is::<Interrupted>() || error.is::<EndedEarly>() {
                ExitCode::from(EXIT_INTERRUPTED)
            } else if error.is::<Found>() {
                ExitCode::from(EXIT_FOUND)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run(line: &CommandLine, runtime: Runtime) -> anyhow::Result<()> {
    if let Command::Data(matches) = &line.command {
        data::run(matches, line, runtime);
    }
    if !matches!(
        line.command,
        Command::Serve
            | Command::Migrate(_)
            | Command::Compact
            | Command::Backup(_)
            | Command::Restore(_)
            | Command::IntoServer(_)
            | Command::Insights(_)
            | Command::Advise(_)
    ) {
        runtime.exit_on_hangup();
        return run_short(line);
    }
    data_dir::make_files_private();
    let resolved = resolve(line)?;
    match &line.command {
        Command::Migrate(migration) => migrate::run(&resolved, migration, runtime),
        Command::Compact => compact::run(&resolved, runtime),
        Command::Backup(backup) => backup::run(&resolved, backup, runtime),
        Command::Restore(restore) => restore.run(&resolved, runtime),
        Command::IntoServer(restore) => restore.run(&resolved, runtime),
        Command::Insights(asked) => asked.run(&resolved, runtime),
        Command::Advise(asked) => asked.run(&resolved, runtime),
        _ => serve::run(line, &resolved, runtime),
    }
}

/// Runs a command that needs no network.
fn run_short(line: &CommandLine) -> anyhow::Result<()> {
    match &line.command {
        Command::Completions(shell) => return print(|out| command_line::write_completions(*shell, out)),
        Command::Man => return print(|out| command_line::write_man(out)),
        _ => {}
    }
    data_dir::make_files_private();
    let resolved = resolve(line)?;
    match &line.command {
        Command::Repair { reset_clock: true, .. } => repair::reset_clock(&resolved),
        Command::Repair { force, .. } => repair::run(&resolved, *force),
        _ => print(|out| write!(out, "{resolved}")),
    }
}

/// The settings as they are now in file, environment and flags.
fn resolve(line: &CommandLine) -> Result<Resolved, SettingsError> {
    let environment = environment();
    let file = line.config_file(&environment)?;
    settings::resolve(file.as_ref(), &environment, &line.flags)
}

/// The environment of the process.
#[expect(clippy::disallowed_methods, reason = "the environment is a source of settings")]
fn environment() -> Environment {
    std::env::vars_os().collect()
}

/// Writes to standard output. A reader that stops early, such as `head`, is not an error.
fn print(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    match std::io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}

/// The code with which `clap` refuses a command line, used for every setting.
const EXIT_REFUSED: u8 = 2;

/// `larimar advise --fail-on` has found what it was to fail on. The data commands have the codes below.
const EXIT_FOUND: u8 = 6;

/// What shells report for a process that an interrupt ended.
const EXIT_INTERRUPTED: u8 = 130;

/// How long the process waits at its end until its log is written.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(1);
