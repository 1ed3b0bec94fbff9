//! The full backups of a line: one when it begins, and then regularly.

use super::line::Line;
use super::status::ArchiveStatus;
use crate::error::BackupError;
use crate::generation::Generation;
use crate::job::{BackupJob, JobState};
use crate::pace::Rate;
use crate::place::Place;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::{Clock, SystemClock};
use larimar_engine_local::LocalEngine;
use larimar_model::Timestamp;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::time::Duration;

/// Takes backups of an open line, as long as it is polled.
pub(super) async fn keep<B: ByteStore>(
    job: &BackupJob<LocalEngine, B>,
    place: &Place,
    line: &Line,
    every: Duration,
    status: &Mutex<ArchiveStatus>,
) -> Infallible {
    let mut pause = PAUSE_MIN;
    loop {
        let found = latest(place, line).await;
        match found {
            Err(error) => status.lock().backup_failing = Some(error.to_string()),
            Ok(generation) => {
                status.lock().backup = generation.as_ref().map(Generation::name);
                let wait = generation.map(|generation| until_due(&generation, every)).unwrap_or_default();
                if !wait.is_zero() {
                    (pause, status.lock().backup_failing) = (PAUSE_MIN, None);
                    tokio::time::sleep(wait.min(LOOK_EVERY)).await;
                    continue;
                }
                match take(job, place).await {
                    None => continue,
                    Some(error) => status.lock().backup_failing = Some(error),
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Takes a backup, or waits for the one that runs; returns why it failed.
async fn take<B: ByteStore>(job: &BackupJob<LocalEngine, B>, place: &Place) -> Option<String> {
    // A snapshot that is taken on a full disk is not given up, and would keep what clients delete.
    let has_room = job.engine().admission();
    if let Err(fault) = has_room() {
        return Some(fault.to_string());
    }
    // One that runs may be of this line.
    let is_ours = job.start(place.clone(), Rate::default()).is_ok();
    while job.status().state == JobState::Running {
        tokio::time::sleep(POLL).await;
    }
    let ended = job.status();
    match ended.state {
        JobState::Failed if is_ours => ended.error.or_else(|| Some("the full backup failed".to_owned())),
        JobState::Cancelled if is_ours => Some("the full backup was cancelled".to_owned()),
        _ => None,
    }
}

/// The latest backup of a line.
async fn latest(place: &Place, line: &Line) -> Result<Option<Generation>, BackupError> {
    // Names begin with times of the same length.
    let mut names = place.generations().await?;
    names.retain(|name| name.get(..TIME_CHARS) >= line.name.get(..TIME_CHARS));
    for name in names.iter().rev() {
        match Generation::read(place, name).await {
            Ok(generation) if generation.line.as_ref() == Some(&line.name) => return Ok(Some(generation)),
            // Of another line, or damaged: then the line needs another one.
            Ok(_) | Err(BackupError::Damaged { .. } | BackupError::Newer { .. } | BackupError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn until_due(generation: &Generation, every: Duration) -> Duration {
    let taken = Timestamp::parse(&generation.taken).map_or(Duration::ZERO, Timestamp::to_unix);
    (taken + every).saturating_sub(SystemClock.now().to_unix())
}

/// `20261116T170102.5000000`
const TIME_CHARS: usize = 23;
const POLL: Duration = Duration::from_millis(200);
/// The clock may be set meanwhile, and backups may be removed.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
const PAUSE_MIN: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(600);
