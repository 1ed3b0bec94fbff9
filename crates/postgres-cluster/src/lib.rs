//! A PostgreSQL cluster in a temporary directory, for tests and benchmarks. It starts in about a second and is removed
//! with its owner.
//!
//! Tests use it as `larimar_testkit::postgres`; `xtask` uses it directly, which is why it is a crate of its own and
//! depends on nothing. Every program comes from the machine's PostgreSQL ([`Binaries`]), run as an unprivileged user
//! if this process is root. Writes are synced to disk, as in a real cluster.
//!
//! A test takes a schema of its own from the cluster that all tests share:
//!
//! ```no_run
//! use larimar_postgres_cluster::Cluster;
//!
//! let url = Cluster::shared().fresh_url();
//! ```
//!
//! A test of failures starts its own cluster, stops it, pauses it, or promotes its standby.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

mod binaries;
mod cluster;
mod database;
mod home;
mod standby;
mod turned;
mod watchdog;

pub use binaries::Binaries;
pub use cluster::{Cluster, Options, Stop};
pub use database::Database;
pub use turned::TurnedClock;

/// The superuser of every cluster of this crate.
pub const USER: &str = "larimar";

/// The variable with the base URL of a running cluster, which [`Cluster::shared`] uses instead of starting one.
pub const SHARED_VARIABLE: &str = "LARIMAR_TEST_POSTGRES";

/// The variable with the directory of PostgreSQL's programs, if it is not one of the usual ones.
pub const BINARIES_VARIABLE: &str = "LARIMAR_POSTGRES_BIN";
