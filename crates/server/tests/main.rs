//! The crate's integration tests: one program, a module per subject.

mod analytics;
mod polls;
mod stale_lookup;
