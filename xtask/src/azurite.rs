//! Azurite, the other emulator, for the suite that the client passes against it too (`crates/client/tests/azurite.rs`)
//! and for copies to it and back (`crates/tool/tests/copy/azurite.rs`).
//!
//! It is installed from npm below `target/` on first use and started with tables, queues and blobs in memory. A plain
//! `cargo test` ignores the suite; here it runs, with [`VARIABLE`] set to the connection string. Where Azurite cannot be
//! installed the suite counts as skipped, with a line that says why.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};

use crate::build::Built;
use crate::examples;
use crate::output;
use crate::runner::{self, Round};
use crate::sdk::{Service, WorkFolder};
use crate::shell::{self, Repo};
use crate::tally::Tally;

/// The connection string for the tests.
const VARIABLE: &str = "LARIMAR_TEST_AZURITE";

/// The release, which the benchmark compares with too.
const VERSION: &str = include_str!("../../tests/azurite.version").trim_ascii();

const PACKAGE: &str = "larimar-client";
const SUITE: [&str; 1] = ["azurite::"];
const COPY_PACKAGE: &str = "larimar-tool";
const COPY_SUITE: [&str; 1] = ["copy::azurite::"];
const TESTS_AT_ONCE: usize = 2;
const INSTALL_TIME_MAX: Duration = Duration::from_secs(10 * 60);
const START_TIME_MAX: Duration = Duration::from_secs(60);
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// `cargo xtask azurite`.
pub(crate) fn command(repo: &Repo) -> Result<Tally> {
    let features = "larimar-client/queue,larimar-client/blob";
    let mut build = repo.cargo(&[
        "test",
        "--no-run",
        "--package",
        PACKAGE,
        "--package",
        COPY_PACKAGE,
        "--package",
        "larimar-patterns",
    ]);
    let built = Built::of(build.args(["--features", features]))?;
    let (mut tally, suite) = client_suite(repo, &built);
    tally += suite;
    Ok(tally)
}

/// Runs the examples of the patterns and the client's suite over Azurite. The suite is counted apart: a run of all tests
/// has counted its tests as skipped.
pub(crate) fn client_suite(repo: &Repo, built: &Built) -> (Tally, Tally) {
    let mut tally = Tally::default();
    let mut suite = Tally::default();
    let script = match install(repo) {
        Ok(script) => script,
        Err(error) => {
            tally.skip("client over Azurite", &format!("{error:#}"));
            return (tally, suite);
        }
    };
    match Azurite::start(&script) {
        Ok(azurite) => {
            let connection_string = azurite.connection_string.as_str();
            let rounds = [(PACKAGE, &SUITE), (COPY_PACKAGE, &COPY_SUITE)].map(|(package, names)| {
                Round::ignored(&built.tests, package, names).with([(VARIABLE, connection_string)]).on("Azurite")
            });
            suite = runner::run(repo, &format!("client over Azurite {VERSION}"), &rounds, TESTS_AT_ONCE);
            tally += examples::run_patterns_over(connection_string, repo, built).on("Azurite");
        }
        Err(error) => tally.fail(format!("client over Azurite: {error:#}")),
    }
    (tally, suite)
}

