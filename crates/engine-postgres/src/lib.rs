//! The distributed storage engine of Larimar: any number of servers over one database that speaks PostgreSQL's
//! protocol.
//!
//! [`PostgresEngine`] implements the contract of `larimar-engine`; a process keeps no state that another one would
//! need. Concurrent requests are gathered and sent in groups (`gather.rs`): point reads (`reads.rs`), writes of one row
//! (`single_writes.rs`), transactions (`transactions.rs`), and puts and deletes of messages (`message_writes.rs`; the
//! other calls on messages are in `messages.rs`). A page is one statement, or several in one read-only transaction
//! (`snapshot.rs`, `page_statement.rs`, `page_rows.rs`). `failure.rs` decides what an error means and which ones leave the
//! outcome unknown. `catalogue.rs` has the spaces, `dropped_containers.rs` the rows of dropped containers,
//! `background.rs` the work that one server at a time does for all, `backup.rs` the snapshot of a backup. SQL is in `statements.rs`, what differs between
//! databases in `dialect.rs`.

mod apply;
mod background;
mod backup;
mod catalogue;
mod claim_starts;
mod clock;
mod connection;
mod connections;
mod core;
mod dialect;
mod dropped_containers;
mod engine;
mod failure;
mod gather;
mod health;
mod kept_connection;
mod key;
mod message_writes;
mod messages;
mod page_rows;
mod page_statement;
mod pool;
mod reads;
mod row_sizes;
mod schema;
mod settings;
mod single_writes;
mod snapshot;
mod statements;
mod tls;
mod transactions;
mod written_rows;

pub use backup::PostgresBackup;
pub use dialect::{Dialect, UnknownDialect};
pub use engine::PostgresEngine;
pub use settings::{OpenError, Password, Settings};
pub use snapshot::PostgresSnapshot;
