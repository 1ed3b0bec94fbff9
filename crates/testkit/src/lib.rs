//! What the tests of the other crates share: the promises of an engine, a model to compare engines with,
//! a hand-turned clock, a PostgreSQL cluster, the built server as a process, and a client that shows every byte.
//!
//! A promise is a function named as a sentence; [`engine_conformance!`] turns all of them into tests of one
//! engine. The same promises run over the in-memory reference engine and every engine that stores.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

pub mod blob;
pub mod bytes;
mod clock;
mod dice;
mod directory;
pub mod engine;
pub mod fuzz_targets;
pub mod history;
pub mod http;
mod polls;
#[doc(hidden)]
pub mod promise;
pub mod proxy;
pub mod queries;
mod server;

pub use clock::ManualClock;
pub use dice::Dice;
pub use directory::memory_directory;
pub use larimar_postgres_cluster as postgres;
pub use polls::Polls;
pub use server::{Launch, Server, TemporaryServer};

pub use serde_json;
