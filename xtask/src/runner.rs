//! Runs the tests of many programs side by side: more at once than the machine has cores, because most of them wait for
//! disks, databases or the clock.
//!
//! Each integration test runs in a process of its own, so it has its own environment, allocator and signal handlers, and
//! its own time limit. The unit tests of a crate take milliseconds and share one process. The output of a test is shown
//! if it fails.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::build::TestProgram;
use crate::output;
use crate::say;
use crate::shell::{self, Repo};
use crate::tally::{CargoLines, Tally};

/// Tests in flight for each core.
const TESTS_PER_CORE: usize = 2;

/// How long a test may take before it counts as hung; the slowest takes a minute on two free cores.
const TEST_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// Tests that take ten seconds or more, by the start of their names: they go first, so that no core waits for one of
/// them at the end. A run prints its slowest tests.
const SLOW: [&str; 19] = [
    "larimar-client-derive",
    "larimar faults::full_disk",
    "larimar faults::disk_full",
    "larimar-engine-postgres pages",
    "larimar-engine-postgres connections",
    "larimar moments::",
    "larimar crash::",
    "larimar copy::",
    "larimar-tool copy::",
    "larimar-engine blobs::crashes::",
    "larimar stores::",
    "larimar-engine-local disk_full",
    "larimar-engine-postgres failures",
    "larimar-engine-postgres blobs",
    "larimar-patterns ",
    "larimar postgres::",
    "larimar migrate::",
    "larimar crowd::",
    "larimar seed::",
];

/// How many of the slowest tests and suites a run lists.
const SLOWEST_SHOWN: usize = 12;

/// A set of tests to run, with the environment they run in.
pub(crate) struct Round<'a> {
    programs: &'a [TestProgram],
    variables: Vec<(&'a str, &'a str)>,
    /// Where it runs, for the names of failures; empty for the usual place.
    place: &'a str,
    kind: Kind<'a>,
    /// The integration tests that are left out: a package and the start of their names.
    without: &'a [(&'a str, &'a [&'a str])],
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    All,
    /// Integration tests of one package whose names start like one of these.
    Chosen {
        package: &'a str,
        names: &'a [&'a str],
    },
    /// Likewise, and only those that are ignored otherwise.
    Ignored {
        package: &'a str,
        names: &'a [&'a str],
    },
}

impl<'a> Round<'a> {
    /// All tests of these programs.
    pub(crate) fn all(programs: &'a [TestProgram]) -> Self {
        Self { programs, variables: Vec::new(), place: "", kind: Kind::All, without: &[] }
    }

    /// The integration tests of a package whose names start like one of these.
    pub(crate) fn chosen(programs: &'a [TestProgram], package: &'a str, names: &'a [&'a str]) -> Self {
        Self { kind: Kind::Chosen { package, names }, ..Self::all(programs) }
    }

    /// Like [`Self::chosen`], of the tests that a plain run ignores.
    pub(crate) fn ignored(programs: &'a [TestProgram], package: &'a str, names: &'a [&'a str]) -> Self {
        Self { kind: Kind::Ignored { package, names }, ..Self::all(programs) }
    }

    /// Leaves out integration tests of packages whose names start like one of these.
    pub(crate) const fn without(mut self, tests: &'a [(&'a str, &'a [&'a str])]) -> Self {
        self.without = tests;
        self
    }

    pub(crate) fn with(mut self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.variables.extend(variables);
        self
    }

    pub(crate) fn on(mut self, place: &'a str) -> Self {
        self.place = place;
        self
    }

    /// The processes of this round; counts the tests that it leaves out because they are ignored.
    fn jobs(&'a self, repo: &Repo, tally: &mut Tally) -> Vec<Job<'a>> {
        let mut jobs = Vec::new();
        for program in self.programs {
            if program.has_unit_tests {
                if matches!(self.kind, Kind::All) {
                    jobs.push(Job { round: self, program, test: None });
                }
                continue;
            }
            match self.names(repo, program, tally) {
                Ok(names) => jobs.extend(names.into_iter().map(|name| Job { round: self, program, test: Some(name) })),
                Err(error) => tally.fail(format!("{}: {error:#}", program.package)),
            }
        }
        jobs
    }

    /// The integration tests of a program that this round runs.
    fn names(&self, repo: &Repo, program: &TestProgram, tally: &mut Tally) -> Result<Vec<String>> {
        let starts_like = |names: &[&str], test: &str| names.iter().any(|name| test.starts_with(name));
        match self.kind {
            Kind::All => {
                let ignored = list(repo, program, &["--ignored"])?;
                tally.skip_quietly(ignored.len());
                let mut tests = list(repo, program, &[])?;
                let left_out = |test: &str| {
                    let mut left_out = self.without.iter().filter(|(package, _)| program.package == *package);
                    left_out.any(|(_, names)| starts_like(names, test))
                };
                tests.retain(|test| !ignored.contains(test) && !left_out(test));
                Ok(tests)
            }
            Kind::Chosen { package, names } if program.package == package => {
                let ignored = list(repo, program, &["--ignored"])?;
                let mut tests = list(repo, program, &[])?;
                tests.retain(|test| starts_like(names, test) && !ignored.contains(test));
                Ok(tests)
            }
            Kind::Ignored { package, names } if program.package == package => {
                let mut tests = list(repo, program, &["--ignored"])?;
                tests.retain(|test| starts_like(names, test));
                Ok(tests)
            }
            Kind::Chosen { .. } | Kind::Ignored { .. } => Ok(Vec::new()),
        }
    }
}

