//! Files keep every promise of a store of bytes, synced and not.

use larimar_bytes::{Admission, Durability, FileBytes, FileSettings};
use larimar_engine::blob::bytes::Extent;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A store on a folder of its own, which goes with it.
pub(crate) struct Temporary {
    store: FileBytes,
    folder: tempfile::TempDir,
}

impl Temporary {
    pub(crate) fn open(durability: Durability) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { store: open(folder.path(), durability), folder }
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopen(self) -> Self {
        let Self { store, folder } = self;
        drop(store);
        Self { store: open(folder.path(), Durability::Sync), folder }
    }

    /// The file that holds a payload.
    pub(crate) fn file_of(&self, extent: &Extent) -> PathBuf {
        let name = extent.file_name();
        let files = files_in(self.folder.path());
        files.into_iter().find(|path| path.ends_with(&name)).expect("the payload has a file")
    }

    /// All files of payloads, of packs and of their own.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        files_in(self.folder.path())
    }
}

/// A store in a folder, without a time of grace.
pub(crate) fn open(folder: &Path, durability: Durability) -> FileBytes {
    let settings = FileSettings {
        folder: folder.join("blobs"),
        durability,
        grace: Duration::ZERO,
        admission: Admission::default(),
    };
    FileBytes::open(&settings).expect("the store opens")
}

/// The files of payloads below a folder.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("lock") {
                files.push(path);
            }
        }
    }
    files
}

impl Deref for Temporary {
    type Target = FileBytes;

    fn deref(&self) -> &FileBytes {
        assert!(self.folder.path().exists(), "the folder lives as long as the store");
        &self.store
    }
}

mod synced {
    use super::*;
    larimar_testkit::bytes_conformance!(Temporary::open(Durability::Sync));
}

mod in_the_system {
    use super::*;
    larimar_testkit::bytes_conformance!(Temporary::open(Durability::System));
}
