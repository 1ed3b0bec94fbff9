//! `cargo xtask test`: the gate, public interfaces, all workspace tests (doc-tests too), the examples, the client over
//! Azurite, every SDK suite, programs, and the freshness of `docs/compat.md`.
//!
//! What a client sees is tested on both engines, with one PostgreSQL cluster for the whole run.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::api;
use crate::azurite;
use crate::compat;
use crate::deploy;
use crate::examples;
use crate::features;
use crate::gate;
use crate::packages;
use crate::postgres::Postgres;
use crate::programs::{self, Program};
use crate::replay;
use crate::sdk::{self, Sdk, Target};
use crate::shell::Repo;
use crate::tally::Tally;

#[derive(Args)]
pub(crate) struct TestOptions {
    /// Rewrite docs/compat.md, docs/api and the table of programs in README.md from this run's results
    #[arg(long)]
    bless: bool,
    /// Leave the SDK suites, the programs and Azurite out
    #[arg(long)]
    no_sdk: bool,
    /// Only the tests of model, engine and the two engines that store
    #[arg(long, conflicts_with_all = ["bless", "no_sdk"])]
    engine_only: bool,
    /// Also what takes minutes, or needs what is not in the repository
    #[arg(long, conflicts_with_all = ["no_sdk", "engine_only"])]
    full: bool,
    /// Folder or archive of recordings of the real service, to replay them
    #[arg(long, conflicts_with_all = ["no_sdk", "engine_only"])]
    recordings: Option<PathBuf>,
}

const ENGINE_PACKAGES: [&str; 6] =
    ["--package", "larimar-model", "--package", "larimar-engine", "--package", "larimar-engine-local"];
const POSTGRES_PACKAGE: [&str; 4] =
    ["--package", "larimar-engine-postgres", "--features", "larimar-engine-postgres/test-postgres"];

/// The suites over HTTP that hold for every engine; those about processes, files and disks are the embedded engine's.
const HTTP_SUITES: [&str; 8] =
    ["--test", "suite", "--", "http_conformance::", "queue_http::", "blob_http::", "traps::", "bad_input::"];
const ON_POSTGRES: (&str, &str) = ("LARIMAR_TEST_ENGINE", "postgres");

/// Runs everything that was asked for, to the end, whatever fails on the way.
pub(crate) fn test(repo: &Repo, options: &TestOptions) -> Tally {
    let mut tally = Tally::default();
    let postgres = Postgres::prepare(repo, &mut tally);
    let postgres = postgres.as_ref();
    if options.engine_only {
        let on_postgres = if postgres.is_some() { POSTGRES_PACKAGE.as_slice() } else { &[] };
        tally += gate::rust_tests(repo, &[&ENGINE_PACKAGES, on_postgres].concat(), &variables(postgres));
        return tally;
    }
    let mut features = String::new();
    gate::step(&mut tally, "features", || {
        features = features::of_all(repo, postgres.is_some())?;
        Ok(())
    });
    tally += gate::static_checks(repo, &features);
    tally += api::check(repo, options.bless);
    tally += packages::check(repo);
    let workspace = ["--workspace", "--features", &features];
    let build = [&gate::TESTS_BUILD, workspace.as_slice()].concat();
    let mut server = None;
    gate::step(&mut tally, "build", || {
        server = Some(gate::build_server(repo, &build)?);
        Ok(())
    });
    tally += rust_tests(repo, &workspace, postgres);
    tally += examples::run(repo, &build);
    tally += deploy::check(repo, server.as_deref());
    if options.no_sdk {
        tally.skip("SDK suites, programs and Azurite", "--no-sdk");
        return tally;
    }
    azurite::client_suite(repo, &workspace, &mut tally);
    if let Some(server) = server {
        tally += programs::run(repo, &Program::chosen(options.full), &server, options.bless);
        if options.full || options.recordings.is_some() {
            tally += replay::run(repo, options.recordings.as_deref(), &server, postgres);
        }
        tally += sdk_suites(repo, &server, postgres, options.bless);
    } else {
        tally.fail("SDK suites and programs: there is no server to run them against");
    }
    tally
}

/// All tests of the workspace, and the suites over HTTP once more on PostgreSQL.
fn rust_tests(repo: &Repo, workspace: &[&str], postgres: Option<&Postgres>) -> Tally {
    let mut variables = variables(postgres);
    let mut tally = gate::rust_tests(repo, workspace, &variables);
    if postgres.is_some() {
        variables.push(ON_POSTGRES);
        tally += gate::rust_tests(repo, &[workspace, &HTTP_SUITES].concat(), &variables).on("PostgreSQL");
    }
    tally
}

fn variables(postgres: Option<&Postgres>) -> Vec<(&str, &str)> {
    postgres.iter().map(|postgres| postgres.variable()).collect()
}

/// Every SDK on the embedded engine, which the page is made from, and then on PostgreSQL, which must not differ.
fn sdk_suites(repo: &Repo, server: &Path, postgres: Option<&Postgres>, bless: bool) -> Tally {
    let sdks = Sdk::value_variants();
    let (mut tally, results) = sdk::run_suites(repo, sdks, &Target::Binary(server, None));
    gate::step(&mut tally, compat::PAGE, || compat::refresh(repo, results, bless));
    if postgres.is_some() {
        let (on_postgres, results) = sdk::run_suites(repo, sdks, &Target::Binary(server, postgres));
        tally += on_postgres;
        sdk::same_results(repo, results, &mut tally);
    }
    tally
}
