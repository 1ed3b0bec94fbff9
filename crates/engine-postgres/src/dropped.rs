//! Dropped containers: their rows lead to bytes elsewhere, so they are kept until these are reclaimed, by one server at a
//! time. The work on each is a row of `larimar_job`, made by the drop itself.

use crate::connection::Connection;
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::pool::Lent;
use crate::statements::jobs::{DroppedContainers, DroppedRows, ReleaseLease, TakeDroppedContainer};
use crate::statements::pages::PageRow;
use larimar_engine::{Fault, Position, ReadError, RowRef, SpaceId};

impl Parts {
    /// Takes up a dropped container after a number.
    pub(crate) async fn claim_dropped(&self, after: SpaceId) -> Result<Option<SpaceId>, Fault> {
        let lent = self.pool.lend().await?;
        let claimed = claim(&lent, self.dropped_owner, after).await;
        settled(lent, claimed)
    }

    /// Visits rows of a dropped container.
    pub(crate) async fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        mut visit: impl FnMut(RowRef<'_>) + Send,
    ) -> Result<Option<Position>, ReadError> {
        let lent = self.pool.lend().await?;
        let rows = read(&lent, self.dropped_owner, space, from).await;
        let Some(rows) = settled(lent, rows)? else { return Err(ReadError::SpaceGone) };
        let (mut partition, mut row_text) = (String::new(), String::new());
        for row in &rows {
            visit_row(row, &mut partition, &mut row_text, &mut visit)?;
        }
        let is_end = (rows.len() as i64) < ROWS_MAX;
        // Nothing lies between a row and its name with a zero behind it.
        Ok((!is_end).then(|| Position::new(partition, row_text + "\0")))
    }

    /// Lets the rows of a dropped container go.
    pub(crate) async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        let lent = self.pool.lend().await?;
        let forgotten = lent.execute(&ReleaseLease { name: &name(space), owner: self.dropped_owner }).await;
        settled(lent, forgotten).map(drop)
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

fn settled<T>(lent: Lent, outcome: Result<T, Failure>) -> Result<T, Fault> {
    match outcome {
        Ok(value) => Ok(value),
        Err(failure) => {
            if failure.ends_connection() {
                lent.give_up();
            }
            Err(failure.into_unavailable())
        }
    }
}

/// The name of the work, as `statements.rs` spells it.
fn name(space: SpaceId) -> Vec<u8> {
    format!("{START}{:020}", space.0).into_bytes()
}

fn space_of(name: &[u8]) -> Option<SpaceId> {
    std::str::from_utf8(name).ok()?.strip_prefix(START)?.parse().ok().map(SpaceId)
}

const START: &str = "container ";
/// The first text that does not begin so.
const END: &str = "container!";
/// A minute.
const CLAIM_TICKS: i64 = 600_000_000;
/// Rows that are read at once: some megabytes at most.
const ROWS_MAX: i64 = 256;
