//! Where backups are kept: a directory, or a prefix of an object store.
//!
//! ```text
//! larimar-backup         marks the place as one of ours, and says whether it is encrypted
//! chunks/ab/abcdef…      a chunk, named by its SHA-256; in an encrypted place, by a keyed hash of that
//! generations/TIME-N     a whole backup; written last
//! archive/LINE/…         an unbroken run of commits (`archive/line.rs`)
//! lock, unfinished/      of a directory: held while a backup is written, and files that are not whole yet
//! ```
//!
//! A file has its name only when all of it is on disk, so an interrupted backup leaves whole chunks, which the next one
//! uses, and files below `unfinished/`, which the next one removes. Files are readable by their owner alone. With a key,
//! every file but the mark is encrypted on its way to the storage (`storage.rs`) and decrypted on its way back.

mod directory;
mod mark;
mod storage;

use crate::chunk::{ChunkId, blocking};
use crate::encryption::{Key, Keys, OVERHEAD};
use crate::error::BackupError;
use crate::generation::Generation;
use bytes::Bytes;
use mark::{MARK, Mark};
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use rustix::fs::{FlockOperation, flock};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub(crate) use storage::Storage;

/// A place for backups.
#[derive(Clone, Debug)]
pub struct Place {
    storage: Storage,
    /// Of a place that is encrypted.
    keys: Option<Arc<Keys>>,
}

/// Held while a backup is written to a place.
#[derive(Debug)]
pub(crate) struct PlaceLock(Option<File>);