/// Installs the release unless it is there, and returns the script that starts it.
pub(crate) fn install(repo: &Repo) -> Result<PathBuf> {
    for program in ["node", "npm"] {
        ensure!(shell::on_path(program), "no '{program}' on this machine");
    }
    let folder = repo.path("target/azurite");
    let script = folder.join("node_modules/.bin/azurite");
    if is_installed(&folder) {
        return Ok(script);
    }
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let mut npm = repo.command("npm", ".");
    npm.args(["install", &format!("azurite@{VERSION}"), "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
    let status = shell::run(npm.arg(&folder), INSTALL_TIME_MAX)?;
    ensure!(status.success() && is_installed(&folder), "npm could not install Azurite: it ended with {status}");
    Ok(script)
}

fn is_installed(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("node_modules/azurite/package.json"));
    manifest.is_ok_and(|text| text.contains(&format!("\"version\": \"{VERSION}\"")))
}

/// A running Azurite; dropped, it is killed.
struct Azurite {
    child: Child,
    connection_string: String,
    /// Read for as long as it runs: Azurite would block on a full pipe.
    _lines: Receiver<String>,
    _work: WorkFolder,
}

impl Azurite {
    /// Starts the script with all services on free ports, and waits until it has printed the address of each.
    fn start(script: &Path) -> Result<Self> {
        let work = WorkFolder::create("azurite")?;
        let mut command = std::process::Command::new("node");
        command.arg(script).args(["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
        for port in ["--tablePort", "--queuePort", "--blobPort"] {
            command.args([port, "0"]);
        }
        command.current_dir(&work.0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(output::stdio());
        let mut child = shell::spawn(&mut command)?;
        let lines = shell::lines_of(child.stdout.take().context("standard output is piped")?);
        match connection_string(&lines, Instant::now() + START_TIME_MAX) {
            Ok(connection_string) => Ok(Self { child, connection_string, _lines: lines, _work: work }),
            Err(error) => {
                shell::kill_tree(&mut child);
                Err(error)
            }
        }
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        shell::kill_tree(&mut self.child);
    }
}

/// Reads the output of a starting Azurite until it has printed the address of every service.
fn connection_string(lines: &Receiver<String>, deadline: Instant) -> Result<String> {
    let mut endpoints = Service::ALL.map(|service| (service.name(), None));
    let mut printed = String::new();
    while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        for (service, endpoint) in &mut endpoints {
            let announcement = format!("Azurite {service} service is successfully listening at ");
            if let Some(address) = line.strip_prefix(&announcement) {
                *endpoint = Some(format!("{service}Endpoint={}/{ACCOUNT};", address.trim()));
            }
        }
        if let [(_, Some(table)), (_, Some(queue)), (_, Some(blob))] = &endpoints {
            let account = format!("DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};");
            return Ok(format!("{account}{table}{queue}{blob}"));
        }
        printed.push_str(&line);
        printed.push('\n');
    }
    // Its errors go to the terminal on their own; give them time to arrive there first.
    thread::sleep(Duration::from_millis(100));
    bail!("it did not print where it listens; it printed:\n{printed}")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn parse(lines: &[&str]) -> Result<String> {
        let (sender, receiver) = mpsc::channel();
        for line in lines {
            sender.send((*line).to_owned()).expect("it is read");
        }
        drop(sender);
        connection_string(&receiver, Instant::now() + START_TIME_MAX)
    }

    #[test]
    fn the_announcements_of_all_services_make_a_connection_string() {
        let text = parse(&[
            "Azurite Blob service is starting at http://127.0.0.1:0",
            "Azurite Blob service is successfully listening at http://127.0.0.1:1",
            "Azurite Queue service is successfully listening at http://127.0.0.1:2",
            "Azurite Table service is successfully listening at http://127.0.0.1:3",
        ])
        .expect("all services listen");
        assert!(text.contains("BlobEndpoint=http://127.0.0.1:1/devstoreaccount1;"), "{text}");
        assert!(text.contains("QueueEndpoint=http://127.0.0.1:2/devstoreaccount1;"), "{text}");
        assert!(text.contains("TableEndpoint=http://127.0.0.1:3/devstoreaccount1;"), "{text}");
        assert!(text.contains("AccountName=devstoreaccount1;AccountKey=Eby8"), "{text}");
    }

    #[test]
    fn an_azurite_that_ends_early_is_an_error_with_what_it_said() {
        let error = parse(&["Azurite Blob service is successfully listening at http://127.0.0.1:1", "Exit due to …"]);
        assert!(error.expect_err("two services are missing").to_string().contains("Exit due to"));
    }

    #[test]
    fn another_release_does_not_count_as_installed() {
        let folder = std::env::temp_dir().join(format!("larimar-xtask-azurite-{}", std::process::id()));
        let manifest = folder.join("node_modules/azurite/package.json");
        fs::create_dir_all(manifest.parent().expect("a folder")).expect("create");
        assert!(!is_installed(&folder));
        fs::write(&manifest, "{\n  \"version\": \"0.0.1\"\n}").expect("write");
        assert!(!is_installed(&folder));
        fs::write(&manifest, format!("{{\n  \"version\": \"{VERSION}\"\n}}")).expect("write");
        assert!(is_installed(&folder));
        fs::remove_dir_all(&folder).expect("remove");
    }
}
