//! The built server, started on free ports with a temporary data folder, and stopped as an operator would.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use super::ACCOUNT;
use crate::shell;

const START_TIME_MAX: Duration = Duration::from_secs(60);
const STOP_TIME_MAX: Duration = Duration::from_secs(60);
const LOG_TAIL_LINES: usize = 40;

/// A running server; dropped without `stop`, it is killed.
pub(super) struct Server {
    child: Option<Child>,
    endpoint: String,
    log: PathBuf,
}

impl Server {
    /// Starts the binary and waits until its banner names the table endpoint.
    pub(super) fn start(binary: &Path, work: &Path) -> Result<Self> {
        let log = work.join("server.log");
        let errors = File::create(&log).context("create the server's log")?;
        let mut command = Command::new(binary);
        command.args(["serve", "--host", "127.0.0.1", "--data-dir"]).arg(work.join("data"));
        for port in ["--table-port", "--queue-port", "--blob-port", "--admin-port"] {
            command.args([port, "0"]);
        }
        for (name, _) in std::env::vars_os() {
            if ["LARIMAR_", "AZURITE_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.current_dir(work).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
        let mut child = shell::spawn(&mut command)?;
        let banner = child.stdout.take().context("standard output is piped")?;
        let mut server = Self { child: Some(child), endpoint: String::new(), log };
        server.endpoint = endpoint_from(banner, errors).ok_or_else(|| {
            anyhow!("the server named no table endpoint within {START_TIME_MAX:?}; its log:\n{}", server.log_tail())
        })?;
        Ok(server)
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The last lines the server wrote.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }

    /// Asks the server to end and waits until it has; anything but a clean end is an error.
    pub(super) fn stop(mut self) -> Result<()> {
        let mut child = self.child.take().context("stopped once")?;
        if let Some(status) = child.try_wait()? {
            return Err(anyhow!("the server ended by itself with {status}"));
        }
        shell::terminate(&child)?;
        let status = shell::wait(&mut child, STOP_TIME_MAX).context("stop the server")?;
        ensure!(status.success(), "the server ended with {status} when asked to stop");
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

/// Copies standard output to the log, for as long as there is any, and returns the endpoint it names.
fn endpoint_from(banner: impl std::io::Read + Send + 'static, mut log: File) -> Option<String> {
    let lines = shell::lines_of(banner);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in lines {
            // A full disk shows in the suite; the log is only a help.
            let _ = writeln!(log, "{line}");
            if let Some(endpoint) = table_endpoint(&line) {
                let _ = sender.send(endpoint.to_owned());
            }
        }
    });
    receiver.recv_timeout(START_TIME_MAX).ok()
}

/// The table endpoint in a line of the banner; lines that tell of another service have none.
fn table_endpoint(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    if let Some(at) = lower.find("tableendpoint=") {
        return url_in(&line[at..]);
    }
    if !lower.contains("table") {
        return None;
    }
    url_in(line)
}

fn url_in(text: &str) -> Option<&str> {
    let url = &text[text.find("http://")?..];
    let end = url.find(|c: char| c.is_whitespace() || ";,\"'".contains(c)).unwrap_or(url.len());
    let url = url[..end].trim_end_matches('/');
    url.ends_with(&format!("/{ACCOUNT}")).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_tells_the_table_endpoint() {
        let found = Some("http://127.0.0.1:41234/devstoreaccount1");
        let cases = [
            ("  table   http://127.0.0.1:41234/devstoreaccount1", found),
            ("Table endpoint: http://127.0.0.1:41234/devstoreaccount1/", found),
            (
                "DefaultEndpointsProtocol=http;BlobEndpoint=http://127.0.0.1:1/devstoreaccount1;\
                 TableEndpoint=http://127.0.0.1:41234/devstoreaccount1;",
                found,
            ),
            ("  blob    http://127.0.0.1:41234/devstoreaccount1", None),
            ("  admin   http://127.0.0.1:41235/metrics", None),
            ("Larimar 0.1.0", None),
        ];
        for (line, endpoint) in cases {
            assert_eq!(table_endpoint(line), endpoint, "{line}");
        }
    }
}
