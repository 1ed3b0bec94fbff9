//! Programs that others wrote, run against the built server: each is a script in `tests/programs/<name>`.
//!
//! A script prints `result: NAME VERSION: WHAT` when all was as it should be; the table in the README is made from these
//! lines. A program that is not on this machine and cannot be installed counts as skipped, with the reason; a script that
//! finds out later exits with [`SKIPPED`] and prints the reason as its last line.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::debian;
use crate::gate;
use crate::postgres;
use crate::say;
use crate::sdk::install::{self, Packages};
use crate::sdk::{Server, ServerOptions, WorkFolder};
use crate::shell::{self, Repo};
use crate::tally::Tally;

mod table;
mod tls;

const SCRIPT: &str = "run.py";
const FOLDER: &str = "tests/programs";
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(15 * 60);
const RESULT: &str = "result: ";

/// The exit code of a script that cannot run its program on this machine.
const SKIPPED: i32 = 77;

/// The names are the folders below `tests/programs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// The Azure CLI, installed from its packages
    Az,
    /// rclone, as the machine has it or Debian's package brings it
    Rclone,
    /// pyarrow's AzureFileSystem
    Pyarrow,
    /// DuckDB's azure extension
    Duckdb,
    /// adlfs, files with attributes
    Adlfs,
    /// deltalake, eight writers at once
    Deltalake,
    /// celery, tasks in queues and results in blobs
    Celery,
    /// restic over TLS, in host style
    Restic,
    /// pgBackRest over TLS, in host style
    Pgbackrest,
    /// gocloud's conformance suite for drivers
    Gocloud,
    /// thanos' acceptance test for object stores
    Thanos,
    /// Prometheus: metrics, alert rules, and the queries of the dashboard
    Prometheus,
    /// The legacy Java SDK 8.6
    JavaLegacy,
    /// The legacy Rust crates 0.21
    RustLegacy,
}

#[derive(Args)]
pub(crate) struct ProgramOptions {
    /// Which ones; all if none is named
    programs: Vec<Program>,
    /// Rewrite the table in README.md from this run's results
    #[arg(long)]
    bless: bool,
}

/// What became of a program that ran.
enum Outcome {
    /// With the line that its script printed.
    Passed(table::Row),
    Skipped(String),
}

impl Program {
    /// Whether it takes seconds, its installation included, and so is part of the default run. The Azure CLI and Prometheus
    /// are large to install; most of the others are compiled first.
    pub(crate) fn takes_seconds(self) -> bool {
        use Program::{Az, Gocloud, JavaLegacy, Pgbackrest, Prometheus, RustLegacy, Thanos};
        !matches!(self, Az | Pgbackrest | Gocloud | Thanos | Prometheus | JavaLegacy | RustLegacy)
    }

    /// Whether the repository pins the version; packages of the system have the version of the system.
    fn is_pinned(self) -> bool {
        !matches!(self, Self::Rclone | Self::Restic | Self::Pgbackrest | Self::Prometheus)
    }

    /// Whether its server speaks TLS and has the account in the host name.
    fn wants_tls(self) -> bool {
        matches!(self, Self::Restic | Self::Pgbackrest)
    }

    fn name(self) -> String {
        let value = self.to_possible_value().expect("no variant is hidden");
        value.get_name().to_owned()
    }

    fn folder(self) -> String {
        format!("{FOLDER}/{}", self.name())
    }

    /// The interpreter to run the script with, or why there is none.
    pub(crate) fn interpreter(self, repo: &Repo) -> Result<PathBuf> {
        self.prepare(repo)?;
        let own = match self {
            Self::Az => self.folder(),
            // One environment for all: most of their packages are the same.
            Self::Pyarrow | Self::Duckdb | Self::Adlfs | Self::Deltalake | Self::Celery | Self::Pgbackrest => {
                FOLDER.to_owned()
            }
            Self::Rclone
            | Self::Restic
            | Self::Gocloud
            | Self::Thanos
            | Self::Prometheus
            | Self::JavaLegacy
            | Self::RustLegacy => return Ok("python3".into()),
        };
        install::python(repo, &own, Packages::Listed)?;
        Ok(repo.path(&own).join(install::PYTHON))
    }

    /// Looks for what the program needs, and installs what Debian has.
    fn prepare(self, repo: &Repo) -> Result<()> {
        let (toolchain, package): (&[&str], _) = match self {
            Self::Rclone => (&[], Some("rclone")),
            Self::Restic => (&["openssl"], Some("restic")),
            Self::Pgbackrest => (&["openssl"], Some("pgbackrest")),
            Self::Prometheus => (&[], Some("prometheus")),
            Self::Gocloud | Self::Thanos => (&["go"], None),
            Self::JavaLegacy => (&["java", "mvn"], None),
            Self::Az
            | Self::Pyarrow
            | Self::Duckdb
            | Self::Adlfs
            | Self::Deltalake
            | Self::Celery
            | Self::RustLegacy => (&[], None),
        };
        for program in ["python3"].iter().chain(toolchain) {
            ensure!(shell::on_path(program), "no '{program}' on this machine");
        }
        ensure!(self != Self::Pgbackrest || postgres::is_here(), "there is no PostgreSQL on this machine");
        if let Some(package) = package.filter(|package| !shell::on_path(package)) {
            let would_start = self == Self::Prometheus && Path::new("/run/systemd/system").exists();
            ensure!(!would_start, "no '{package}' on this machine, and its package would start a service");
            debian::install(repo, &[package])?;
            ensure!(shell::on_path(package), "its package brought no '{package}'");
        }
        Ok(())
    }
}

