//! The backups of a server, as its admin endpoint starts, shows and cancels them.

use super::{archive, family, place};
use crate::settings::value::StoreUrl;
use crate::settings::{Resolved, Settings, SettingsError};
use anyhow::Context;
use larimar_backup::{Archiver, BackupJob, CommitMailbox, JobState, JobStatus, Keep, Key};
use larimar_bytes::AnyBytes;
use larimar_engine::BackupSource;
use larimar_engine_local::LocalEngine;
use larimar_engine_local::repair::is_data_folder;
use larimar_server::{Backups, NotStarted, Starting};
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::RwLock;

/// The backups of an engine.
pub(crate) struct ServedBackups<E> {
    job: Arc<BackupJob<E, AnyBytes>>,
    archiver: OnceLock<Archiver>,
    /// Directories that hold the data, and what they are.
    own: Vec<(PathBuf, &'static str)>,
    key: Option<Key>,
}

impl<E: BackupSource> ServedBackups<E> {
    pub(crate) fn new(engine: Arc<E>, bytes: Option<Arc<AnyBytes>>, settings: &Settings, key: Option<Key>) -> Self {
        let keep = Keep { time: settings.backup_keep_time, count: settings.backup_keep_count };
        let blobs = settings.blob_store.as_ref().and_then(StoreUrl::as_directory);
        let own = [
            Some((settings.data_dir.clone(), "the data directory")),
            blobs.map(|blobs| (blobs, "the directory of blob_store")),
        ];
        Self {
            job: Arc::new(BackupJob::new(engine, bytes, keep)),
            archiver: OnceLock::new(),
            own: own.into_iter().flatten().collect(),
            key,
        }
    }

    /// Held for reading while something reads or writes a place.
    pub(crate) fn removal_lock(&self) -> Arc<RwLock<()>> {
        self.job.removal_lock()
    }

    /// Checks a directory on a thread of its own, since one on a file system that hangs would hold up requests; `None` if it
    /// does not answer in time.
    async fn check_in_time(&self, to: &Path) -> Option<Result<(), String>> {
        let (own, path) = (self.own.clone(), to.to_owned());
        let checked = tokio::task::spawn_blocking(move || check(&own, &path));
        let checked = tokio::time::timeout(CHECK_TIME_MAX, checked).await.ok()?;
        Some(checked.unwrap_or_else(|error| Err(format!("{} was not checked: {error}", to.display()))))
    }
}

/// Refuses a directory below the data directory: the server would not start any more, and both would be lost together.
/// Likewise below the data directory of another server.
fn check(own: &[(PathBuf, &'static str)], to: &Path) -> Result<(), String> {
    if !to.is_absolute() || to.components().any(|component| component == Component::ParentDir) {
        return Err(format!("expected an absolute path without '..', found {}", to.display()));
    }
    let there = to.ancestors().find_map(|part| part.canonicalize().ok());
    let ways = [Some(to.to_owned()), there];
    for (own, what) in own {
        let own = own.canonicalize();
        if own.is_ok_and(|own| ways.iter().flatten().any(|way| way.starts_with(&own))) {
            return Err(format!("{} is in {what}: give another place", to.display()));
        }
    }
    let is_data = |part: &&Path| is_data_folder(part).unwrap_or(false);
    match ways.iter().flatten().flat_map(|way| way.ancestors()).find(is_data) {
        Some(other) => Err(format!(
            "{} is in {}, the data directory of another server: give another place",
            to.display(),
            other.display()
        )),
        None => Ok(()),
    }
}

impl ServedBackups<LocalEngine> {
    /// Starts the archive of the commits that come to a mailbox. Payloads must not be reclaimed before.
    pub(crate) async fn start_archive(
        &self,
        resolved: &Resolved,
        engine: &Arc<LocalEngine>,
        bytes: Option<Arc<AnyBytes>>,
        mailbox: Option<Arc<CommitMailbox>>,
    ) -> Result<(), SettingsError> {
        let settings = archive::settings(resolved, self.key.as_ref())?;
        let Some((settings, mailbox)) = settings.zip(mailbox) else { return Ok(()) };
        if let Some(path) = settings.place.as_directory() {
            match self.check_in_time(path).await {
                Some(checked) => checked.map_err(|reason| resolved.refused_because("archive", reason))?,
                None => tracing::warn!(to = %settings.place, "the archive's file system does not answer"),
            }
        }
        self.archiver
            .get_or_init(|| Archiver::start(Arc::clone(engine), bytes, Arc::clone(&self.job), mailbox, settings));
        Ok(())
    }

    /// Cancels a backup, closes the engine and stops the archive: then every commit is in its spool.
    pub(crate) async fn end(&self, engine: &LocalEngine) -> anyhow::Result<()> {
        self.cancel().await;
        let closed = engine.close();
        if let Some(archiver) = self.archiver.get() {
            archiver.stop().await;
        }
        closed.context("the engine did not close cleanly; nothing that was acknowledged is lost")
    }
}

impl<E: BackupSource> Backups for ServedBackups<E> {
    fn start<'a>(&'a self, to: &'a str, rate: Option<&'a str>) -> Starting<'a> {
        Box::pin(async move {
            let place = place("TO", to).map_err(|error| NotStarted::Refused(error.to_string()))?;
            if let Some(path) = place.as_directory() {
                let silent = || Err(format!("{to}: its file system did not answer within {CHECK_TIME_MAX:?}"));
                let checked = self.check_in_time(path).await;
                checked.unwrap_or_else(silent).map_err(NotStarted::Refused)?;
            }
            let place = match &self.key {
                Some(key) => place.encrypted(key),
                None => place,
            };
            let rate = rate.map(str::parse).transpose().map_err(NotStarted::Refused)?.unwrap_or_default();
            self.job.start(place, rate).map_err(|running| NotStarted::Running(running.to_string()))
        })
    }

    fn status(&self) -> String {
        let archive = self.archiver.get().map(Archiver::status);
        let status = JobStatus { is_encrypting: self.key.is_some(), archive, ..self.job.status() };
        serde_json::to_string(&status).expect("a status has no map") + "\n"
    }

    fn cancel(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.job.cancel())
    }

    fn metrics(&self) -> String {
        let JobStatus { state, last_success, totals, removal_error, .. } = self.job.status();
        let running = u8::from(state == JobState::Running);
        let mut page = family("larimar_backup_running", "Whether a backup is being taken.", running);
        page +=
            &family("larimar_backup_failed", "Whether the last backup failed.", u8::from(state == JobState::Failed));
        let help = "Whether the removal of old backups after the last one failed.";
        page += &family("larimar_backup_removal_failed", help, u8::from(removal_error.is_some()));
        page += &family("larimar_backup_bytes", "Bytes that the last backup has read.", totals.bytes());
        if let Some(seconds) = last_success {
            let help = "When the last backup of this process ended well, in seconds since 1970.";
            page += &family("larimar_backup_last_success_seconds", help, seconds);
        }
        page + &self.archiver.get().map(|archiver| archive::metrics(&archiver.status())).unwrap_or_default()
    }

    fn ready(&self) -> String {
        self.archiver.get().map(|archiver| format!("archive: {}\n", archiver.status().state())).unwrap_or_default()
    }
}

impl<E> std::fmt::Debug for ServedBackups<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedBackups").field("job", &self.job).finish_non_exhaustive()
    }
}

/// How long the file system of a place may take to answer.
const CHECK_TIME_MAX: Duration = Duration::from_secs(10);
