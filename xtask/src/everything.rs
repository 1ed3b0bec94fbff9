//! `cargo xtask test`: one build, then all tests, SDK suites and programs side by side.
//!
//! The default run shows every promise once and is bounded to 15 minutes on two cores, build included. The rest (`--rest`)
//! shows some of them again or for longer: documentation and public interfaces, SDK suites on PostgreSQL, many rounds of
//! crashes, programs that take minutes, recordings of the real service. `--full` is both.
//! `docs/decisions/0033-the-test-run.md` has the reasons and the figures.

use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::api;
use crate::azurite;
use crate::build::{self, Built};
use crate::compat::{self, Matrix};
use crate::console;
use crate::deploy;
use crate::examples;
use crate::features;
use crate::gate;
use crate::output;
use crate::packages;
use crate::postgres::Postgres;
use crate::programs::{self, Program};
use crate::replay;
use crate::runner::{self, Round};
use crate::sdk::{self, Sdk, Target};
use crate::shell::Repo;
use crate::tally::Tally;

#[derive(Args)]
pub(crate) struct TestOptions {
    /// Rewrite docs/compat.md and the table of programs in README.md from this run's results, and docs/api in the rest
    #[arg(long)]
    bless: bool,
    /// Leave out the SDK suites, the programs and Azurite
    #[arg(long)]
    no_sdk: bool,
    /// Only the tests of model, engine and the two engines that store
    #[arg(long, conflicts_with_all = ["bless", "no_sdk"])]
    engine_only: bool,
    /// The default run and then the rest
    #[arg(long, conflicts_with_all = ["no_sdk", "engine_only"])]
    full: bool,
    /// Only what the default run leaves out
    #[arg(long, conflicts_with_all = ["no_sdk", "engine_only", "full"])]
    rest: bool,
    /// Folder or archive of recordings of the real service, which the rest replays
    #[arg(long, conflicts_with_all = ["no_sdk", "engine_only"])]
    recordings: Option<PathBuf>,
}

const ENGINE_PACKAGES: [&str; 6] =
    ["--package", "larimar-model", "--package", "larimar-engine", "--package", "larimar-engine-local"];
const POSTGRES_PACKAGE: [&str; 4] =
    ["--package", "larimar-engine-postgres", "--features", "larimar-engine-postgres/test-postgres"];

/// The package with the suites over HTTP.
const SERVER_PACKAGE: &str = "larimar";
/// The suites over HTTP whose answers depend on the engine: the default run has them on both engines.
const ENGINE_SUITES: [&str; 2] = ["http_conformance::", "queue_http::"];
/// The suites that run on PostgreSQL in the rest: the rules of blobs are the same code on every engine (the default run
/// has the blob suite of the engine itself), and the other requests are mostly refused before they reach the engine.
const OTHER_SUITES: [&str; 9] = [
    "admin::advice::",
    "blob_http::",
    "traps::",
    "bad_input::",
    "commands::",
    "copy::",
    "import_resumed::",
    "seed::a_",
    "seed::re",
];
const ON_POSTGRES: (&str, &str) = ("LARIMAR_TEST_ENGINE", "postgres");

/// Tests that only the rest runs, by package and the start of their names.
const REST_ONLY: [(&str, &[&str]); 4] = [
    // Runs the compiler in a target directory of its own, which costs a second build of the client's dependencies.
    ("larimar-client-derive", &["mistakes_"]),
    // Random sequences of hundreds of steps, each with several round trips; other engines run them in the default run.
    ("larimar-engine-postgres", &["blobs::crashes::", "blobs::incremental", "blobs::scattered::"]),
    // Stores more messages than a restore keeps in memory.
    ("larimar-backup", &["single::a_queue_with_more"]),
    // Wait: for 20 seconds until a killed server is given up, for slow backups, for a recovery of the database, and for places
    // that hang. Or fill small disks.
    (
        SERVER_PACKAGE,
        &[
            "seed::shared::another_server",
            "postgres::backups::a_backup_whose_session",
            "postgres::recovery::",
            "faults::archive_disk::",
            "faults::backup_disk::a_backup_is_given_up",
            "faults::hanging_place::",
            "faults::restores::a_disk",
            "faults::single_restores::",
        ],
    ),
];

/// The modules of the blob suite whose tests repeat themselves.
const LONG_BLOB_SUITES: &[&str] =
    &["blobs::crashes::", "blobs::incremental::", "blobs::scattered::", "blobs::snapshots::"];

/// Tests that repeat themselves, and how often they do in the rest.
const LONG_SUITES: [(&str, &[&str]); 5] = [
    (SERVER_PACKAGE, &["crash::", "history::", "moments::", "postgres::histories", "postgres::fleet"]),
    ("larimar-patterns", &["mover_crash::", "index_entities::", "inter_partition_index::", "large_entity::"]),
    ("larimar-engine", LONG_BLOB_SUITES),
    ("larimar-engine-local", LONG_BLOB_SUITES),
    ("larimar-bytes", LONG_BLOB_SUITES),
];
const LONG_ROUNDS: [(&str, &str); 3] =
    [("LARIMAR_CRASH_ROUNDS", "40"), ("LARIMAR_ROUNDS", "10"), ("LARIMAR_TEST_SEEDS", "48")];

