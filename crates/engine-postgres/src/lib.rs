//! The distributed storage engine of Larimar: any number of servers over one database that speaks PostgreSQL's
//! protocol.
//!
//! [`PostgresEngine`] fulfils the contract of `larimar-engine`; nothing is kept in the process that another one would
//! miss. Point reads of concurrent requests share statements (`reads.rs`), so do single writes (`singles.rs`);
//! a transaction is one flush of a few statements (`transactions.rs`); a page is one statement, or several in
//! one read-only transaction (`snapshot.rs`, `arms.rs`, `scan.rs`). Messages
//! have a table of their own (`messages.rs`, `posts.rs`). What a failure means, and which ones leave the outcome open, is
//! in `failure.rs`; `catalogue.rs` keeps the spaces, `dropped.rs` the
//! rows of dropped containers and `jobs.rs` the work that one server at a time does for all. SQL is
//! in `statements.rs`, what differs between databases in `dialect.rs`.

mod apply;
mod arms;
mod catalogue;
mod clock;
mod connection;
mod connections;
mod core;
mod dialect;
mod dropped;
mod engine;
mod failure;
mod gathering;
mod health;
mod jobs;
mod key;
mod messages;
mod pool;
mod posts;
mod reads;
mod scan;
mod schema;
mod settings;
mod singles;
mod sizes;
mod snapshot;
mod starts;
mod statements;
mod tls;
mod transactions;

pub use dialect::{Dialect, UnknownDialect};
pub use engine::PostgresEngine;
pub use settings::{OpenError, Password, Settings};
pub use snapshot::PostgresSnapshot;
