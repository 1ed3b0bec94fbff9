//! A place that is a directory: files that are whole or not there, its lock, and the marks of renames on disk.
//!
//! Files are opened without waiting and have to be regular ones, so a pipe or a device in the place of one hangs nothing.
//! Below the place's own path, directories are opened one by one and have to be real ones: nothing is listed, written or
//! removed behind a symbolic link.

use super::mark::MARK;
use super::storage::StoredFile;
use super::{CHUNKS, GENERATIONS, UNFINISHED};
use crate::archive::line::{ARCHIVE, is_line};
use crate::error::BackupError;
use bytes::Bytes;
use larimar_engine::{Clock, SystemClock};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::CString;
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
    for name in names(root, UNFINISHED).map_err(failed(&root.join(UNFINISHED)))? {
        // Others of this process are being written, by the archive.
        if is_unfinished(&name) && !name.starts_with(process()) {
            let name = format!("{UNFINISHED}/{name}");
            remove_file(root, &name).map_err(failed(&root.join(name)))?;
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
    for directory in [CHUNKS, GENERATIONS, UNFINISHED, ARCHIVE] {
        open_or_make(root, directory).map_err(failed(&root.join(directory)))?;
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

/// The files in a directory of the place; none if it does not exist.
pub(super) fn files(root: &Path, directory: &str) -> Result<Vec<StoredFile>> {
    let mut files = Vec::new();
    let Some((opened, names)) = entries(root, directory)? else { return Ok(files) };
    for name in names {
        let found = rustix::fs::statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode).is_file() {
            let (name, size) = (name.to_string_lossy().into_owned(), u64::try_from(found.st_size).unwrap_or(0));
            // Only object stores are asked for ages.
            files.push(StoredFile { name, size, age: Duration::MAX });
        }
    }
    Ok(files)
}

/// Removes a directory of the place, if it is there and empty.
pub(super) fn remove_directory(root: &Path, name: &str) -> Result<()> {
    match unlink(root, name, AtFlags::REMOVEDIR) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Err(error),
        _ => Ok(()),
    }
}

/// Syncs the directories of the archive, so that removals are on disk.
pub(super) fn sync_archive(root: &Path) -> Result<()> {
    for line in names(root, ARCHIVE)?.iter().filter(|name| is_line(name)) {
        open_directory(root, &format!("{ARCHIVE}/{line}"))?.sync_all()?;
    }
    match open_directory(root, ARCHIVE) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        archive => archive?.sync_all(),
    }
}

/// The names in a directory of the place; none if it does not exist.
pub(super) fn names(root: &Path, directory: &str) -> Result<Vec<String>> {
    let names = entries(root, directory)?.map_or_else(Vec::new, |(_, names)| names);
    Ok(names.iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// A directory of the place and the names in it; `None` if it does not exist.
fn entries(root: &Path, directory: &str) -> Result<Option<(File, Vec<CString>)>> {
    let opened = match open_directory(root, directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(Some((opened, names)))
}

/// Whether a directory is empty but for what file systems and an interrupted marking leave.
pub(super) fn is_empty(root: &Path) -> Result<bool> {
    Ok(names(root, "")?.iter().all(|name| name == "lost+found" || name.starts_with(UNFINISHED_MARK)))
}

/// Writes a file under another name, syncs it and gives it its own.
pub(super) fn put_file(root: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let unfinished = open_directory(root, UNFINISHED)?;
    let own = format!("{}-{number}", process());
    let put = || {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&unfinished, &own, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes)?;
        file.sync_all()?;
        let (directory, name) = parted(name);
        rustix::fs::renameat(&unfinished, &own, open_or_make(root, directory)?, name)?;
        Ok(())
    };
    put().inspect_err(|_| {
        // The error that led here is the one to report; the next backup removes the file if this does not.
        let _ = rustix::fs::unlinkat(&unfinished, &own, AtFlags::empty());
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

/// Removes a file, if there is one. A directory of that name is not ours, and stays.
pub(super) fn remove_file(root: &Path, name: &str) -> Result<()> {
    match unlink(root, name, AtFlags::empty()) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => Err(error),
        _ => Ok(()),
    }
}

fn unlink(root: &Path, name: &str, flags: AtFlags) -> Result<()> {
    let (directory, name) = parted(name);
    Ok(rustix::fs::unlinkat(open_directory(root, directory)?, name, flags)?)
}

/// The directory of a file of the place, and the file's name in it.
fn parted(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
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

/// Opens a directory of the place.
fn open_directory(root: &Path, directory: &str) -> Result<File> {
    let mut opened = open_with(root, OFlags::RDONLY | OFlags::DIRECTORY)?;
    for part in directory.split('/').filter(|part| !part.is_empty()) {
        opened = open_below(&opened, part)?;
    }
    Ok(opened)
}

/// Opens a directory of the place; creates it, and those above it, if they do not exist.
fn open_or_make(root: &Path, directory: &str) -> Result<File> {
    let mut opened = open_with(root, OFlags::RDONLY | OFlags::DIRECTORY)?;
    for part in directory.split('/').filter(|part| !part.is_empty()) {
        opened = match open_below(&opened, part) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match rustix::fs::mkdirat(&opened, part, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                open_below(&opened, part)?
            }
            below => below?,
        };
    }
    Ok(opened)
}

/// Opens a directory in another one. It has to be a real one: what a symbolic link leads to is not the place's to change.
fn open_below(directory: &File, name: &str) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(opened) => Ok(opened.into()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            let reason = format!("{name} is a file or a symbolic link, and has to be a directory");
            Err(Error::new(ErrorKind::NotADirectory, reason))
        }
        Err(error) => Err(error.into()),
    }
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

/// Whether a file has a name that [`put_file`] gives: a process, when it started, and a number.
fn is_unfinished(name: &str) -> bool {
    let mut parts = name.split('-');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.by_ref().take(3).filter(|part| is_number(part)).count() == 3 && parts.next().is_none()
}

const UNFINISHED_MARK: &str = ".larimar-backup.";
