//! Files keep every promise of a store of bytes, synced and not.

use larimar_bytes::{Durability, FileBytes, FileSettings};
use std::ops::Deref;
use std::time::Duration;

/// A store on a folder of its own, which goes with it.
struct Temporary {
    store: FileBytes,
    folder: tempfile::TempDir,
}

impl Temporary {
    fn open(durability: Durability) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = FileSettings { folder: folder.path().join("blobs"), durability, grace: Duration::ZERO };
        Self { store: FileBytes::open(&settings).expect("the store opens"), folder }
    }
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
