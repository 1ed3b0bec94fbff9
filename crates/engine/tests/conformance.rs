//! The in-memory reference engine keeps every promise of the contract.

use larimar_engine::MemoryEngine;
use std::sync::Arc;

larimar_testkit::engine_conformance!(Arc::new(MemoryEngine::new()));
