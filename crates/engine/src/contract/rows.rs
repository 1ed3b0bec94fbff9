//! Rows: read one by one or in key order, and changed by conditional batches. Reads of several keys use a [`Snapshot`].

use super::spaces::SpaceId;
use crate::error::{EditError, Fault, ReadError, Reject, WriteError};
use crate::snapshot::{Reads, Snapshot};
use larimar_model::{Timestamp, utf16};
use std::cmp::Ordering;
use std::future::Future;
use std::time::Instant;

/// The rows of a store.
pub trait Rows: Send + Sync + 'static {
    /// The rows at one moment, for several reads.
    type Snapshot: Snapshot;

    /// Opens a snapshot that shows every write acknowledged before the call. It is used until `deadline` at most; an engine
    /// with too many open snapshots waits until then and answers [`Fault::Unavailable`].
    fn snapshot(&self, reads: Reads, deadline: Instant) -> impl Future<Output = Result<Self::Snapshot, Fault>> + Send;

    /// Reads one row, linearizable, and passes it to `visit` without copying it.
    fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> impl Future<Output = Result<R, ReadError>> + Send;

    /// Passes the rows of a range to `visit` in key order, from one snapshot, until the range, the budget, the visitor or
    /// the engine's bound on bytes ends it. Returns where to resume, or `None` at the end of the range.
    fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> impl Future<Output = Result<Option<Position>, ReadError>> + Send {
        async move { self.snapshot(Reads::One, budget.deadline).await?.scan(space, range, budget, visit).await }
    }

    /// Applies operations on distinct rows of one partition: all or nothing, isolated, durable on `Ok`. Conditions are
    /// checked in order. Returns a version for each operation, which is that of the row it put. A version is greater than
    /// that of the row it replaces and than every version the row had before the call, and not less than `now` unless the
    /// engine has a clock of its own, as a shared one must.
    fn apply(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Timestamp>, WriteError>> + Send {
        self.apply_with(space, partition, ops, &[], now)
    }

    /// As [`Rows::apply`]; stores and removes rows of another partition of the space, such as those of an index, in the same
    /// commit. There is at least one operation, and the rows beside it are distinct. A row beside is written
    /// unconditionally, so it must belong to this partition: no call on another partition writes it.
    fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Timestamp>, WriteError>> + Send;

    /// Changes one row by its present bytes, isolated and durable on `Ok`: `edit` computes the new bytes and a value.
    /// Returns the value of the run that was committed. `edit` is pure and may run more than once.
    fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> impl Future<Output = Result<T, EditError<R>>> + Send;

    /// Stores rows exactly as they are, with their versions, replacing existing ones; durable on `Ok`. Only for copies of a
    /// store: nothing else may write to the space meanwhile.
    fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> impl Future<Output = Result<(), WriteError>> + Send;
}

/// The key of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key<'a> {
    /// The space.
    pub space: SpaceId,
    /// The partition within the space.
    pub partition: &'a str,
    /// The row within the partition.
    pub row: &'a str,
}

/// A position in the order of a space's rows; there may be no row at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The partition.
    pub partition: String,
    /// The row within it; empty for the partition's start.
    pub row: String,
}

/// The rows from `start` up to, but without, `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first position inside.
    pub start: Position,
    /// The first position after it; `None` for the end of the space.
    pub end: Option<Position>,
}

/// A stored row, borrowed from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef<'a> {
    /// The partition.
    pub partition: &'a str,
    /// The row within it.
    pub row: &'a str,
    /// When it was written.
    pub version: Timestamp,
    /// Its bytes.
    pub body: &'a [u8],
}

/// A row that was read and is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRow {
    /// The partition.
    pub partition: String,
    /// The row within it.
    pub row: String,
    /// When it was written.
    pub version: Timestamp,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl OwnedRow {
    /// A copy of a row.
    #[must_use]
    pub fn of(row: &RowRef<'_>) -> Self {
        let (partition, name) = (row.partition.to_owned(), row.row.to_owned());
        Self { partition, row: name, version: row.version, body: row.body.to_vec() }
    }

    /// The row.
    #[must_use]
    pub fn as_ref(&self) -> RowRef<'_> {
        RowRef { partition: &self.partition, row: &self.row, version: self.version, body: &self.body }
    }
}

