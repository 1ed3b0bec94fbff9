//! The built server, started on free ports with a temporary data folder, and stopped as an operator would.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use super::service::Endpoints;
use crate::say;
use crate::shell;

const START_TIME_MAX: Duration = Duration::from_secs(60);
const STOP_TIME_MAX: Duration = Duration::from_secs(60);
const LOG_TAIL_LINES: usize = 40;

/// How a server is to differ from the usual one.
#[derive(Debug, Default)]
pub(crate) struct ServerOptions<'a> {
    /// The URL of a database to run on.
    pub(crate) database: Option<&'a str>,
    /// Further arguments of `serve`.
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// A running server; dropped without `stop`, it is killed.
pub(crate) struct Server {
    child: Option<Child>,
    endpoints: Endpoints,
    log: PathBuf,
}

impl Server {
    /// Does some work against a server; when that went badly, or the server ended badly, its log is shown.
    pub(crate) fn run(
        binary: &Path,
        folder: &Path,
        options: &ServerOptions<'_>,
        work: impl FnOnce(&Endpoints) -> Result<bool>,
    ) -> Result<()> {
        let server = Self::start(binary, folder, options)?;
        let worked = work(server.endpoints());
        let log = server.log_tail();
        let stopped = server.stop();
        if stopped.is_err() || !matches!(worked, Ok(true)) {
            say!("The server's log ended with:\n{log}");
        }
        worked?;
        stopped
    }

    /// Starts the binary, on a database if a URL names one, and waits for the connection string in its banner.
    fn start(binary: &Path, work: &Path, options: &ServerOptions<'_>) -> Result<Self> {
        let log = work.join("server.log");
        let errors = File::create(&log).context("create the server's log")?;
        let mut command = Command::new(binary);
        command.args(["serve", "--host", "127.0.0.1", "--data-dir"]).arg(work.join("data"));
        for port in ["--table-port", "--queue-port", "--blob-port", "--admin-port"] {
            command.args([port, "0"]);
        }
        // Suites look for what analytics wrote; they should not wait for it longer than they must.
        command.args(["--analytics-flush", "1s"]);
        if let Some(url) = options.database {
            // The database has no place for the bytes of blobs.
            command.args(["--engine", url, "--blob-store", &format!("file://{}", work.join("blobs").display())]);
        }
        for (name, _) in std::env::vars_os() {
            if ["LARIMAR_", "AZURITE_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.args(&options.arguments).envs(options.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(work).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
        let mut child = shell::spawn(&mut command)?;
        let banner = child.stdout.take().context("standard output is piped")?;
        match endpoints_from(banner, errors) {
            Some(endpoints) => Ok(Self { child: Some(child), endpoints, log }),
            None => {
                shell::kill_tree(&mut child);
                let tail = tail_of(&log);
                Err(anyhow!("the server printed no connection string within {START_TIME_MAX:?}; its log:\n{tail}"))
            }
        }
    }

    fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The last lines the server wrote.
    fn log_tail(&self) -> String {
        tail_of(&self.log)
    }

    /// Asks the server to end and waits until it has; anything but a clean end is an error.
    fn stop(mut self) -> Result<()> {
        let mut child = self.child.take().context("stopped once")?;
        if let Some(status) = child.try_wait()? {
            return Err(anyhow!("the server ended by itself with {status}"));
        }
        shell::terminate(&child)?;
        let status = shell::wait(&mut child, STOP_TIME_MAX).context("stop the server")?;
        ensure!(status.success(), "the server ended with {status} after SIGTERM");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            shell::kill_tree(child);
        }
    }
}

fn tail_of(log: &Path) -> String {
    let log = fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

/// Copies standard output to the log, for as long as there is any, and returns the endpoints it names.
fn endpoints_from(banner: impl std::io::Read + Send + 'static, mut log: File) -> Option<Endpoints> {
    let lines = shell::lines_of(banner);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in lines {
            // A full disk shows in the suite; the log is only a help.
            let _ = writeln!(log, "{line}");
            let text = line.find("DefaultEndpointsProtocol=").map_or("", |at| &line[at..]);
            if let Ok(endpoints) = text.parse() {
                let _ = sender.send(endpoints);
            }
        }
    });
    receiver.recv_timeout(START_TIME_MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell in the server's place: its first argument, `serve`, is a script in its folder.
    fn stand_in(name: &str, script: &str) -> PathBuf {
        let work = std::env::temp_dir().join(format!("larimar-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&work).expect("create");
        fs::write(work.join("serve"), script).expect("write");
        work
    }

    const BANNER: &str = "echo \"$*\"; echo '  connection string  \
        DefaultEndpointsProtocol=http;AccountName=a;AccountKey=k;TableEndpoint=http://127.0.0.1:7/a;'";

    #[test]
    fn a_server_is_started_on_free_ports_and_stopped_by_a_signal() {
        let script = format!("trap 'exit 0' TERM; {BANNER}; while :; do sleep 0.1; done");
        let work = stand_in("clean", &script);
        let options = ServerOptions { database: Some("postgres://h/d"), ..ServerOptions::default() };
        let server = Server::start(Path::new("sh"), &work, &options).expect("starts");
        let expected = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=k;TableEndpoint=http://127.0.0.1:7/a;";
        assert_eq!(server.endpoints(), &expected.parse().expect("a connection string"));
        assert!(server.log_tail().contains("--host 127.0.0.1"), "{}", server.log_tail());
        assert!(server.log_tail().contains("--table-port 0 --queue-port 0"), "{}", server.log_tail());
        assert!(server.log_tail().contains("--engine postgres://h/d"), "{}", server.log_tail());
        server.stop().expect("stops");
        fs::remove_dir_all(&work).expect("remove");
    }

    #[test]
    fn a_server_that_ends_badly_is_an_error() {
        let work = stand_in("silent", "echo no luck >&2; exit 1");
        let error = Server::start(Path::new("sh"), &work, &ServerOptions::default())
            .map(|_| ())
            .expect_err("prints no connection string");
        assert!(error.to_string().contains("no luck"), "{error}");

        let work = stand_in("silent", &format!("trap 'exit 3' TERM; {BANNER}; while :; do sleep 0.1; done"));
        let error = Server::start(Path::new("sh"), &work, &ServerOptions::default())
            .expect("starts")
            .stop()
            .expect_err("ends with 3");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        fs::remove_dir_all(&work).expect("remove");
    }
}
