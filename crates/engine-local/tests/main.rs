//! The crate's integration tests: one program, a module per subject.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

mod blobs;
mod clock;
mod clock_log;
mod conformance;
mod disk_full;
mod engine;
mod held_snapshot;
mod messages;
mod missing_files;
mod model;
mod reclaim;
mod repair;
mod store_faults;
mod support;