/// SDK suites that run one after the other, beside the others; the slowest begin.
const SDK_LANES: [&[Sdk]; 2] = [&[Sdk::Python, Sdk::JavascriptLegacy], &[Sdk::Javascript, Sdk::Go, Sdk::Java]];

/// Runs what the options select, to the end, even if something fails.
pub(crate) fn test(repo: &Repo, options: &TestOptions) -> Tally {
    let mut tally = Tally::default();
    let postgres = Postgres::prepare(repo, &mut tally);
    let postgres = postgres.as_ref();
    if options.engine_only {
        tally += engine_tests(repo, postgres);
        return tally;
    }
    let mut features = String::new();
    gate::step(&mut tally, "features", || {
        features = features::of_all(repo, postgres.is_some())?;
        Ok(())
    });
    let run = Run { repo, options, postgres, features };
    // Downloads wait for the network while the compiler works.
    let built = thread::scope(|scope| {
        let downloads = output::beside(scope, || (run.downloads(), ()));
        if !options.rest {
            tally += gate::quick_checks(repo);
        }
        let built = run.build(&mut tally);
        tally += joined(downloads).0;
        built
    });
    let Some(built) = built else {
        tally.fail("without a build nothing is tested");
        return tally;
    };
    if !options.rest {
        tally += run.default(&built);
    }
    if options.rest || options.full {
        tally += run.rest(&built);
    }
    tally
}

fn engine_tests(repo: &Repo, postgres: Option<&Postgres>) -> Tally {
    let mut tally = Tally::default();
    let on_postgres = if postgres.is_some() { POSTGRES_PACKAGE.as_slice() } else { &[] };
    let mut built = Built::default();
    gate::step(&mut tally, "build", || {
        let mut build = repo.cargo(&["test", "--no-run"]);
        built = Built::of(build.args(ENGINE_PACKAGES).args(on_postgres))?;
        Ok(())
    });
    let round = Round::all(&built.tests).with(postgres.map(Postgres::variable));
    tally += runner::run(repo, "Rust tests", &[round], runner::tests_at_once());
    tally
}

struct Run<'a> {
    repo: &'a Repo,
    options: &'a TestOptions,
    postgres: Option<&'a Postgres>,
    features: String,
}

