//! Backups of a running server: one at a time, in a task of its own, with its state for the operator.

use crate::archive::ArchiveStatus;
use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::pace::Rate;
use crate::place::Place;
use crate::removal::{Removed, Removing, Writers, remove};
use crate::retention::Keep;
use crate::take::back_up_in_line;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::{BackupSource, Clock, SystemClock};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;

/// Runs backups of a store.
pub struct BackupJob<E, B> {
    bytes: Option<Arc<B>>,
    shared: Arc<Shared<E>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared<E> {
    engine: Arc<E>,
    status: Mutex<JobStatus>,
    removal: Arc<RwLock<()>>,
    keep: Keep,
    archive: Mutex<Archive>,
}

/// The archive of the server.
#[derive(Default)]
struct Archive {
    /// Its place, if the server archives.
    to: Option<Place>,
    line: Option<LineMark>,
}

/// The line of the archive that is open.
#[derive(Clone, Debug)]
pub(crate) struct LineMark {
    pub(crate) name: String,
    /// The number of the commit before its first.
    pub(crate) after: u64,
}

/// What the last backup is doing, or did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// How far it is.
    pub state: JobState,
    /// Where it is written to.
    pub to: String,
    /// Its generation, when it is done.
    pub generation: Option<String>,
    /// When it began.
    pub started: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// When the last successful one of this process ended, in seconds since 1970.
    pub last_success: Option<u64>,
    /// What it has read and sent so far.
    pub totals: Totals,
    /// Why it failed.
    pub error: Option<String>,
    /// Which old backups were removed after it.
    #[serde(default)]
    pub removed: Option<Removed>,
    /// Why none were removed, though the settings say so.
    #[serde(default)]
    pub removal_error: Option<String>,
    /// Whether the server encrypts its backups.
    #[serde(default)]
    pub is_encrypting: bool,
    /// How far the archive of commits is, if there is one.
    #[serde(default)]
    pub archive: Option<ArchiveStatus>,
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// There was none since the server started.
    #[default]
    None,
    /// It runs.
    Running,
    /// It is whole.
    Done,
    /// It failed.
    Failed,
    /// The operator cancelled it, or the server was stopped.
    Cancelled,
}

/// A job that was not started: another one runs.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl<E: BackupSource, B: ByteStore> BackupJob<E, B> {
    /// The backups of this engine and its store of bytes. After each one, those that are not kept are removed.
    #[must_use]
    pub fn new(engine: Arc<E>, bytes: Option<Arc<B>>, keep: Keep) -> Self {
        let (status, archive) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { engine, status, removal: Arc::default(), keep, archive });
        Self { bytes, shared, task: Mutex::default() }
    }

    /// Starts a backup, which goes on by itself.
    ///
    /// # Errors
    /// Another one runs.
    pub fn start(&self, place: Place, rate: Rate) -> Result<(), Refused> {
        let mut task = self.task.lock();
        let mut status = self.shared.status.lock();
        if status.state == JobState::Running {
            return Err(Refused(format!("a backup to {} is running", status.to)));
        }
        *status = JobStatus {
            state: JobState::Running,
            to: place.to_string(),
            started: Some(SystemClock.now().to_string()),
            last_success: status.last_success,
            ..JobStatus::default()
        };
        drop(status);
        tracing::info!(to = %place, "a backup begins");
        let (shared, bytes) = (Arc::clone(&self.shared), self.bytes.clone());
        *task = Some(tokio::spawn(async move {
            let progress = |totals: &Totals| shared.status.lock().totals = *totals;
            shared.wait_for_line(&place).await;
            let writing = shared.removal.read().await;
            let is_archives = shared.archives_to(&place);
            let line = |sequence: u64| {
                let archive = shared.archive.lock();
                let line = archive.line.as_ref().filter(|line| is_archives && line.after <= sequence);
                line.map(|line| line.name.clone())
            };
            let outcome = back_up_in_line(&*shared.engine, bytes.as_deref(), &place, rate, &progress, &line).await;
            drop(writing);
            shared.end(outcome, &place).await;
        }));
        Ok(())
    }

    /// Cancels the backup that runs; `false` if there is none. It is over when this returns.
    pub async fn cancel(&self) -> bool {
        let task = self.task.lock().take();
        let Some(task) = task else { return false };
        task.abort();
        // An error means that it was aborted.
        let _ = task.await;
        let mut status = self.shared.status.lock();
        let was_running = status.state == JobState::Running;
        if was_running {
            status.ended = Some(SystemClock.now().to_string());
            if status.generation.is_some() {
                status.state = JobState::Done;
                status.removal_error = Some("the removal of old backups was cancelled".to_owned());
            } else {
                status.state = JobState::Cancelled;
            }
            tracing::info!(to = status.to, "the backup was cancelled");
        }
        was_running
    }

    /// Keeps chunks from being removed while a file that will refer to them is not written yet. Writers (a backup, the
    /// archive) hold it for reading from the first chunk that they may reuse until the file that refers to it is there;
    /// a restore into the server ([`SingleJob`](crate::SingleJob)) holds it for reading while it reads a backup.
    /// The removal holds it for writing from reading the references until the last chunk is removed.
    #[must_use]
    pub fn removal_lock(&self) -> Arc<RwLock<()>> {
        Arc::clone(&self.shared.removal)
    }

    /// The server archives to this place.
    pub(crate) fn set_archive(&self, to: Place) {
        self.shared.archive.lock().to = Some(to);
    }

    /// Backups name this line of the archive from now on, if they are of its place and have its commits.
    pub(crate) fn set_line(&self, line: Option<LineMark>) {
        self.shared.archive.lock().line = line;
    }

    /// The engine that is backed up.
    pub(crate) fn engine(&self) -> &E {
        &self.shared.engine
    }

    /// What the last backup is doing, or did.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.shared.status.lock().clone()
    }
}

