//! The crate's integration tests: one program, a module per subject.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

#[cfg(all(feature = "blob", feature = "queue"))]
mod azurite;
#[cfg(feature = "blob")]
mod blob;
mod bulk;
mod common;
mod credentials;
mod derive;
mod derive_collisions;
mod derive_features;
pub mod derive_strangers;
mod derived_entities;
#[cfg(all(feature = "derive", feature = "encryption"))]
mod encryption;
mod entities;
mod filter_properties;
mod keys;
mod parallel_queries;
mod queries;
#[cfg(feature = "queue")]
mod queue;
mod retries;
mod sas;
mod service_properties;
mod spans;
mod suite;
mod transactions;
#[cfg(feature = "rustls")]
mod transport;
mod updates;
