//! Where backups are kept: a directory, or a prefix of an object store.
//!
//! ```text
//! larimar-backup         marks the place as one of ours
//! chunks/ab/abcdef…      a chunk, named by its SHA-256
//! generations/TIME-N     a whole backup; written last
//! archive/LINE/…         an unbroken run of commits (`archive/line.rs`)
//! lock, unfinished/      of a directory: held while a backup is written, and files that are not whole yet
//! ```
//!
//! A file has its name only when all of it is on disk, so an interrupted backup leaves whole chunks, which the next one
//! uses, and files below `unfinished/`, which the next one removes. Files are readable by their owner alone.

use crate::chunk::blocking;
use crate::error::BackupError;
use crate::generation::Generation;
use bytes::Bytes;
use futures_util::TryStreamExt;
use larimar_engine::{Clock, SystemClock};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _};
use rustix::fs::{FlockOperation, flock};
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A place for backups.
#[derive(Clone, Debug)]
pub enum Place {
    /// A directory; created if it does not exist.
    Directory(PathBuf),
    /// Objects of a store.
    Objects {
        /// The bucket or container.
        store: Arc<dyn ObjectStore>,
        /// What the names of the objects start with.
        prefix: ObjectPath,
        /// The address as it was given.
        url: String,
    },
}

/// Held while a backup is written to a place.
#[derive(Debug)]
pub(crate) struct PlaceLock(Option<File>);

impl Place {
    /// Makes the place ready for a backup: it has to be ours or empty.
    pub(crate) async fn prepare(&self) -> Result<PlaceLock, BackupError> {
        let is_ours = self.is_ours().await?;
        if !is_ours && !self.is_empty().await? {
            return Err(BackupError::NotOurs(self.to_string()));
        }
        match self {
            Self::Objects { .. } => {
                if !is_ours {
                    self.put(MARK, Bytes::from_static(MARK_TEXT)).await?;
                }
                Ok(PlaceLock(None))
            }
            Self::Directory(root) => {
                let (root, shown) = (root.clone(), self.to_string());
                blocking(move || lock_directory(&root, &shown)).await?
            }
        }
    }

    /// Whether backups are kept here.
    pub(crate) async fn is_ours(&self) -> Result<bool, BackupError> {
        Ok(self.size(MARK).await?.is_some())
    }

    /// Whether nothing is here.
    async fn is_empty(&self) -> Result<bool, BackupError> {
        match self {
            Self::Directory(root) => {
                let names = self.names_in(root.clone()).await?;
                Ok(names.iter().all(|name| name == "lost+found"))
            }
            Self::Objects { store, prefix, .. } => {
                let first = store.list(Some(prefix)).try_next().await;
                first.map(|first| first.is_none()).map_err(|error| self.failed("", &error))
            }
        }
    }

