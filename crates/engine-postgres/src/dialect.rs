//! What differs between the databases: how tables are created, how a session pins its plans, which figures the database
//! offers, and what the codes of its errors mean. Each database has a module with its [`Differences`].
//!
//! All other statements are the same for all (`statements.rs`). Only PostgreSQL is tested by the project's own suite.
//! CockroachDB and YugabyteDB are experimental: what is known of them is in their modules, and what else they need is
//! added when it can be tested.

mod cockroach;
mod error_class;
mod postgres;
mod yugabyte;

use crate::statements::system::{FreeSlots, StoreSize};
pub(crate) use error_class::ErrorClass;
use std::fmt;
use std::str::FromStr;

/// A database that speaks PostgreSQL's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL 15 or newer.
    #[default]
    Postgres,
    /// CockroachDB.
    Cockroach,
    /// YugabyteDB.
    Yugabyte,
}

/// The error for an unknown name of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected postgres, cockroach or yugabyte")]
pub struct UnknownDialect;

/// What one database does differently from others.
struct Differences {
    name: &'static str,
    /// The statements that create the tables of format 1, in order. Each may be run again.
    tables: &'static [&'static str],
    /// The statements that add the tables of format 2. Each may be run again.
    message_tables: &'static [&'static str],
    /// Run when a session begins, after its time limits are set.
    session: &'static str,
    /// Whether a statement returns how many more sessions the database accepts.
    has_free_slots: bool,
    /// Whether a statement returns how many bytes the rows take.
    has_store_size: bool,
    /// What the code of an error means.
    error_class: fn(&str) -> ErrorClass,
}

impl Dialect {
    const fn differences(self) -> &'static Differences {
        match self {
            Self::Postgres => &postgres::DIFFERENCES,
            Self::Cockroach => &cockroach::DIFFERENCES,
            Self::Yugabyte => &yugabyte::DIFFERENCES,
        }
    }

    /// The statements that create the tables of format 1, in order.
    pub(crate) const fn tables(self) -> &'static [&'static str] {
        self.differences().tables
    }

    /// The statements that add what format 2 has: messages by queue and id, by order of delivery, and by expiry.
    pub(crate) const fn message_tables(self) -> &'static [&'static str] {
        self.differences().message_tables
    }

    /// The settings of a session, besides its time limits.
    pub(crate) const fn session(self) -> &'static str {
        self.differences().session
    }

    /// The statement for the sessions that the database still accepts, if it has one.
    pub(crate) fn free_slots(self) -> Option<FreeSlots> {
        self.differences().has_free_slots.then_some(FreeSlots {})
    }

    /// The statement for the bytes that the rows take, if the database has one.
    pub(crate) fn store_size(self) -> Option<StoreSize> {
        self.differences().has_store_size.then_some(StoreSize {})
    }

    /// What the code of an error means.
    pub(crate) fn error_class(self, code: &str) -> ErrorClass {
        (self.differences().error_class)(code)
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let all = [Self::Postgres, Self::Cockroach, Self::Yugabyte];
        all.into_iter().find(|dialect| dialect.differences().name == text).ok_or(UnknownDialect)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.differences().name)
    }
}

/// The table of entities, with its primary key.
macro_rules! entities {
    ($key:literal) => {
        concat!(
            "CREATE TABLE IF NOT EXISTS larimar_entity (pk bytea NOT NULL, rk bytea NOT NULL, \
            ver int8 NOT NULL, tok int8 NOT NULL, body bytea NOT NULL, PRIMARY KEY ",
            $key,
            ")"
        )
    };
}

/// The table of messages, with its primary key.
macro_rules! messages {
    ($key:literal) => {
        concat!(
            "CREATE TABLE IF NOT EXISTS larimar_message (q int8 NOT NULL, id bytea NOT NULL, vis int8 NOT NULL, \
            exp int8 NOT NULL, deq int8 NOT NULL, pop int8 NOT NULL, ins int8 NOT NULL, body bytea NOT NULL, \
            PRIMARY KEY ",
            $key,
            ")"
        )
    };
}

use {entities, messages};

const SPACES: &str = "CREATE TABLE IF NOT EXISTS larimar_space (account bytea NOT NULL, kind int8 NOT NULL, \
    name bytea NOT NULL, id int8 NOT NULL UNIQUE, tok int8 NOT NULL, meta bytea NOT NULL, \
    PRIMARY KEY (account, kind, name))";
const SPACE_IDS: &str = "CREATE SEQUENCE IF NOT EXISTS larimar_space_id";
const PURGES: &str = "CREATE TABLE IF NOT EXISTS larimar_purge (id int8 PRIMARY KEY, since int8 NOT NULL)";
const JOBS: &str =
    "CREATE TABLE IF NOT EXISTS larimar_job (name bytea PRIMARY KEY, owner int8 NOT NULL, until int8 NOT NULL)";
const MESSAGE_ORDER: &str =
    "CREATE INDEX IF NOT EXISTS larimar_message_order ON larimar_message (q ASC, vis ASC, id ASC)";
const MESSAGE_EXPIRY: &str = "CREATE INDEX IF NOT EXISTS larimar_message_expiry ON larimar_message (exp ASC)";

/// Settings of sessions of PostgreSQL and of databases that use its planner. Every statement is a few index lookups or
/// one index range. Without statistics the planner may choose otherwise: if a table was small when a plan was made, the
/// plan reads all of it from then on.
const PINNED_PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
     SET enable_mergejoin = off; SET enable_material = off; SET plan_cache_mode = force_generic_plan; \
     SET jit = off; SET max_parallel_workers_per_gather = 0; \
     SET idle_in_transaction_session_timeout = '10s'; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_read_as_it_is_written() {
        for dialect in [Dialect::Postgres, Dialect::Cockroach, Dialect::Yugabyte] {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        assert_eq!("mysql".parse::<Dialect>(), Err(UnknownDialect));
    }
}
