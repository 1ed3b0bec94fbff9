//! The web console in `ui/`: its own checks, whether the page in the server is the one that the sources give, and its tests in
//! a real browser.
//!
//! Node's packages are installed into the checkout as those of the JavaScript suites are, and the browser is Debian's
//! Chromium. Where one of them cannot be had, the step that needs it counts as skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::debian;
use crate::gate::{self, step, succeeds};
use crate::say;
use crate::sdk::{WorkFolder, install};
use crate::shell::{self, Repo};
use crate::tally::Tally;

const FOLDER: &str = "ui";
/// The page that the server is built with.
pub(crate) const COMMITTED: &str = "crates/server/console";
/// The major version of Node that the committed page was built with.
const NODE_VERSION: &str = "ui/.node-version";
const PAGE: &str = "console page";
const BROWSER_SUITE: &str = "console in a browser";
/// The files of tests that the default run has; the rest has the others.
const IN_DEFAULT_RUN: [&str; 4] = ["attacks", "shell", "signin", "tables"];
const SUITE_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// Debian's browser, and fonts for the texts that the tests show in it.
const BROWSER_PACKAGES: [&str; 3] = ["chromium", "fonts-noto-core", "fonts-noto-cjk"];

/// What `cargo xtask console` does.
#[derive(Args)]
pub(crate) struct ConsoleOptions {
    /// Build the page into the server's directory, instead of comparing it
    #[arg(long)]
    bless: bool,
    /// Only the page's own checks, without a browser
    #[arg(long)]
    no_browser: bool,
    /// Write the screenshots of the documentation
    #[arg(long)]
    screenshots: bool,
    /// Scroll over a million rows, which takes ten minutes with this build
    #[arg(long)]
    long: bool,
    /// Only tests of these files, such as `tables`
    tests: Vec<String>,
}

/// `cargo xtask console`.
pub(crate) fn command(repo: &Repo, options: &ConsoleOptions) -> Result<Tally> {
    install(repo)?;
    let mut tally = Tally::default();
    if options.bless {
        step(&mut tally, PAGE, || build(repo, &repo.path(COMMITTED)));
    } else {
        tally += page(repo);
    }
    if !options.no_browser {
        let server = gate::build_server(repo)?;
        let mut variables = Vec::new();
        if options.screenshots {
            variables.push(("LARIMAR_SCREENSHOTS", repo.path("docs/console").display().to_string()));
        }
        if options.long {
            variables.push(("LARIMAR_TEST_ROWS", "1000000".to_owned()));
        }
        tally += suite(repo, &server, &options.tests, &variables);
    }
    Ok(tally)
}

/// Brings the packages of the page and its tests into the checkout.
pub(crate) fn install(repo: &Repo) -> Result<()> {
    for program in ["node", "npm"] {
        ensure!(shell::on_path(program), "no '{program}' on this machine");
    }
    // Not `ci`: that refuses a lock file made where the registry has no packages for other platforms.
    install::npm(repo, FOLDER, &["install", "--no-save"])
}

/// The page's lints and unit tests, and whether the committed page is what its sources give.
pub(crate) fn page(repo: &Repo) -> Tally {
    let mut tally = Tally::default();
    if let Err(error) = install(repo) {
        tally.skip(PAGE, &format!("{error:#}"));
        return tally;
    }
    step(&mut tally, "console: types and lints", || succeeds(repo.command("npm", FOLDER).args(["run", "check"])));
    step(&mut tally, "console: unit tests", || succeeds(repo.command("npm", FOLDER).args(["run", "test"])));
    match other_node(repo) {
        Ok(None) => step(&mut tally, PAGE, || is_committed(repo)),
        Ok(Some(why)) => tally.skip(PAGE, &why),
        Err(error) => tally.fail(format!("{PAGE}: {error:#}")),
    }
    tally
}

/// The tests in a browser that the default run has, against this server in memory.
pub(crate) fn browser_suite(repo: &Repo, server: &Path) -> Tally {
    suite(repo, server, &IN_DEFAULT_RUN.map(str::to_owned), &[])
}

/// The other tests in a browser.
pub(crate) fn rest_of_browser_suite(repo: &Repo, server: &Path) -> Tally {
    other_tests(repo).map_or_else(
        |error| {
            let mut tally = Tally::default();
            tally.fail(format!("{BROWSER_SUITE}: {error:#}"));
            tally
        },
        |tests| suite(repo, server, &tests, &[]),
    )
}

/// The files of tests that the default run leaves out.
fn other_tests(repo: &Repo) -> Result<Vec<String>> {
    let all = files(&repo.path(FOLDER).join("tests"))?;
    let names = all.keys().filter_map(|file| file.strip_suffix(".spec.ts"));
    Ok(names.filter(|name| !IN_DEFAULT_RUN.contains(name)).map(str::to_owned).collect())
}