    /// Writes a file that is visible whole or not at all, and durable.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BackupError> {
        match self {
            Self::Directory(root) => {
                let (root, file) = (root.clone(), name.to_owned());
                let put = blocking(move || put_file(&root, &file, &bytes)).await?;
                put.map_err(|error| self.failed(name, &error))
            }
            Self::Objects { store, .. } => {
                let put = store.put(&self.object(name), bytes.into()).await;
                put.map(drop).map_err(|error| self.failed(name, &error))
            }
        }
    }

    /// Writes a file unless one of that name and length is there, which is so for chunks that are there; whether it did.
    pub(crate) async fn put_new(&self, name: &str, bytes: Bytes) -> Result<bool, BackupError> {
        let put = async {
            // A file of another length is damaged, and is replaced.
            let is_new = self.size(name).await? != Some(bytes.len() as u64);
            if is_new {
                self.put(name, bytes).await?;
            }
            Ok(is_new)
        };
        // A place that hangs must not hold a snapshot for ever.
        match tokio::time::timeout(PUT_TIME_MAX, put).await {
            Ok(put) => put,
            Err(_) => Err(self.failed(name, &format!("not written within {PUT_TIME_MAX:?}"))),
        }
    }

    /// The size of a file, if there is one.
    pub(crate) async fn size(&self, name: &str) -> Result<Option<u64>, BackupError> {
        match self {
            Self::Directory(root) => {
                let path = root.join(name);
                match blocking(move || std::fs::metadata(path)).await? {
                    Ok(found) => Ok(Some(found.len())),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(self.failed(name, &error)),
                }
            }
            Self::Objects { store, .. } => match store.head(&self.object(name)).await {
                Ok(found) => Ok(Some(found.size)),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.failed(name, &error)),
            },
        }
    }

    /// Reads a file. Of a longer one than expected, at most one byte more is read.
    pub(crate) async fn get(&self, name: &str, length_max: u64) -> Result<Bytes, BackupError> {
        let missing = || BackupError::Missing(self.show(name));
        match self {
            Self::Directory(root) => {
                let path = root.join(name);
                match blocking(move || read_file(&path, length_max)).await? {
                    Ok(bytes) => Ok(bytes),
                    Err(error) if error.kind() == ErrorKind::NotFound => Err(missing()),
                    Err(error) => Err(self.failed(name, &error)),
                }
            }
            Self::Objects { store, .. } => {
                let path = self.object(name);
                let found = match store.get(&path).await {
                    Ok(found) => found,
                    Err(object_store::Error::NotFound { .. }) => return Err(missing()),
                    Err(error) => return Err(self.failed(name, &error)),
                };
                if found.meta.size > length_max {
                    let reason = format!("it has {} bytes instead of at most {length_max}", found.meta.size);
                    return Err(BackupError::damaged(self.show(name), reason));
                }
                found.bytes().await.map_err(|error| self.failed(name, &error))
            }
        }
    }

    /// The names of the generations, the oldest first.
    pub(crate) async fn generations(&self) -> Result<Vec<String>, BackupError> {
        let mut names = self.names(GENERATIONS).await?;
        names.retain(|name| Generation::is_name(name));
        names.sort();
        Ok(names)
    }

    /// The names of the files and directories in a directory of the place; none if it does not exist.
    pub(crate) async fn names(&self, directory: &str) -> Result<Vec<String>, BackupError> {
        match self {
            Self::Directory(root) => self.names_in(root.join(directory)).await,
            Self::Objects { store, .. } => {
                let listed = store.list_with_delimiter(Some(&self.object(directory))).await;
                let listed = listed.map_err(|error| self.failed(directory, &error))?;
                let objects = listed.objects.iter().map(|object| &object.location);
                let names = objects.chain(&listed.common_prefixes).filter_map(ObjectPath::filename);
                Ok(names.map(str::to_owned).collect())
            }
        }
    }

    /// Removes a file, if there is one.
    #[allow(dead_code)]
    pub(crate) async fn remove(&self, name: &str) -> Result<(), BackupError> {
        match self {
            Self::Directory(root) => {
                let path = root.join(name);
                match blocking(move || std::fs::remove_file(path)).await? {
                    Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(name, &error)),
                    _ => Ok(()),
                }
            }
            Self::Objects { store, .. } => match store.delete(&self.object(name)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.failed(name, &error)),
            },
        }
    }

    /// The names in a directory; none if it does not exist.
    async fn names_in(&self, directory: PathBuf) -> Result<Vec<String>, BackupError> {
        let list = move || match std::fs::read_dir(directory) {
            Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        blocking(list).await?.map_err(|error: std::io::Error| self.failed("", &error))
    }

    /// Makes sure that every file that was put has its name on disk too.
    pub(crate) async fn sync(&self) -> Result<(), BackupError> {
        let Self::Directory(root) = self else { return Ok(()) };
        let root = root.clone();
        blocking(move || sync_directories(&root)).await?.map_err(|error| self.failed("", &error))
    }

    /// A file of the place, for messages.
    pub(crate) fn show(&self, name: &str) -> String {
        match self {
            Self::Directory(root) => root.join(name).display().to_string(),
            Self::Objects { url, .. } => format!("{}/{name}", url.trim_end_matches('/')),
        }
    }

    fn object(&self, name: &str) -> ObjectPath {
        match self {
            Self::Objects { prefix, .. } => name.split('/').fold(prefix.clone(), |path, part| path.join(part)),
            Self::Directory(_) => ObjectPath::from(name),
        }
    }

    fn failed(&self, name: &str, reason: &dyn fmt::Display) -> BackupError {
        let what = if name.is_empty() { self.to_string() } else { self.show(name) };
        BackupError::Place { what, reason: reason.to_string() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(root) => root.display().fmt(f),
            Self::Objects { url, .. } => f.write_str(url),
        }
    }
}

