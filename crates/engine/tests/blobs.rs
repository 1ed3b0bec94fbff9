//! Blobs keep every promise on the in-memory reference engine.

use larimar_engine::MemoryEngine;
use larimar_engine::blob::bytes::MemoryBytes;
use std::sync::Arc;
use std::time::Duration;

larimar_testkit::blob_conformance!((Arc::new(MemoryEngine::new()), Arc::new(MemoryBytes::new(Duration::ZERO)), ()));
