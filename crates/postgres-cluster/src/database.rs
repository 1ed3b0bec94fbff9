//! A running database, ours or not: its URL, schemas for tests, statements through `psql`.

use crate::{Binaries, home};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

/// A running database.
#[derive(Debug)]
pub struct Database {
    url: String,
    binaries: Binaries,
}

impl Database {
    pub(crate) const fn new(url: String, binaries: Binaries) -> Self {
        Self { url, binaries }
    }

    /// The URL without a schema: tables are created in `public`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of a new, empty schema for a test's own tables. It is created much faster than a database.
    ///
    /// # Panics
    /// If the database does not answer.
    #[must_use]
    pub fn fresh_url(&self) -> String {
        in_schema(&self.url, &self.fresh_schema())
    }

    /// Creates a schema and returns its name.
    pub(crate) fn fresh_schema(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Several test processes may share the database, and a process id may be used again.
        let (random, count) = (RandomState::new().hash_one(std::process::id()), COUNT.fetch_add(1, Ordering::Relaxed));
        let schema = format!("test_{random:016x}_{count}");
        self.sql(&format!("CREATE SCHEMA {schema}"));
        schema
    }

    /// Runs statements and returns what they print: a line for a row, `|` between columns.
    ///
    /// # Panics
    /// If the database refuses, with its error.
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements).unwrap_or_else(|said| panic!("{statements}: {said}"))
    }

    /// Runs statements and returns what they print, as [`Self::sql`] does.
    ///
    /// # Errors
    /// The error that `psql` printed.
    pub fn try_sql(&self, statements: &str) -> Result<String, String> {
        let mut psql = home::command(&self.binaries.program("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url, "-c", statements]);
        psql.env("PGCONNECT_TIMEOUT", "10").stdin(Stdio::null());
        Ok(home::output_of(&mut psql)?.trim_end().to_owned())
    }
}

/// The URL with a schema for its tables.
pub(crate) fn in_schema(url: &str, schema: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}options=-csearch_path%3D{schema}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_joins_the_other_options_of_a_url() {
        let option = "options=-csearch_path%3Ds";
        assert_eq!(in_schema("postgres://u@h/d", "s"), format!("postgres://u@h/d?{option}"));
        assert_eq!(in_schema("postgres://u@h/d?a=b", "s"), format!("postgres://u@h/d?a=b&{option}"));
    }
}
