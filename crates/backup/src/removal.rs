//! Removes old backups, what the archive has for them alone, and the chunks that nothing refers to any more.
//!
//! Everything that is kept is read first, and nothing is removed if a part of it is missing. Then generations go, then
//! segments, then chunks: a removal that is interrupted leaves files that nothing needs, which the next one removes.
//! (`retention.rs` has the rules; `references.rs` finds the chunks.)

mod references;

use crate::archive::line::{ARCHIVE, LINE, Line, SegmentName};
use crate::error::BackupError;
use crate::generation::Generation;
use crate::place::{GENERATIONS, Place, PlaceLock, Storage};
use crate::retention::Keep;
use futures_util::future::join_all;
use larimar_engine::{Clock, SystemClock};
use larimar_model::Timestamp;
use references::References;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

/// Which backups to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removing {
    /// The generations of these names.
    Named(Vec<String>),
    /// Those that the rule does not keep.
    Surplus(Keep),
}

/// Who may write to the place meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Writers<'a> {
    /// The server that removes.
    Own {
        /// Its writers hold this lock ([`BackupJob::removal_lock`](crate::BackupJob::removal_lock)).
        lock: &'a Arc<RwLock<()>>,
        /// Whether it archives to the place. If not, no other server may.
        is_archiving: bool,
    },
    /// Other processes. A directory is locked, and refused if one of them writes there. An object store cannot be locked: the
    /// caller says that nothing writes to it.
    Others {
        /// Whether nothing writes to the place, if it is an object store.
        is_idle: bool,
    },
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The generations.
    pub generations: Vec<String>,
    /// Segments of the archive.
    pub segments: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of the chunks.
    pub chunk_bytes: u64,
}

/// Removes backups; if `is_dry`, nothing is changed.
///
/// # Errors
/// A place that something else writes to; or a backup that is kept and damaged: then nothing was removed.
pub async fn remove(
    place: &Place,
    removing: &Removing,
    writers: Writers<'_>,
    is_dry: bool,
) -> Result<Removed, BackupError> {
    // Of a place that is not ours nothing is touched.
    Generation::list(place).await?;
    let locks = if is_dry { None } else { Some(lock(place, writers).await?) };
    let now = SystemClock.now();
    let mut references = References::default();
    let mut plan = Plan::make(place, removing, now).await?;
    references.read(place, &plan).await?;
    let alone = match writers {
        // The long part was done beside the writers; now what they have added is read.
        Writers::Own { lock, .. } => {
            let alone = tokio::time::timeout(ALONE_WAIT_MAX, Arc::clone(lock).write_owned()).await;
            let alone = alone.map_err(|_| BackupError::InUse(place.to_string()))?;
            plan = Plan::make(place, removing, now).await?;
            references.read(place, &plan).await?;
            Some(alone)
        }
        Writers::Others { .. } => None,
    };
    let age_min = match (writers, place.storage()) {
        (Writers::Others { .. }, Storage::Objects { .. }) => CHUNK_AGE_MIN,
        _ => Duration::ZERO,
    };
    let (chunks, chunk_bytes) = references.unused(place, age_min).await?;
    let removed = Removed {
        generations: plan.generations.clone(),
        segments: plan.segments.len() as u64,
        chunks: chunks.len() as u64,
        chunk_bytes,
    };
    if !is_dry {
        let held = Arc::new(Held { _locks: locks, _alone: alone });
        plan.remove(place, &held).await?;
        remove_all(place, chunks.iter().map(|chunk| chunk.file()).collect(), &held).await?;
    }
    Ok(removed)
}

/// Keeps the writers of other processes away.
async fn lock(place: &Place, writers: Writers<'_>) -> Result<[PlaceLock; 2], BackupError> {
    match (writers, place.storage()) {
        (Writers::Others { is_idle: false }, Storage::Objects { .. }) => Err(BackupError::NotLocked(place.to_string())),
        (Writers::Own { is_archiving: true, .. }, _) => Ok([place.prepare().await?, PlaceLock::none()]),
        _ => {
            let archive = place.prepare_archive().await.map_err(|error| match error {
                BackupError::BusyArchive(place) => BackupError::Archiving(place),
                other => other,
            });
            Ok([archive?, place.prepare().await?])
        }
    }
}

/// Keeps writers away until the last file is removed, also if the removal is cancelled.
struct Held {
    _locks: Option<[PlaceLock; 2]>,
    _alone: Option<OwnedRwLockWriteGuard<()>>,
}

