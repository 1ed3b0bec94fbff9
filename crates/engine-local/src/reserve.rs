//! Disk space set aside for the day when there is none: it lets clients delete.
//!
//! The reserve is a file of the data directory whose blocks are really allocated. Writes that need space stop before the
//! disk is full (`Shared::watch_room`), so it is for the case that something else fills the disk. Other programs may still
//! be writing then, and take what is free at once. So the reserve is kept until a client deletes or drops something. Then
//! each step that frees space (a commit, a flush, a compaction) gets as much of it as the step lacks, immediately before
//! it runs ([`Reserve::lend`]), and what becomes free goes back into the file first ([`Reserve::take_back`]). All writes
//! are accepted again when the file is whole and there is room beside it. What happens meanwhile is in `full_disk.rs`.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::store::fjall::bytes_on_disk;

/// The reserve of a data directory; of none, such as one in memory, it is never there.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    file: Option<Mutex<ReserveFile>>,
}

#[derive(Debug)]
struct ReserveFile {
    path: PathBuf,
    /// How large it should be.
    bytes: u64,
    /// How large it is; `None` if the disk had no room for it when the engine was opened.
    held: Option<u64>,
    /// Whether clients may have freed something since the disk is full, so that lending gives space back in the end.
    is_lendable: bool,
    /// Steps that run with room that was lent to them.
    steps: usize,
}

/// Room for a step that frees space. Until this is dropped, the reserve takes nothing back.
pub(crate) struct Lent<'a>(Option<&'a Mutex<ReserveFile>>);

impl Lent<'_> {
    /// Room on a disk that has so many bytes free, without a reserve.
    pub(crate) fn of_free(folder: &Path, bytes: u64) -> io::Result<Option<Self>> {
        Ok((bytes_available(folder)? >= bytes).then_some(Self(None)))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            file.lock().steps -= 1;
        }
    }
}

impl Reserve {
    /// Looks for the reserve of a data directory: as large as wanted, but only a part of a small disk. Changes nothing.
    pub(crate) fn find(folder: &Path, wanted_bytes: u64) -> io::Result<Self> {
        let bytes = wanted_bytes.min(disk_bytes(folder)? / DISK_SHARE);
        if bytes == 0 {
            return Ok(Self::default());
        }
        let path = folder.join(RESERVE);
        let held = match path.metadata() {
            Ok(metadata) => Some(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file: Some(Mutex::new(ReserveFile { path, bytes, held, is_lendable: true, steps: 0 })) })
    }

    /// Creates the reserve if there is room for it, or removes one that is not wanted.
    pub(crate) fn set_up(&self, folder: &Path) -> io::Result<()> {
        let Some(file) = &self.file else {
            return match std::fs::remove_file(folder.join(RESERVE)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        let mut file = file.lock();
        let (held, bytes) = (file.held, file.bytes);
        match held {
            None if !file.resize(bytes) => {
                tracing::warn!(bytes, "the disk has no room for the reserve that lets clients delete when it is full");
            }
            Some(held) if held > bytes => drop(file.resize(bytes)),
            _ => drop(file.take_back()),
        }
        Ok(())
    }

    /// Whether a process that starts finds so little room that nothing may run by itself before the store's own figures
    /// ([`Room`](crate::store::Room)) are known. Those are not above the size of its files and some more.
    pub(crate) fn finds_little_room(&self, folder: &Path, store: &Path) -> bool {
        let Some(file) = self.file.as_ref().map(Mutex::lock) else { return false };
        let (Some(held), Ok(free)) = (file.held, bytes_available(folder)) else { return false };
        let store = files_bytes(store);
        free + held < file.bytes + store + store / 8 + ROOM_AT_START
    }

    /// Whether space is to be set aside.
    pub(crate) fn is_wanted(&self) -> bool {
        self.file.is_some()
    }

    /// Sets whether clients may have freed something since the disk is full. Nothing is lent before.
    pub(crate) fn set_lendable(&self, is_lendable: bool) {
        if let Some(file) = &self.file {
            file.lock().is_lendable = is_lendable;
        }
    }

    /// Makes so many bytes free, with as much of the reserve as that takes; `None` if it does not have enough.
    pub(crate) fn lend(&self, folder: &Path, bytes: u64) -> io::Result<Option<Lent<'_>>> {
        let Some(reserve) = &self.file else { return Lent::of_free(folder, bytes) };
        let mut file = reserve.lock();
        let missing = bytes.saturating_sub(bytes_available(folder)?);
        // Another program may be quicker; then the next attempt gets more.
        if missing > 0 && (!file.lend(missing) || bytes_available(folder)? < bytes) {
            return Ok(None);
        }
        file.steps += 1;
        Ok(Some(Lent(Some(reserve))))
    }

    /// Frees all of it, so that a store can be opened at all; `false` if there is none.
    pub(crate) fn give_up(&self) -> bool {
        self.file.as_ref().is_some_and(|file| {
            let mut file = file.lock();
            file.held.is_some_and(|held| held > 0) && file.resize(0)
        })
    }

    /// Bytes that can be lent.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.file.as_ref().and_then(|file| file.lock().held).unwrap_or(0)
    }