impl Drop for PlaceLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // Closing the file unlocks it too.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Creates what is missing of the directory, locks it, and removes files that an interrupted backup left unfinished.
fn lock_directory(root: &Path, shown: &str) -> Result<PlaceLock, BackupError> {
    let failed = |error: std::io::Error| BackupError::Place { what: shown.to_owned(), reason: error.to_string() };
    make_directory(root).map_err(failed)?;
    let private =
        |name: &str| OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(root.join(name));
    // The mark comes first: what follows is ours.
    let mark = private(MARK).and_then(|mut mark| mark.write_all(MARK_TEXT).and_then(|()| mark.sync_all()));
    mark.map_err(failed)?;
    for directory in [root.join(CHUNKS), root.join(GENERATIONS), root.join(UNFINISHED)] {
        make_directory(&directory).map_err(failed)?;
    }
    let file = private("lock").map_err(failed)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| BackupError::Busy(shown.to_owned()))?;
    for entry in std::fs::read_dir(root.join(UNFINISHED)).map_err(failed)?.flatten() {
        // Others of this process are being written, by the archive.
        if !entry.file_name().to_string_lossy().starts_with(process()) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(PlaceLock(Some(file)))
}

fn make_directory(directory: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Writes a file under another name, syncs it and gives it its own.
fn put_file(root: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let unfinished = root.join(UNFINISHED).join(format!("{}-{number}", process()));
    let path = root.join(name);
    let put = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match std::fs::rename(&unfinished, &path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                path.parent().map_or(Ok(()), make_directory)?;
                std::fs::rename(&unfinished, &path)
            }
            renamed => renamed,
        }
    };
    put().inspect_err(|_| {
        // The error that led here is the one to report; the next backup removes the file if this does not.
        let _ = std::fs::remove_file(&unfinished);
    })
}

/// What the names of this process's unfinished files begin with.
fn process() -> &'static str {
    static PROCESS: LazyLock<String> =
        LazyLock::new(|| format!("{}-{}", std::process::id(), SystemClock.now().ticks()));
    &PROCESS
}

fn read_file(path: &Path, length_max: u64) -> std::io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(length_max.min(8 << 20) as usize);
    File::open(path)?.take(length_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// Syncs the directories, so that renames are on disk.
fn sync_directories(root: &Path) -> std::io::Result<()> {
    let chunks = root.join(CHUNKS);
    for entry in std::fs::read_dir(&chunks)? {
        File::open(entry?.path())?.sync_all()?;
    }
    for directory in [chunks, root.join(GENERATIONS), root.to_owned()] {
        File::open(directory)?.sync_all()?;
    }
    // The place itself may be new.
    match root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

const MARK: &str = "larimar-backup";
const MARK_TEXT: &[u8] = b"backups of Larimar, format 1; see docs/backup.md\n";
const CHUNKS: &str = "chunks";
pub(crate) const GENERATIONS: &str = "generations";
const UNFINISHED: &str = "unfinished";
/// A chunk has a few MiB.
const PUT_TIME_MAX: Duration = Duration::from_secs(300);
