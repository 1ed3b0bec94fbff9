//! `cargo xtask test`: the gate, all workspace tests, every SDK suite, and the freshness of `docs/compat.md`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::compat;
use crate::gate;
use crate::sdk::{self, Sdk, Target};
use crate::shell::Repo;
use crate::tally::Tally;

#[derive(Args)]
pub(crate) struct TestOptions {
    /// Rewrite docs/compat.md from this run's results
    #[arg(long)]
    bless: bool,
    /// Leave the SDK suites out
    #[arg(long)]
    no_sdk: bool,
    /// Only the tests of model, engine and the embedded engine
    #[arg(long, conflicts_with_all = ["bless", "no_sdk"])]
    engine_only: bool,
}

const ENGINE_PACKAGES: [&str; 6] =
    ["--package", "larimar-model", "--package", "larimar-engine", "--package", "larimar-engine-local"];

/// Runs everything that was asked for, to the end, whatever fails on the way.
pub(crate) fn test(repo: &Repo, options: &TestOptions) -> Tally {
    if options.engine_only {
        return gate::rust_tests(repo, &ENGINE_PACKAGES);
    }
    let mut tally = gate::static_checks(repo);
    let mut server = None;
    gate::step(&mut tally, "build", || {
        // The tests' own build makes the server too; building it apart would compile its dependencies once more.
        server = Some(gate::build_server(repo, &["test", "--workspace", "--no-run"])?);
        Ok(())
    });
    tally += gate::rust_tests(repo, &["--workspace"]);
    if options.no_sdk {
        tally.skip("SDK suites", "--no-sdk");
    } else {
        tally += sdk_suites(repo, server, options.bless);
    }
    tally
}

fn sdk_suites(repo: &Repo, server: Option<PathBuf>, bless: bool) -> Tally {
    let mut tally = Tally::default();
    let Some(server) = server else {
        for sdk in Sdk::value_variants() {
            tally.fail(format!("{sdk} SDK suite: there is no server to run it against"));
        }
        return tally;
    };
    let target = Target::Binary(server);
    let mut results = compat::Matrix::default();
    for &sdk in Sdk::value_variants() {
        tally += sdk::run_suite(repo, sdk, &target, &mut results);
    }
    gate::step(&mut tally, compat::PAGE, || compat::refresh(repo, results, bless));
    tally
}
