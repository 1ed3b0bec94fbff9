//! Rows in key order, bounded in rows and bytes: `page_statement.rs` chooses the statement.

use super::{FromRow, column};
use crate::failure::Failure;
use larimar_model::Timestamp;
use tokio_postgres::Row;

statements! {
    /// The rest of a partition.
    Tail<'a> { rows_max: i64, bytes_max: i64, pk: &'a [u8], rk: &'a [u8] } -> PageRow =
        bounded!(arm!("pk = $3 AND rk >= $4"));

    /// Part of a partition.
    Slice<'a> { rows_max: i64, bytes_max: i64, pk: &'a [u8], rk: &'a [u8], end_rk: &'a [u8] } -> PageRow =
        bounded!(arm!("pk = $3 AND rk >= $4 AND rk < $5"));

    /// The rest of a partition, and the partitions after it.
    TailAndMore<'a> { rows_max: i64, bytes_max: i64, pk: &'a [u8], rk: &'a [u8], end_pk: &'a [u8] } -> PageRow =
        bounded!(arms!("pk = $3 AND rk >= $4", "pk > $3 AND pk < $5"));

    /// The rest of a partition, the partitions after it, and the first rows of the last.
    TailAndMoreAndHead<'a> {
        rows_max: i64,
        bytes_max: i64,
        pk: &'a [u8],
        rk: &'a [u8],
        last_pk: &'a [u8],
        end_rk: &'a [u8],
    } -> PageRow = bounded!(arms!("pk = $3 AND rk >= $4", "pk > $3 AND pk < $5", "pk = $5 AND rk < $6"));

    /// Rows by their keys. The order is that of the keys: with the order of the entities all of them might be read.
    Points<'a> { rows_max: i64, bytes_max: i64, pks: Vec<&'a [u8]>, rks: Vec<&'a [u8]> } -> PageRow = bounded!(concat!(
        "SELECT o.pk, o.rk, e.ver, e.body FROM unnest($3::bytea[], $4::bytea[]) AS o(pk, rk) \
        JOIN larimar_entity e ON ",
        matching!(),
        " ORDER BY o.pk, o.rk LIMIT $1::int8"
    ));
}

/// A row of entities. Its bytes stay where they were received.
pub(crate) struct PageRow(Row);

impl FromRow for PageRow {
    fn from_row(row: Row) -> Result<Self, Failure> {
        Ok(Self(row))
    }
}

impl PageRow {
    pub(crate) fn pk(&self) -> Result<&[u8], Failure> {
        column(&self.0, 0)
    }

    pub(crate) fn rk(&self) -> Result<&[u8], Failure> {
        column(&self.0, 1)
    }

    pub(crate) fn version(&self) -> Result<Timestamp, Failure> {
        Ok(Timestamp::from_ticks(column::<i64>(&self.0, 2)?.cast_unsigned()))
    }

    /// The body; `None` for the first row beyond the bound on bytes.
    pub(crate) fn body(&self) -> Result<Option<&[u8]>, Failure> {
        column(&self.0, 3)
    }
}
