//! Dropped containers: their rows lead to bytes elsewhere, so they are kept until these are reclaimed, by one server at a
//! time. The work on each is a row of `larimar_job`, made by the drop itself.

use crate::connection::{Connection, column};
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::pool::Lent;
use crate::statements::{KEPT, KEPT_ROWS, RELEASE, TAKE_KEPT};
use larimar_engine::{Fault, Position, ReadError, RowRef, SpaceId};
use larimar_model::Timestamp;
use tokio_postgres::Row;

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
            let visited = visit_row(row, &mut partition, &mut row_text, &mut visit);
            visited.map_err(Failure::into_unavailable)?;
        }
        let is_end = (rows.len() as i64) < ROWS_MAX;
        // Nothing lies between a row and its name with a zero behind it.
        Ok((!is_end).then(|| Position::new(partition, row_text + "\0")))
    }

    /// Lets the rows of a dropped container go.
    pub(crate) async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        let lent = self.pool.lend().await?;
        let forgotten = lent.execute(RELEASE, &[&name(space), &self.dropped_owner]).await;
        settled(lent, forgotten).map(drop)
    }
}

async fn claim(connection: &Connection, owner: i64, after: SpaceId) -> Result<Option<SpaceId>, Failure> {
    let (from, to) = (name(SpaceId(after.0 + 1)), END.as_bytes());
    for row in connection.query(KEPT, &[&from, &to, &owner]).await? {
        let found: &[u8] = column(&row, 0)?;
        if take(connection, found, owner).await?
            && let Some(space) = space_of(found)
        {
            return Ok(Some(space));
        }
    }
    Ok(None)
}

async fn take(connection: &Connection, name: &[u8], owner: i64) -> Result<bool, Failure> {
    Ok(!connection.query(TAKE_KEPT, &[&name, &owner, &CLAIM_TICKS]).await?.is_empty())
}

async fn read(
    connection: &Connection,
    owner: i64,
    space: SpaceId,
    from: &Position,
) -> Result<Option<Vec<Row>>, Failure> {
    if !take(connection, &name(space), owner).await? {
        return Ok(None);
    }
    let (pk, rk) = (key::partition(space, &from.partition), key::row(&from.row));
    connection.query(KEPT_ROWS, &[&ROWS_MAX, &pk, &rk, &key::space_end(space)]).await.map(Some)
}

fn visit_row(
    row: &Row,
    partition: &mut String,
    row_text: &mut String,
    visit: &mut impl FnMut(RowRef<'_>),
) -> Result<(), Failure> {
    let (pk, rk, version, body): (&[u8], &[u8], i64, &[u8]) =
        (column(row, 0)?, column(row, 1)?, column(row, 2)?, column(row, 3)?);
    let damaged = |fault: Fault| Failure::Refused(fault.to_string());
    key::read_partition(pk, partition).map_err(damaged)?;
    key::read_row(rk, row_text).map_err(damaged)?;
    visit(RowRef { partition, row: row_text, version: Timestamp::from_ticks(version.cast_unsigned()), body });
    Ok(())
}

fn settled<T>(lent: Lent, outcome: Result<T, Failure>) -> Result<T, Fault> {
    outcome.map_err(|failure| {
        if failure.ends_connection() {
            lent.give_up();
        }
        failure.into_unavailable()
    })
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
