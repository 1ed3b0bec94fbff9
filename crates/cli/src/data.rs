//! Runs a command on data and ends the process with its exit code.

use crate::banner;
use crate::command_line::CommandLine;
use crate::signals::Runtime;
use clap::ArgMatches;
use larimar_tool::output::escape;
use larimar_tool::{Context, Error, LocalServer};
use std::io::IsTerminal as _;
use std::time::Duration;

/// Runs the command. A signal interrupts it.
pub(crate) fn run(matches: &ArgMatches, line: &CommandLine, runtime: Runtime) -> ! {
    let context = Context::new(crate::environment(), local(line));
    let (matches, uploads) = (matches.clone(), context.uploads.clone());
    let outcome = runtime.block_on(async |mut signals| {
        // On threads of its own: a write to a pipe that nobody reads, or a read from a terminal, blocks a thread, and
        // signals must be handled all the same.
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("larimar-data").build()?;
        let mut command = threads.spawn(larimar_tool::run(matches, context));
        let outcome = tokio::select! {
            outcome = &mut command => outcome.unwrap_or_else(|panic| Err(Error::Failed(panic.to_string()))),
            _ = signals.end() => {
                command.abort();
                // So that it removes its progress bar and the like.
                let _ = tokio::time::timeout(ABORT_MAX, command).await;
                // So that no parts of an object stay in a store; a second signal ends that too.
                tokio::select! {
                    () = uploads.closed() => {}
                    _ = signals.end() => {}
                }
                Err(Error::Interrupted)
            }
        };
        // The threads are not waited for: they may be blocked.
        exit(outcome)
    });
    exit(outcome.unwrap_or_else(|error| Err(Error::Failed(error.to_string()))))
}

fn exit(outcome: Result<(), Error>) -> ! {
    let code = match outcome {
        Ok(()) => 0,
        Err(error) => {
            if !matches!(error, Error::OutputClosed) {
                if std::io::stderr().is_terminal() {
                    // A command that is interrupted in the middle of a write has not removed its progress bar.
                    eprint!("\r\x1b[2K");
                }
                // Words of the service are in it, which must not send commands to a terminal.
                eprintln!("larimar: {}", escape(&error.to_string()));
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
