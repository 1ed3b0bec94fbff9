//! Three servers over one PostgreSQL database: to clients they must behave as one, whatever is
//! killed, restarted, promoted, delayed, cut or silenced meanwhile.
//!
//! `LARIMAR_TEST_SEED` repeats a run's choices, `LARIMAR_ROUNDS` makes the runs longer. These tests need PostgreSQL on the
//! machine: `cargo test -p larimar --features test-postgres --test suite postgres::`.

mod analytics;
mod background;
mod backups;
mod database;
mod fleet;
mod histories;
mod insights;
mod network;
mod races;
mod recovery;
mod settings;
mod shared_state;
mod tables;
