//! The directory of the files: their paths, and the conversion of errors.
//!
//! `packs/<name>` holds packs, `files/<first byte>/<name>` single payloads; names are 32 hexadecimal digits. The last
//! bit of a name is set for packs, so that an extent needs only the name.

use super::Durability;
use crate::record::{FileName, file_name, random_name};
use larimar_engine::Fault;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    durability: Durability,
    /// Held for as long as the directory is open.
    lock: Lock,
}

impl Folder {
    /// Opens the directory, and creates missing parts of it.
    pub(super) fn open(root: &Path, durability: Durability) -> Result<Self, Fault> {
        let lock = Lock::take(root).map_err(|error| unavailable(root, &error))?;
        let folder = Self { root: root.to_owned(), durability, lock };
        folder.make().map_err(|error| unavailable(root, &error))?;
        Ok(folder)
    }

    fn make(&self) -> Result<(), Error> {
        let files = self.root.join(FILES);
        std::fs::create_dir_all(self.packs())?;
        std::fs::create_dir_all(&files)?;
        for first in 0..=u8::MAX {
            match std::fs::create_dir(files.join(format!("{first:02x}"))) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        for folder in [&files, &self.root] {
            self.sync_folder(folder)?;
        }
        self.root.parent().map_or(Ok(()), |parent| self.sync_folder(parent))
    }

    pub(super) fn packs(&self) -> PathBuf {
        self.root.join(PACKS)
    }

    /// The directories of payloads with a file of their own.
    pub(super) fn file_folders(&self) -> impl Iterator<Item = PathBuf> + Send + use<> {
        let files = self.root.join(FILES);
        (0..=u8::MAX).map(move |first| files.join(format!("{first:02x}")))
    }

    pub(super) fn path(&self, file: &FileName) -> PathBuf {
        let name = file_name(file);
        if is_pack(file) { self.packs().join(name) } else { self.root.join(FILES).join(&name[..2]).join(name) }
    }

    /// Creates a new file, for reading and writing.
    pub(super) fn create(&self, file: &FileName) -> Result<File, Fault> {
        let options = OpenOptions::new().read(true).write(true).create_new(true).open(self.path(file));
        options.map_err(|error| self.fault(file, &error))
    }

    /// Syncs a file's bytes.
    pub(super) fn sync(&self, file: &File) -> Result<(), Error> {
        if self.durability == Durability::Sync { file.sync_data() } else { Ok(()) }
    }

    /// Syncs the entry of a file in its directory.
    pub(super) fn sync_entry(&self, file: &FileName) -> Result<(), Error> {
        self.path(file).parent().map_or(Ok(()), |folder| self.sync_folder(folder))
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), Error> {
        if self.durability == Durability::Sync { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    /// The time of the file system's own clock, which also dates the files: the time of a write to the lock file.
    pub(super) fn now(&self) -> Result<SystemTime, Error> {
        self.lock.0.write_all_at(b"\n", 0)?;
        self.lock.0.metadata()?.modified()
    }

    /// Removes a file; `false` if it was gone.
    pub(super) fn remove(&self, file: &FileName) -> Result<bool, Fault> {
        match std::fs::remove_file(self.path(file)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.fault(file, &error)),
        }
    }

    /// Converts an I/O error for a file that should be complete.
    pub(super) fn fault(&self, file: &FileName, error: &Error) -> Fault {
        match error.kind() {
            ErrorKind::NotFound => self.damaged(file, "it is missing"),
            ErrorKind::UnexpectedEof => self.damaged(file, "it ends early"),
            _ => unavailable(&self.path(file), error),
        }
    }

    pub(super) fn damaged(&self, file: &FileName, what: &str) -> Fault {
        Fault::Damaged(format!("blob file {}: {what}", self.path(file).display()))
    }
}

/// Keeps other processes out: each of two processes would remove files that the other is writing.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn take(root: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(root)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(root.join(LOCK))?;
        file.try_lock().map_err(|error| Error::other(format!("the folder is in use by another process ({error})")))?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: a forked process that has not yet run its program would keep the lock of a closed file.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

pub(super) fn unavailable(path: &Path, error: &Error) -> Fault {
    Fault::Unavailable(format!("{}: {error}", path.display()))
}

/// A new name for a pack, or for a payload's own file.
pub(super) fn new_name(pack: bool) -> FileName {
    let mut name = random_name();
    name[15] = name[15] & !1 | u8::from(pack);
    name
}

pub(super) fn is_pack(file: &FileName) -> bool {
    file[15] & 1 == 1
}

const LOCK: &str = "lock";
const FILES: &str = "files";
const PACKS: &str = "packs";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::parse_name;

    #[test]
    fn names_tell_packs_and_are_read_as_spelled() {
        for pack in [false, true] {
            let name = new_name(pack);
            assert_eq!(is_pack(&name), pack);
            assert_eq!(parse_name(&file_name(&name)), Some(name));
        }
        for other in ["", "lock", "+0000000000000000000000000000000", "ABCDEFABCDEFABCDEFABCDEFABCDEFAB"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }
}
