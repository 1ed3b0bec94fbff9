//! The backups of a server, as its admin endpoint starts, shows and cancels them.

use super::place;
use larimar_backup::{BackupJob, JobState, JobStatus, Key};
use larimar_bytes::AnyBytes;
use larimar_engine_local::LocalEngine;
use larimar_server::{Backups, NotStarted};
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// The backups of an embedded engine.
#[derive(Debug)]
pub(crate) struct ServedBackups {
    job: BackupJob<AnyBytes>,
    data_dir: PathBuf,
    key: Option<Key>,
}

impl ServedBackups {
    pub(crate) fn new(
        engine: Arc<LocalEngine>,
        bytes: Option<Arc<AnyBytes>>,
        data_dir: &Path,
        key: Option<Key>,
    ) -> Self {
        Self { job: BackupJob::new(engine, bytes), data_dir: data_dir.to_owned(), key }
    }

    /// Refuses a directory below the data directory: the server would not start any more, and both would be lost together.
    fn check(&self, to: &Path) -> Result<(), NotStarted> {
        if !to.is_absolute() || to.components().any(|component| component == Component::ParentDir) {
            return Err(NotStarted::Refused(format!("expected an absolute path without '..', found {}", to.display())));
        }
        let Ok(data) = self.data_dir.canonicalize() else { return Ok(()) };
        let there = to.ancestors().find_map(|part| part.canonicalize().ok());
        match there.is_some_and(|there| there.starts_with(&data)) || to.starts_with(&data) {
            true => Err(NotStarted::Refused(format!("{} is in the data directory: give another place", to.display()))),
            false => Ok(()),
        }
    }
}

impl Backups for ServedBackups {
    fn start(&self, to: &str, rate: Option<&str>) -> Result<(), NotStarted> {
        let place = place("TO", to).map_err(|error| NotStarted::Refused(error.to_string()))?;
        if let Some(path) = place.as_directory() {
            self.check(path)?;
        }
        let place = match &self.key {
            Some(key) => place.encrypted(key),
            None => place,
        };
        let rate = rate.map(str::parse).transpose().map_err(NotStarted::Refused)?.unwrap_or_default();
        self.job.start(place, rate).map_err(|running| NotStarted::Running(running.to_string()))
    }

    fn status(&self) -> String {
        let status = JobStatus { is_encrypting: self.key.is_some(), ..self.job.status() };
        serde_json::to_string(&status).expect("a status has no map") + "\n"
    }

    fn cancel(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.job.cancel())
    }

    fn metrics(&self) -> String {
        let JobStatus { state, last_success, totals, .. } = self.job.status();
        let running = u8::from(state == JobState::Running);
        let mut page = family("larimar_backup_running", "Whether a backup is being taken.", running);
        page +=
            &family("larimar_backup_failed", "Whether the last backup failed.", u8::from(state == JobState::Failed));
        page += &family("larimar_backup_bytes", "Bytes that the last backup has read.", totals.bytes());
        if let Some(seconds) = last_success {
            let help = "When the last backup of this process ended well, in seconds since 1970.";
            page += &family("larimar_backup_last_success_seconds", help, seconds);
        }
        page
    }
}

fn family(name: &str, help: &str, value: impl std::fmt::Display) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n")
}
