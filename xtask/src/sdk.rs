//! The official SDKs' suites in `tests/sdk/<name>`, each run against a server of its own.
//!
//! `install` brings what a suite needs into the checkout, `server` starts and stops the built binary, `results` reads
//! what the suite wrote. A suite whose language is not on this machine counts as skipped.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::compat::{self, Matrix};
use crate::gate;
use crate::postgres::Postgres;
use crate::say;
use crate::shell::{self, Repo};
use crate::tally::Tally;

pub(crate) mod install;
mod results;
mod server;
mod service;

use results::Report;
pub(crate) use results::{Column, Outcome, first_line};
pub(crate) use server::{Server, ServerOptions};
pub(crate) use service::{Endpoints, Service};

const SUITE_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// An official SDK with a suite of ours; the names are the folders below `tests/sdk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Sdk {
    Python,
    Javascript,
    JavascriptLegacy,
    Go,
    Java,
}

impl Sdk {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::JavascriptLegacy => "javascript-legacy",
            Self::Go => "go",
            Self::Java => "java",
        }
    }

    fn language(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Javascript => "JavaScript",
            Self::JavascriptLegacy => "JavaScript (legacy)",
            Self::Go => "Go",
            Self::Java => "Java",
        }
    }

    /// The package whose suite for a service is in the folder; without one, the SDK has no column for that service.
    pub(crate) fn package(self, service: Service) -> Option<&'static str> {
        let [table, queue, blob] = match self {
            Self::Python => ["azure-data-tables", "azure-storage-queue", "azure-storage-blob"],
            Self::Javascript => ["@azure/data-tables", "@azure/storage-queue", "@azure/storage-blob"],
            Self::JavascriptLegacy => ["azure-storage", "", ""],
            Self::Go => ["aztables", "azqueue", "azblob"],
            Self::Java => ["azure-data-tables", "azure-storage-queue", "azure-storage-blob"],
        };
        let package = match service {
            Service::Table => table,
            Service::Queue => queue,
            Service::Blob => blob,
        };
        (!package.is_empty()).then_some(package)
    }

    /// Language and package, as the matrix of a service shows them.
    pub(crate) fn label(self, service: Service) -> String {
        format!("{} `{}`", self.language(), self.package(service).unwrap_or("none"))
    }

    pub(crate) fn folder(self) -> String {
        format!("tests/sdk/{}", self.name())
    }

    /// What must be on the machine to run the suite.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python3"],
            Self::Javascript | Self::JavascriptLegacy => &["node", "npm"],
            Self::Go => &["go"],
            Self::Java => &["java", "mvn"],
        }
    }

    fn test_command(self, repo: &Repo) -> Command {
        let folder = self.folder();
        let (program, arguments): (PathBuf, &[&str]) = match self {
            Self::Python => (repo.path(&folder).join(install::PYTHON), &["-m", "pytest", "-q"]),
            Self::Javascript | Self::JavascriptLegacy => ("npm".into(), &["test"]),
            Self::Go => ("go".into(), &["test", "-count=1", "./..."]),
            Self::Java => ("mvn".into(), &["-q", "-B", "-Dstyle.color=never", "test"]),
        };
        let mut command = repo.command(program, &folder);
        command.args(arguments);
        command
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Args)]
pub(crate) struct SdkOptions {
    /// Which suites to run
    #[arg(required = true)]
    sdks: Vec<Sdk>,
    /// Connection string of a running server, as its banner prints it
    #[arg(long)]
    connection_string: Option<Endpoints>,
    /// The engine that the server runs on
    #[arg(long, default_value = "embedded", conflicts_with = "connection_string")]
    engine: Engine,
    /// Rewrite these SDKs' columns of docs/compat.md
    #[arg(long, conflicts_with = "connection_string")]
    bless: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Embedded,
    Postgres,
}

/// What a suite runs against.
pub(crate) enum Target<'a> {
    /// A server started for the suite, on files or on a schema of its own.
    Binary(&'a Path, Option<&'a Postgres>),
    /// A server that runs already.
    Running(&'a Endpoints),
}

impl Target<'_> {
    fn is_on_postgres(&self) -> bool {
        matches!(self, Self::Binary(_, Some(_)))
    }
}

/// `cargo xtask sdk …`.
pub(crate) fn command(repo: &Repo, options: &SdkOptions) -> Result<Tally> {
    let on_postgres = options.engine == Engine::Postgres;
    ensure!(!(on_postgres && options.bless), "{} is made from runs on the embedded engine", compat::PAGE);
    if let Some(endpoints) = &options.connection_string {
        return Ok(run_suites(repo, &options.sdks, &Target::Running(endpoints)).0);
    }
    let binary = gate::build_server(repo)?;
    let postgres = on_postgres.then(Postgres::start).transpose()?;
    let (mut tally, results) = run_suites(repo, &options.sdks, &Target::Binary(&binary, postgres.as_ref()));
    if options.bless {
        compat::refresh(repo, results, true)?;
    } else if on_postgres {
        same_results(repo, results, &mut tally);
    }
    Ok(tally)
}

