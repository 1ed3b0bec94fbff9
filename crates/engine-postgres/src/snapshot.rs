//! Snapshots: a single statement is one, and so is a read-only transaction of several statements.
//!
//! A page that needs one statement is that statement, without a transaction. Any other page begins a transaction
//! together with its first statement, which costs no round trip, and keeps its connection until the page is done. Such
//! transactions lock nothing. Their number is bounded, so that other work finds connections, and so is their time.
//! However a page ends, its connection goes back to the pool only after the transaction has ended (`pool.rs`).

use crate::connection::Connection;
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::page_rows::{PageEnd, Rows, before};
use crate::page_statement::{PageBounds, Selection};
use crate::pool::{Leftover, PooledConnection, pause};
use crate::statements::spaces::HasSpace;
use futures_util::future::join;
use larimar_engine::{Budget, Fault, Flow, KeyRange, Position, ReadError, Reads, RowRef, Snapshot, SpaceId};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds the number of snapshots with a transaction.
#[derive(Debug)]
pub(crate) struct Snapshots(Arc<Semaphore>);

impl Snapshots {
    /// Some of the pooled connections stay free for work of one statement.
    pub(crate) fn new(connections: usize) -> Self {
        let others = (connections / 4).max(1);
        Self(Arc::new(Semaphore::new(connections.saturating_sub(others).max(1))))
    }

    async fn admit(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Fault> {
        // Without waiting first: a page whose deadline has passed is admitted if there is room.
        if let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() {
            return Ok(permit);
        }
        let permit = tokio::time::timeout_at(deadline.into(), Arc::clone(&self.0).acquire_owned()).await;
        let busy = || Fault::Unavailable("too many pages of several statements are being read".to_owned());
        permit.ok().and_then(Result::ok).ok_or_else(busy)
    }
}

/// The rows of a [`PostgresEngine`](crate::PostgresEngine) at one moment.
pub struct PostgresSnapshot {
    parts: Arc<Parts>,
    reads: Reads,
    deadline: Instant,
    admitted: Option<OwnedSemaphorePermit>,
    session: Option<Session>,
    /// How many statements were answered.
    statements: u32,
    has_visited: bool,
}

/// A connection that the snapshot keeps.
struct Session {
    pooled: PooledConnection,
    has_begun: bool,
    /// The last space that was found to exist.
    space: Option<SpaceId>,
    rows: Option<Rows>,
}

impl PostgresSnapshot {
    pub(crate) async fn open(parts: &Arc<Parts>, reads: Reads, deadline: Instant) -> Result<Self, Fault> {
        let admitted = match reads {
            Reads::One => None,
            Reads::Many => Some(parts.snapshots.admit(deadline).await?),
        };
        Ok(Self {
            parts: Arc::clone(parts),
            reads,
            deadline,
            admitted,
            session: None,
            statements: 0,
            has_visited: false,
        })
    }

