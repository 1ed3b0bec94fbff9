//! A data directory that is being restored: a file marks it until everything is there, and until then nothing else opens
//! it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use crate::budget::MemoryBudget;
use crate::load::Loader;
use crate::replay::Replay;
use crate::store::check::BLOBS;
use crate::store::fjall::{FjallStore, Options, STORE, folder_bytes};
use crate::store::inventory::{INVENTORY, WATERMARK};
use crate::store::{Store as _, StoreError};

/// The file that marks an unfinished restore.
pub const MARK: &str = "restore.unfinished";

/// A directory that is being restored into, by this process alone.
#[derive(Debug)]
pub struct Restoring {
    folder: PathBuf,
    /// Locked.
    _mark: File,
}

impl Restoring {
    /// Marks an empty directory, created if it does not exist. What an unfinished restore left there is removed.
    ///
    /// # Errors
    /// A directory that holds anything else, or that another process restores into: nothing in it was changed.
    pub fn begin(folder: &Path) -> Result<Self, StoreError> {
        let mark = prepare(folder).map_err(|source| StoreError::io(folder, source))?;
        Ok(Self { folder: folder.to_owned(), _mark: mark })
    }

    /// Creates a store in the directory to fill it. With blobs, it does not open without their bytes.
    ///
    /// # Errors
    /// As [`LocalEngine::open`](crate::LocalEngine::open).
    pub fn load(&self, has_blobs: bool) -> Result<Loader, StoreError> {
        let memory = MemoryBudget::of_machine();
        let store = FjallStore::open(Options { folder: self.folder.clone(), memory, filter: Arc::new(()) })?;
        if has_blobs {
            store.record_blobs()?;
        }
        Ok(Loader::new(Box::new(store)))
    }

    /// Opens the store in the directory to apply archived commits to it. The loader has to be finished.
    ///
    /// # Errors
    /// As [`LocalEngine::open`](crate::LocalEngine::open).
    pub fn replay(&self) -> Result<Replay, StoreError> {
        Replay::open(&self.folder)
    }

    /// A directory for files that the restore alone uses. It has to be removed before [`Self::finish`].
    #[must_use]
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{SCRATCH}.{name}"))
    }

    /// Removes the mark: the directory is a data directory from now on. The store has to be closed.
    ///
    /// # Errors
    /// What removing fails with; the directory then stays unfinished.
    pub fn finish(self) -> Result<(), StoreError> {
        let finish = || {
            File::open(&self.folder)?.sync_all()?;
            std::fs::remove_file(self.folder.join(MARK))?;
            File::open(&self.folder)?.sync_all()
        };
        finish().map_err(|source| StoreError::io(&self.folder, source))
    }
}

/// Whether a restore into this directory can begin: it is empty, missing, or holds nothing but an unfinished restore.
///
/// # Errors
/// A directory that cannot be read.
pub fn is_free(folder: &Path) -> std::io::Result<bool> {
    let is_marked = folder.join(MARK).try_exists()?;
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(entries.all(|entry| {
        entry.is_ok_and(|entry| match entry.file_name().to_str() {
            Some("lost+found") => true,
            Some(name) => is_marked && RESTORED.contains(&name.split('.').next().unwrap_or(name)),
            None => false,
        })
    }))
}

/// The bytes that [`Restoring::begin`] frees in a directory that is free: those of an unfinished restore.
///
/// # Errors
/// A directory that cannot be read.
pub fn leftover_bytes(folder: &Path) -> std::io::Result<u64> {
    folder_bytes(folder)
}

/// Refuses a directory with an unfinished restore.
pub(crate) fn refuse(folder: &Path) -> Result<(), StoreError> {
    match folder.join(MARK).try_exists() {
        Ok(true) => {
            let reason =
                "a restore into this directory was not finished; run `larimar restore` again, or remove the directory";
            Err(StoreError::io(folder, std::io::Error::other(reason)))
        }
        // Opening it says what is wrong.
        _ => Ok(()),
    }
}

/// The names of what a restore makes, up to their first dot.
const RESTORED: [&str; 7] = [STORE, BLOBS, INVENTORY, WATERMARK, "reserve", "lock", SCRATCH];
/// What the names of the restore's own files begin with, the mark among them.
const SCRATCH: &str = "restore";

fn prepare(folder: &Path) -> std::io::Result<File> {
    if !is_free(folder)? {
        return Err(std::io::Error::new(
            ErrorKind::DirectoryNotEmpty,
            "the directory is not empty; nothing was changed",
        ));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // The mark comes first and goes last.
    let path = folder.join(MARK);
    let mark = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(&path)?,
        created => created?,
    };
    let busy = || std::io::Error::new(ErrorKind::ResourceBusy, "another process restores into this directory");
    flock(&mark, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy())?;
    // Another process may have finished, and removed the mark, since it was opened.
    if mark.metadata()?.nlink() == 0 {
        return Err(busy());
    }
    mark.sync_all()?;
    File::open(folder)?.sync_all()?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Some(MARK | "lost+found") => {}
            _ if entry.file_type()?.is_dir() => std::fs::remove_dir_all(entry.path())?,
            _ => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(mark)
}
