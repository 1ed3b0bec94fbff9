//! The rows of one statement, visited as they arrive.
//!
//! The database sends further rows while others are visited, so neither waits for the other. A visitor may stop and
//! later continue with the rows that are left.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::key;
use crate::statements::FromRow;
use crate::statements::pages::PageRow;
use futures_util::{FutureExt, StreamExt};
use larimar_engine::{Budget, Flow, Position, RowRef, SpaceId};
use std::pin::Pin;
use std::time::Instant;
use tokio_postgres::RowStream;

/// The rows of a statement.
pub(crate) struct Rows {
    space: SpaceId,
    end: Option<Position>,
    stream: Pin<Box<RowStream>>,
    /// How many rows the statement returns at most.
    limit: u64,
    /// How many rows have arrived.
    received: u64,
    /// The row that the visitor stopped at.
    stopped_at: Option<PageRow>,
    /// Whether the last row has arrived.
    is_at_end: bool,
    /// The keys of the last row.
    position: Position,
    last_pk: Vec<u8>,
    pub(crate) visited: u64,
    pub(crate) bytes: u64,
}

/// How a read ended.
pub(crate) enum PageEnd {
    /// All rows of the selection were visited.
    Exhausted,
    /// At this row, which was not visited.
    At(Position),
    /// The time is up and no further row has arrived: where the next one may be.
    Late(Position),
}

impl Rows {
    pub(crate) fn new(space: SpaceId, start: Position, end: Option<Position>, stream: RowStream, limit: u64) -> Self {
        Self {
            space,
            end,
            stream: Box::pin(stream),
            limit,
            received: 0,
            stopped_at: None,
            is_at_end: false,
            position: start,
            last_pk: Vec::new(),
            visited: 0,
            bytes: 0,
        }
    }

    /// Whether the next of these rows is the first of another read.
    pub(crate) fn continues_at(&self, space: SpaceId, start: &Position, end: Option<&Position>) -> bool {
        self.stopped_at.is_some() && self.space == space && self.position == *start && self.end.as_ref() == end
    }

    /// Whether no row is left on the connection.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Visits rows until the budget is spent or the visitor stops. After `late`, if given, it does not wait for rows.
    pub(crate) async fn visit(
        &mut self,
        connection: &Connection,
        budget: Budget,
        late: Option<Instant>,
        visit: &mut (impl FnMut(RowRef<'_>) -> Flow + Send),
    ) -> Result<PageEnd, Failure> {
        let mut visited = 0;
        loop {
            let row = match self.stopped_at.take() {
                Some(row) => row,
                None => match self.next(connection, late).await? {
                    Next::Row(row) => row,
                    Next::End if self.received < self.limit => return Ok(PageEnd::Exhausted),
                    Next::End => return Ok(PageEnd::At(self.after_last())),
                    Next::Late => return Ok(PageEnd::Late(self.after_last())),
                },
            };
            // The first row beyond the bound on bytes has no body.
            let Some(body) = row.body()? else { return Ok(PageEnd::At(self.position.clone())) };
            let Position { partition, row: row_key } = &self.position;
            let found = RowRef { partition, row: row_key, version: row.version()?, body };
            let flow = if is_spent(visited, budget) { Flow::StopHere } else { visit(found) };
            if flow == Flow::StopHere {
                self.stopped_at = Some(row);
                return Ok(PageEnd::At(self.position.clone()));
            }
            visited += 1;
            self.visited += 1;
            self.bytes += (body.len() + partition.len() + row_key.len()) as u64;
            if flow == Flow::Pause {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn next(&mut self, connection: &Connection, late: Option<Instant>) -> Result<Next, Failure> {
        // Most rows have arrived already and need no timer.
        let next = match self.stream.next().now_or_never() {
            Some(next) => next.transpose().map_err(|error| connection.failure(&error))?,
            None => {
                let stream = &mut self.stream;
                let answer = connection.within(async { stream.next().await.transpose() });
                match before(late, answer).await {
                    Some(answer) => answer?,
                    None => return Ok(Next::Late),
                }
            }
        };
        let Some(row) = next else {
            self.is_at_end = true;
            return Ok(Next::End);
        };
        self.received += 1;
        let row = PageRow::from_row(row)?;
        let pk = row.pk()?;
        if pk != self.last_pk {
            key::read_partition(pk, &mut self.position.partition)?;
            self.last_pk.clear();
            self.last_pk.extend_from_slice(pk);
        }
        key::read_row(row.rk()?, &mut self.position.row)?;
        Ok(Next::Row(row))
    }

    /// The first position after the last row that arrived, or the start of the rows.
    fn after_last(&self) -> Position {
        let mut position = self.position.clone();
        if self.received > 0 {
            position.row.push('\0');
        }
        position
    }
}

enum Next {
    Row(PageRow),
    End,
    Late,
}

/// The output of a future if it is ready before a time.
pub(crate) async fn before<T>(late: Option<Instant>, answer: impl Future<Output = T>) -> Option<T> {
    match late {
        Some(late) => tokio::time::timeout_at(late.into(), answer).await.ok(),
        None => Some(answer.await),
    }
}

/// Whether a read has to end: after at least one row, so that every read makes progress.
fn is_spent(visited: usize, budget: Budget) -> bool {
    let reads_clock = visited == 1 || visited.is_multiple_of(ROWS_PER_CLOCK_READ);
    visited > 0 && (visited >= budget.rows_max || reads_clock && Instant::now() >= budget.deadline)
}

const ROWS_PER_CLOCK_READ: usize = 32;
