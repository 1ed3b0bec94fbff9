//! What differs between the databases: how tables are made, and how a session pins its plans. Every other statement is
//! the same for all.

use crate::statements::system::{FreeSlots, StoreSize};
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

/// The name of no database that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected postgres, cockroach or yugabyte")]
pub struct UnknownDialect;

impl Dialect {
    /// The statements that make the tables of format 1, in order. Each may be run again.
    pub(crate) const fn tables(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &[SPACES, SPACE_IDS, PURGES, JOBS, POSTGRES_ENTITIES, POSTGRES_BODIES],
            Self::Cockroach => &[SPACES, SPACE_IDS, PURGES, JOBS, COCKROACH_ENTITIES],
            Self::Yugabyte => &[SPACES, SPACE_IDS, PURGES, JOBS, YUGABYTE_ENTITIES],
        }
    }

    /// The statements that add what format 2 has: messages, by queue and name, by the order of delivery and by the end.
    pub(crate) const fn message_tables(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &[POSTGRES_MESSAGES, POSTGRES_TEXTS, MESSAGE_ORDER, MESSAGE_EXPIRY],
            Self::Cockroach => &[COCKROACH_MESSAGES, MESSAGE_ORDER, MESSAGE_EXPIRY],
            Self::Yugabyte => &[YUGABYTE_MESSAGES, MESSAGE_ORDER, MESSAGE_EXPIRY],
        }
    }

    /// What a session is told when it begins, besides its time limits.
    pub(crate) const fn session(self) -> &'static str {
        match self {
            // Every statement is a few index lookups or one index range. Without statistics the planner may think
            // otherwise: a table that was small when a plan was made is read whole ever after.
            Self::Postgres | Self::Yugabyte => {
                "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
                 SET enable_mergejoin = off; SET enable_material = off; SET plan_cache_mode = force_generic_plan; \
                 SET jit = off; SET max_parallel_workers_per_gather = 0; \
                 SET idle_in_transaction_session_timeout = '10s'; \
                 SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';"
            }
            Self::Cockroach => "SET idle_in_transaction_session_timeout = '10s';",
        }
    }

    /// The query for the connections that the database would still take, where it can tell.
    pub(crate) const fn slots(self) -> Option<FreeSlots> {
        match self {
            Self::Postgres => Some(FreeSlots {}),
            Self::Yugabyte | Self::Cockroach => None,
        }
    }

    /// The query for the bytes that the rows take, where the database can tell.
    pub(crate) const fn size(self) -> Option<StoreSize> {
        match self {
            Self::Postgres | Self::Yugabyte => Some(StoreSize {}),
            Self::Cockroach => None,
        }
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let all = [Self::Postgres, Self::Cockroach, Self::Yugabyte];
        all.into_iter().find(|dialect| dialect.to_string() == text).ok_or(UnknownDialect)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "postgres",
            Self::Cockroach => "cockroach",
            Self::Yugabyte => "yugabyte",
        })
    }
}

const SPACES: &str = "CREATE TABLE IF NOT EXISTS larimar_space (account bytea NOT NULL, kind int8 NOT NULL, \
    name bytea NOT NULL, id int8 NOT NULL UNIQUE, tok int8 NOT NULL, meta bytea NOT NULL, \
    PRIMARY KEY (account, kind, name))";
const SPACE_IDS: &str = "CREATE SEQUENCE IF NOT EXISTS larimar_space_id";
const PURGES: &str = "CREATE TABLE IF NOT EXISTS larimar_purge (id int8 PRIMARY KEY, since int8 NOT NULL)";
const JOBS: &str =
    "CREATE TABLE IF NOT EXISTS larimar_job (name bytea PRIMARY KEY, owner int8 NOT NULL, until int8 NOT NULL)";

/// Bodies are kept with their rows up to the size of a page, and beyond it outside, neither compressed: a page of rows
/// is then one index range. The rest of each page is for new versions of its rows, which need no new index entries.
const POSTGRES_ENTITIES: &str = "CREATE TABLE IF NOT EXISTS larimar_entity (pk bytea NOT NULL, rk bytea NOT NULL, \
    ver int8 NOT NULL, tok int8 NOT NULL, body bytea NOT NULL, PRIMARY KEY (pk, rk)) \
    WITH (fillfactor = 85, toast_tuple_target = 8160)";
const POSTGRES_BODIES: &str = "ALTER TABLE larimar_entity ALTER COLUMN body SET STORAGE EXTERNAL";
const COCKROACH_ENTITIES: &str = "CREATE TABLE IF NOT EXISTS larimar_entity (pk bytea NOT NULL, rk bytea NOT NULL, \
    ver int8 NOT NULL, tok int8 NOT NULL, body bytea NOT NULL, PRIMARY KEY (pk, rk))";
/// Without `ASC` the first column would be hashed over the tablets, and pages across partitions would read them all.
const YUGABYTE_ENTITIES: &str = "CREATE TABLE IF NOT EXISTS larimar_entity (pk bytea NOT NULL, rk bytea NOT NULL, \
    ver int8 NOT NULL, tok int8 NOT NULL, body bytea NOT NULL, PRIMARY KEY (pk ASC, rk ASC))";

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

/// Every message is rewritten when it is claimed and soon deleted: pages have room for that, and what is dead is removed
/// long before it is a fifth of the table.
const POSTGRES_MESSAGES: &str = concat!(
    messages!("(q, id)"),
    " WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)"
);
const POSTGRES_TEXTS: &str = "ALTER TABLE larimar_message ALTER COLUMN body SET STORAGE EXTERNAL";
const COCKROACH_MESSAGES: &str = messages!("(q, id)");
const YUGABYTE_MESSAGES: &str = messages!("(q ASC, id ASC)");
const MESSAGE_ORDER: &str =
    "CREATE INDEX IF NOT EXISTS larimar_message_order ON larimar_message (q ASC, vis ASC, id ASC)";
const MESSAGE_EXPIRY: &str = "CREATE INDEX IF NOT EXISTS larimar_message_expiry ON larimar_message (exp ASC)";

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
