//! Every statement but those that create tables, each as a type: its fields are the parameters in the order of their
//! numbers, and it decodes the rows of its answer.
//!
//! The statements use the common part of the dialects: no comparison of row values, no `int`, no two writes of one
//! table in a statement. `DELETE … USING` needs CockroachDB 23.1 or newer.
//!
//! A statement looks its rows up in an index, however many rows the planner believes that a table has. Rows that are
//! named by a set are joined by `matching!`; `plans.rs` tests every statement, and
//! `docs/decisions/0017-postgres-under-stress.md` has the reasons.
//!
//! A write checks its space within the statement, so none succeeds after a drop was acknowledged.

use crate::failure::Failure;
use crate::settings::chain;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

/// A statement with its parameters.
pub(crate) trait Statement: Send + Sync {
    fn sql(&self) -> &'static Sql;

    /// `$1`, `$2` and so on.
    fn parameters(&self) -> Vec<&(dyn ToSql + Sync)>;
}

/// A statement whose answer has rows of one type.
pub(crate) trait Query: Statement {
    type Row: FromRow;
}

/// The name and text of a statement.
#[derive(Debug)]
pub(crate) struct Sql {
    /// Unique among all statements.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// A row of an answer, decoded.
pub(crate) trait FromRow: Sized {
    fn from_row(row: Row) -> Result<Self, Failure>;
}

/// A column of a row.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Failure> {
    row.try_get(index).map_err(|error| Failure::Refused(format!("cannot decode column {index}: {}", chain(&error))))
}

/// For statements that return no columns, or none that matter.
impl FromRow for () {
    fn from_row(_: Row) -> Result<Self, Failure> {
        Ok(())
    }
}

/// Rows as tuples of their first columns.
macro_rules! tuple_rows {
    ($(($($type:ident $index:literal),+))+) => {$(
        impl<$($type: for<'a> FromSql<'a>),+> FromRow for ($($type,)+) {
            fn from_row(row: Row) -> Result<Self, Failure> {
                Ok(($(column::<$type>(&row, $index)?,)+))
            }
        }
    )+};
}

tuple_rows! { (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4) }

/// The database's time in ticks of 100 ns since the year 1, read once per statement. It is the clock that all servers
/// share, and gives rows their versions.
macro_rules! ticks {
    () => {
        "(SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::int8 + 621355968000000000)"
    };
}

/// Joins a row of entities with the row of a set that has its key. With `pk = o.pk`, which means the same, the planner
/// may turn the join round: read all entities in the order of the index and look each up in the set, if it believes
/// that there are few. An array of one is looked up in the index and provides no such order.
macro_rules! matching {
    () => {
        "e.pk = ANY (ARRAY[o.pk]) AND e.rk = o.rk"
    };
}

/// The same for messages. With `vis`, both indexes that begin with the queue find the one row.
macro_rules! matching_message {
    () => {
        "m.q = ANY (ARRAY[o.q]) AND m.id = o.id AND m.vis = o.vis"
    };
}

/// The rows of a partition that a transaction names: pk, then arrays, of which the first is that of the rks. The
/// partition comes from the set too: with a constant, the planner may read all of the partition and compare it with the
/// set.
macro_rules! rows_of_partition {
    ($arrays:literal, $columns:literal) => {
        concat!("WITH o AS MATERIALIZED (SELECT $1::bytea AS pk, k.* FROM unnest(", $arrays, ") AS k(", $columns, "))")
    };
}

/// Rows in key order, `$source` being at most `$1` of them, bounded by bytes: those whose predecessors have fewer than
/// `$2` together, and one more without its body.
macro_rules! bounded {
    ($source:expr) => {
        concat!(
            "SELECT pk, rk, ver, CASE WHEN total - size < $2::int8 THEN body END FROM (\
            SELECT pk, rk, ver, body, size, (sum(size) OVER w)::int8 AS total, lag(size, 1, 0) OVER w AS last FROM (\
            SELECT pk, rk, ver, body, octet_length(pk) + octet_length(rk) + octet_length(body) AS size FROM (",
            $source,
            ") AS found) AS sized WINDOW w AS (ORDER BY pk, rk ROWS UNBOUNDED PRECEDING)) AS summed \
            WHERE total - size - last < $2::int8 ORDER BY pk, rk"
        )
    };
}

/// The rows of one index range, at most `$1`.
macro_rules! arm {
    ($bounds:literal) => {
        concat!("(SELECT pk, rk, ver, body FROM larimar_entity WHERE ", $bounds, " ORDER BY pk, rk LIMIT $1::int8)")
    };
}

/// The rows of index ranges that follow each other, at most `$1`.
macro_rules! arms {
    ($first:literal $(, $more:literal)+) => {
        concat!(
            "SELECT pk, rk, ver, body FROM (", arm!($first) $(, " UNION ALL ", arm!($more))+,
            ") AS arms ORDER BY pk, rk LIMIT $1::int8"
        )
    };
}

/// The name of the job of a dropped container. Names are in the order of the ids.
macro_rules! dropped_name {
    ($id:literal) => {
        concat!("convert_to('container ' || lpad(", $id, "::text, 20, '0'), 'UTF8')")
    };
}

/// Defines statements, and a list of them for the test of their plans.
macro_rules! statements {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? { $($field:ident: $type:ty),* $(,)? } -> $row:ty = $sql:expr;
    )*) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name $(<$life>)? { $(pub(crate) $field: $type),* }

            impl $(<$life>)? $crate::statements::Statement for $name $(<$life>)? {
                fn sql(&self) -> &'static $crate::statements::Sql {
                    &$crate::statements::Sql { name: stringify!($name), text: $sql }
                }

                fn parameters(&self) -> Vec<&(dyn tokio_postgres::types::ToSql + Sync)> {
                    vec![$(&self.$field),*]
                }
            }

            impl $(<$life>)? $crate::statements::Query for $name $(<$life>)? {
                type Row = $row;
            }
        )*

        #[cfg(all(test, feature = "test-postgres"))]
        pub(super) const ALL: &[$crate::statements::Sql] =
            &[$($crate::statements::Sql { name: stringify!($name), text: $sql }),*];
    };
}

pub(crate) mod backup;
pub(crate) mod entities;
pub(crate) mod jobs;
pub(crate) mod messages;
pub(crate) mod pages;
#[cfg(all(test, feature = "test-postgres"))]
mod plans;
pub(crate) mod spaces;
pub(crate) mod system;
pub(crate) mod transactions;
