//! Point reads: those of concurrent requests share a statement.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::gather::{Gather, Limits, RequestKind, Retry};
use crate::kept_connection::Keep;
use crate::pool::Pool;
use crate::statements::entities::GetRows;
use crate::statements::{FromRow, column};
use larimar_engine::Fault;
use std::sync::Arc;
use tokio_postgres::Row;

/// Point reads as a kind of request.
pub(crate) struct PointReads;

/// The key of a row to read.
pub(crate) struct RowKey {
    space: i64,
    pk: Vec<u8>,
    rk: Vec<u8>,
}

/// What was found at a key.
pub(crate) struct FoundRow {
    /// The position of the key among those asked for.
    number: i64,
    /// Whether the space exists.
    pub(crate) has_space: bool,
    /// The row's version, if there is a row.
    pub(crate) version: Option<u64>,
    row: Row,
}

impl FromRow for FoundRow {
    fn from_row(row: Row) -> Result<Self, Failure> {
        let (number, has_space, version): (_, _, Option<i64>) = (column(&row, 0)?, column(&row, 1)?, column(&row, 2)?);
        Ok(Self { number, has_space, version: version.map(i64::cast_unsigned), row })
    }
}

impl FoundRow {
    /// The row's bytes; `None` if there is no row.
    pub(crate) fn body(&self) -> Option<&[u8]> {
        self.row.try_get(3).ok().flatten()
    }
}

impl RequestKind for PointReads {
    type Request = RowKey;
    type Answer = FoundRow;

    const LIMITS: Limits = Limits {
        name: "reads",
        running_freely: 2,
        enough: 32,
        group_max: 256,
        group_bytes_max: usize::MAX,
        waiting_max: 20_000,
        waiting_bytes_max: usize::MAX,
    };
    const KEEP: Keep = Keep::WhileIdle;

    fn writes(_: &RowKey) -> usize {
        0
    }

    fn shares_group(_: &RowKey, _: &RowKey) -> bool {
        true
    }

    fn retry(_: &Failure) -> Retry {
        Retry::Again { attempts_max: 3 }
    }

    async fn send(connection: &Connection, group: &[&RowKey]) -> Result<Vec<FoundRow>, Failure> {
        let spaces: Vec<i64> = group.iter().map(|key| key.space).collect();
        let get = GetRows {
            numbers: (0..).take(group.len()).collect(),
            distinct_spaces: distinct(&spaces),
            spaces,
            pks: group.iter().map(|key| key.pk.as_slice()).collect(),
            rks: group.iter().map(|key| key.rk.as_slice()).collect(),
        };
        in_order(connection.query(&get).await?, group.len())
    }
}

impl Gather<PointReads> {
    /// Looks up one key.
    pub(crate) async fn get(&self, space: i64, pk: Vec<u8>, rk: Vec<u8>) -> Result<FoundRow, Fault> {
        self.request(RowKey { space, pk, rk }).await.map_err(Failure::into_unavailable)
    }
}

/// Looks up several rows of a partition at one moment, in a statement of their own.
pub(crate) async fn get_together(
    pool: &Arc<Pool>,
    space: i64,
    pk: &[u8],
    rks: &[Vec<u8>],
) -> Result<Vec<FoundRow>, Fault> {
    let get = GetRows {
        numbers: (0..).take(rks.len()).collect(),
        spaces: vec![space; rks.len()],
        pks: vec![pk; rks.len()],
        rks: rks.iter().map(Vec::as_slice).collect(),
        distinct_spaces: vec![space],
    };
    Ok(in_order(pool.ask(&get).await?, rks.len())?)
}

/// The rows in the order of their numbers, one for each key.
fn in_order(mut found: Vec<FoundRow>, count: usize) -> Result<Vec<FoundRow>, Failure> {
    found.sort_by_key(|found| found.number);
    if found.len() != count {
        return Err(Failure::Refused(format!("{} rows in the answer for {count} keys", found.len())));
    }
    Ok(found)
}

/// The numbers in order, without repeats.
pub(crate) fn distinct(numbers: &[i64]) -> Vec<i64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
