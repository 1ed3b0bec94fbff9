//! Restores of single spaces into a running server: one at a time, in a task of its own, with its state for the operator.

use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::job::{JobState, Refused};
use crate::pace::Rate;
use crate::place::Place;
use crate::single::{SingleRestore, Wanted};
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::{Clock, Engine, SystemClock};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;

/// Restores single spaces into a store.
#[derive(Debug)]
pub struct SingleJob<E, B> {
    restore: Arc<SingleRestore<E, B>>,
    status: Arc<Mutex<SingleStatus>>,
    task: Mutex<Option<JoinHandle<()>>>,
    removal: Arc<RwLock<()>>,
}

/// What the last restore is doing, or did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SingleStatus {
    /// How far it is.
    pub state: JobState,
    /// The place of the backup.
    pub from: String,
    /// The generation, when it is known.
    pub generation: Option<String>,
    /// What is restored, by its new names.
    pub spaces: Vec<String>,
    /// When it began.
    pub started: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// What it has stored so far.
    pub totals: Totals,
    /// Why it failed.
    pub error: Option<String>,
}

impl<E: Engine, B: ByteStore> SingleJob<E, B> {
    /// Restores into this engine and its store of bytes, which is on the engine's disk or not. The server does not remove
    /// backups while one is read ([`BackupJob::removal_lock`](crate::BackupJob::removal_lock)).
    #[must_use]
    pub fn new(engine: Arc<E>, bytes: Option<Arc<B>>, are_payloads_local: bool, removal: Arc<RwLock<()>>) -> Self {
        let restore = Arc::new(SingleRestore::new(engine, bytes, are_payloads_local));
        Self { restore, status: Arc::default(), task: Mutex::default(), removal }
    }

    /// Starts a restore, which goes on by itself.
    ///
    /// # Errors
    /// Another one runs.
    pub fn start(
        &self,
        place: Place,
        generation: Option<String>,
        wanted: Vec<Wanted>,
        rate: Rate,
    ) -> Result<(), Refused> {
        let mut task = self.task.lock();
        let mut status = self.status.lock();
        if status.state == JobState::Running {
            return Err(Refused(format!("a restore from {} is running", status.from)));
        }
        *status = SingleStatus {
            state: JobState::Running,
            from: place.to_string(),
            spaces: wanted.iter().map(Wanted::to_string).collect(),
            started: Some(SystemClock.now().to_string()),
            ..SingleStatus::default()
        };
        drop(status);
        tracing::info!(from = %place, "a restore into this server begins");
        let (restore, status) = (Arc::clone(&self.restore), Arc::clone(&self.status));
        let removal = Arc::clone(&self.removal);
        *task = Some(tokio::spawn(async move {
            let work = async {
                let _reading = removal.read().await;
                let generation = Generation::find(&place, generation.as_deref()).await?;
                status.lock().generation = Some(generation.name());
                let progress = |totals: &Totals| status.lock().totals = *totals;
                restore.run(&place, &generation, &wanted, rate, &progress).await
            };
            let outcome = work.await;
            restore.discard().await;
            end(&mut status.lock(), outcome);
        }));
        Ok(())
    }

    /// Cancels the restore that runs; `false` if there is none. It is over when this returns, and what it has stored is
    /// dropped.
    pub async fn cancel(&self) -> bool {
        let task = self.task.lock().take();
        let Some(task) = task else { return false };
        task.abort();
        // An error means that it was aborted.
        let _ = task.await;
        self.restore.discard().await;
        let mut status = self.status.lock();
        let was_running = status.state == JobState::Running;
        if was_running {
            status.state = JobState::Cancelled;
            status.ended = Some(SystemClock.now().to_string());
            tracing::info!(from = status.from, "the restore into this server was cancelled");
        }
        was_running
    }

    /// What the last restore is doing, or did.
    #[must_use]
    pub fn status(&self) -> SingleStatus {
        self.status.lock().clone()
    }
}

fn end(status: &mut SingleStatus, outcome: Result<Totals, BackupError>) {
    status.ended = Some(SystemClock.now().to_string());
    match outcome {
        Ok(totals) => {
            tracing::info!(from = status.from, spaces = ?status.spaces, "the restore into this server is done");
            status.state = JobState::Done;
            status.totals = totals;
        }
        Err(error) => {
            tracing::error!(from = status.from, %error, "the restore into this server failed");
            status.state = JobState::Failed;
            status.error = Some(error.to_string());
        }
    }
}
