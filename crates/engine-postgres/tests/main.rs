//! The crate's integration tests: one program, a module per subject. All of them need a PostgreSQL server.

mod backup;
mod blobs;
mod conformance;
mod connections;
mod error_codes;
mod failures;
mod locks;
mod messages;
mod model;
mod pages;
mod queries;
mod round_trips;
mod servers;
mod support;
mod tls;