impl Place {
    /// A directory; created if it does not exist.
    #[must_use]
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        // Without a slash at the end, or steps that lead nowhere.
        Self { storage: Storage::Directory(path.into().components().collect()), keys: None }
    }

    /// Objects of a store whose names start with a prefix; `url` is the address as it was given.
    #[must_use]
    pub fn objects(store: Arc<dyn ObjectStore>, prefix: ObjectPath, url: String) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        Self { storage: Storage::Objects { store, prefix, url }, keys: None }
    }

    /// The same place with files encrypted by this key. A place is encrypted from its first file on, or never.
    #[must_use]
    pub fn encrypted(self, key: &Key) -> Self {
        Self { keys: Some(Arc::new(key.keys())), ..self }
    }

    /// The directory, if it is one.
    #[must_use]
    pub fn as_directory(&self) -> Option<&Path> {
        match &self.storage {
            Storage::Directory(path) => Some(path),
            Storage::Objects { .. } => None,
        }
    }

    /// Whether both are the same directory, or the same objects, as far as their names say.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self.as_directory(), other.as_directory()) {
            (Some(one), Some(two)) => match (one.canonicalize(), two.canonicalize()) {
                (Ok(one), Ok(two)) => one == two,
                _ => one == two,
            },
            _ => self.to_string() == other.to_string(),
        }
    }

    /// Whether its files are encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// Makes the place ready for a backup: it has to be ours or empty. Held while the backup is written.
    pub(crate) async fn prepare(&self) -> Result<PlaceLock, BackupError> {
        self.make_ours().await?;
        let Storage::Directory(root) = &self.storage else { return Ok(PlaceLock(None)) };
        let (root, shown) = (root.clone(), self.to_string());
        let file = blocking(move || directory::lock_directory(&root, &shown)).await??;
        Ok(PlaceLock(Some(file)))
    }

    /// Makes the place ready for an archive, beside backups. A directory is locked against other archives.
    pub(crate) async fn prepare_archive(&self) -> Result<PlaceLock, BackupError> {
        self.make_ours().await?;
        let Storage::Directory(root) = &self.storage else { return Ok(PlaceLock(None)) };
        let (root, shown) = (root.clone(), self.to_string());
        let file = blocking(move || directory::lock_archive(&root, &shown)).await??;
        Ok(PlaceLock(Some(file)))
    }

    /// Marks the place as one of ours, if it is empty.
    pub(crate) async fn make_ours(&self) -> Result<(), BackupError> {
        if self.is_ours().await? {
            return Ok(());
        }
        if !self.storage.is_empty().await? {
            return Err(BackupError::NotOurs(self.to_string()));
        }
        let mark = self.keys.as_ref().map_or(Mark::Plain, |keys| Mark::Encrypted(keys.check()));
        self.storage.write_mark(mark.text()).await?;
        // Another process may have marked it first, with another key.
        self.is_ours().await.map(drop)
    }

    /// Whether backups are kept here. Everything that reads or writes a place asks this first.
    ///
    /// # Errors
    /// A place that needs a key, another key, or none, or that has lost its mark.
    pub(crate) async fn is_ours(&self) -> Result<bool, BackupError> {
        let mark = match self.storage.get(MARK, MARK_BYTES_MAX).await {
            Ok(text) => Mark::parse(&text),
            Err(BackupError::Missing(_)) if self.generations().await?.is_empty() => return Ok(false),
            Err(BackupError::Missing(mark)) => return Err(BackupError::NoMark(mark)),
            Err(error) => return Err(error),
        };
        let mark = mark.ok_or_else(|| BackupError::damaged(self.show(MARK), "this release writes no such mark"))?;
        match (&self.keys, mark) {
            (None, Mark::Plain) => Ok(true),
            (None, Mark::Encrypted(_)) => Err(BackupError::NeedsKey(self.to_string())),
            (Some(_), Mark::Plain) => Err(BackupError::NotEncrypted(self.to_string())),
            (Some(keys), Mark::Encrypted(check)) if check == keys.check() => Ok(true),
            (Some(_), Mark::Encrypted(_)) => Err(BackupError::WrongKey(self.to_string())),
        }
    }

    /// Writes a file that is visible whole or not at all, and durable.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BackupError> {
        let stored = self.stored_name(name);
        let bytes = match self.keys.clone() {
            None => bytes,
            Some(keys) => {
                let name = stored.clone().into_owned();
                blocking(move || keys.seal(&name, &bytes)).await?.into()
            }
        };
        self.storage.put(&stored, bytes).await
    }

    /// Writes a file like [`Self::put`]; an object store has so much time for it. A directory is waited for: its thread
    /// cannot be stopped, and must not be followed by another one.
    pub(crate) async fn put_within(&self, name: &str, bytes: Bytes, time_max: Duration) -> Result<(), BackupError> {
        match self.storage {
            Storage::Directory(_) => self.put(name, bytes).await,
            Storage::Objects { .. } => match tokio::time::timeout(time_max, self.put(name, bytes)).await {
                Ok(put) => put,
                Err(_) => Err(self.storage.failed(name, &format!("not written within {time_max:?}"))),
            },
        }
    }

    /// Makes sure that files that were put have their names on disk, with the directories above them.
    pub(crate) async fn sync_names(&self, names: &[String]) -> Result<(), BackupError> {
        let Storage::Directory(root) = &self.storage else { return Ok(()) };
        let (root, names) = (root.clone(), names.iter().map(|name| self.stored_name(name).into_owned()).collect());
        let synced = blocking(move || directory::sync_names(&root, names)).await?;
        synced.map_err(|error| self.storage.failed("", &error))
    }

    /// Writes a file unless one of that name and length is there, which is so for chunks that are there; whether it did.
    pub(crate) async fn put_new(&self, name: &str, bytes: Bytes) -> Result<bool, BackupError> {
        self.put_new_within(name, bytes, PUT_TIME_MAX).await
    }

    async fn put_new_within(&self, name: &str, bytes: Bytes, time_max: Duration) -> Result<bool, BackupError> {
        let put = async {
            // A file of another length is damaged, and is replaced.
            let is_new = self.size(name).await? != Some(bytes.len() as u64);
            if is_new {
                self.put(name, bytes).await?;
            }
            Ok(is_new)
        };
        // A place that hangs must not hold a snapshot for ever.
        match tokio::time::timeout(time_max, put).await {
            Ok(put) => put,
            Err(_) => Err(self.storage.failed(name, &format!("not written within {time_max:?}"))),
        }
    }

    /// The size of a file's content, if there is one.
    pub(crate) async fn size(&self, name: &str) -> Result<Option<u64>, BackupError> {
        let size = self.storage.size(&self.stored_name(name)).await?;
        Ok(size.map(|size| size.saturating_sub(self.overhead())))
    }

    /// Reads a file. Of a longer one than expected, at most one byte more is read.
    pub(crate) async fn get(&self, name: &str, length_max: u64) -> Result<Bytes, BackupError> {
        let stored = self.stored_name(name);
        let bytes = self.storage.get(&stored, length_max.saturating_add(self.overhead())).await?;
        let Some(keys) = self.keys.clone() else { return Ok(bytes) };
        let name = stored.clone().into_owned();
        let opened = blocking(move || keys.open(&name, &bytes)).await?;
        let changed =
            || BackupError::damaged(self.storage.show(&stored), "it is not what was encrypted under this name");
        Ok(opened.ok_or_else(changed)?.into())
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
        self.storage.names(directory).await
    }

    /// Removes a file, if there is one.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), BackupError> {
        self.storage.remove(&self.stored_name(name)).await
    }

    /// Makes sure that every file that was put has its name on disk too.
    pub(crate) async fn sync(&self) -> Result<(), BackupError> {
        self.storage.sync().await
    }

    /// A file of the place, for messages.
    pub(crate) fn show(&self, name: &str) -> String {
        self.storage.show(&self.stored_name(name))
    }

    /// Its files as they are stored.
    pub(crate) const fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The name by which a chunk is stored.
    pub(crate) fn stored_chunk(&self, id: ChunkId) -> ChunkId {
        self.keys.as_ref().map_or(id, |keys| keys.chunk(id))
    }

    /// The name by which a file is stored.
    fn stored_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let id = name.strip_prefix("chunks/").and_then(|rest| rest.get(3..)?.parse().ok());
        match id {
            Some(id) if self.is_encrypted() => self.stored_chunk(id).file().into(),
            _ => name.into(),
        }
    }

    /// What a stored file has more than its content.
    const fn overhead(&self) -> u64 {
        if self.is_encrypted() { OVERHEAD } else { 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.storage.fmt(f)
    }
}