impl<E> Shared<E> {
    fn archives_to(&self, place: &Place) -> bool {
        self.archive.lock().to.as_ref().is_some_and(|to| to.is_same(place))
    }

    /// Waits a little for the archive's line, as after a start: without it a backup in the archive's place is not continued by
    /// the archive.
    async fn wait_for_line(&self, place: &Place) {
        let waited = async {
            while self.archives_to(place) && self.archive.lock().line.is_none() {
                tokio::time::sleep(LINE_POLL).await;
            }
        };
        // A line that takes longer begins with a backup of its own.
        let _ = tokio::time::timeout(LINE_WAIT_MAX, waited).await;
    }

    /// Notes the outcome, and removes the backups that are not kept.
    async fn end(&self, outcome: Result<Generation, BackupError>, place: &Place) {
        let is_whole = outcome.is_ok();
        self.note(outcome);
        let removed = match is_whole && self.keep.is_set() {
            true => Some(self.remove_surplus(place).await),
            false => None,
        };
        let mut status = self.status.lock();
        match removed {
            Some(Ok(removed)) => {
                let (generations, chunks) = (removed.generations.len(), removed.chunks);
                tracing::info!(to = status.to, generations, chunks, "old backups were removed");
                status.removed = Some(removed);
            }
            Some(Err(error)) => {
                tracing::error!(to = status.to, %error, "old backups were not removed");
                status.removal_error = Some(error.to_string());
            }
            None => {}
        }
        status.state = if is_whole { JobState::Done } else { JobState::Failed };
        status.ended = Some(SystemClock.now().to_string());
    }

    async fn remove_surplus(&self, place: &Place) -> Result<Removed, BackupError> {
        let writers = Writers::Own { lock: &self.removal, is_archiving: self.archives_to(place) };
        remove(place, &Removing::Surplus(self.keep), writers, false).await
    }

    fn note(&self, outcome: Result<Generation, BackupError>) {
        let mut status = self.status.lock();
        match outcome {
            Ok(generation) => {
                tracing::info!(to = status.to, generation = generation.name(), "the backup is whole");
                status.totals = generation.totals;
                status.generation = Some(generation.name());
                status.last_success = Some(SystemClock.now().to_unix().as_secs());
            }
            Err(error) => {
                tracing::error!(to = status.to, %error, "the backup failed");
                status.error = Some(error.to_string());
            }
        }
    }
}

const LINE_POLL: Duration = Duration::from_millis(100);
const LINE_WAIT_MAX: Duration = Duration::from_secs(10);

impl<E, B> std::fmt::Debug for BackupJob<E, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackupJob").field("status", &self.shared.status).finish_non_exhaustive()
    }
}
