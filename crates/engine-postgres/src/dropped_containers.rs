//! Dropped containers: their rows point to bytes in blob storage, so they are kept until one server has reclaimed those
//! bytes. The job for each container is a row of `larimar_job`, which the drop itself inserts.

use crate::connection::Connection;
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::pool::PooledConnection;
use crate::statements::jobs::{DroppedContainers, DroppedRows, ReleaseLease, TakeDroppedContainer};
use crate::statements::pages::PageRow;
use larimar_engine::{Fault, Position, ReadError, RowRef, SpaceId};

impl Parts {
    /// Claims the first dropped container after `after` that no other server works on.
    pub(crate) async fn claim_dropped(&self, after: SpaceId) -> Result<Option<SpaceId>, Fault> {
        let pooled = self.pool.get().await?;
        let claimed = claim(&pooled, self.dropped_owner, after).await;
        settled(pooled, claimed)
    }

    /// Visits rows of a dropped container.
    pub(crate) async fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        mut visit: impl FnMut(RowRef<'_>) + Send,
    ) -> Result<Option<Position>, ReadError> {
        let pooled = self.pool.get().await?;
        let rows = read(&pooled, self.dropped_owner, space, from).await;
        let Some(rows) = settled(pooled, rows)? else { return Err(ReadError::SpaceGone) };
        let (mut partition, mut row_text) = (String::new(), String::new());
        for row in &rows {
            visit_row(row, &mut partition, &mut row_text, &mut visit)?;
        }
        let is_end = (rows.len() as i64) < ROWS_MAX;
        // No row is between a row key and that key followed by a zero.
        Ok((!is_end).then(|| Position::new(partition, row_text + "\0")))
    }

    /// Ends the job of a dropped container, so that its rows are deleted.
    pub(crate) async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        let pooled = self.pool.get().await?;
        let forgotten = pooled.execute(&ReleaseLease { name: &name(space), owner: self.dropped_owner }).await;
        settled(pooled, forgotten).map(drop)
    }
}

async fn claim(connection: &Connection, owner: i64, after: SpaceId) -> Result<Option<SpaceId>, Failure> {
    let (from, to) = (name(SpaceId(after.0 + 1)), END.as_bytes());
    for (found,) in connection.query(&DroppedContainers { first: &from, end: to, owner }).await? {
        if take(connection, &found, owner).await?
            && let Some(space) = space_of(&found)
        {
            return Ok(Some(space));
        }
    }
    Ok(None)
}

async fn take(connection: &Connection, name: &[u8], owner: i64) -> Result<bool, Failure> {
    let taken = connection.query_first(&TakeDroppedContainer { name, owner, ticks: CLAIM_TICKS }).await?;
    Ok(taken.is_some())
}

async fn read(
    connection: &Connection,
    owner: i64,
    space: SpaceId,
    from: &Position,
) -> Result<Option<Vec<PageRow>>, Failure> {
    if !take(connection, &name(space), owner).await? {
        return Ok(None);
    }
    let (pk, rk) = (key::partition(space, &from.partition), key::row(&from.row));
    let end_pk = key::space_end(space);
    connection.query(&DroppedRows { count: ROWS_MAX, pk: &pk, rk: &rk, end_pk: &end_pk }).await.map(Some)
}

fn visit_row(
    row: &PageRow,
    partition: &mut String,
    row_text: &mut String,
    visit: &mut impl FnMut(RowRef<'_>),
) -> Result<(), Failure> {
    key::read_partition(row.pk()?, partition)?;
    key::read_row(row.rk()?, row_text)?;
    visit(RowRef { partition, row: row_text, version: row.version()?, body: row.body()?.unwrap_or_default() });
    Ok(())
}

fn settled<T>(pooled: PooledConnection, outcome: Result<T, Failure>) -> Result<T, Fault> {
    match outcome {
        Ok(value) => Ok(value),
        Err(failure) => {
            if failure.ends_connection() {
                pooled.close();
            }
            Err(failure.into_unavailable())
        }
    }
}

/// The name of the job, as `dropped_name!` in `statements.rs` spells it.
fn name(space: SpaceId) -> Vec<u8> {
    format!("{START}{:020}", space.0).into_bytes()
}

fn space_of(name: &[u8]) -> Option<SpaceId> {
    std::str::from_utf8(name).ok()?.strip_prefix(START)?.parse().ok().map(SpaceId)
}

const START: &str = "container ";
/// The first name after those.
const END: &str = "container!";
/// How long a job is claimed: a minute.
const CLAIM_TICKS: i64 = 600_000_000;
/// Rows per statement: some megabytes at most.
const ROWS_MAX: i64 = 256;
