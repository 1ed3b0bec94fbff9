//! The store of bytes in memory keeps every promise of the contract.

use larimar_engine::blob::bytes::MemoryBytes;
use std::sync::Arc;
use std::time::Duration;

larimar_testkit::bytes_conformance!(Arc::new(MemoryBytes::new(Duration::ZERO)));
