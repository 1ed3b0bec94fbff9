//! A migration that is killed or interrupted in the middle, and started again.

use crate::migrate::{command, fill_many, launch, migrated, report, stop, text};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Rows of more than one slice of a copy.
const TRANSACTIONS: usize = 200;

/// Starts a migration, ends it with a signal once it has copied something, and returns how it ended and how many rows
/// it had reported; `None` if everything was copied before the signal came.
pub(crate) fn interrupt(from: &str, to: &str, signal: &str) -> Option<(Option<i32>, u64)> {
    let mut child = command(&["--from", from, "--to", to])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let (mut rows, mut is_late) = (None, false);
    for line in stderr.lines().map_while(Result::ok) {
        is_late |= line.starts_with("verifying");
        if rows.is_none() {
            rows = copied_rows(&line);
            if rows.is_some() {
                let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
                assert!(sent.is_ok(), "kill did not run");
            }
        }
    }
    let status = child.wait().expect("the child is ours");
    let rows = rows.unwrap_or_else(|| panic!("no progress: {status}"));
    (!status.success() && !is_late).then_some((status.code(), rows))
}

/// The items of a line such as `copying   4000 items, …`.
pub(crate) fn copied_rows(line: &str) -> Option<u64> {
    line.strip_prefix("copying")?.trim_start().split_once(" items")?.0.parse().ok()
}

#[test]
fn a_run_that_was_killed_or_interrupted_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = folder.path().join("from");
    let server = launch(&from).start();
    fill_many(&server.client(), "many", TRANSACTIONS);
    stop(server);
    for (signal, code) in [("-KILL", None), ("-INT", Some(130))] {
        // A signal may come too late; then it is tried again elsewhere.
        let (to, before) = (0..10)
            .find_map(|attempt| {
                let to = folder.path().join(format!("to{signal}{attempt}"));
                let (found, rows) = interrupt(text(&from), text(&to), signal)?;
                assert_eq!(found, code, "{signal}");
                Some((to, rows))
            })
            .expect("one of several runs is interrupted");
        let output = command(&["--from", text(&from), "--to", text(&to)]).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        // Without such a line the signal came between the last slice and the verification.
        let first = said.lines().find_map(copied_rows);
        assert!(first.is_none_or(|first| first > before), "it goes on after {before} rows:\n{said}");
        let rows = 100 * TRANSACTIONS;
        let lines = report(&String::from_utf8_lossy(&output.stdout));
        assert!(lines[1].contains(&format!(" {rows} ")), "{lines:?}");
        assert_eq!(report(&migrated(text(&from), text(&to), &["--verify-only"])), lines);
    }
}
