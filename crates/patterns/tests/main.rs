//! The crate's integration tests: one program, a module per subject.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

mod atomic;
mod blob_log;
mod eventual_worker;
mod harness;
mod index_entities;
mod inter_partition_index;
mod killed_processes;
mod large_entity;
mod mover_crash;
