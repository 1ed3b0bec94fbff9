//! The checks before a commit (formatting, lints, docs, house rules, unit tests), and the helpers that run a step.
//!
//! Every step runs even if one before it failed, so one run shows all problems.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::advisories;
use crate::build::{self, Built};
use crate::features;
use crate::postgres;
use crate::runner::{self, Round};
use crate::say;
use crate::shell::{self, Repo, STEP_TIME_MAX};
use crate::tally::{CargoLines, Tally};
use crate::tidy;

/// `cargo xtask check`.
pub(crate) fn check(repo: &Repo) -> Tally {
    let mut tally = Tally::default();
    let mut features = String::new();
    step(&mut tally, "features", || {
        features = features::of_all(repo, postgres::is_here())?;
        Ok(())
    });
    if !postgres::is_here() {
        tally.skip("lints of the PostgreSQL suites", "there is no PostgreSQL on this machine");
    }
    tally += quick_checks(repo);
    step(&mut tally, "clippy", || {
        let mut clippy = repo.cargo(&["clippy", "--quiet", "--locked", "--workspace", "--features", &features]);
        succeeds(clippy.args(["--all-targets", "--", "-D", "warnings"]))
    });
    tally += doc(repo, &features);
    let mut built = Built::default();
    step(&mut tally, "build of the unit tests", || {
        let mut build = repo.cargo(&["test", "--no-run", "--locked", "--workspace", "--lib", "--bins"]);
        built = Built::of(build.args(["--features", &features]))?;
        Ok(())
    });
    tally += runner::run(repo, "unit tests", &[Round::all(&built.tests)], runner::tests_at_once());
    tally
}

/// The checks of the source that need no compiler.
pub(crate) fn quick_checks(repo: &Repo) -> Tally {
    let mut tally = Tally::default();
    step(&mut tally, "fmt", || succeeds(&mut repo.cargo(&["fmt", "--all", "--check"])));
    step(&mut tally, "tidy", || {
        ensure!(tidy::run(repo, false)?, "house rules are broken");
        Ok(())
    });
    advisories::check(repo, &mut tally);
    tally
}

/// The documentation of all crates, private items included, without a warning.
pub(crate) fn doc(repo: &Repo, features: &str) -> Tally {
    let mut tally = Tally::default();
    step(&mut tally, "doc", || {
        let mut doc = repo.cargo(&["doc", "--quiet", "--workspace", "--features", features, "--no-deps"]);
        succeeds(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "-D warnings"))
    });
    tally
}

/// The examples in the documentation, with the libraries that [`Built::everything`] compiled.
pub(crate) fn doc_tests(repo: &Repo, selection: &[&str]) -> Tally {
    let started = Instant::now();
    say!("\n==> doc-tests");
    let mut tally = Tally::default();
    let mut lines = CargoLines::default();
    let mut command = repo.cargo(&["test", "--doc", "--no-fail-fast", "--locked"]);
    let command = build::compile_like_tests(command.args(selection));
    let status = shell::run_lines(command, STEP_TIME_MAX, |line| {
        say!("{line}");
        lines.add(line, &mut tally);
    });
    match status {
        Ok(status) if !status.success() && tally.failed() == 0 => tally.fail(format!("doc-tests: ended with {status}")),
        Ok(_) => {}
        Err(error) => tally.fail(format!("doc-tests: {error:#}")),
    }
    report(&mut tally, started, "doc-tests");
    tally
}

/// One thing that works or not.
pub(crate) fn step(tally: &mut Tally, name: &str, work: impl FnOnce() -> Result<()>) {
    say!("\n==> {name}");
    let started = Instant::now();
    let mut outcome = Tally::default();
    match work() {
        Ok(()) => outcome.pass(),
        Err(error) => outcome.fail(format!("{name}: {error:#}")),
    }
    report(&mut outcome, started, name);
    *tally += outcome;
}

/// Prints how a step ended and records its duration.
pub(crate) fn report(tally: &mut Tally, started: Instant, name: &str) {
    let word = if tally.failed() == 0 { "ok" } else { "FAILED" };
    say!("<== {name}: {word} in {} s", started.elapsed().as_secs());
    tally.took(name, started.elapsed());
}

pub(crate) fn succeeds(command: &mut Command) -> Result<()> {
    let status = shell::run(command, STEP_TIME_MAX)?;
    ensure!(status.success(), "ended with {status}");
    Ok(())
}

/// Builds the server alone and returns where its binary is.
pub(crate) fn build_server(repo: &Repo) -> Result<PathBuf> {
    Ok(Built::of(&mut repo.cargo(&["build", "--package", "larimar"]))?.server()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_is_named() {
        let mut tally = Tally::default();
        step(&mut tally, "fine", || Ok(()));
        step(&mut tally, "broken", || anyhow::bail!("no luck"));
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(tally.failures(), ["broken: no luck"]);
    }
}
