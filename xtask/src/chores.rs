//! Commands that are run by hand: crash rounds, fuzzing, the benchmark, stores of today's formats.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::gate;
use crate::shell::{self, Repo};

/// Arguments bound the long runs; this limit only catches hangs.
const LONG_RUN_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Kills and restarts the server this many times and looks for every acknowledged write.
pub(crate) fn crash(repo: &Repo, rounds: u32) -> Result<bool> {
    let mut command = repo.cargo(&["test", "--package", "larimar", "--test", "suite", "crash::", "--", "--nocapture"]);
    let status = shell::run(command.env("LARIMAR_CRASH_ROUNDS", rounds.to_string()), LONG_RUN_TIME_MAX)?;
    Ok(status.success())
}

/// Makes a store of each engine and saves it beside the test that opens those of older formats.
pub(crate) fn stores(repo: &Repo) -> Result<bool> {
    let mut command = repo.cargo(&["test", "--package", "larimar", "--features", "test-postgres", "--test", "suite"]);
    command.arg("made_now").env("SAVE_STORES_TO", repo.path("crates/cli/tests/stores"));
    Ok(shell::run(&mut command, LONG_RUN_TIME_MAX)?.success())
}

/// Runs one fuzz target; installs cargo-fuzz below `target/` if this machine has none.
pub(crate) fn fuzz(repo: &Repo, target: &str, seconds: u32) -> Result<bool> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = repo.path("target/tools");
    let mut folders = vec![tools.join("bin")];
    folders.extend(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).context("extend PATH")?;

    if !shell::on_path("cargo-fuzz") && !tools.join("bin/cargo-fuzz").is_file() {
        let mut install = repo.cargo(&["install", "cargo-fuzz", "--locked", "--root"]);
        gate::succeeds(install.arg(&tools)).context("install cargo-fuzz")?;
    }
    let nightly = repo.command("rustup", ".").args(["run", "nightly", "cargo", "--version"]).output();
    ensure!(
        nightly.is_ok_and(|output| output.status.success()),
        "fuzzing needs a nightly toolchain: rustup toolchain install nightly --profile minimal"
    );
    // What a run finds goes to the first folder, which git ignores; the committed corpus only feeds it.
    let (found, seeds) = (format!("corpus-found/{target}"), format!("corpus/{target}"));
    std::fs::create_dir_all(repo.path("fuzz").join(&found)).context("create the folder for new inputs")?;
    let mut command = repo.command("rustup", "fuzz");
    command.args(["run", "nightly", "cargo", "fuzz", "run", target, &found, &seeds, "--"]);
    command.arg(format!("-max_total_time={seconds}")).env("PATH", path);
    Ok(shell::run(&mut command, LONG_RUN_TIME_MAX)?.success())
}

/// Builds the server and the load generator with optimisation and runs the latter.
pub(crate) fn bench(repo: &Repo, arguments: &[String]) -> Result<bool> {
    gate::succeeds(&mut repo.cargo(&["build", "--release", "--package", "larimar"]))?;
    let mut command = repo.cargo(&["run", "--release", "--quiet", "--package", "larimar-load", "--"]);
    Ok(shell::run(command.args(arguments), LONG_RUN_TIME_MAX)?.success())
}
