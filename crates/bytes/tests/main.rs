//! The crate's integration tests: one program, a module per subject.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

mod blobs;
mod stores;