/// One process: a test, or all unit tests of a program.
struct Job<'a> {
    round: &'a Round<'a>,
    program: &'a TestProgram,
    test: Option<String>,
}

impl Job<'_> {
    fn name(&self) -> String {
        let test = self.test.as_deref().unwrap_or("(unit tests)");
        let place = if self.round.place.is_empty() { String::new() } else { format!(" on {}", self.round.place) };
        format!("{} {test}{place}", self.program.package)
    }

    /// Slow tests first, in the order of their list.
    fn rank(&self) -> usize {
        let name = self.name();
        SLOW.iter().position(|slow| name.starts_with(slow)).unwrap_or(SLOW.len())
    }

    /// Runs the process and counts its tests; returns how many ran inside that are ignored otherwise.
    fn run(&self, repo: &Repo) -> Tally {
        let mut command = command(repo, self.program);
        command.envs(self.round.variables.iter().copied());
        if let Some(test) = &self.test {
            command.args(["--exact", test]);
            if matches!(self.round.kind, Kind::Ignored { .. }) {
                command.arg("--ignored");
            }
        }
        let mut tally = Tally::default();
        match output::capture(|| shell::run(&mut command, TEST_TIME_MAX)) {
            Ok((outcome, printed)) => {
                let mut lines = CargoLines::default();
                printed.lines().for_each(|line| lines.add(line, &mut tally));
                let failure = match outcome {
                    Ok(status) if status.success() && tally.passed() > 0 => return tally,
                    Ok(status) if status.success() && self.test.is_none() => return tally,
                    Ok(status) => format!("ended with {status}"),
                    Err(error) => format!("{error:#}"),
                };
                say!("\n---- {}: {failure}\n{}", self.name(), printed.trim_end());
                if tally.failed() == 0 {
                    tally.fail(format!("{}: {failure}", self.name()));
                }
            }
            Err(error) => tally.fail(format!("{}: {error:#}", self.name())),
        }
        let package = &self.program.package;
        let tally = tally.map_failures(|failure| match failure.starts_with(package.as_str()) {
            true => failure.to_owned(),
            false => format!("{package} {failure}"),
        });
        if self.round.place.is_empty() { tally } else { tally.on(self.round.place) }
    }
}

/// What a run shares between its threads.
#[derive(Default)]
struct Progress {
    tally: Tally,
    /// Tests that ran inside another one; they are ignored otherwise, and so were counted as skipped.
    ran_inside: u64,
    times: Vec<(Duration, String)>,
}

/// As many tests at once as suit the machine.
pub(crate) fn tests_at_once() -> usize {
    TESTS_PER_CORE * thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the rounds' tests, so many at once.
pub(crate) fn run(repo: &Repo, name: &str, rounds: &[Round<'_>], at_once: usize) -> Tally {
    let started = Instant::now();
    let mut tally = Tally::default();
    let mut jobs: Vec<Job<'_>> = rounds.iter().flat_map(|round| round.jobs(repo, &mut tally)).collect();
    jobs.sort_by_key(Job::rank);
    say!("\n==> {name}: {} processes, {at_once} at once", jobs.len());
    let queue = Mutex::new(VecDeque::from(jobs));
    let progress = Mutex::new(Progress { tally, ..Progress::default() });
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(job) = { lock(&queue).pop_front() } {
                    let started = Instant::now();
                    let tally = job.run(repo);
                    let mut progress = lock(&progress);
                    if job.test.is_some() {
                        progress.ran_inside += (tally.passed() + tally.failed()).saturating_sub(1);
                    }
                    progress.times.push((started.elapsed(), job.name()));
                    progress.tally += tally;
                }
            });
        }
    });
    let Progress { mut tally, ran_inside, times } = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.unskip(ran_inside);
    show_slowest(times);
    say!("<== {name}: {tally} in {} s", started.elapsed().as_secs());
    tally.took(name, started.elapsed());
    tally
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show_slowest(times: Vec<(Duration, String)>) {
    let mut suites: BTreeMap<String, Duration> = BTreeMap::new();
    for (time, name) in &times {
        *suites.entry(suite(name)).or_default() += *time;
    }
    show("Slowest suites, the durations of their tests added up:", suites.into_iter().map(|(name, time)| (time, name)));
    show("Slowest tests:", times);
}

