//! A database whose clock a test can turn: in a schema of its own, a function stands in the place of the system's.

use crate::database::{Database, in_schema};
use std::time::Duration;

/// The clock of one schema, as sessions see it that came by its URL.
#[derive(Debug)]
pub struct TurnedClock<'a> {
    database: &'a Database,
    schema: String,
}

impl Database {
    /// The URL of a new, empty schema, and the clock that its sessions see: `clock_timestamp()` without a schema before it.
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
        // Named, the system's functions come second; otherwise they come first.
        let url = in_schema(self.url(), &format!("{schema}%2Cpg_catalog"));
        (url, TurnedClock { database: self, schema })
    }
}

impl TurnedClock<'_> {
    /// Turns the clock forward.
    ///
    /// # Panics
    /// If the database does not answer.
    pub fn advance(&self, span: Duration) {
        let (schema, seconds) = (&self.schema, span.as_secs_f64());
        self.database.sql(&format!("UPDATE {schema}.turned SET ahead = ahead + interval '1 second' * {seconds}"));
    }
}
