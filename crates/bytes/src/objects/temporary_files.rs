//! Removes the temporary files of interrupted uploads into a directory: `<name>#<number>`, which listings of objects
//! omit.

use super::Shared;
use super::location::CLOCK;
use crate::record::{FileName, parse_name};
use larimar_engine::Fault;
use std::collections::HashSet;
use std::fs::DirEntry;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Removes the temporary files that were not written to for the grace period. An upload of another process that paused
/// for longer fails at its end, and is repeated.
pub(super) async fn reclaim(shared: &Shared, now: SystemTime) -> Result<(), Fault> {
    let Some(folder) = shared.location.folder.clone() else { return Ok(()) };
    let (writing, grace) = (shared.writing.lock().clone(), shared.grace);
    let reclaimed = tokio::task::spawn_blocking(move || Staged { folder, writing, now, grace }.reclaim()).await;
    let reclaimed = reclaimed.unwrap_or_else(|error| Err(Error::other(error)));
    let removed =
        reclaimed.map_err(|error| Fault::Unavailable(format!("the temporary files of blob objects: {error}")))?;
    if removed > 0 {
        tracing::info!(removed, "removed what uploads into the folder of blobs had left");
    }
    Ok(())
}

struct Staged {
    folder: PathBuf,
    /// Objects that this process writes.
    writing: HashSet<FileName>,
    now: SystemTime,
    grace: Duration,
}

impl Staged {
    /// Returns how many files were removed.
    fn reclaim(&self) -> Result<u64, Error> {
        let mut removed = self.reclaim_folder(&self.folder)?;
        for first in 0..=u8::MAX {
            removed += self.reclaim_folder(&self.folder.join(format!("{first:02x}")))?;
        }
        Ok(removed)
    }

    fn reclaim_folder(&self, folder: &Path) -> Result<u64, Error> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut removed = 0;
        for entry in entries {
            removed += self.visit(&entry?).or_else(|error| match error.kind() {
                // It was finished or removed meanwhile.
                ErrorKind::NotFound => Ok(0),
                _ => Err(error),
            })?;
        }
        Ok(removed)
    }

    fn visit(&self, entry: &DirEntry) -> Result<u64, Error> {
        let name = entry.file_name();
        let Some(of) = name.to_str().and_then(staged_for) else { return Ok(0) };
        if matches!(of, Staging::Payload(file) if self.writing.contains(&file)) {
            return Ok(0);
        }
        let modified = entry.metadata()?.modified()?;
        let is_old = self.grace.is_zero() || self.now.duration_since(modified).is_ok_and(|age| age >= self.grace);
        if !is_old {
            return Ok(0);
        }
        std::fs::remove_file(entry.path())?;
        Ok(1)
    }
}

/// What a temporary file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Staging {
    Payload(FileName),
    Clock,
}

fn staged_for(name: &str) -> Option<Staging> {
    let (of, number) = name.split_once('#')?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if of == CLOCK { Some(Staging::Clock) } else { parse_name(of).map(Staging::Payload) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_ours_are_known() {
        let name = "0123456789abcdef0123456789abcdef";
        assert!(matches!(staged_for(&format!("{name}#1")), Some(Staging::Payload(_))));
        assert_eq!(staged_for("clock#12"), Some(Staging::Clock));
        for other in [name, &format!("{name}#"), &format!("{name}#a"), "other#1", "#1", ""] {
            assert_eq!(staged_for(other), None, "{other}");
        }
    }
}
