//! Recordings of the real service, replayed against the built server: `tests/replay`.
//!
//! Every answer is compared with the recorded one; differences outside `tests/replay/accepted.txt` fail. The recordings
//! are not part of the repository: without them the step counts as skipped.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::gate;
use crate::postgres::Postgres;
use crate::say;
use crate::shell::{self, Repo};
use crate::tally::Tally;

const SCRIPT: &str = "tests/replay/replay.py";
const REPLAY_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// What the script writes about a run; a recording is one test.
#[derive(Deserialize)]
struct Report {
    suites: Vec<Suite>,
    /// Recordings with a difference that is not accepted.
    differing: Vec<String>,
}

#[derive(Deserialize)]
struct Suite {
    /// Recordings that were replayed without a difference.
    clean: u64,
    /// Recordings of which nothing could be replayed.
    unplayed: u64,
}

/// `cargo xtask replay …`.
pub(crate) fn command(repo: &Repo, recordings: &Path) -> Result<Tally> {
    ensure!(recordings.exists(), "there is no {}", recordings.display());
    let binary = gate::build_server(repo)?;
    let mut tally = Tally::default();
    let postgres = Postgres::prepare(repo, &mut tally);
    tally += run(repo, Some(recordings), &binary, postgres.as_ref());
    Ok(tally)
}

/// Replays all recordings of a folder or an archive on the embedded engine and on PostgreSQL.
pub(crate) fn run(repo: &Repo, recordings: Option<&Path>, binary: &Path, postgres: Option<&Postgres>) -> Tally {
    let mut tally = Tally::default();
    let Some(recordings) = recordings else {
        tally.skip("replay", "no recordings of the real service on this machine");
        return tally;
    };
    if !shell::on_path("python3") {
        tally.skip("replay", "no 'python3' on this machine");
        return tally;
    }
    tally += replay(repo, recordings, binary, "embedded", None);
    if let Some(postgres) = postgres {
        tally += replay(repo, recordings, binary, "postgres", Some(&postgres.fresh_url())).on("PostgreSQL");
    }
    tally
}

fn replay(repo: &Repo, recordings: &Path, binary: &Path, engine: &str, database: Option<&str>) -> Tally {
    say!("\n==> replay, {engine} engine");
    let started = Instant::now();
    let mut tally = Tally::default();
    match replayed(repo, recordings, binary, engine, database) {
        Ok(report) => report.count(&mut tally),
        Err(error) => tally.fail(format!("replay: {error:#}")),
    }
    say!("<== replay, {engine} engine: {tally} in {} s", started.elapsed().as_secs());
    tally.took(format!("replay, {engine} engine"), started.elapsed());
    tally
}

fn replayed(repo: &Repo, recordings: &Path, binary: &Path, engine: &str, database: Option<&str>) -> Result<Report> {
    let path = repo.path(&format!("target/replay-{engine}.json"));
    if path.exists() {
        fs::remove_file(&path).context("remove an older run's report")?;
    }
    let recordings = recordings.canonicalize().with_context(|| format!("find {}", recordings.display()))?;
    let mut command = repo.command("python3", ".");
    command.arg(SCRIPT).arg("--larimar").arg(binary).arg("--recordings").arg(recordings).arg("--report").arg(&path);
    if let Some(url) = database {
        command.args(["--database", url]);
    }
    let status = shell::run(&mut command, REPLAY_TIME_MAX)?;
    let text = fs::read_to_string(&path).with_context(|| format!("no report; the replay ended with {status}"))?;
    serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))
}

impl Report {
    fn count(&self, tally: &mut Tally) {
        for suite in &self.suites {
            (0..suite.clean).for_each(|_| tally.pass());
        }
        let unplayed: u64 = self.suites.iter().map(|suite| suite.unplayed).sum();
        if unplayed > 0 {
            tally.skip(
                &format!("replay of {unplayed} recordings"),
                "they begin with a feature that Larimar does not have",
            );
        }
        for recording in &self.differing {
            tally.fail(format!("replay of {recording}"));
        }
        if self.suites.is_empty() {
            tally.fail("replay: there was no recording");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(report: &str) -> String {
        let mut tally = Tally::default();
        serde_json::from_str::<Report>(report).expect("a report").count(&mut tally);
        tally.to_string()
    }

    #[test]
    fn a_recording_is_one_test() {
        let report = r#"{"suites": [{"suite": "a", "clean": 2, "unplayed": 1}, {"suite": "b", "clean": 3, "unplayed": 0}],
            "differing": ["a one.json"]}"#;
        assert_eq!(counted(report), "5 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn no_recording_at_all_is_a_failure() {
        assert_eq!(counted(r#"{"suites": [], "differing": []}"#), "0 passed, 1 failed, 0 skipped");
    }
}
