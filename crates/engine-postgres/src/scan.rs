//! Scans: one statement and so one snapshot, its rows visited as they arrive.
//!
//! The database sends on while rows are visited, so neither waits for the other, and no transaction is held open. How
//! many rows are asked for follows from the budget and from how large rows were of late, which bounds the bytes.

use crate::connection::{Connection, column};
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::pool::Lent;
use crate::statements::{HAS_SPACE, SLICE, TAIL, TAIL_AND_MORE, TAIL_AND_MORE_AND_HEAD};
use futures_util::{FutureExt, StreamExt};
use larimar_engine::{Budget, Fault, Flow, KeyRange, Position, ReadError, RowRef, SpaceId};
use larimar_model::Timestamp;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// How large rows were of late, in bytes.
#[derive(Debug)]
pub(crate) struct RowSize(AtomicUsize);

impl Default for RowSize {
    fn default() -> Self {
        Self(AtomicUsize::new(1024))
    }
}

impl RowSize {
    /// How many rows may be asked for.
    fn rows(&self, budget: Budget) -> usize {
        let fitting = SCAN_BYTES / self.0.load(Ordering::Relaxed).max(1);
        budget.rows_max.max(1).min(fitting.max(ROWS_MIN))
    }

    fn learn(&self, rows: usize, bytes: usize) {
        let Some(size) = bytes.checked_div(rows) else { return };
        let last = self.0.load(Ordering::Relaxed);
        // Larger ones count at once, smaller ones slowly.
        self.0.store(size.max(last - last / 8).max(64), Ordering::Relaxed);
    }
}

impl Parts {
    /// Visits the rows of a range.
    pub(crate) async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let number = i64::try_from(space.0).map_err(|_| ReadError::SpaceGone)?;
        let arms = Arms::new(space, range);
        for attempt in 1.. {
            let mut scan =
                Scan { rows_max: self.row_size.rows(budget), deadline: budget.deadline, visited: 0, bytes: 0 };
            let lent = self.pool.lend().await?;
            let outcome = scan.run(&lent, number, &arms, &mut visit).await;
            self.row_size.learn(scan.visited, scan.bytes);
            match outcome {
                Ok(Some(resume)) => return Ok(resume),
                Ok(None) => return Err(ReadError::SpaceGone),
                Err(failure) => {
                    end(lent, &failure);
                    // Rows that were visited cannot be taken back.
                    if scan.visited > 0 || attempt == ATTEMPTS_MAX || matches!(failure, Failure::Refused(_)) {
                        return Err(ReadError::Fault(failure.into_unavailable()));
                    }
                }
            }
        }
        unreachable!("the last attempt returns")
    }
}

fn end(lent: Lent<'_>, failure: &Failure) {
    if failure.ends_connection() {
        lent.give_up();
    }
}

/// One scan under way.
struct Scan {
    rows_max: usize,
    deadline: Instant,
    visited: usize,
    bytes: usize,
}

