//! What the operator sees of the archive.

use larimar_model::Timestamp;
use serde::{Deserialize, Serialize};

/// How far the archive is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveStatus {
    /// Where it is.
    pub to: String,
    /// The line that is open; none while commits are not archived.
    pub line: Option<String>,
    /// The number of the last commit that is in the archive.
    pub last_sequence: u64,
    /// When that commit was published.
    pub last_time: Option<String>,
    /// How long the oldest commit that is not in the archive has waited, in seconds.
    pub lag_seconds: u64,
    /// Bytes of commits, and of payloads that they point to, that wait.
    pub spool_bytes: u64,
    /// How many lines have ended since the server started.
    pub gaps: u64,
    /// Why the last line ended.
    pub last_gap: Option<String>,
    /// Why commits wait, while the place does not take them.
    pub failing: Option<String>,
    /// The last full backup of the line; none while the line has none, so that it cannot be restored yet.
    pub backup: Option<String>,
    /// Why that backup is not there yet.
    pub backup_failing: Option<String>,
}

impl ArchiveStatus {
    /// A line about it for `/ready`.
    #[must_use]
    pub fn line_of_text(&self) -> String {
        let Self { last_sequence, lag_seconds, spool_bytes, failing, last_gap, backup, backup_failing, .. } = self;
        let mut text = match (&self.line, lag_seconds) {
            (None, _) => "archive: not archiving".to_owned(),
            (Some(_), 0 | 1) => format!("archive: up to date at commit {last_sequence}"),
            (Some(_), _) => {
                format!("archive: {lag_seconds} s behind ({spool_bytes} bytes wait), at commit {last_sequence}")
            }
        };
        let no_backup = (self.line.is_some() && backup.is_none())
            .then(|| backup_failing.as_deref().unwrap_or("its full backup is not whole yet"));
        let gap = last_gap.as_deref().filter(|_| self.line.is_none());
        for reason in [failing.as_deref(), gap, no_backup].into_iter().flatten() {
            // Such as a path that somebody chose.
            text.extend("; ".chars().chain(reason.chars().map(|char| if char.is_control() { ' ' } else { char })));
        }
        text.push('\n');
        text
    }

    pub(super) fn archived(&mut self, sequence: u64, time: Timestamp) {
        self.last_sequence = sequence;
        self.last_time = Some(time.to_string());
    }
}