fn show(title: &str, times: impl IntoIterator<Item = (Duration, String)>) {
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by(|a, b| b.cmp(a));
    say!("{title}");
    for (time, name) in times.iter().take(SLOWEST_SHOWN) {
        say!("{:7.1} s  {name}", time.as_secs_f64());
    }
}

/// The suite of a test by its name: `larimar crash::a_test on PostgreSQL` is of `larimar crash on PostgreSQL`.
fn suite(name: &str) -> String {
    let (test, place) = name.split_once(" on ").map_or((name, String::new()), |(test, at)| (test, format!(" on {at}")));
    format!("{}{place}", test.split("::").next().unwrap_or(test))
}

/// The names of a program's tests.
fn list(repo: &Repo, program: &TestProgram, arguments: &[&str]) -> Result<Vec<String>> {
    let mut command = command(repo, program);
    let listing = shell::output_of(command.args(["--list", "--format", "terse"]).args(arguments))?;
    let listing = String::from_utf8(listing).context("names of tests are UTF-8")?;
    Ok(listing.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// A test program, started as Cargo would start it.
fn command(repo: &Repo, program: &TestProgram) -> Command {
    let mut command = repo.command(&program.executable, ".");
    command.current_dir(&program.folder);
    command.env("CARGO_MANIFEST_DIR", &program.folder).env("CARGO_PKG_NAME", &program.package);
    command.env("CARGO_MANIFEST_PATH", program.folder.join(Path::new("Cargo.toml")));
    command
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;

    /// A shell script in the place of a test program: it lists `good`, `outer`, `bad`, `dead` and the ignored `inner`.
    const SCRIPT: &str = r#"#!/bin/sh
case "$*" in
  *--list*--ignored*) echo 'inner: test' ;;
  *--list*) printf 'good: test\nouter: test\nbad: test\ndead: test\ninner: test\n' ;;
  *good*) printf 'running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 4 filtered out\n' ;;
  *outer*) for run in 1 2; do echo 'running 1 test'; done
    for run in 1 2; do echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 4 filtered out'; done ;;
  *bad*) printf 'running 1 test\ntest bad ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n'; exit 101 ;;
  *dead*) echo 'running 1 test'; exit 134 ;;
  *inner*) echo "where $PLACE"
    printf 'running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 4 filtered out\n' ;;
esac
"#;

    fn program(name: &str) -> (Repo, TestProgram) {
        let root = std::env::temp_dir().join(format!("larimar-xtask-runner-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).expect("create");
        let executable = root.join("suite");
        fs::write(&executable, SCRIPT).expect("write");
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).expect("make it executable");
        let folder: PathBuf = root.clone();
        (Repo { root }, TestProgram { package: "p".to_owned(), executable, folder, has_unit_tests: false })
    }

    #[test]
    fn every_test_runs_once_and_one_that_dies_has_failed() {
        let (repo, program) = program("all");
        let programs = [program];
        let tally = run(&repo, "tests", &[Round::all(&programs)], 3);
        assert_eq!(tally.to_string(), "3 passed, 2 failed, 0 skipped");
        let without: [(&str, &[&str]); 2] = [("p", &["ba", "dea"]), ("q", &["good"])];
        let some = run(&repo, "tests", &[Round::all(&programs).without(&without)], 3);
        assert_eq!(some.to_string(), "3 passed, 0 failed, 0 skipped");
        let mut failures = tally.failures().to_vec();
        failures.sort_unstable();
        assert_eq!(failures, ["p bad", "p dead: ended with exit status: 134"]);
        fs::remove_dir_all(&repo.root).expect("remove");
    }

    #[test]
    fn the_suite_of_a_test_is_its_module() {
        assert_eq!(suite("larimar crash::rounds::a_test on PostgreSQL"), "larimar crash on PostgreSQL");
        assert_eq!(suite("larimar-model (unit tests)"), "larimar-model (unit tests)");
    }

    #[test]
    fn a_round_chooses_tests_by_package_and_name() {
        let (repo, program) = program("chosen");
        let programs = [program];
        let chosen = [Round::chosen(&programs, "p", &["goo", "inner"]), Round::chosen(&programs, "q", &["good"])];
        assert_eq!(run(&repo, "tests", &chosen, 1).to_string(), "1 passed, 0 failed, 0 skipped");
        let ignored = [Round::ignored(&programs, "p", &["inner"]).with([("PLACE", "here")]).on("Azurite")];
        assert_eq!(run(&repo, "tests", &ignored, 1).to_string(), "1 passed, 0 failed, 0 skipped");
        let failing = [Round::chosen(&programs, "p", &["bad"]).on("PostgreSQL")];
        assert_eq!(run(&repo, "tests", &failing, 1).failures(), ["on PostgreSQL: p bad"]);
        fs::remove_dir_all(&repo.root).expect("remove");
    }
}
