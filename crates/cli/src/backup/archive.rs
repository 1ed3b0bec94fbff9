//! The archive of a server's commits: where the settings put it, and how it is shown.

use super::{bytes, escape, family, place, resolved_path};
use crate::settings::{Resolved, Settings, SettingsError};
use larimar_backup::{ArchiveSettings, ArchiveStatus, Key, Place};

/// What the settings say about the archive, if they ask for one.
pub(super) fn settings(resolved: &Resolved, key: Option<&Key>) -> Result<Option<ArchiveSettings>, SettingsError> {
    let Settings { archive, data_dir, .. } = &resolved.settings;
    let Some(text) = &archive.place else { return Ok(None) };
    let found = place("archive", text).map_err(|error| match error {
        SettingsError::Value { expected, found, .. } => resolved.refused("archive", &expected, &found),
        other => other,
    })?;
    let found = match found.as_directory() {
        Some(path) => Place::directory(
            resolved_path(path).map_err(|error| resolved.refused_because("archive", error.to_string()))?,
        ),
        None => found,
    };
    let place = match key {
        Some(key) => found.encrypted(key),
        None => found,
    };
    Ok(Some(ArchiveSettings {
        spool_bytes_max: archive.spool_bytes_max,
        backup_every: archive.backup_every,
        ..ArchiveSettings::new(place, data_dir.join(SPOOL))
    }))
}

/// The lines of the page of metrics.
pub(super) fn metrics(status: &ArchiveStatus) -> String {
    let ArchiveStatus { line, last_sequence, lag_seconds, spool_bytes, gaps, failing, backup, .. } = status;
    let is_failing = failing.is_some() || line.is_none();
    let gauges = [
        ("lag_seconds", "How long the oldest commit that is not archived has waited.", *lag_seconds),
        ("spool_bytes", "Bytes of commits, and of payloads that they point to, that are not archived.", *spool_bytes),
        ("last_sequence", "The number of the last commit in the archive.", *last_sequence),
        ("failing", "Whether the archive takes no commits.", u64::from(is_failing)),
        ("restorable", "Whether the open line of the archive has a full backup.", u64::from(backup.is_some())),
    ];
    let mut page = String::new();
    for (name, help, value) in gauges {
        page += &family(&format!("larimar_archive_{name}"), help, value);
    }
    let help = "Lines of the archive that have ended: commits are missing between one and the next.";
    page += &format!("# HELP larimar_archive_gaps_total {help}\n# TYPE larimar_archive_gaps_total counter\n");
    page + &format!("larimar_archive_gaps_total {gaps}\n")
}

/// A status as lines.
pub(super) fn shown(status: &ArchiveStatus) -> String {
    let ArchiveStatus { to, line, last_sequence, last_time, spool_bytes, gaps, .. } = status;
    let mut text = format!("archive to {to}: {}\n", status.state());
    let waiting = (*spool_bytes > 0).then(|| bytes(*spool_bytes));
    let commit = last_time.as_ref().map(|time| format!("{last_sequence} of {time}"));
    let gaps = (*gaps > 0).then(|| gaps.to_string());
    for (name, value) in [
        ("line", line),
        ("last commit", &commit),
        ("waiting", &waiting),
        ("full backup", &status.backup),
        ("full backup fails", &status.backup_failing),
        ("fails", &status.failing),
        ("gaps since the start", &gaps),
        ("last gap", &status.last_gap),
    ] {
        if let Some(value) = value {
            text.push_str(&format!("  {name}: {}\n", escape(value)));
        }
    }
    text
}

/// Below the data directory.
const SPOOL: &str = "spool";
