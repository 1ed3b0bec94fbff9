//! A database whose clock a test can move: a function in the test's schema replaces the system's.

use crate::database::{Database, in_schema};
use std::time::Duration;

/// The clock that sessions with the URL of one schema see.
#[derive(Debug)]
pub struct TurnedClock<'a> {
    database: &'a Database,
    schema: String,
}

impl Database {
    /// The URL of a new, empty schema, and the clock that its sessions see by `clock_timestamp()` without a schema
    /// name.
    ///
    /// # Panics
    /// If the database does not answer.
    #[must_use]
    pub fn fresh_url_with_clock(&self) -> (String, TurnedClock<'_>) {
        let schema = self.fresh_schema();
        self.sql(&format!(
            "CREATE TABLE {schema}.turned (ahead interval NOT NULL); \
            INSERT INTO {schema}.turned VALUES (interval '0'); \
            CREATE FUNCTION {schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
            'SELECT pg_catalog.clock_timestamp() + ahead FROM {schema}.turned'"
        ));
        // If the search path did not name `pg_catalog`, the system's functions would be found first.
        let url = in_schema(self.url(), &format!("{schema}%2Cpg_catalog"));
        (url, TurnedClock { database: self, schema })
    }
}

impl TurnedClock<'_> {
    /// Moves the clock forward.
    ///
    /// # Panics
    /// If the database does not answer.
    pub fn advance(&self, span: Duration) {
        let (schema, seconds) = (&self.schema, span.as_secs_f64());
        self.database.sql(&format!("UPDATE {schema}.turned SET ahead = ahead + interval '1 second' * {seconds}"));
    }
}
