//! Connections that are lent to one caller at a time, for what takes long or is rare: scans, the catalogue; and for
//! messages.

use crate::connection::Connection;
use crate::core::{Core, LOCK_TIMEOUT, WORKER_LOCK_TIMEOUT, jittered};
use crate::failure::Failure;
use crate::statements::Query;
use larimar_engine::Fault;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) struct Pool {
    core: Arc<Core>,
    permits: Arc<Semaphore>,
}

/// A connection on loan. It goes back unless it is given up; not before what is left on it was cleared away.
pub(crate) struct Lent {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    leftover: Leftover,
    /// Released when the connection is free for others: its own permit, and what else the loan keeps.
    permits: Vec<OwnedSemaphorePermit>,
}

/// What a loan leaves on its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Nothing.
    #[default]
    Nothing,
    /// A statement that may still run, or rows that were not read.
    Unread,
    /// An open transaction that only reads, and perhaps unread rows.
    Transaction,
}

impl Pool {
    pub(crate) fn new(core: Arc<Core>, connections_max: usize) -> Self {
        Self { core, permits: Arc::new(Semaphore::new(connections_max)) }
    }

    /// Lends a connection, as soon as one is free. Waits for a database that is away, as long as requests are to wait.
    pub(crate) async fn lend(self: &Arc<Self>) -> Result<Lent, Fault> {
        self.core.health.check()?;
        let lending = async {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return Err(busy()) };
            let connection = self.core.obtain(LOCK_TIMEOUT, true, || ()).await?;
            Ok(Lent {
                pool: Arc::clone(self),
                connection: Some(connection),
                leftover: Leftover::Nothing,
                permits: vec![permit],
            })
        };
        tokio::time::timeout(self.core.target.timeout, lending).await.unwrap_or_else(|_| Err(busy()))
    }

    /// Lends a connection for good to a worker that sends groups. `missed` is called each time that none can be had yet.
    pub(crate) async fn lend_to_worker(self: &Arc<Self>, missed: impl Fn()) -> Result<Lent, Fault> {
        let connection = self.core.obtain(WORKER_LOCK_TIMEOUT, false, missed).await?;
        Ok(Lent {
            pool: Arc::clone(self),
            connection: Some(connection),
            leftover: Leftover::Nothing,
            permits: Vec::new(),
        })
    }

    /// What the connections share.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Runs a statement that commits by itself, again as long as the database says that nothing took effect.
    pub(crate) async fn send<Q: Query>(self: &Arc<Self>, query: &Q) -> Result<Vec<Q::Row>, Unanswered> {
        let started = Instant::now();
        for attempt in 0.. {
            pause(attempt).await;
            let lent = self.lend().await?;
            let answer = lent.query(query).await;
            let failure = match answer.and_then(|rows| lent.check_commit().map(|()| rows)) {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            if failure.ends_connection() {
                lent.give_up();
            }
            match failure {
                Failure::Broken(reason) => return Err(Unanswered::Lost(reason)),
                Failure::Again(_) | Failure::Locked(_) | Failure::Elsewhere(_) if self.has_time(started) => {}
                failure => return Err(Unanswered::Undone(failure.into_unavailable())),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Runs a statement that does no harm when it is repeated.
    pub(crate) async fn ask<Q: Query>(self: &Arc<Self>, query: &Q) -> Result<Vec<Q::Row>, Fault> {
        let started = Instant::now();
        for attempt in 0.. {
            pause(attempt).await;
            match self.send(query).await {
                Ok(rows) => return Ok(rows),
                Err(Unanswered::Undone(fault)) => return Err(fault),
                Err(Unanswered::Lost(_)) if self.has_time(started) => {}
                Err(Unanswered::Lost(reason)) => return Err(Fault::Unavailable(reason)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Whether another attempt may begin.
    pub(crate) fn has_time(&self, started: Instant) -> bool {
        started.elapsed() < self.core.target.timeout
    }
}

fn busy() -> Fault {
    Fault::Unavailable("all connections to the database are busy".to_owned())
}

/// Why a statement has no answer.
#[derive(Clone, Debug)]
pub(crate) enum Unanswered {
    /// Nothing took effect.
    Undone(Fault),
    /// Nobody knows.
    Lost(String),
}

impl From<Fault> for Unanswered {
    fn from(fault: Fault) -> Self {
        Self::Undone(fault)
    }
}

impl From<Unanswered> for Fault {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Undone(fault) => fault,
            Unanswered::Lost(reason) => Self::Ambiguous(reason),
        }
    }
}

impl Lent {
    /// Ends the connection instead of giving it back.
    pub(crate) fn give_up(mut self) {
        self.connection = None;
    }

    /// Says what is left on the connection, before it is: the caller may go away at any time.
    pub(crate) const fn leaves(&mut self, leftover: Leftover) {
        self.leftover = leftover;
    }

    /// Keeps a permit until the connection is free again.
    pub(crate) fn keep(&mut self, permit: Option<OwnedSemaphorePermit>) {
        self.permits.extend(permit);
    }
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until the loan ends")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let clearing = match self.leftover {
            Leftover::Nothing => return self.pool.core.connections.put(connection),
            // It is answered after everything before it.
            Leftover::Unread => "",
            Leftover::Transaction => "COMMIT",
        };
        let (pool, permits) = (Arc::clone(&self.pool), std::mem::take(&mut self.permits));
        // Without a runtime the connection ends, and with it what is left.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if connection.run(clearing).await.is_ok() {
                pool.core.connections.put(connection);
            }
            drop(permits);
        });
    }
}

/// Waits before an attempt that is not the first.
pub(crate) async fn pause(attempt: u32) {
    if attempt > 0 {
        tokio::time::sleep(jittered(Duration::from_millis(5 << attempt.min(6)))).await;
    }
}

#[cfg(all(test, feature = "test-postgres"))]
mod tests;
