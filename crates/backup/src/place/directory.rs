//! A place that is a directory: files that are whole or not there, its lock, and the marks of renames on disk.
//!
//! Files are opened without waiting and have to be regular ones, so a pipe or a device in the place of one hangs nothing.

use super::mark::MARK;
use super::storage::StoredFile;
use super::{CHUNKS, GENERATIONS, UNFINISHED};
use crate::archive::line::ARCHIVE;
use crate::error::BackupError;
use bytes::Bytes;
use larimar_engine::{Clock, SystemClock};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Marks a directory, created if it does not exist, as a place. A mark that is there stays.
pub(super) fn write_mark(root: &Path, text: &str) -> Result<()> {
    make_directory(root)?;
    let unfinished = root.join(format!("{UNFINISHED_MARK}{}", process()));
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        match std::fs::hard_link(&unfinished, root.join(MARK)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // A file system without links.
            Err(_) => std::fs::rename(&unfinished, root.join(MARK))?,
        }
        open(root)?.sync_all()
    };
    let written = write();
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => written.and(Err(error)),
        _ => written,
    }
}

/// Creates what is missing of a place, locks it, and removes files that an interrupted backup left unfinished.
pub(super) fn lock_directory(root: &Path, shown: &str) -> std::result::Result<File, BackupError> {
    make_directories(root)?;
    let file = lock(&root.join("lock"), BackupError::Busy(shown.to_owned()))?;
    let unfinished = root.join(UNFINISHED);
    for entry in std::fs::read_dir(&unfinished).map_err(failed(&unfinished))?.flatten() {
        // Others of this process are being written, by the archive.
        if !entry.file_name().to_string_lossy().starts_with(process()) {
            std::fs::remove_file(entry.path()).map_err(failed(&entry.path()))?;
        }
    }
    Ok(file)
}

/// Creates what is missing of a place, and locks it against other archives.
pub(super) fn lock_archive(root: &Path, shown: &str) -> std::result::Result<File, BackupError> {
    make_directories(root)?;
    lock(&root.join(ARCHIVE).join("lock"), BackupError::BusyArchive(shown.to_owned()))
}

fn make_directories(root: &Path) -> std::result::Result<(), BackupError> {
    for directory in [CHUNKS, GENERATIONS, UNFINISHED, ARCHIVE].map(|name| root.join(name)) {
        make_directory(&directory).map_err(failed(&directory))?;
    }
    Ok(())
}

fn lock(path: &Path, busy: BackupError) -> std::result::Result<File, BackupError> {
    let file = open_with(path, OFlags::WRONLY | OFlags::CREATE).map_err(failed(path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy)?;
    Ok(file)
}

fn failed(what: &Path) -> impl FnOnce(Error) -> BackupError + use<> {
    let what = what.display().to_string();
    move |error| BackupError::Place { what, reason: error.to_string() }
}

/// The files in a directory; none if it does not exist.
pub(super) fn files(directory: &Path) -> Result<Vec<StoredFile>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Only object stores are asked for ages.
            files.push(StoredFile { name, size: metadata.len(), age: Duration::MAX });
        }
    }
    Ok(files)
}

/// Removes a directory, if it is there and empty.
pub(super) fn remove_directory(path: &Path) -> Result<()> {
    match std::fs::remove_dir(path) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Err(error),
        _ => Ok(()),
    }
}

/// Syncs the directories of the archive, so that removals are on disk.
pub(super) fn sync_archive(root: &Path) -> Result<()> {
    let archive = root.join(ARCHIVE);
    for name in names(&archive)? {
        let line = open(&archive.join(name))?;
        if line.metadata()?.is_dir() {
            line.sync_all()?;
        }
    }
    match open(&archive) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        archive => archive?.sync_all(),
    }
}

/// The names in a directory; none if it does not exist.
pub(super) fn names(directory: &Path) -> Result<Vec<String>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether a directory is empty but for what file systems and an interrupted marking leave.
pub(super) fn is_empty(root: &Path) -> Result<bool> {
    Ok(names(root)?.iter().all(|name| name == "lost+found" || name.starts_with(UNFINISHED_MARK)))
}

/// Writes a file under another name, syncs it and gives it its own.
pub(super) fn put_file(root: &Path, name: &str, bytes: &[u8]) -> Result<()> {
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

/// Reads a file. Of a longer one than expected, at most one byte more is read.
pub(super) fn read_file(path: &Path, length_max: u64) -> Result<Bytes> {
    let mut bytes = Vec::with_capacity(length_max.min(8 << 20) as usize);
    let file = open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    file.take(length_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// Removes a file, if there is one.
pub(super) fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Syncs the directories, so that renames are on disk.
pub(super) fn sync_directories(root: &Path) -> Result<()> {
    let chunks = root.join(CHUNKS);
    for entry in std::fs::read_dir(&chunks)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open(&entry.path())?.sync_all()?;
        }
    }
    for directory in [chunks, root.join(GENERATIONS), root.to_owned()] {
        open(&directory)?.sync_all()?;
    }
    // The place itself may be new.
    match root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Syncs the directories of some files, with those above them.
pub(super) fn sync_names(root: &Path, names: Vec<String>) -> Result<()> {
    let parents = names.iter().flat_map(|name| Path::new(name).ancestors().skip(1));
    let directories: BTreeSet<_> = parents.map(|directory| root.join(directory)).collect();
    directories.iter().rev().try_for_each(|directory| open(directory)?.sync_all())
}

fn make_directory(directory: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn open(path: &Path) -> Result<File> {
    open_with(path, OFlags::RDONLY)
}

fn open_with(path: &Path, flags: OFlags) -> Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// What the names of this process's unfinished files begin with.
fn process() -> &'static str {
    static PROCESS: LazyLock<String> =
        LazyLock::new(|| format!("{}-{}", std::process::id(), SystemClock.now().ticks()));
    &PROCESS
}

const UNFINISHED_MARK: &str = ".larimar-backup.";