/// What a scan does after a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next row.
    Continue,
    /// Continue with the next row after yielding to other tasks: the visitor has worked for long.
    Pause,
    /// Stop, and resume at the row just visited.
    StopHere,
}

/// How much work a scan may do before it returns.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Maximum number of rows to visit.
    pub rows_max: usize,
    /// When to return.
    pub deadline: Instant,
}

/// One operation of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// The row.
    pub row: &'a str,
    /// The condition.
    pub expect: Expect,
    /// What to do if it holds.
    pub act: Act<'a>,
}

/// A row of another partition that is written unconditionally together with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside<'a> {
    /// The partition; one for all rows of a call.
    pub partition: &'a str,
    /// The row.
    pub row: &'a str,
    /// The bytes to store; `None` to remove the row.
    pub body: Option<&'a [u8]>,
}

/// The condition of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// None.
    Any,
    /// There is no such row.
    Absent,
    /// There is such a row.
    Present,
    /// The row has this version.
    Version(Timestamp),
}

/// What an operation does.
#[derive(Clone, Copy)]
pub enum Act<'a> {
    /// Stores these bytes.
    Put(&'a [u8]),
    /// Stores the bytes that a function computes from the present ones. Pure; may run more than once.
    Edit(&'a Edit<'a>),
    /// Removes the row.
    Delete,
    /// Nothing: only checks the condition.
    Check,
}

/// Computes a row's new bytes from its present ones, or refuses.
pub type Edit<'a> = dyn Fn(Option<&[u8]>) -> Result<Vec<u8>, Reject> + Send + Sync + 'a;

impl Expect {
    /// Whether the condition holds for a row of this version, or for no row.
    #[must_use]
    pub fn admits(self, found: Option<Timestamp>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => found.is_none(),
            Self::Present => found.is_some(),
            Self::Version(version) => found == Some(version),
        }
    }
}

impl Position {
    /// The position of a row.
    #[must_use]
    pub fn new(partition: impl Into<String>, row: impl Into<String>) -> Self {
        Self { partition: partition.into(), row: row.into() }
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        utf16::compare(&self.partition, &other.partition).then_with(|| utf16::compare(&self.row, &other.row))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl KeyRange {
    /// Every row of a space.
    #[must_use]
    pub fn all() -> Self {
        Self { start: Position::new("", ""), end: None }
    }

    /// The rows of one partition.
    #[must_use]
    pub fn partition(partition: &str) -> Self {
        Self { start: Position::new(partition, ""), end: Some(Position::new(successor(partition), "")) }
    }

    /// One row.
    #[must_use]
    pub fn point(partition: &str, row: &str) -> Self {
        Self { start: Position::new(partition, row), end: Some(Position::new(partition, successor(row))) }
    }

    /// The rows from one position to another, both included; an upper position without a row is a whole partition.
    #[must_use]
    pub fn between(lower: Option<(&str, &str)>, upper: Option<(&str, Option<&str>)>) -> Self {
        let (partition, row) = lower.unwrap_or_default();
        let end = upper.map(|(partition, row)| match row {
            Some(row) => Position::new(partition, successor(row)),
            None => Position::new(successor(partition), ""),
        });
        Self { start: Position::new(partition, row), end }
    }

    /// The only row inside, if the range was made for one row.
    #[must_use]
    pub fn as_point(&self) -> Option<(&str, &str)> {
        let Position { partition, row } = &self.start;
        let end = self.end.as_ref().filter(|end| end.partition == *partition)?;
        let is_point = end.row.strip_prefix(row.as_str()) == Some("\0");
        is_point.then_some((partition, row))
    }

    /// Whether no position is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// Whether a position is inside.
    #[must_use]
    pub fn contains(&self, position: &Position) -> bool {
        self.start <= *position && self.end.as_ref().is_none_or(|end| position < end)
    }

    /// The positions inside both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let start = self.start.clone().max(other.start.clone());
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Self { start, end }
    }
}

impl std::fmt::Debug for Act<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Put(body) => write!(f, "Put({} bytes)", body.len()),
            Self::Edit(_) => f.write_str("Edit"),
            Self::Delete => f.write_str("Delete"),
            Self::Check => f.write_str("Check"),
        }
    }
}

/// The text that directly follows another in key order.
#[must_use]
pub(crate) fn successor(text: &str) -> String {
    let mut next = String::with_capacity(text.len() + 1);
    next.push_str(text);
    next.push('\0');
    next
}