fn suite(repo: &Repo, server: &Path, tests: &[String], variables: &[(&str, String)]) -> Tally {
    let mut tally = Tally::default();
    let browser = match install(repo).and_then(|()| browser(repo)) {
        Ok(browser) => browser,
        Err(error) => {
            tally.skip(BROWSER_SUITE, &format!("{error:#}"));
            return tally;
        }
    };
    say!("\n==> {BROWSER_SUITE}");
    let started = Instant::now();
    let outcome = WorkFolder::create("console").and_then(|work| {
        let mut command = repo.command(repo.path(FOLDER).join("node_modules/.bin/playwright"), FOLDER);
        command.arg("test").args(tests.iter().map(|name| format!("tests/{name}.spec.ts")));
        command.env("LARIMAR_TEST_BINARY", server).env("LARIMAR_TEST_BROWSER", &browser);
        command.env("LARIMAR_TEST_OUTPUT", &work.0).env("CI", "true");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        shell::run_lines(&mut command, SUITE_TIME_MAX, |line| {
            say!("{line}");
            count(line, &mut tally);
        })
    });
    match outcome {
        Ok(status) if status.success() && tally.passed() > 0 => {}
        Ok(_) if tally.failed() > 0 => {}
        Ok(status) => tally.fail(format!("{BROWSER_SUITE}: ended with {status}, {} passed", tally.passed())),
        Err(error) => tally.fail(format!("{BROWSER_SUITE}: {error:#}")),
    }
    gate::report(&mut tally, started, BROWSER_SUITE);
    tally
}

/// Counts a line of the test runner: `ok 3 tests/tables.spec.ts:7:5 › name (2s)`, `x  3 …` or `-  3 …`.
fn count(line: &str, tally: &mut Tally) {
    let line = line.trim();
    let Some((word, rest)) = line.split_once(' ') else { return };
    let Some((number, name)) = rest.trim_start().split_once(' ') else { return };
    if number.parse::<u32>().is_err() || !name.contains(".spec.ts:") {
        return;
    }
    match word {
        "ok" | "✓" => tally.pass(),
        "x" | "✘" => tally.fail(format!("{BROWSER_SUITE}: {name}")),
        "-" => tally.skip_quietly(1),
        _ => {}
    }
}

/// The browser, installed if it may.
fn browser(repo: &Repo) -> Result<PathBuf> {
    let browser = PathBuf::from("/usr/bin/chromium");
    if !browser.exists() {
        debian::install(repo, &BROWSER_PACKAGES).context("Chromium")?;
    }
    ensure!(browser.exists(), "there is no {}", browser.display());
    Ok(browser)
}

/// Why the page cannot be compared on this machine, if it cannot.
fn other_node(repo: &Repo) -> Result<Option<String>> {
    let path = repo.path(NODE_VERSION);
    let wanted = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let found = String::from_utf8(shell::output_of(repo.command("node", ".").arg("--version"))?)?;
    let (wanted, found) = (wanted.trim(), found.trim().trim_start_matches('v'));
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    let differs = major(wanted) != major(found);
    Ok(differs.then(|| format!("it is built with Node {wanted}, and this machine has {found}")))
}

fn is_committed(repo: &Repo) -> Result<()> {
    let fresh = WorkFolder::create("console-page")?;
    build(repo, &fresh.0)?;
    let (fresh, committed) = (files(&fresh.0)?, files(&repo.path(COMMITTED))?);
    let all = fresh.keys().chain(committed.keys().filter(|name| !fresh.contains_key(*name)));
    let different: Vec<&str> =
        all.filter(|name| fresh.get(*name) != committed.get(*name)).map(String::as_str).collect();
    if !different.is_empty() {
        bail!("not what the sources in {FOLDER} give: {}; run `cargo xtask console --bless`", different.join(", "));
    }
    Ok(())
}

fn build(repo: &Repo, folder: &Path) -> Result<()> {
    let mut npm = repo.command("npm", FOLDER);
    succeeds(npm.args(["run", "build", "--", "--emptyOutDir", "--outDir"]).arg(folder))
}

/// The files below a folder with their contents, by relative names.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("it is below the folder").display().to_string();
            found.insert(name, fs::read(&path).with_context(|| format!("read {}", path.display()))?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_runner_are_counted() {
        let mut tally = Tally::default();
        for line in [
            "Running 4 tests using 2 workers",
            "  ok 1 tests/tables.spec.ts:12:1 › a filter error shows its position (2.1s)",
            "  ✓  2 tests/tables.spec.ts:30:1 › ok 7 things (2.1s)",
            "  x  3 tests/queues.spec.ts:8:1 › messages are moved (1m)",
            "  -  4 tests/tables.spec.ts:50:1 › a million rows",
            "    ok 12 of the output of a test",
            "  2 passed (4.0s)",
        ] {
            count(line, &mut tally);
        }
        assert_eq!(tally.to_string(), "2 passed, 1 failed, 1 skipped");
    }
}
