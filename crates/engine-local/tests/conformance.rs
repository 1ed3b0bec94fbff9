//! The embedded engine keeps every promise of the contract, on files and in memory.

use larimar_engine_local::{Durability, LocalEngine, Settings};
use std::ops::Deref;

/// An engine on a folder of its own, which goes with it.
struct Temporary {
    engine: LocalEngine,
    folder: tempfile::TempDir,
}

impl Temporary {
    fn open(durability: Durability) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings =
            Settings { folder: folder.path().into(), durability, memory_bytes: Some(64 << 20), reserve_bytes: 0 };
        Self { engine: LocalEngine::open(&settings).expect("the store opens"), folder }
    }
}

impl Deref for Temporary {
    type Target = LocalEngine;

    fn deref(&self) -> &LocalEngine {
        assert!(self.folder.path().exists(), "the folder lives as long as the engine");
        &self.engine
    }
}

mod synced {
    use super::*;
    larimar_testkit::engine_conformance!(Temporary::open(Durability::Sync));
}

mod in_memory {
    use super::*;
    larimar_testkit::engine_conformance!(Temporary::open(Durability::Memory));
}
