//! Disk space set aside for the day when there is none: it lets clients delete.
//!
//! The reserve is a file of the data directory whose blocks are really allocated. Writes that need space stop before the
//! disk is full (`Shared::watch_room`), so it is for the case that something else fills the disk. When a write fails
//! because of that, the file is emptied, and the store is opened without background work. An empty file also shows a
//! process that starts that this is the state. Once there is room for it again and for what the store needs, the reserve
//! is created again, and all writes are accepted. What happens meanwhile is in `full_disk.rs`.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

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
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The disk has no room for it; nothing has failed for that yet.
    Absent,
    Held,
    /// Given up to those who free space.
    Released,
}

impl Reserve {
    /// Sets space aside: as much as wanted, but only a part of a small disk; nothing if 0 bytes are wanted.
    pub(crate) fn open(folder: &Path, wanted_bytes: u64) -> io::Result<Self> {
        let path = folder.join(RESERVE);
        let bytes = wanted_bytes.min(disk_bytes(folder)? / DISK_SHARE);
        if bytes == 0 {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return Ok(Self::default()),
            }
        }
        let state = match path.metadata() {
            Ok(metadata) if metadata.len() == 0 => State::Released,
            Ok(_) => State::Held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::Absent,
            Err(error) => return Err(error),
        };
        let mut file = ReserveFile { path, bytes, state };
        // One of another size is replaced. One that was freed is created again once it is known how much the store needs.
        if state != State::Released && !file.restore(0) && state == State::Absent {
            tracing::warn!(bytes, "the disk has no room for the reserve that lets clients delete when it is full");
        }
        Ok(Self { file: Some(Mutex::new(file)) })
    }

    /// Whether a process that starts finds a disk so full that nothing may run by itself.
    pub(crate) fn finds_full_disk(folder: &Path, wanted_bytes: u64) -> bool {
        let Ok(metadata) = folder.join(RESERVE).metadata() else { return false };
        let room_min = (disk_bytes(folder).unwrap_or(0) / ROOM_AT_START_SHARE).min(ROOM_AT_START);
        let is_low = || bytes_available(folder).is_ok_and(|room| room < room_min);
        wanted_bytes > 0 && (metadata.len() == 0 || is_low())
    }

    /// Gives the space up before a store can be opened; `false` if there is none to give.
    pub(crate) fn give_up(folder: &Path) -> bool {
        let path = folder.join(RESERVE);
        let is_held = path.metadata().is_ok_and(|metadata| metadata.len() > 0);
        is_held && empty(&path).is_ok()
    }

    /// Whether space is to be set aside.
    pub(crate) fn is_wanted(&self) -> bool {
        self.file.is_some()
    }

    /// Gives the space up; `false` if there is none to give.
    pub(crate) fn release(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.lock().release())
    }

    /// Whether the space was given up.
    pub(crate) fn is_released(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.lock().state == State::Released)
    }

    /// What is to be set aside again, once there is room for it.
    pub(crate) fn missing_bytes(&self) -> u64 {
        let missing = |file: &ReserveFile| if file.state == State::Released { file.bytes } else { 0 };
        self.file.as_ref().map_or(0, |file| missing(&file.lock()))
    }

    /// Takes the space back if there is room for it and for so many bytes beside it; whether it is there now, or not
    /// wanted.
    pub(crate) fn restore(&self, beside: u64) -> bool {
        self.file.as_ref().is_none_or(|file| file.lock().restore(beside))
    }
}

impl ReserveFile {
    fn release(&mut self) -> bool {
        if self.state != State::Held {
            return false;
        }
        match empty(&self.path) {
            Ok(()) => {
                self.state = State::Released;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the reserve could not be given up");
                false
            }
        }
    }

    fn restore(&mut self, beside: u64) -> bool {
        let held = self.path.metadata().map_or(0, |metadata| metadata.len());
        if held == self.bytes {
            self.state = State::Held;
            return true;
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let has_room = bytes_available(folder).is_ok_and(|room| room + held >= self.bytes + beside);
        if !has_room {
            return false;
        }
        match self.allocate() {
            Ok(()) => {
                self.state = State::Held;
                true
            }
            Err(error) => {
                tracing::debug!(%error, "the reserve could not be made");
                // A file of part of the size would count as whole.
                let _ = File::create(&self.path);
                false
            }
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        file.set_len(0)?;
        fallocate(&file, FallocateFlags::empty(), 0, self.bytes)?;
        file.sync_all()
    }
}

fn empty(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(0)
}

/// Bytes that a process without privileges can still write.
pub(crate) fn bytes_available(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes of the whole disk.
pub(crate) fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_blocks.saturating_mul(disk.f_frsize))
}

const RESERVE: &str = "reserve";
/// The reserve takes at most this part of a disk.
const DISK_SHARE: u64 = 8;
/// With less, or less than this part of the disk, a process starts as on a full disk.
const ROOM_AT_START: u64 = 8 << 20;
const ROOM_AT_START_SHARE: u64 = 32;