    /// Reads a selection and returns where to resume.
    async fn read(
        &mut self,
        space: SpaceId,
        selection: Selection<'_>,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let number = key::number(space).ok_or(ReadError::SpaceGone)?;
        let Some(start) = selection.start() else {
            let found = self.parts.pool.ask(&HasSpace { space: number }).await?;
            return if found.is_empty() { Err(self.gone(space)) } else { Ok(None) };
        };
        let started = Instant::now();
        for attempt in 0.. {
            pause(attempt).await;
            if self.session.is_none() {
                self.session = Some(self.connect().await?);
            }
            let outcome = self.attempt(space, number, &start, selection, budget, &mut visit).await;
            match outcome {
                Ok(Some(PageEnd::Exhausted)) => return Ok(None),
                Ok(Some(PageEnd::At(place) | PageEnd::Late(place))) => return Ok(Some(place)),
                Ok(None) => return Err(self.gone(space)),
                Err(failure) => {
                    if let Some(session) = self.session.take().filter(|_| failure.ends_connection()) {
                        session.pooled.close();
                    }
                    // Another transaction would be another snapshot, and rows were visited already.
                    let is_final = self.has_visited || self.statements > 0 || matches!(failure, Failure::Refused(_));
                    if is_final || !self.parts.pool.has_time(started) {
                        return Err(failure.into());
                    }
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Returns how the read ended; `None` if the space does not exist.
    async fn attempt(
        &mut self,
        space: SpaceId,
        number: i64,
        start: &Position,
        selection: Selection<'_>,
        budget: Budget,
        visit: &mut (impl FnMut(RowRef<'_>) -> Flow + Send),
    ) -> Result<Option<PageEnd>, Failure> {
        // A page that has a row can end at its deadline.
        let late = (self.reads == Reads::Many && self.has_visited).then_some(self.deadline);
        let session = self.session.as_mut().expect("connected before");
        let end = selection.end();
        let rows = session.rows.take().filter(|rows| rows.continues_at(space, start, end.as_ref()));
        let is_open = rows.is_some();
        let mut rows = match rows {
            Some(rows) => rows,
            None if self.reads == Reads::One && self.statements > 0 => {
                return Err(Failure::Refused("a snapshot for one read was read again".to_owned()));
            }
            None => {
                let bytes = statement_bytes(self.reads, self.statements);
                let limit = match self.reads {
                    Reads::One => ROWS_MAX,
                    Reads::Many => self.parts.row_sizes.rows(space, bytes).clamp(ROWS_MIN, ROWS_MAX),
                };
                // One more, to know where to continue.
                let limit = limit.min(budget.rows_max.max(1) as u64) + 1;
                let bounds = PageBounds { rows_max: limit.cast_signed(), bytes_max: bytes.cast_signed() };
                let asked = session.ask(self.reads, space, number, selection, bounds);
                let stream = match before(late, asked).await {
                    Some(answer) => answer?,
                    None => return Ok(Some(PageEnd::Late(start.clone()))),
                };
                let Some(stream) = stream else { return Ok(None) };
                Rows::new(space, start.clone(), end, stream, limit)
            }
        };
        let (before_rows, before_bytes) = (rows.visited, rows.bytes);
        let ended = rows.visit(&session.pooled, budget, late, visit).await;
        self.has_visited |= rows.visited > 0;
        self.parts.row_sizes.learn(space, rows.visited - before_rows, rows.bytes - before_bytes);
        let ended = ended?;
        self.statements += u32::from(!is_open);
        if self.reads == Reads::One && rows.is_at_end() {
            session.pooled.leaves(Leftover::Nothing);
        }
        session.rows = Some(rows);
        Ok(Some(ended))
    }

    async fn connect(&mut self) -> Result<Session, Fault> {
        let admitted = match (self.reads, self.admitted.take()) {
            // The first attempt has used it.
            (Reads::Many, None) => Some(self.parts.snapshots.admit(self.deadline).await?),
            (_, admitted) => admitted,
        };
        let mut pooled = self.parts.pool.get().await?;
        pooled.keep(admitted);
        Ok(Session { pooled, has_begun: false, space: None, rows: None })
    }

    fn gone(&self, space: SpaceId) -> ReadError {
        self.parts.catalogue.forget(space);
        ReadError::SpaceGone
    }
}

impl Snapshot for PostgresSnapshot {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.read(space, Selection::Range(range), budget, visit).await
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        let resume = self.read(space, Selection::Keys(keys), budget, visit).await?;
        let index = |place: Position| keys.partition_point(|(partition, row)| Position::new(*partition, *row) < place);
        Ok(resume.map(index).filter(|index| *index < keys.len()))
    }
}

impl Session {
    /// Sends a statement together with those that have to run before it. Returns its rows; `None` if the space does not
    /// exist.
    async fn ask(
        &mut self,
        reads: Reads,
        space: SpaceId,
        number: i64,
        selection: Selection<'_>,
        bounds: PageBounds,
    ) -> Result<Option<tokio_postgres::RowStream>, Failure> {
        let keys = selection.keys(space);
        let (asked, statement) = (HasSpace { space: number }, keys.statement(bounds));
        let (has_space, prepared) = (self.pooled.prepare(&asked).await?, self.pooled.prepare(&*statement).await?);
        let begins = reads == Reads::Many && !self.has_begun;
        self.pooled.leaves(if reads == Reads::Many { Leftover::Transaction } else { Leftover::Unread });
        self.has_begun = true;
        let connection: &Connection = &self.pooled;
        let begin = async {
            if begins {
                connection.run(BEGIN).await?;
            }
            Ok::<(), Failure>(())
        };
        let is_known = self.space == Some(space);
        let has_space = async {
            if is_known {
                return Ok(true);
            }
            let found = connection.within(connection.query_prepared(&has_space, &asked)).await?;
            Ok::<bool, Failure>(!found.is_empty())
        };
        let rows = connection.stream(&prepared, &*statement);
        // All are sent before the first is answered. The rows come last: until they are read they hold up what follows.
        let (begun, (has_space, rows)) = join(begin, join(has_space, rows)).await;
        begun?;
        if !has_space? {
            return Ok(None);
        }
        self.space = Some(space);
        rows.map(Some)
    }
}

/// Bytes that a statement may return. A page of one statement has the bound of a page. The statements of a transaction
/// begin small, because it is not known how many rows a filter lets through.
const fn statement_bytes(reads: Reads, statements: u32) -> u64 {
    match reads {
        Reads::One => STATEMENT_BYTES_MAX,
        Reads::Many if statements < 2 => STATEMENT_BYTES_MIN << statements,
        Reads::Many => STATEMENT_BYTES_MAX,
    }
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const STATEMENT_BYTES_MIN: u64 = 1 << 20;
const STATEMENT_BYTES_MAX: u64 = 4 << 20;
/// Bounds on the rows that a statement asks for.
const ROWS_MAX: u64 = 8192;
const ROWS_MIN: u64 = 64;