impl Run<'_> {
    /// Cargo's arguments that select everything.
    fn selection(&self) -> [&str; 3] {
        ["--workspace", "--features", &self.features]
    }

    /// Builds everything with lints.
    fn build(&self, tally: &mut Tally) -> Option<Built> {
        let mut built = None;
        gate::step(tally, "build", || {
            built = Some(Built::everything(self.repo, &self.selection())?);
            Ok(())
        });
        let warnings = built.as_ref()?.warnings;
        if build::clippy_driver().is_none() {
            tally.skip("lints", "Clippy is not installed");
        } else if !self.options.rest {
            gate::step(tally, "lints", || {
                ensure!(warnings == 0, "{warnings} warnings");
                Ok(())
            });
        }
        built
    }

    /// Brings the packages of suites and programs here. What cannot be installed is reported by the step that needs it.
    fn downloads(&self) -> Tally {
        let (started, mut tally) = (Instant::now(), Tally::default());
        if self.options.no_sdk {
            return tally;
        }
        for sdk in Sdk::value_variants() {
            let _ = sdk::prepare(self.repo, *sdk);
        }
        let _ = azurite::install(self.repo);
        let _ = deploy::install(self.repo);
        let _ = console::install(self.repo);
        for program in self.programs() {
            let _ = program.interpreter(self.repo);
        }
        tally.took("downloads, beside the build", started.elapsed());
        tally
    }

    fn programs(&self) -> Vec<Program> {
        let in_default = |program: &&Program| program.takes_seconds();
        let all = Program::value_variants().iter();
        match (self.options.full, self.options.rest) {
            (true, _) => all.copied().collect(),
            (false, true) => all.filter(|program| !in_default(program)).copied().collect(),
            (false, false) => all.filter(in_default).copied().collect(),
        }
    }

    fn rust_variables(&self) -> Vec<(&str, &str)> {
        self.postgres.iter().map(|postgres| postgres.variable()).collect()
    }

    fn default(&self, built: &Built) -> Tally {
        let mut rounds = vec![Round::all(&built.tests).without(&REST_ONLY).with(self.rust_variables())];
        if self.postgres.is_some() {
            let suites = Round::chosen(&built.tests, SERVER_PACKAGE, &ENGINE_SUITES).on("PostgreSQL");
            rounds.push(suites.with(self.rust_variables()).with([ON_POSTGRES]));
        }
        let server = built.server();
        thread::scope(|scope| {
            let mut suites = Vec::new();
            if let (false, Ok(server)) = (self.options.no_sdk, &server) {
                suites.extend(SDK_LANES.map(|sdks| self.sdk_lane(scope, sdks, server, None)));
            }
            let others = output::beside(scope, || self.others(built));
            let mut tally = runner::run(self.repo, "Rust tests", &rounds, runner::tests_at_once());
            let (others, over_azurite) = joined(others);
            tally += others;
            tally.ran_after_all(over_azurite);
            tally += self.sdk_results(suites, None);
            if self.options.no_sdk {
                tally.skip("SDK suites, programs and Azurite", "--no-sdk");
            }
            tally
        })
    }

    /// What runs beside the Rust tests, one after the other. Apart: the suite over Azurite.
    fn others(&self, built: &Built) -> (Tally, Tally) {
        let server = built.server().ok();
        let mut tally = gate::doc_tests(self.repo, &self.selection());
        tally += examples::run(self.repo, built);
        tally += deploy::check(self.repo, server);
        if self.options.no_sdk {
            return (tally, Tally::default());
        }
        tally += console::page(self.repo);
        if let Some(server) = server {
            tally += console::browser_suite(self.repo, server);
        }
        let (examples, over_azurite) = azurite::client_suite(self.repo, built);
        tally += examples;
        match server {
            Some(server) => tally += programs::run(self.repo, &self.programs(), server, self.options.bless),
            None => tally.fail("SDK suites and programs: there is no server to run them against"),
        }
        (tally, over_azurite)
    }

    /// What the default run leaves out.
    fn rest(&self, built: &Built) -> Tally {
        let mut tally = gate::doc(self.repo, &self.features);
        tally += api::check(self.repo, self.options.bless);
        tally += packages::check(self.repo);
        tally += deploy::check_of_the_check(self.repo);
        let Ok(server) = built.server() else {
            tally.fail("SDK suites and programs: there is no server to run them against");
            return tally;
        };
        tally += examples::advise_on_patterns(self.repo, built, server);
        let mut rounds = Vec::new();
        for (package, names) in REST_ONLY {
            rounds.push(Round::chosen(&built.tests, package, names).with(self.rust_variables()));
        }
        for (package, names) in LONG_SUITES {
            let round = Round::chosen(&built.tests, package, names).on("many rounds");
            rounds.push(round.with(self.rust_variables()).with(LONG_ROUNDS));
        }
        if self.postgres.is_some() {
            let suites = Round::chosen(&built.tests, SERVER_PACKAGE, &OTHER_SUITES).on("PostgreSQL");
            rounds.push(suites.with(self.rust_variables()).with([ON_POSTGRES]));
        }
        thread::scope(|scope| {
            let suites = match self.postgres {
                Some(postgres) => SDK_LANES.map(|sdks| self.sdk_lane(scope, sdks, server, Some(postgres))).into(),
                None => Vec::new(),
            };
            let others = output::beside(scope, || {
                let programs: Vec<_> = self.programs().into_iter().filter(|each| !each.takes_seconds()).collect();
                let mut tally = programs::run(self.repo, &programs, server, self.options.bless);
                tally += console::rest_of_browser_suite(self.repo, server);
                tally += replay::run(self.repo, self.options.recordings.as_deref(), server, self.postgres);
                (tally, ())
            });
            tally += runner::run(self.repo, "Rust tests of the rest", &rounds, runner::tests_at_once());
            tally += joined(others).0;
            tally += self.sdk_results(suites, self.postgres);
        });
        tally
    }

    fn sdk_lane<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        sdks: &'scope [Sdk],
        server: &'scope Path,
        postgres: Option<&'scope Postgres>,
    ) -> Lane<'scope, Matrix> {
        output::beside(scope, move || sdk::run_suites(self.repo, sdks, &Target::Binary(server, postgres)))
    }

    /// Compares what the suites showed with the page, which is made from runs on the embedded engine.
    fn sdk_results(&self, suites: Vec<Lane<'_, Matrix>>, postgres: Option<&Postgres>) -> Tally {
        let mut tally = Tally::default();
        if suites.is_empty() {
            return tally;
        }
        let mut results = Matrix::default();
        for suite in suites {
            let (suite, columns) = joined(suite);
            tally += suite;
            results.fill_from(columns);
        }
        match postgres {
            Some(_) => sdk::same_results(self.repo, results, &mut tally),
            None => gate::step(&mut tally, compat::PAGE, || compat::refresh(self.repo, results, self.options.bless)),
        }
        tally
    }
}

type Lane<'scope, T> = ScopedJoinHandle<'scope, Result<(Tally, T)>>;

/// Waits for work that ran beside this thread; a panic in it is a failure.
fn joined<T: Default>(lane: Lane<'_, T>) -> (Tally, T) {
    let failed = |why: String| {
        let mut tally = Tally::default();
        tally.fail(why);
        (tally, T::default())
    };
    match lane.join() {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => failed(format!("{error:#}")),
        Err(_) => failed("a step panicked; its message is above".to_owned()),
    }
}
