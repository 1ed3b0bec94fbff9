//! Blobs keep every promise with their bytes in files.

use larimar_bytes::{Admission, Durability, FileBytes, FileSettings};
use larimar_engine::MemoryEngine;
use std::sync::Arc;
use std::time::Duration;

fn fresh() -> (Arc<MemoryEngine>, Arc<FileBytes>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = FileSettings {
        folder: folder.path().join("blobs"),
        durability: Durability::System,
        grace: Duration::ZERO,
        admission: Admission::default(),
    };
    let bytes = FileBytes::open(&settings).expect("the store opens");
    (Arc::new(MemoryEngine::new()), Arc::new(bytes), folder)
}

larimar_testkit::blob_conformance!(fresh());