impl PlaceLock {
    /// A lock of nothing.
    pub(crate) const fn none() -> Self {
        Self(None)
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

pub(crate) const CHUNKS: &str = "chunks";
pub(crate) const GENERATIONS: &str = "generations";
const UNFINISHED: &str = "unfinished";
const MARK_BYTES_MAX: u64 = 1000;
/// A chunk has a few MiB.
const PUT_TIME_MAX: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use object_store::throttle::{ThrottleConfig, ThrottledStore};

    #[tokio::test]
    async fn a_store_that_does_not_take_a_chunk_in_time_is_given_up() {
        let (limit, slow) = (Duration::from_millis(50), Duration::from_secs(600));
        let puts = ThrottleConfig { wait_put_per_call: slow, ..ThrottleConfig::default() };
        let gets = ThrottleConfig { wait_get_per_call: slow, ..ThrottleConfig::default() };
        let name = ChunkId([7; 32]).file();
        for (config, is_slow) in [(puts, true), (gets, true), (ThrottleConfig::default(), false)] {
            let store = Arc::new(ThrottledStore::new(InMemory::new(), config));
            let place = Place::objects(store, "here".into(), "s3://bucket/here".to_owned());
            match place.put_new_within(&name, "some bytes".into(), limit).await {
                Ok(is_new) => assert!(is_new && !is_slow),
                Err(error) => {
                    assert!(is_slow, "{error}");
                    assert_eq!(error.to_string(), format!("s3://bucket/here/{name}: not written within 50ms"));
                }
            }
        }
    }
}
