//! The crate's integration tests: one program, a module per subject.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

mod access_log;
mod admin;
mod analytics;
mod archive;
mod backup;
mod bad_input;
mod blob_http;
mod commands;
mod compact;
mod console;
mod copy;
mod crash;
mod crowd;
mod faults;
mod first_use;
mod history;
mod http_conformance;
mod import_resumed;
mod migrate;
mod moments;
mod monitoring;
mod operations;
mod output;
#[cfg(feature = "test-postgres")]
mod postgres;
mod process;
mod queue_http;
mod reload;
mod seed;
mod settings;
mod single_restore;
mod slow_queries;
mod stores;
mod traps;
mod versions;
mod what_is_kept;
