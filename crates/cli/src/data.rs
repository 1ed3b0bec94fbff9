//! Runs a command on data and ends the process with its exit code.

use crate::banner;
use crate::command_line::CommandLine;
use crate::signals::Runtime;
use clap::ArgMatches;
use larimar_tool::{Context, Error, LocalServer};
use std::time::Duration;

/// Runs the command. A signal interrupts it.
pub(crate) fn run(matches: &ArgMatches, line: &CommandLine, runtime: Runtime) -> ! {
    let context = Context { environment: crate::environment(), local: local(line) };
    let matches = matches.clone();
    let outcome = runtime.block_on(async |mut signals| {
        // In a task of its own: a write to a pipe that nobody reads would keep signals from being handled.
        let mut command = tokio::spawn(larimar_tool::run(matches, context));
        let outcome = tokio::select! {
            outcome = &mut command => outcome.unwrap_or_else(|panic| Err(Error::Failed(panic.to_string()))),
            _ = signals.end() => {
                command.abort();
                // So that it removes its progress bar and the like.
                let _ = tokio::time::timeout(ABORT_MAX, command).await;
                Err(Error::Interrupted)
            }
        };
        // The runtime is not dropped: that would wait for blocked threads.
        exit(outcome)
    });
    exit(outcome.unwrap_or_else(|error| Err(Error::Failed(error.to_string()))))
}

fn exit(outcome: Result<(), Error>) -> ! {
    let code = match outcome {
        Ok(()) => 0,
        Err(error) => {
            if !matches!(error, Error::OutputClosed) {
                eprintln!("larimar: {error}");
            }
            error.exit_code()
        }
    };
    std::process::exit(i32::from(code))
}

/// The server that the settings here describe.
fn local(line: &CommandLine) -> Result<LocalServer, String> {
    let settings = crate::resolve(line).map_err(|error| error.to_string())?.settings;
    let connection_string = banner::local_connection_string(&settings).ok_or("it has no account")?;
    Ok(LocalServer { connection_string, certificate: settings.tls_certificate })
}

/// How long an interrupted command may take to end.
const ABORT_MAX: Duration = Duration::from_millis(500);
