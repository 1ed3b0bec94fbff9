//! The spools that an earlier process left: the one that goes on, those that are archived and ended, and those that are lost.

use super::line::Line;
use super::spool::{Recovered, Spool, SpoolEnd, SpooledLine};
use super::upload::OpenLine;
use larimar_engine_local::CommitPoint;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A line that cannot be continued, and why.
pub(super) struct OldLine {
    pub(super) open: OpenLine,
    pub(super) reason: String,
}

/// What a start finds.
#[derive(Default)]
pub(super) struct Found {
    /// The spool that continues at the last commit of the store.
    pub(super) current: Option<OpenLine>,
    pub(super) old: Vec<OldLine>,
    /// Why commits that were spooled are lost.
    pub(super) lost: Vec<String>,
}

/// Opens the spools of a place; `point` is the last commit of the store. What is of no use is removed.
pub(super) fn recover(root: &Path, to: &str, point: CommitPoint, max: u64) -> Found {
    let mut found = Found::default();
    let Ok(entries) = std::fs::read_dir(root) else { return found };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let count = folders.len();
    for (index, folder) in folders.into_iter().enumerate() {
        let Some((line, recovered)) = open(&folder, to, max, &mut found.lost) else {
            if let Err(error) = std::fs::remove_dir_all(&folder) {
                tracing::warn!(%error, folder = %folder.display(), "a spool of the archive cannot be removed");
            }
            continue;
        };
        let end = recovered.spool.end.point;
        let open = OpenLine {
            line,
            spool: Arc::new(Mutex::new(recovered.spool)),
            cursor: recovered.cursor,
            intent: recovered.intent,
            quiet_until: None,
        };
        if end == point && index + 1 == count {
            found.current = Some(open);
            continue;
        }
        let reason = if point.sequence > end.sequence {
            let (first, last) = (end.sequence + 1, point.sequence);
            format!("the server stopped before commits {first} to {last} were in the spool")
        } else {
            format!(
                "the store has lost commits: its last one is {}, and the archive has {}",
                point.sequence, end.sequence
            )
        };
        found.old.push(OldLine { open, reason });
    }
    found
}

/// Opens a spool. One that cannot be read, and had commits for the place, goes to `lost`.
fn open(folder: &Path, to: &str, max: u64, lost: &mut Vec<String>) -> Option<(Line, Recovered)> {
    let unreadable = |error: &dyn std::fmt::Display| format!("a spool of the archive cannot be read: {error}");
    // One that was just begun has no file of commits.
    if !Spool::has_files(folder) {
        return None;
    }
    let Some(line) = Spool::line_of(folder) else {
        lost.push(unreadable(&format!("{} does not say which line it is for", folder.display())));
        return None;
    };
    if line.place != to {
        return None;
    }
    match Spool::recover(folder, max) {
        Ok(recovered) => Some((line.line, recovered)),
        Err(error) => {
            lost.push(unreadable(&error));
            None
        }
    }
}

/// Begins a line with an empty spool.
pub(super) fn create(root: &Path, to: String, start: SpoolEnd, max: u64) -> std::io::Result<OpenLine> {
    let line = Line::new(start.published, start.point.sequence, random());
    let spool = Spool::create(root, &SpooledLine { line: line.clone(), place: to }, start, max)?;
    let cursor = spool.start();
    Ok(OpenLine { line, spool: Arc::new(Mutex::new(spool)), cursor, intent: None, quiet_until: None })
}

#[expect(clippy::disallowed_methods, reason = "the names of lines are the random values of this crate")]
fn random() -> [u8; 4] {
    let mut random = [0; 4];
    getrandom::fill(&mut random).expect("the system has randomness");
    random
}
