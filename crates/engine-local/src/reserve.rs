//! Disk space set aside for the day when there is none: it lets clients delete.
//!
//! The reserve is a file of the data folder whose blocks are really allocated. When a write fails because the disk is
//! full, the file is emptied, and only writes that free space are taken (`committer.rs`, `Gate::Freeing`): deletes, drops
//! and the reclaiming of what was dropped. An empty file also tells a process that starts that this is the state. Once
//! there is room for it again the reserve is made anew, and all writes are taken.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// The reserve of a data folder; of none, such as one in memory, it is never there.
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
        // One of another size is made anew.
        if !file.restore() && state == State::Absent {
            tracing::warn!(bytes, "the disk has no room for the reserve that lets clients delete when it is full");
        }
        Ok(Self { file: Some(Mutex::new(file)) })
    }

    /// Gives the space up; `false` if there is none to give.
    pub(crate) fn release(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.lock().release())
    }

    /// Whether the space was given up.
    pub(crate) fn is_released(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.lock().state == State::Released)
    }

    /// Takes the space back if there is room for it and some more; whether it is there now, or not wanted.
    pub(crate) fn restore(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.lock().restore())
    }
}

impl ReserveFile {
    fn release(&mut self) -> bool {
        if self.state != State::Held {
            return false;
        }
        match OpenOptions::new().write(true).open(&self.path).and_then(|file| file.set_len(0)) {
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

    fn restore(&mut self) -> bool {
        let held = self.path.metadata().map_or(0, |metadata| metadata.len());
        if held == self.bytes {
            self.state = State::Held;
            return true;
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let has_room = bytes_available(folder).is_ok_and(|room| room + held >= self.bytes + ROOM_BESIDE);
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

/// Bytes that a process without privileges can still write.
pub(crate) fn bytes_available(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_blocks.saturating_mul(disk.f_frsize))
}

const RESERVE: &str = "reserve";
/// The reserve takes at most this part of a disk.
const DISK_SHARE: u64 = 8;
/// What must be free beside the reserve before all writes are taken again: a flush and some journal.
const ROOM_BESIDE: u64 = 24 << 20;