impl Scan {
    /// Returns where to resume; nothing at all if the space is gone.
    async fn run(
        &mut self,
        connection: &Connection,
        space: i64,
        arms: &Arms,
        visit: &mut (impl FnMut(RowRef<'_>) -> Flow + Send),
    ) -> Result<Option<Option<Position>>, Failure> {
        let has_space = connection.prepared(HAS_SPACE).await?;
        let asked: [&(dyn ToSql + Sync); 1] = [&space];
        let has_space = connection.within(connection.client().query(&has_space, &asked));
        if arms.is_empty() {
            return Ok((!has_space.await?.is_empty()).then_some(None));
        }
        let statement = connection.prepared(arms.sql()).await?;
        let limit = i64::try_from(self.rows_max).unwrap_or(i64::MAX - 1) + 1;
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&limit];
        parameters.extend(arms.bounds.iter().map(|bound| bound as &(dyn ToSql + Sync)));
        let rows = connection.within(connection.client().query_raw(&statement, parameters));
        // Both are sent before the first is answered; in this order, since rows nobody takes yet hold up what follows.
        let (has_space, rows) = futures_util::future::join(has_space, rows).await;
        if has_space?.is_empty() {
            return Ok(None);
        }
        let mut rows = pin!(rows?);
        let (mut partition, mut row_text, mut last_pk) = (String::new(), String::new(), Vec::new());
        loop {
            // Most rows are there already, and need no look at the clock.
            let next = match rows.next().now_or_never() {
                Some(next) => next.transpose().map_err(|error| Failure::of(&error))?,
                None => connection.within(async { rows.next().await.transpose() }).await?,
            };
            let Some(row) = next else { return Ok(Some(None)) };
            let (pk, rk): (&[u8], &[u8]) = (column(&row, 0)?, column(&row, 1)?);
            if pk != last_pk {
                key::read_partition(pk, &mut partition).map_err(damaged)?;
                last_pk.clear();
                last_pk.extend_from_slice(pk);
            }
            key::read_row(rk, &mut row_text).map_err(damaged)?;
            let flow = if self.is_spent() { Flow::StopHere } else { self.visit(&row, &partition, &row_text, visit)? };
            match flow {
                Flow::Continue => {}
                Flow::Pause => tokio::task::yield_now().await,
                Flow::StopHere => return Ok(Some(Some(Position::new(partition, row_text)))),
            }
        }
    }

    fn visit(
        &mut self,
        row: &Row,
        partition: &str,
        row_text: &str,
        visit: &mut impl FnMut(RowRef<'_>) -> Flow,
    ) -> Result<Flow, Failure> {
        let version: i64 = column(row, 2)?;
        let body: &[u8] = column(row, 3)?;
        self.visited += 1;
        self.bytes += body.len() + partition.len() + row_text.len();
        let version = Timestamp::from_ticks(version.cast_unsigned());
        Ok(visit(RowRef { partition, row: row_text, version, body }))
    }

    fn is_spent(&self) -> bool {
        let looks = self.visited == 1 || self.visited.is_multiple_of(ROWS_PER_LOOK);
        self.visited > 0
            && (self.visited >= self.rows_max
                || self.bytes >= SCAN_BYTES_MAX
                || looks && Instant::now() >= self.deadline)
    }
}

/// A range as index ranges that every database reads well: the rest of the first partition, the partitions between,
/// the beginning of the last.
struct Arms {
    shape: Shape,
    /// Parameters from `$2` on; `$1` is the limit.
    bounds: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Empty,
    /// Rows of one partition, from one on: pk, first rk.
    Tail,
    /// Rows of one partition between two: pk, first rk, rk after the last.
    Slice,
    /// The rest of one partition and all up to another: pk, first rk, pk after the last.
    TailAndMore,
    /// That, and the beginning of the last: pk, first rk, last pk, rk after the last.
    TailAndMoreAndHead,
}

impl Arms {
    fn new(space: SpaceId, range: &KeyRange) -> Self {
        if range.is_empty() {
            return Self { shape: Shape::Empty, bounds: Vec::new() };
        }
        let first = key::partition(space, &range.start.partition);
        let from = key::row(&range.start.row);
        let Some(end) = &range.end else {
            return Self { shape: Shape::TailAndMore, bounds: vec![first, from, key::space_end(space)] };
        };
        let last = key::partition(space, &end.partition);
        let to = key::row(&end.row);
        if first == last {
            return Self { shape: Shape::Slice, bounds: vec![first, from, to] };
        }
        // The text that follows another directly is that one and a zero: no partition lies between.
        let is_next = last.strip_prefix(first.as_slice()) == Some(&[0, 0]);
        match (is_next, to.is_empty()) {
            (true, true) => Self { shape: Shape::Tail, bounds: vec![first, from] },
            (_, true) => Self { shape: Shape::TailAndMore, bounds: vec![first, from, last] },
            (_, false) => Self { shape: Shape::TailAndMoreAndHead, bounds: vec![first, from, last, to] },
        }
    }

    const fn is_empty(&self) -> bool {
        matches!(self.shape, Shape::Empty)
    }

    const fn sql(&self) -> &'static str {
        match self.shape {
            Shape::Empty | Shape::Tail => TAIL,
            Shape::Slice => SLICE,
            Shape::TailAndMore => TAIL_AND_MORE,
            Shape::TailAndMoreAndHead => TAIL_AND_MORE_AND_HEAD,
        }
    }
}

fn damaged(fault: Fault) -> Failure {
    Failure::Refused(fault.to_string())
}

/// Bytes that a scan should ask for at most, and bytes after which it ends whatever it asked for.
const SCAN_BYTES: usize = 8 << 20;
const SCAN_BYTES_MAX: usize = 16 << 20;
const ROWS_MIN: usize = 16;
const ROWS_PER_LOOK: usize = 32;
const ATTEMPTS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(5);

    fn shape(range: &KeyRange) -> Shape {
        Arms::new(SPACE, range).shape
    }

    #[test]
    fn a_range_becomes_as_few_index_ranges_as_it_needs() {
        let to = |start: (&str, &str), end: (&str, &str)| KeyRange {
            start: Position::new(start.0, start.1),
            end: Some(Position::new(end.0, end.1)),
        };
        assert_eq!(shape(&KeyRange::all()), Shape::TailAndMore);
        assert_eq!(shape(&KeyRange::partition("p")), Shape::Tail);
        assert_eq!(shape(&KeyRange::point("p", "r")), Shape::Slice);
        assert_eq!(shape(&to(("p", "a"), ("p", "b"))), Shape::Slice);
        assert_eq!(shape(&to(("p", "a"), ("q", ""))), Shape::TailAndMore);
        assert_eq!(shape(&to(("p", "a"), ("q", "b"))), Shape::TailAndMoreAndHead);
        assert_eq!(shape(&to(("p", "a"), ("p\0", "b"))), Shape::TailAndMoreAndHead);
        assert_eq!(shape(&to(("q", ""), ("p", "b"))), Shape::Empty);
    }

    #[test]
    fn large_rows_are_asked_for_in_small_numbers() {
        let size = RowSize::default();
        let budget = Budget { rows_max: 4096, deadline: Instant::now() };
        assert_eq!(size.rows(budget), 4096);
        size.learn(10, 10 << 20);
        assert_eq!(size.rows(budget), ROWS_MIN);
        for _ in 0..100 {
            size.learn(1000, 100_000);
        }
        assert_eq!(size.rows(budget), 4096);
    }
}
