//! What the operator sees of the archive.

use larimar_model::Timestamp;
use serde::{Deserialize, Serialize};

/// How far the archive is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveStatus {
    /// Where it is.
    pub to: String,
    /// The line that is open in the place.
    pub line: Option<String>,
    /// Whether commits are kept until the place takes them.
    #[serde(default)]
    pub is_spooling: bool,
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
    /// The state and the lag. Nothing in it comes from the place: `/ready` shows it without credentials.
    #[must_use]
    pub fn state(&self) -> String {
        let lag = self.lag_seconds;
        let mut text = match (&self.line, lag) {
            _ if !self.is_spooling => "not archiving".to_owned(),
            (line, _) if line.is_none() || self.failing.is_some() => format!("waiting for its place, lag {lag} s"),
            (_, 0 | 1) => "up to date".to_owned(),
            _ => format!("behind, lag {lag} s"),
        };
        if self.line.is_some() && self.backup.is_none() {
            text.push_str("; no full backup yet");
        }
        text
    }

    pub(super) fn archived(&mut self, sequence: u64, time: Timestamp) {
        self.last_sequence = sequence;
        self.last_time = Some(time.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_has_the_lag_and_nothing_from_the_place() {
        let text = || Some("/secret".to_owned());
        let open = ArchiveStatus {
            to: "/secret".to_owned(),
            line: text(),
            is_spooling: true,
            backup: text(),
            last_gap: text(),
            backup_failing: text(),
            ..ArchiveStatus::default()
        };
        let behind = ArchiveStatus { lag_seconds: 7, ..open.clone() };
        let cases = [
            (open.clone(), "up to date"),
            (behind.clone(), "behind, lag 7 s"),
            (ArchiveStatus { failing: text(), ..behind.clone() }, "waiting for its place, lag 7 s"),
            (ArchiveStatus { line: None, failing: text(), ..behind.clone() }, "waiting for its place, lag 7 s"),
            (ArchiveStatus { line: None, ..open.clone() }, "waiting for its place, lag 0 s"),
            (ArchiveStatus { backup: None, ..behind.clone() }, "behind, lag 7 s; no full backup yet"),
            (ArchiveStatus { line: None, is_spooling: false, ..open }, "not archiving"),
        ];
        for (status, state) in cases {
            assert_eq!(status.state(), state, "{status:?}");
        }
    }
}
