//! The contract between the services and the engines.
//!
//! An engine keeps spaces (a table is one) of rows in the order of their keys, and applies conditional
//! batches to one partition of one space, all or nothing, durable when acknowledged. Keys are text and order
//! by UTF-16 code units; how they are encoded is the engine's business. Nothing is locked between calls; what
//! one page reads is read from one [`Snapshot`]. Every engine passes the suite in `testkit`.

use crate::error::{Fault, ReadError, Reject, WriteError};
use crate::histogram::HistogramSnapshot;
use crate::queue::Messages;
use crate::snapshot::{Reads, Snapshot};
use larimar_model::{Timestamp, utf16};
use std::cmp::Ordering;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

/// A store of ordered rows, and of the messages of queues.
pub trait Engine: Messages {
    /// Whether other processes may change the store. [`Engine::recent_space`] is then up to a second old; an operation on
    /// the number of a dropped space is refused at once.
    const IS_SHARED: bool = false;

    /// The rows at one moment, for several reads.
    type Snapshot: Snapshot;

    /// Opens a snapshot that shows every write acknowledged before the call. What it is opened for takes until `deadline`
    /// at most; an engine with too many open ones waits until then, and refuses with [`Fault::Unavailable`].
    fn snapshot(&self, reads: Reads, deadline: Instant) -> impl Future<Output = Result<Self::Snapshot, Fault>> + Send;

    /// Reads one row, linearizable, and hands it to `visit` without copying it.
    fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> impl Future<Output = Result<R, ReadError>> + Send;

    /// Hands the rows of a range to `visit` in key order, from one snapshot, until the range, the budget,
    /// the visitor or a bound of the engine on bytes ends it. Returns where to resume, or nothing when the range
    /// is exhausted.
    fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> impl Future<Output = Result<Option<Position>, ReadError>> + Send {
        async move { self.snapshot(Reads::One, budget.deadline).await?.scan(space, range, budget, visit).await }
    }

    /// Applies operations on distinct rows of one partition: all or nothing, isolated, durable on `Ok`.
    /// Conditions are checked in order. Returns a version for each operation, which is that of the row it put;
    /// a version is greater than that of the row it replaces and than every one that the row had before the call,
    /// and not less than `now` unless the engine has a clock of its own, as one that is shared must.
    fn apply(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Timestamp>, WriteError>> + Send {
        self.apply_with(space, partition, ops, &[], now)
    }

    /// As [`Engine::apply`]; stores and removes rows of another partition of the space in the same commit, such as those
    /// of an index. There is at least one operation, and the rows beside it are distinct. A row beside is written
    /// whatever is there, so it must belong to this partition: no call on another partition writes it.
    fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Timestamp>, WriteError>> + Send;

    /// Stores rows exactly as they are, with their versions, over what is there; durable on `Ok`. This is for
    /// copies of a store: nothing else may write to the space meanwhile.
    fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> impl Future<Output = Result<(), WriteError>> + Send;

    /// The accounts that have a space, in order.
    fn accounts(&self) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;

    /// Creates a space; `None` if there is one of this name. Its number was never used before.
    fn create_space(
        &self,
        name: SpaceName<'_>,
        meta: &[u8],
    ) -> impl Future<Output = Result<Option<SpaceId>, Fault>> + Send;

    /// Looks a space up as it is now: every change that was acknowledged before the call is seen.
    fn space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<Option<Space>, Fault>> + Send;

    /// Looks a space up as it was at most a second ago, usually without a round trip. `None` is current: the space does
    /// not exist now. The answer may allow a request, but not refuse one ([`decide_on_space`](crate::decide_on_space)),
    /// and an operation that finds the space gone is repeated ([`find_replacement`](crate::find_replacement)).
    fn recent_space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<Option<Space>, Fault>> + Send {
        self.space(name)
    }

    /// Lists the spaces of an account from a name on, in the order of their names, at most `max`.
    fn list_spaces(
        &self,
        from: SpaceName<'_>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<(String, Space)>, Fault>> + Send;

    /// Replaces a space's meta bytes if they still are the expected ones.
    fn change_space(
        &self,
        name: SpaceName<'_>,
        expected: &[u8],
        meta: &[u8],
    ) -> impl Future<Output = Result<Changed, Fault>> + Send;

    /// Drops a space with all its rows, at a cost that does not depend on them; `false` if there is none.
    /// From the acknowledgement on no write to its number succeeds. The storage is reclaimed later; that of a container
    /// not before [`Engine::forget_dropped`], because its rows lead to bytes outside of the engine.
    fn drop_space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Takes up the first dropped container after a number; nothing if there is none, or if other servers have taken up
    /// all of them. It is the caller's for a minute, and for a minute more with each [`Engine::read_dropped`].
    fn claim_dropped(&self, after: SpaceId) -> impl Future<Output = Result<Option<SpaceId>, Fault>> + Send;

    /// Hands rows of a dropped container that the caller has taken up to `visit`: from a place on, in key order, a bounded
    /// number of them. Returns where to go on, or nothing at the end; [`ReadError::SpaceGone`] if it is not the caller's.
    fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        visit: impl FnMut(RowRef<'_>) + Send,
    ) -> impl Future<Output = Result<Option<Position>, ReadError>> + Send;

    /// Gives up the rows of a dropped container that the caller has taken up: they lead to nothing any more.
    fn forget_dropped(&self, space: SpaceId) -> impl Future<Output = Result<(), Fault>> + Send;

    /// The time that the store goes by, at some moment of the call: for everything that is judged by time and that two
    /// servers must judge alike, such as leases. An engine of one process goes by its caller's clock, which is `caller`; a
    /// shared one by the clock of its database, whatever time its caller thinks it is. That clock is asked rarely enough
    /// that a call usually costs no round trip.
    fn now(&self, caller: Timestamp) -> impl Future<Output = Result<Moment, Fault>> + Send {
        async move { Ok(Moment::exactly(caller)) }
    }

    /// As [`Engine::drop_space`], if the space's meta bytes still are the expected ones.
    fn drop_space_if(
        &self,
        name: SpaceName<'_>,
        expected: &[u8],
    ) -> impl Future<Output = Result<Changed, Fault>> + Send;

    /// Figures for the operator.
    fn statistics(&self) -> Statistics;

    /// `Ok` while the engine takes writes.
    fn ready(&self) -> Result<(), Fault>;
}

/// A time of the store's clock, as well as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The clock shows at least this. Whether something has ended is judged by it: nothing ends too early.
    pub earliest: Timestamp,
    /// The clock shows at most this. Ends of spans that begin now are counted from it: no span is too short.
    pub latest: Timestamp,
}

impl Moment {
    /// A time that is known exactly.
    #[must_use]
    pub const fn exactly(time: Timestamp) -> Self {
        Self { earliest: time, latest: time }
    }
}

/// The number of a space. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u64);

impl SpaceId {
    /// The space of the service's own rows. It always exists.
    pub const SYSTEM: Self = Self(0);
}

/// What a space is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceKind {
    /// A table of the Table service.
    Table,
    /// A queue of the Queue service.
    Queue,
    /// A container of the Blob service.
    Container,
}

