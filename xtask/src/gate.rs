//! The gate before a commit: formatting, lints, docs, house rules, unit tests; and how Rust tests are run and counted.
//!
//! Every step runs, whatever the ones before it said, so one run shows all there is to mend.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::advisories;
use crate::features;
use crate::postgres;
use crate::shell::{self, Repo, STEP_TIME_MAX};
use crate::tally::{CargoLines, Tally};
use crate::tidy;

/// Cargo's arguments that build the tests, and with them the programs and the examples: built apart, their dependencies
/// would be compiled once more.
pub(crate) const TESTS_BUILD: [&str; 2] = ["test", "--no-run"];

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
    tally += static_checks(repo, &features);
    tally += rust_tests(repo, &["--workspace", "--features", &features, "--lib", "--bins"], &[]);
    tally
}

/// Everything about the code that needs no test to run, with these features.
pub(crate) fn static_checks(repo: &Repo, features: &str) -> Tally {
    let mut tally = Tally::default();
    step(&mut tally, "fmt", || succeeds(&mut repo.cargo(&["fmt", "--all", "--check"])));
    step(&mut tally, "tidy", || {
        ensure!(tidy::run(repo, false)?, "house rules are broken");
        Ok(())
    });
    advisories::check(repo, &mut tally);
    step(&mut tally, "clippy", || {
        let mut clippy = repo.cargo(&["clippy", "--quiet", "--locked", "--workspace", "--features", features]);
        succeeds(clippy.args(["--all-targets", "--", "-D", "warnings"]))
    });
    step(&mut tally, "doc", || {
        let mut doc = repo.cargo(&["doc", "--quiet", "--workspace", "--features", features, "--no-deps"]);
        succeeds(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "-D warnings"))
    });
    tally
}

/// `cargo test` with these arguments and variables; every test counts.
pub(crate) fn rust_tests(repo: &Repo, arguments: &[&str], variables: &[(&str, &str)]) -> Tally {
    let started = Instant::now();
    println!("\n==> tests {}", arguments.join(" "));
    let mut tally = Tally::default();
    let mut lines = CargoLines::default();
    let mut command = repo.cargo(&["test", "--no-fail-fast"]);
    command.args(arguments).envs(variables.iter().copied());
    let status = shell::run_lines(&mut command, STEP_TIME_MAX, |line| {
        println!("{line}");
        lines.add(line, &mut tally);
    });
    match status {
        Ok(status) if status.success() => {}
        Ok(status) if tally.failed() == 0 => tally.fail(format!("cargo test ended with {status}")),
        Ok(_) => {}
        Err(error) => tally.fail(format!("cargo test: {error:#}")),
    }
    report(started, tally.failed() == 0, "tests");
    tally
}

/// One thing that works or not.
pub(crate) fn step(tally: &mut Tally, name: &str, work: impl FnOnce() -> Result<()>) {
    println!("\n==> {name}");
    let started = Instant::now();
    let outcome = work();
    report(started, outcome.is_ok(), name);
    match outcome {
        Ok(()) => tally.pass(),
        Err(error) => tally.fail(format!("{name}: {error:#}")),
    }
}

fn report(started: Instant, good: bool, name: &str) {
    println!("<== {name}: {} in {} s", if good { "ok" } else { "FAILED" }, started.elapsed().as_secs());
}

pub(crate) fn succeeds(command: &mut Command) -> Result<()> {
    let status = shell::run(command, STEP_TIME_MAX)?;
    ensure!(status.success(), "ended with {status}");
    Ok(())
}

/// Builds with these Cargo arguments and returns where the server's binary is.
pub(crate) fn build_server(repo: &Repo, arguments: &[&str]) -> Result<PathBuf> {
    let mut command = repo.cargo(arguments);
    let mut binary = None;
    let status = shell::run_lines(command.arg("--message-format=json-render-diagnostics"), STEP_TIME_MAX, |line| {
        binary = server_binary(line).or(binary.take());
    })?;
    ensure!(status.success(), "the build ended with {status}");
    binary.context("the build made no `larimar` binary")
}

/// The path in the message that tells of the server's binary; none in any other message.
fn server_binary(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = message.get("target")?;
    let is_server = target.get("name")?.as_str()? == "larimar"
        && target.get("kind")?.as_array()?.iter().any(|kind| kind == "bin")
        && message.get("profile")?.get("test")? == false;
    is_server.then_some(Path::new(message.get("executable")?.as_str()?).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_found_among_build_messages() {
        let message = |name: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"{name}","kind":["bin"]}},
                "profile":{{"test":{test}}},"executable":"/t/debug/{name}"}}"#
            )
        };
        assert_eq!(server_binary(&message("larimar", false)), Some(PathBuf::from("/t/debug/larimar")));
        assert_eq!(server_binary(&message("larimar", true)), None);
        assert_eq!(server_binary(&message("xtask", false)), None);
        assert_eq!(server_binary(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(server_binary("not json"), None);
    }

    #[test]
    fn a_step_that_fails_is_named() {
        let mut tally = Tally::default();
        step(&mut tally, "fine", || Ok(()));
        step(&mut tally, "broken", || anyhow::bail!("no luck"));
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 0 skipped");
    }
}
