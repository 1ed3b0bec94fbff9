//! The crate's integration tests: one program, a module per subject.

mod blobs;
mod bytes;
mod conformance;
mod migration;
mod model;
mod properties;
mod query_work;
mod queue_cost;