/// What became of a change to a space under the condition of its meta bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was made.
    Yes,
    /// The bytes are other ones than expected; the next look at the space finds them.
    Other,
    /// There is no such space.
    Missing,
}

/// The name of a space within an account. Names are compared byte by byte: fold case before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceName<'a> {
    /// The account.
    pub account: &'a str,
    /// What the space is used for.
    pub kind: SpaceKind,
    /// Its name among those of its kind.
    pub name: &'a str,
}

/// A space that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its number.
    pub id: SpaceId,
    /// Bytes that the service keeps with it.
    pub meta: Arc<[u8]>,
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

/// A place in the order of a space's rows; no row need be there.
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
    /// The first place inside.
    pub start: Position,
    /// The first place after it; `None` for the end of the space.
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
    /// What was written.
    pub body: &'a [u8],
}

/// What a scan does after a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on with the next row.
    Continue,
    /// Go on with the next row after other tasks had their turn: the visitor has worked for long.
    Pause,
    /// End, and resume at the row just visited.
    StopHere,
}

/// How much work a scan may do before it returns.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Rows to visit at most.
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

/// A row of another partition that is written together with a batch, without a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside<'a> {
    /// The partition; one for all rows of a call.
    pub partition: &'a str,
    /// The row.
    pub row: &'a str,
    /// The bytes to store; nothing to remove the row.
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
    /// Stores what this makes of the bytes that are there. Pure; may run more than once.
    Edit(&'a Edit<'a>),
    /// Removes the row.
    Delete,
    /// Nothing: only the condition counts.
    Check,
}

/// Makes new bytes of a row's old ones, or refuses.
pub type Edit<'a> = dyn Fn(Option<&[u8]>) -> Result<Vec<u8>, Reject> + Send + Sync + 'a;

/// Figures of an engine.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Writes per commit.
    pub commit_writes: HistogramSnapshot,
    /// Seconds per sync.
    pub sync_seconds: HistogramSnapshot,
    /// Bytes on disk, about.
    pub store_bytes: u64,
    /// Dropped spaces whose storage is not reclaimed yet.
    pub dropped_spaces: u64,
    /// Room on the disk of an engine that has one of its own.
    pub disk: Option<DiskRoom>,
    /// The last version given to a row, by an engine whose versions all come from one clock.
    pub last_version: Option<Timestamp>,
}

/// Room on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that must stay free: with fewer, only writes that free space are taken.
    pub needed: u64,
}

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
    /// The place of a row.
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

    /// The rows from one place to another, both included; an upper place without a row is a whole partition.
    #[must_use]
    pub fn between(lower: Option<(&str, &str)>, upper: Option<(&str, Option<&str>)>) -> Self {
        let (partition, row) = lower.unwrap_or_default();
        let end = upper.map(|(partition, row)| match row {
            Some(row) => Position::new(partition, successor(row)),
            None => Position::new(successor(partition), ""),
        });
        Self { start: Position::new(partition, row), end }
    }

    /// The one row inside, if the range was made for one.
    #[must_use]
    pub fn as_point(&self) -> Option<(&str, &str)> {
        let Position { partition, row } = &self.start;
        let end = self.end.as_ref().filter(|end| end.partition == *partition)?;
        let is_point = end.row.strip_prefix(row.as_str()) == Some("\0");
        is_point.then_some((partition, row))
    }

    /// Whether nothing lies inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// Whether a place lies inside.
    #[must_use]
    pub fn contains(&self, place: &Position) -> bool {
        self.start <= *place && self.end.as_ref().is_none_or(|end| place < end)
    }

    /// What lies inside both.
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

/// The text that directly follows another: no text lies between them.
#[must_use]
pub(crate) fn successor(text: &str) -> String {
    let mut next = String::with_capacity(text.len() + 1);
    next.push_str(text);
    next.push('\0');
    next
}