    /// Bytes that were lent and are still to be taken back.
    pub(crate) fn missing_bytes(&self) -> u64 {
        let missing = |file: &ReserveFile| file.held.map_or(0, |held| file.bytes.saturating_sub(held));
        self.file.as_ref().map_or(0, |file| missing(&file.lock()))
    }

    /// Takes back what was lent, as far as it is free; whether nothing is missing any more, and so many bytes are free
    /// beside it. Always so if no space is to be set aside.
    pub(crate) fn take_back(&self, beside: u64) -> bool {
        let Some(mut file) = self.file.as_ref().map(Mutex::lock) else { return true };
        file.take_back() && bytes_available(file.folder()).is_ok_and(|free| free >= beside)
    }
}

impl ReserveFile {
    /// An operator may have removed it.
    fn refresh(&mut self) {
        if self.held.is_some() {
            self.held = Some(self.path.metadata().map_or(0, |metadata| metadata.len()));
        }
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn lend(&mut self, missing: u64) -> bool {
        self.refresh();
        match self.held {
            // Only whole blocks become free.
            Some(held) if self.is_lendable && held >= missing => {
                let rest = held - missing;
                self.resize(rest - rest % LENT_STEP)
            }
            _ => false,
        }
    }

    fn take_back(&mut self) -> bool {
        self.refresh();
        let Some(held) = self.held.filter(|held| *held < self.bytes) else { return true };
        let free = bytes_available(self.folder()).unwrap_or(0).saturating_sub(LEFT_FOR_DELETES);
        let missing = self.bytes - held;
        if self.steps > 0 || free < missing.min(TAKEN_BACK_MIN) || !self.resize(held + free.min(missing)) {
            return false;
        }
        self.held == Some(self.bytes)
    }

    /// Changes how large it is; whether that worked.
    fn resize(&mut self, bytes: u64) -> bool {
        match allocate(&self.path, self.held, bytes) {
            Ok(()) => {
                self.held = Some(bytes);
                true
            }
            Err(error) => {
                tracing::debug!(%error, bytes, "the reserve could not be resized");
                false
            }
        }
    }
}

/// Makes a file of allocated blocks longer or shorter.
fn allocate(path: &Path, held: Option<u64>, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    let start = held.unwrap_or(0);
    if bytes <= start {
        return file.set_len(bytes);
    }
    let grown = fallocate(&file, FallocateFlags::empty(), start, bytes - start).map_err(io::Error::from);
    grown.and_then(|()| file.sync_all()).inspect_err(|_| {
        // One that is longer than its blocks would count as whole.
        let undone = if held.is_some() { file.set_len(start) } else { std::fs::remove_file(path) };
        if let Err(error) = undone {
            tracing::warn!(%error, "the reserve could not be shortened");
        }
    })
}

/// Bytes that a process without privileges can still write.
pub(crate) fn bytes_available(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes on disk of all files below a folder.
fn files_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_bytes(&entry.path()),
        _ => bytes_on_disk(&entry.path()),
    };
    entries.map(bytes).sum()
}

/// Bytes of the whole disk.
pub(crate) fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_blocks.saturating_mul(disk.f_frsize))
}

const RESERVE: &str = "reserve";
/// The reserve takes at most this part of a disk.
const DISK_SHARE: u64 = 8;
/// What a store may need beside the size of its files.
const ROOM_AT_START: u64 = 24 << 20;
/// A multiple of the blocks of any file system.
const LENT_STEP: u64 = 64 << 10;
/// What stays free for the journal of the next deletes.
const LEFT_FOR_DELETES: u64 = 1 << 20;
/// Less is only taken back if it is all that is missing.
const TAKEN_BACK_MIN: u64 = 1 << 20;