/// `cargo xtask programs …`.
pub(crate) fn command(repo: &Repo, options: &ProgramOptions) -> Result<Tally> {
    let binary = gate::build_server(repo)?;
    let programs = if options.programs.is_empty() { Program::value_variants() } else { &options.programs };
    Ok(run(repo, programs, &binary, options.bless))
}

/// Runs programs one after the other, each against a server of its own, and compares the README with what came of it.
pub(crate) fn run(repo: &Repo, programs: &[Program], binary: &Path, bless: bool) -> Tally {
    let mut tally = Tally::default();
    let mut rows = Vec::new();
    for program in programs {
        let name = program.name();
        say!("\n==> {name}");
        let started = Instant::now();
        let ran = program.interpreter(repo).map(|interpreter| run_script(repo, *program, &interpreter, binary));
        let word = match ran {
            Err(error) => skipped(&mut tally, &name, &format!("{error:#}")),
            Ok(Ok(Outcome::Skipped(why))) => skipped(&mut tally, &name, &why),
            Ok(Ok(Outcome::Passed(row))) => {
                tally.pass();
                rows.push((*program, row));
                "ok"
            }
            Ok(Err(error)) => {
                tally.fail(format!("{name}: {error:#}"));
                "FAILED"
            }
        };
        say!("<== {name}: {word} in {} s", started.elapsed().as_secs());
        tally.took(name, started.elapsed());
    }
    gate::step(&mut tally, "programs in README.md", || table::refresh(repo, &rows, bless));
    tally
}

fn skipped(tally: &mut Tally, name: &str, why: &str) -> &'static str {
    tally.skip(name, why);
    "skipped"
}

fn run_script(repo: &Repo, program: Program, interpreter: &Path, binary: &Path) -> Result<Outcome> {
    let work = WorkFolder::create(&program.name())?;
    let mut options = ServerOptions::default();
    let mut command = repo.command(interpreter, &program.folder());
    command.arg(SCRIPT).env("TMPDIR", &work.0).env("LARIMAR_TARGET", repo.path("target/programs"));
    command.env("LARIMAR_BINARY", binary);
    let tls = if program.wants_tls() { Some(tls::Tls::create(&work.0)?) } else { None };
    if let Some(tls) = &tls {
        tls.serve(&mut options);
    }
    let mut outcome = None;
    Server::run(binary, &work.0, &options, |endpoints| {
        endpoints.set_variables(&mut command);
        if let Some(tls) = &tls {
            tls.set_variables(&mut command);
        }
        let (mut result, mut last) = (None, String::new());
        let status = shell::run_lines(&mut command, PROGRAM_TIME_MAX, |line| {
            say!("{line}");
            result = line.strip_prefix(RESULT).and_then(table::Row::parse).or(result.take());
            line.clone_into(&mut last);
        })?;
        outcome = match status.code() {
            Some(0) => result.map(Outcome::Passed),
            Some(SKIPPED) => Some(Outcome::Skipped(last)),
            _ => None,
        };
        Ok(outcome.is_some())
    })?;
    outcome.context("the script failed; its output is above")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout() -> Repo {
        Repo { root: Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout").to_owned() }
    }

    #[test]
    fn every_program_has_its_script() {
        for program in Program::value_variants() {
            assert!(checkout().path(&program.folder()).join(SCRIPT).is_file(), "{program:?}");
        }
    }

    #[test]
    fn the_default_run_leaves_out_what_is_compiled() {
        assert!(!Program::Gocloud.takes_seconds());
        assert!(Program::Rclone.takes_seconds());
    }

    /// Whether a script that prints and ends like this counts as passed (`Some(true)`), skipped or failed.
    fn outcome_of(name: &str, script: &str) -> Option<bool> {
        let root = std::env::temp_dir().join(format!("larimar-xtask-program-{name}-{}", std::process::id()));
        let folder = root.join(Program::Rclone.folder());
        std::fs::create_dir_all(&folder).expect("create");
        std::fs::write(folder.join(SCRIPT), script).expect("write");
        // The shell in the server's place: its first argument, `serve`, is a script that prints a banner.
        let server = root.join("server");
        let banner = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=k;BlobEndpoint=http://127.0.0.1:7/a;";
        let text = format!("#!/bin/sh\ntrap 'exit 0' TERM\necho '{banner}'\nwhile :; do sleep 0.1; done\n");
        std::fs::write(&server, text).expect("write");
        assert!(std::process::Command::new("chmod").arg("+x").arg(&server).status().expect("runs").success());
        let repo = Repo { root: root.clone() };
        let outcome = run_script(&repo, Program::Rclone, Path::new("sh"), &server);
        std::fs::remove_dir_all(&root).expect("remove");
        match outcome {
            Ok(Outcome::Passed(_)) => Some(true),
            Ok(Outcome::Skipped(why)) => {
                assert_eq!(why, "no luck");
                Some(false)
            }
            Err(_) => None,
        }
    }

    #[test]
    fn only_a_result_counts_as_passed() {
        assert_eq!(outcome_of("good", "echo 'result: rclone 1.60: files'; exit 0"), Some(true));
        assert_eq!(outcome_of("silent", "exit 0"), None);
        assert_eq!(outcome_of("bad", "echo 'result: rclone 1.60: files'; exit 1"), None);
        assert_eq!(outcome_of("skipped", "echo no luck; exit 77"), Some(false));
    }
}
