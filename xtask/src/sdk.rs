//! The official SDKs' suites in `tests/sdk/<name>`, each run against a server of its own.
//!
//! `install` brings what a suite needs into the checkout, `server` starts and stops the built binary, `results` reads
//! what the suite wrote. A suite whose language is not on this machine is skipped, loudly, and never counts as passed.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::compat::{self, Matrix};
use crate::gate;
use crate::postgres::Postgres;
use crate::shell::{self, Repo};
use crate::tally::Tally;

pub(crate) mod install;
mod results;
mod server;

pub(crate) use results::{Column, Outcome, first_line};
use server::Server;

const SUITE_TIME_MAX: Duration = Duration::from_secs(20 * 60);

const ACCOUNT: &str = "devstoreaccount1";
/// The development account's key is public: every emulator and SDK knows it.
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

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

    /// Language and package, as the matrix shows them.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Python => "Python `azure-data-tables`",
            Self::Javascript => "JavaScript `@azure/data-tables`",
            Self::JavascriptLegacy => "JavaScript (legacy) `azure-storage`",
            Self::Go => "Go `aztables`",
            Self::Java => "Java `azure-data-tables`",
        }
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
    /// Table endpoint of a running server, with its account; LARIMAR_ACCOUNT and LARIMAR_KEY name another account
    #[arg(long)]
    endpoint: Option<String>,
    /// The engine that the server runs on
    #[arg(long, default_value = "embedded", conflicts_with = "endpoint")]
    engine: Engine,
    /// Rewrite these SDKs' columns of docs/compat.md
    #[arg(long, conflicts_with = "endpoint")]
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
    Endpoint(&'a str),
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
    if let Some(endpoint) = &options.endpoint {
        return Ok(run_suites(repo, &options.sdks, &Target::Endpoint(endpoint)).0);
    }
    let binary = gate::build_server(repo, &["build", "--package", "larimar"])?;
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

/// What SDKs see on PostgreSQL is what the page says, which is made from runs on the embedded engine.
pub(crate) fn same_results(repo: &Repo, results: Matrix, tally: &mut Tally) {
    gate::step(tally, &format!("{} on PostgreSQL", compat::PAGE), || compat::refresh(repo, results, false));
}

/// Runs one suite; its scenarios are counted and its column is added to the matrix.
fn run_suite(repo: &Repo, sdk: Sdk, target: &Target<'_>, matrix: &mut Matrix) -> Tally {
    println!("\n==> {sdk} SDK suite{}", if target.is_on_postgres() { " on PostgreSQL" } else { "" });
    let mut tally = Tally::default();
    if let Some(missing) = sdk.programs().iter().find(|program| !shell::on_path(program)) {
        tally.skip(&format!("{sdk} SDK suite"), &format!("no '{missing}' on this machine"));
        return tally;
    }
    match suite_column(repo, sdk, target, &mut tally) {
        Ok(column) => matrix.insert(sdk, column),
        Err(error) => tally.fail(format!("{sdk} SDK suite: {error:#}")),
    }
    println!("<== {sdk} SDK suite: {tally}");
    tally
}

fn suite_column(repo: &Repo, sdk: Sdk, target: &Target<'_>, tally: &mut Tally) -> Result<Column> {
    ensure!(repo.path(&sdk.folder()).is_dir(), "there is no folder {}", sdk.folder());
    let scenarios = compat::scenarios(repo)?;
    install::install(repo, sdk).context("install what the suite needs")?;
    let work = WorkFolder::create(sdk)?;
    match target {
        Target::Endpoint(endpoint) => run_against(repo, sdk, endpoint, &work.0, tally)?,
        Target::Binary(binary, postgres) => {
            let server = Server::start(binary, &work.0, postgres.map(Postgres::fresh_url).as_deref())?;
            let ended = run_against(repo, sdk, server.endpoint(), &work.0, tally);
            let log = server.log_tail();
            let stopped = server.stop();
            if tally.failed() > 0 || ended.is_err() || stopped.is_err() {
                println!("The server's log ended with:\n{log}");
            }
            ended?;
            stopped?;
        }
    }
    let column = Column::read(&results_file(&work.0), sdk)?;
    column.count(sdk, scenarios.iter().map(|scenario| scenario.id.as_str()), tally);
    Ok(column)
}

/// Runs the suite's own command; a failure that no scenario explains is counted here.
fn run_against(repo: &Repo, sdk: Sdk, endpoint: &str, work: &Path, tally: &mut Tally) -> Result<()> {
    let from_environment = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let results = results_file(work);
    let mut command = sdk.test_command(repo);
    command
        .env("LARIMAR_TABLE_ENDPOINT", endpoint.trim_end_matches('/'))
        .env("LARIMAR_ACCOUNT", from_environment("LARIMAR_ACCOUNT", ACCOUNT))
        .env("LARIMAR_KEY", from_environment("LARIMAR_KEY", KEY))
        .env("LARIMAR_RESULTS", &results);
    let status = shell::run(&mut command, SUITE_TIME_MAX)?;
    let explained = || Column::read(&results, sdk).is_ok_and(|column| column.has_failures());
    if !status.success() && !explained() {
        tally.fail(format!("{sdk} SDK suite: ended with {status} though no scenario failed"));
    }
    Ok(())
}

fn results_file(work: &Path) -> PathBuf {
    work.join("results.jsonl")
}

/// A temporary folder for one run: the server's data, its log, the suite's results. Removed when done.
struct WorkFolder(PathBuf);

impl WorkFolder {
    fn create(sdk: Sdk) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("larimar-sdk-{sdk}-{}", process::id()));
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
                assert!(!a.label().starts_with(b.label()) && !b.label().starts_with(a.label()));
            }
        }
    }
}