/// What is kept and what goes.
struct Plan {
    kept: Vec<Generation>,
    /// Generations that go.
    generations: Vec<String>,
    /// Segments that are kept: their files.
    kept_segments: Vec<String>,
    /// Segments that go.
    segments: Vec<String>,
    /// Lines that go: their directories.
    lines: Vec<String>,
}

impl Plan {
    async fn make(place: &Place, removing: &Removing, now: Timestamp) -> Result<Self, BackupError> {
        let there = place.generations().await?;
        let (named, surplus) = match removing {
            Removing::Named(names) => (&names[..], 0),
            Removing::Surplus(keep) => (&[][..], keep.surplus(&there, now)),
        };
        if let Some(name) = named.iter().find(|name| !there.contains(name)) {
            return Err(BackupError::NoGeneration { name: name.clone(), there });
        }
        let (generations, keeping): (Vec<_>, Vec<_>) =
            there.into_iter().enumerate().partition(|(at, name)| *at < surplus || named.contains(name));
        let generations = generations.into_iter().map(|(_, name)| name).collect();
        if keeping.is_empty() {
            return Err(BackupError::LastBackup(place.to_string()));
        }
        let mut kept = Vec::with_capacity(keeping.len());
        for (_, name) in keeping {
            kept.push(Generation::read(place, &name).await.map_err(|error| error.of_kept(&name))?);
        }
        let mut plan = Self { kept, generations, kept_segments: Vec::new(), segments: Vec::new(), lines: Vec::new() };
        plan.plan_archive(place, now).await?;
        Ok(plan)
    }

    /// A kept generation needs what its line has after it. The newest line may be waiting for its first backup.
    async fn plan_archive(&mut self, place: &Place, now: Timestamp) -> Result<(), BackupError> {
        let lines = Line::list(place).await?;
        // Names order as times do. Lines of a time to come are from a clock that was ahead.
        let now: String = now.to_seven_digits().chars().filter(|char| !"-:".contains(*char)).collect();
        let newest = lines.iter().rposition(|line| *line <= now).unwrap_or(0);
        for (at, line) in lines.iter().enumerate() {
            let of_line = self.kept.iter().filter(|generation| generation.line.as_deref() == Some(line));
            let first = of_line.map(|generation| generation.sequence).min();
            let is_kept = first.is_some() || at >= newest;
            for segment in SegmentName::list(place, line).await? {
                let is_needed = is_kept && first.is_none_or(|first| segment.last > first);
                let files = if is_needed { &mut self.kept_segments } else { &mut self.segments };
                files.push(segment.file(line));
            }
            if !is_kept {
                self.lines.push(format!("{ARCHIVE}/{line}"));
            }
        }
        Ok(())
    }

    /// Removes generations, then segments and lines. Each is gone from the disk before what it refers to.
    async fn remove(&self, place: &Place, held: &Arc<Held>) -> Result<(), BackupError> {
        for name in &self.generations {
            place.remove(&format!("{GENERATIONS}/{name}")).await?;
        }
        place.sync().await?;
        remove_all(place, self.segments.clone(), held).await?;
        for line in &self.lines {
            // Until its first file is gone, it is a line without segments. Files that are not ours stay.
            for name in ["end", "through", LINE] {
                place.remove(&format!("{line}/{name}")).await?;
            }
            place.storage().remove_directory(line).await?;
        }
        place.storage().sync_archive().await
    }
}

/// Removes files as they are stored, some at a time. Removals that have begun end before the locks are released: a writer
/// could otherwise count on a chunk that is about to go.
async fn remove_all(place: &Place, files: Vec<String>, held: &Arc<Held>) -> Result<(), BackupError> {
    for group in files.chunks(AT_ONCE) {
        let (place, group, held) = (place.clone(), group.to_vec(), Arc::clone(held));
        let removals = tokio::spawn(async move {
            let removed = join_all(group.iter().map(|file| place.storage().remove(file))).await;
            drop(held);
            removed.into_iter().collect::<Result<(), BackupError>>()
        });
        removals.await.map_err(BackupError::thread)??;
    }
    Ok(())
}

/// Files that are read or removed at once.
const AT_ONCE: usize = 8;
/// The archive waits behind a removal that waits, and a restore into the server may read for hours.
const ALONE_WAIT_MAX: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 20 });
/// In an object store, a command removes no younger chunks: a backup that began before may still refer to them.
const CHUNK_AGE_MIN: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests;
