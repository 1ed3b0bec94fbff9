//! The state file: what a copy has done, so that the same command can continue after an interruption.
//!
//! It holds names, keys of entities where ranges end, and checksums; no credentials. Whatever it says is done is
//! durable at the destination. What was done after it was last written is done again, which changes nothing: entities
//! and blobs are overwritten by themselves, and `queue.rs` has its own way for messages.

use super::checksum::Checksum;
use super::plan::Selection;
use crate::ranges::Span;
use crate::{Error, Result};
use larimar_client::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What a copy has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: u32,
    /// The addresses of the two accounts.
    pub(super) from: Vec<String>,
    pub(super) to: Vec<String>,
    pub(super) selection: Selection,
    pub(super) tables: BTreeMap<String, TableState>,
    pub(super) queues: BTreeMap<String, QueueState>,
    pub(super) containers: BTreeMap<String, ContainerState>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TableState {
    pub(super) prepared: Prepared,
    /// What is left to copy.
    pub(super) left: Vec<Span>,
    /// What was read at the source and written at the destination.
    pub(super) done: Checksum,
}

/// Whether the destination has an empty table, queue or container of this name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Prepared {
    /// Not yet; create it.
    #[default]
    No,
    /// Not yet; delete what is there and create it.
    Replace,
    Yes,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct QueueState {
    pub(super) prepared: Prepared,
    pub(super) step: QueueStep,
    /// Messages in the spool file.
    pub(super) messages: u64,
    /// Messages that were hidden at the source, and so are not copied.
    pub(super) hidden: u64,
}

/// How far the messages of a queue are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QueueStep {
    #[default]
    Start,
    /// Messages are being received; none of them stays hidden beyond this time.
    Receiving {
        hidden_until: Ticks,
    },
    /// All messages are in the spool file, and those that were received may still be hidden.
    Spooled,
    /// The source is as it was; some of the messages may be at the destination.
    Putting,
    Done,
}

/// A time as the client counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Ticks(u64);

impl From<Timestamp> for Ticks {
    fn from(time: Timestamp) -> Self {
        Self(time.ticks())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ContainerState {
    pub(super) prepared: Prepared,
    /// Where the list of blobs continues; absent at the start.
    pub(super) marker: Option<String>,
    pub(super) is_copied: bool,
    pub(super) done: Checksum,
    /// Blobs that could not be copied, and why: the first of them, and their number.
    pub(super) refused: Vec<String>,
    pub(super) refused_count: u64,
}

/// The state, and the file that it is kept in.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    /// Held as long as the copy runs, so that a second one of the same file is refused.
    _lock: File,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    state: State,
    saved: Instant,
}

impl StateFile {
    /// The state in this file, if there is one; it has to be of the same copy. `fresh` is a copy that has done nothing.
    pub(super) fn open(path: &Path, fresh: State) -> Result<(Self, bool)> {
        let lock = lock(path)?;
        let found = match std::fs::read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(path.display(), error)),
        };
        let state = match &found {
            None => fresh,
            Some(bytes) => {
                let refused = |reason: &str| {
                    Error::Usage(format!(
                        "the state file {} {reason}; name another with --state, or remove it to start anew",
                        path.display()
                    ))
                };
                let state: State = serde_json::from_slice(bytes).map_err(|_| refused("is not one of a copy"))?;
                if state.version != VERSION {
                    return Err(refused("is of another version of this program"));
                }
                if (&state.from, &state.to) != (&fresh.from, &fresh.to) {
                    return Err(refused("is of a copy between other accounts"));
                }
                if state.selection != fresh.selection {
                    return Err(refused("is of a copy with other choices of what to copy"));
                }
                state
            }
        };
        let kept = Mutex::new(Kept { state, saved: Instant::now() });
        Ok((Self { path: path.to_owned(), _lock: lock, kept }, found.is_some()))
    }

    /// Reads or changes the state in memory.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.kept.lock().expect("no panic while it is held").state)
    }

    /// Writes the state, whole or not at all.
    pub(super) fn save(&self) -> Result<()> {
        let mut kept = self.kept.lock().expect("no panic while it is held");
        let bytes = serde_json::to_vec(&kept.state).expect("the state is JSON");
        write(&self.path, &bytes).map_err(|error| Error::io(self.path.display(), error))?;
        kept.saved = Instant::now();
        Ok(())
    }

    /// Writes the state unless that was done a moment ago.
    pub(super) fn save_sometimes(&self) -> Result<()> {
        let is_due = self.kept.lock().expect("no panic while it is held").saved.elapsed() >= SAVED_EVERY;
        if is_due { self.save() } else { Ok(()) }
    }

    /// A file beside this one, for more than a state should hold.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        suffixed(&self.path, &format!(".{name}"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file: the copy is done.
    pub(super) fn remove(&self) -> Result<()> {
        for path in [self.path.clone(), lock_path(&self.path)] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(path.display(), error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A file that only its owner can read: keys of entities and texts of messages are nobody else's.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = suffixed(path, ".new");
    let mut file = private().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

fn lock(path: &Path) -> Result<File> {
    let lock_path = lock_path(path);
    let failed = |error| Error::io(lock_path.display(), error);
    let file = private().write(true).create(true).truncate(false).open(&lock_path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Usage(format!("another copy with the state file {} is running", path.display())))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn lock_path(path: &Path) -> PathBuf {
    suffixed(path, ".lock")
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) const VERSION: u32 = 1;
/// Work of this long is done again at most after a kill, besides what is under way.
const SAVED_EVERY: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> State {
        State { version: VERSION, from: vec!["http://a/x".to_owned()], ..State::default() }
    }

    #[test]
    fn a_state_is_found_again_and_removed_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("copy.json");
        let (file, is_resumed) = StateFile::open(&path, fresh()).expect("opened");
        assert!(!is_resumed);
        file.with(|state| state.tables.entry("Employees".to_owned()).or_default().prepared = Prepared::Yes);
        file.save().expect("saved");
        let saved = file.with(|state| state.clone());
        assert!(StateFile::open(&path, fresh()).is_err(), "it is in use");
        drop(file);
        let (file, is_resumed) = StateFile::open(&path, fresh()).expect("opened");
        assert!(is_resumed);
        assert_eq!(file.with(|state| state.clone()), saved);
        file.remove().expect("removed");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    }

    #[test]
    fn a_state_of_another_copy_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("copy.json");
        let (file, _) = StateFile::open(&path, fresh()).expect("opened");
        file.save().expect("saved");
        drop(file);
        let other_account = State { from: vec!["http://b/x".to_owned()], ..fresh() };
        let selection = Selection::default().with_table("Employees");
        for other in [other_account, State { selection, ..fresh() }] {
            let error = StateFile::open(&path, other).expect_err("refused");
            assert_eq!(error.exit_code(), 2, "{error}");
        }
        std::fs::write(&path, "{").expect("written");
        assert!(StateFile::open(&path, fresh()).is_err());
    }
}
