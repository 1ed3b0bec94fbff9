//! What holds the files of a place: a directory or an object store. Names and bytes are stored as they are given.

use super::directory;
use super::mark::MARK;
use crate::chunk::blocking;
use crate::error::BackupError;
use bytes::Bytes;
use futures_util::TryStreamExt;
use larimar_engine::{Clock, SystemClock};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A directory or an object store.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Directory(PathBuf),
    Objects {
        /// The bucket or container.
        store: Arc<dyn ObjectStore>,
        /// What the names of the objects start with.
        prefix: ObjectPath,
        /// The address as it was given.
        url: String,
    },
}

/// A file of a listing.
#[derive(Clone, Debug)]
pub(crate) struct StoredFile {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// How long ago it was written, in an object store.
    pub(crate) age: Duration,
}

impl Storage {
    /// Whether nothing is here.
    pub(super) async fn is_empty(&self) -> Result<bool, BackupError> {
        match self {
            Self::Directory(root) => {
                let root = root.clone();
                blocking(move || directory::is_empty(&root)).await?.map_err(|error| self.failed("", &error))
            }
            Self::Objects { store, prefix, .. } => {
                let first = store.list(Some(prefix)).try_next().await;
                first.map(|first| first.is_none()).map_err(|error| self.failed("", &error))
            }
        }
    }

    /// Writes the mark, unless there is one.
    pub(super) async fn write_mark(&self, text: String) -> Result<(), BackupError> {
        match self {
            Self::Directory(root) => {
                let root = root.clone();
                let written = blocking(move || directory::write_mark(&root, &text)).await?;
                written.map_err(|error| self.failed(MARK, &error))
            }
            Self::Objects { store, .. } => {
                let put = store.put_opts(&self.object(MARK), text.clone().into(), PutMode::Create.into()).await;
                match put {
                    Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
                    // A store without conditions; another error comes again.
                    Err(_) => self.put(MARK, text.into()).await,
                }
            }
        }
    }

    /// Writes a file that is visible whole or not at all, and durable.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BackupError> {
        match self {
            Self::Directory(root) => {
                let (root, file) = (root.clone(), name.to_owned());
                let put = blocking(move || directory::put_file(&root, &file, &bytes)).await?;
                put.map_err(|error| self.failed(name, &error))
            }
            Self::Objects { store, .. } => {
                let put = store.put(&self.object(name), bytes.into()).await;
                put.map(drop).map_err(|error| self.failed(name, &error))
            }
        }
    }

    /// The size of a file, if there is one.
    pub(crate) async fn size(&self, name: &str) -> Result<Option<u64>, BackupError> {
        match self {
            Self::Directory(root) => {
                let path = root.join(name);
                match blocking(move || std::fs::metadata(path)).await? {
                    Ok(found) => Ok(Some(found.len()).filter(|_| found.is_file())),
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
                match blocking(move || directory::read_file(&path, length_max)).await? {
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

    /// The names of the files and directories in a directory; none if it does not exist.
    pub(crate) async fn names(&self, directory: &str) -> Result<Vec<String>, BackupError> {
        match self {
            Self::Directory(root) => {
                let (root, name) = (root.clone(), directory.to_owned());
                let names = blocking(move || directory::names(&root, &name)).await?;
                names.map_err(|error| self.failed(directory, &error))
            }
            Self::Objects { store, .. } => {
                let listed = store.list_with_delimiter(Some(&self.object(directory))).await;
                let listed = listed.map_err(|error| self.failed(directory, &error))?;
                let objects = listed.objects.iter().map(|object| &object.location);
                let names = objects.chain(&listed.common_prefixes).filter_map(ObjectPath::filename);
                Ok(names.map(str::to_owned).collect())
            }
        }
    }

    /// The files in a directory; none if it does not exist.
    pub(crate) async fn files(&self, directory: &str) -> Result<Vec<StoredFile>, BackupError> {
        match self {
            Self::Directory(root) => {
                let (root, name) = (root.clone(), directory.to_owned());
                let files = blocking(move || directory::files(&root, &name)).await?;
                files.map_err(|error| self.failed(directory, &error))
            }
            Self::Objects { store, .. } => {
                let listed = store.list_with_delimiter(Some(&self.object(directory))).await;
                let listed = listed.map_err(|error| self.failed(directory, &error))?;
                let now = SystemClock.now().to_unix();
                let files = listed.objects.into_iter().filter_map(|object| {
                    let modified = Duration::from_millis(u64::try_from(object.last_modified.timestamp_millis()).ok()?);
                    let name = object.location.filename()?.to_owned();
                    Some(StoredFile { name, size: object.size, age: now.saturating_sub(modified) })
                });
                Ok(files.collect())
            }
        }
    }

    /// Removes a file, if there is one.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), BackupError> {
        match self {
            Self::Directory(root) => {
                let (root, file) = (root.clone(), name.to_owned());
                let removed = blocking(move || directory::remove_file(&root, &file)).await?;
                removed.map_err(|error| self.failed(name, &error))
            }
            Self::Objects { store, .. } => match store.delete(&self.object(name)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.failed(name, &error)),
            },
        }
    }

    /// Removes an empty directory. Object stores have none.
    pub(crate) async fn remove_directory(&self, name: &str) -> Result<(), BackupError> {
        let Self::Directory(root) = self else { return Ok(()) };
        let (root, directory) = (root.clone(), name.to_owned());
        let removed = blocking(move || directory::remove_directory(&root, &directory)).await?;
        removed.map_err(|error| self.failed(name, &error))
    }

    /// Makes sure that removals of the archive are on disk.
    pub(crate) async fn sync_archive(&self) -> Result<(), BackupError> {
        let Self::Directory(root) = self else { return Ok(()) };
        let root = root.clone();
        blocking(move || directory::sync_archive(&root)).await?.map_err(|error| self.failed("", &error))
    }

    /// Makes sure that every file that was put has its name on disk too.
    pub(super) async fn sync(&self) -> Result<(), BackupError> {
        let Self::Directory(root) = self else { return Ok(()) };
        let root = root.clone();
        blocking(move || directory::sync_directories(&root)).await?.map_err(|error| self.failed("", &error))
    }

    /// A file, for messages.
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

    pub(super) fn failed(&self, name: &str, reason: &dyn fmt::Display) -> BackupError {
        let what = if name.is_empty() { self.to_string() } else { self.show(name) };
        BackupError::Place { what, reason: reason.to_string() }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(root) => root.display().fmt(f),
            Self::Objects { url, .. } => f.write_str(url),
        }
    }
}