/// Runs suites one after the other.
pub(crate) fn run_suites(repo: &Repo, sdks: &[Sdk], target: &Target<'_>) -> (Tally, Matrix) {
    let mut tally = Tally::default();
    let mut results = Matrix::default();
    for &sdk in sdks {
        let outcome = run_suite(repo, sdk, target, &mut results);
        tally += if target.is_on_postgres() { outcome.on("PostgreSQL") } else { outcome };
    }
    (tally, results)
}

/// Installs what a suite needs, if its language is on this machine.
pub(crate) fn prepare(repo: &Repo, sdk: Sdk) -> Result<()> {
    ensure!(sdk.programs().iter().all(|program| shell::on_path(program)), "its language is not on this machine");
    install::install(repo, sdk)?;
    match sdk {
        Sdk::Python | Sdk::Javascript | Sdk::JavascriptLegacy => Ok(()),
        Sdk::Go => gate::succeeds(repo.command("go", &sdk.folder()).args(["mod", "download"])),
        Sdk::Java => gate::succeeds(repo.command("mvn", &sdk.folder()).args(["-q", "-B", "test-compile"])),
    }
}

/// Compares results on PostgreSQL with the page, which is made from runs on the embedded engine.
pub(crate) fn same_results(repo: &Repo, results: Matrix, tally: &mut Tally) {
    gate::step(tally, &format!("{} on PostgreSQL", compat::PAGE), || compat::refresh(repo, results, false));
}

/// Runs one suite; its scenarios are counted and its columns are added to the matrix.
fn run_suite(repo: &Repo, sdk: Sdk, target: &Target<'_>, matrix: &mut Matrix) -> Tally {
    say!("\n==> {sdk} SDK suite{}", if target.is_on_postgres() { " on PostgreSQL" } else { "" });
    let started = Instant::now();
    let mut tally = Tally::default();
    if let Some(missing) = sdk.programs().iter().find(|program| !shell::on_path(program)) {
        tally.skip(&format!("{sdk} SDK suite"), &format!("no '{missing}' on this machine"));
        return tally;
    }
    match suite_report(repo, sdk, target, &mut tally) {
        Ok(report) => report.columns.into_iter().for_each(|(service, column)| matrix.insert(service, sdk, column)),
        Err(error) => tally.fail(format!("{sdk} SDK suite: {error:#}")),
    }
    say!("<== {sdk} SDK suite: {tally} in {} s", started.elapsed().as_secs());
    tally.took(format!("{sdk} SDK suite"), started.elapsed());
    tally
}

fn suite_report(repo: &Repo, sdk: Sdk, target: &Target<'_>, tally: &mut Tally) -> Result<Report> {
    ensure!(repo.path(&sdk.folder()).is_dir(), "there is no folder {}", sdk.folder());
    let scenarios = compat::scenarios(repo)?;
    install::install(repo, sdk).context("install what the suite needs")?;
    let work = WorkFolder::create(sdk.name())?;
    let results = work.0.join("results.jsonl");
    let report = || Report::read(&results, sdk, &scenarios);
    let mut run = |endpoints: &Endpoints| -> Result<bool> {
        let mut command = sdk.test_command(repo);
        let status =
            shell::run(endpoints.set_variables(&mut command).env("LARIMAR_RESULTS", &results), SUITE_TIME_MAX)?;
        // A failure that no scenario explains is counted here.
        if !status.success() && !report().is_ok_and(|report| report.has_failures()) {
            tally.fail(format!("{sdk} SDK suite: ended with {status} though no scenario failed"));
        }
        Ok(status.success())
    };
    match target {
        Target::Running(endpoints) => run(endpoints).map(|_| ())?,
        Target::Binary(binary, postgres) => {
            let database = postgres.map(Postgres::fresh_url);
            let options = ServerOptions { database: database.as_deref(), ..ServerOptions::default() };
            Server::run(binary, &work.0, &options, run)?;
        }
    }
    let report = report()?;
    report.count(&scenarios, tally);
    Ok(report)
}

/// A temporary folder for one run: the server's data, its log, the suite's results. Removed when done.
pub(crate) struct WorkFolder(pub(crate) PathBuf);

impl WorkFolder {
    pub(crate) fn create(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("larimar-suite-{name}-{}", process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).context("remove an older run's folder")?;
        }
        fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Nothing depends on it any more; what cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_names_are_the_folders() {
        for &sdk in Sdk::value_variants() {
            let spelling = sdk.to_possible_value().expect("every SDK has a name");
            assert_eq!(spelling.get_name(), sdk.name());
        }
    }

    #[test]
    fn labels_tell_the_sdks_apart() {
        for (index, a) in Sdk::value_variants().iter().enumerate() {
            for b in &Sdk::value_variants()[index + 1..] {
                let [a, b] = [a, b].map(|sdk| sdk.label(Service::Table));
                assert!(!a.starts_with(&b) && !b.starts_with(&a));
            }
        }
    }
}
