//! Connections for one caller at a time: for pages, the catalogue, messages, and the workers that send groups.

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

/// A connection in use by one caller. When dropped it goes back to the pool, after what is left on it was cleared away.
pub(crate) struct PooledConnection {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    leftover: Leftover,
    /// Released when the connection is free for others: its own permit, and others that belong to the same work.
    permits: Vec<OwnedSemaphorePermit>,
}

/// What its last user left on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Nothing.
    #[default]
    Nothing,
    /// A statement that may still be running, or rows that were not read.
    Unread,
    /// An open read-only transaction, and perhaps unread rows.
    Transaction,
}

impl Pool {
    pub(crate) fn new(core: Arc<Core>, connections_max: usize) -> Self {
        Self { core, permits: Arc::new(Semaphore::new(connections_max)) }
    }

    /// A connection, as soon as one is free. Waits for a database that is away for as long as requests may wait.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<PooledConnection, Fault> {
        self.core.health.check()?;
        let getting = async {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return Err(busy()) };
            let connection = self.core.obtain(LOCK_TIMEOUT, true, || ()).await?;
            Ok(PooledConnection {
                pool: Arc::clone(self),
                connection: Some(connection),
                leftover: Leftover::Nothing,
                permits: vec![permit],
            })
        };
        tokio::time::timeout(self.core.target.timeout, getting).await.unwrap_or_else(|_| Err(busy()))
    }

    /// A connection for a worker that sends groups, which has its own share of `Settings::connections_max`. `missed` is
    /// called each time that there is none yet.
    pub(crate) async fn get_for_worker(self: &Arc<Self>, missed: impl Fn()) -> Result<PooledConnection, Fault> {
        let connection = self.core.obtain(WORKER_LOCK_TIMEOUT, false, missed).await?;
        Ok(PooledConnection {
            pool: Arc::clone(self),
            connection: Some(connection),
            leftover: Leftover::Nothing,
            permits: Vec::new(),
        })
    }

    /// Whether all pooled connections are in use, so that callers may wait for one.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.permits.available_permits() == 0
    }

    /// What the connections share.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Runs a statement that commits by itself. It is repeated while the database answers that nothing took effect.
    pub(crate) async fn send<Q: Query>(self: &Arc<Self>, query: &Q) -> Result<Vec<Q::Row>, SendError> {
        let started = Instant::now();
        for attempt in 0.. {
            pause(attempt).await;
            let pooled = self.get().await?;
            let answer = pooled.query(query).await;
            let failure = match answer.and_then(|rows| pooled.check_commit().map(|()| rows)) {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            if failure.ends_connection() {
                pooled.close();
            }
            match failure {
                Failure::Unknown(reason) => return Err(SendError::Unknown(reason)),
                Failure::Again(_) | Failure::Locked(_) | Failure::Elsewhere(_) if self.has_time(started) => {}
                failure => return Err(SendError::NotDone(failure.into_unavailable())),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Runs an idempotent statement, which is repeated when its answer is lost.
    pub(crate) async fn ask<Q: Query>(self: &Arc<Self>, query: &Q) -> Result<Vec<Q::Row>, Fault> {
        let started = Instant::now();
        for attempt in 0.. {
            pause(attempt).await;
            match self.send(query).await {
                Ok(rows) => return Ok(rows),
                Err(SendError::NotDone(fault)) => return Err(fault),
                Err(SendError::Unknown(_)) if self.has_time(started) => {}
                Err(SendError::Unknown(reason)) => return Err(Fault::Unavailable(reason)),
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

/// Why [`Pool::send`] has no answer.
#[derive(Clone, Debug)]
pub(crate) enum SendError {
    /// Nothing took effect.
    NotDone(Fault),
    /// The connection broke: whether the statement took effect is unknown.
    Unknown(String),
}

impl From<Fault> for SendError {
    fn from(fault: Fault) -> Self {
        Self::NotDone(fault)
    }
}

impl From<SendError> for Fault {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotDone(fault) => fault,
            SendError::Unknown(reason) => Self::Ambiguous(reason),
        }
    }
}

impl PooledConnection {
    /// Closes the connection instead of returning it to the pool.
    pub(crate) fn close(mut self) {
        self.connection = None;
    }

    /// Notes what will be left on the connection. To be called before, because the caller may be dropped at any time.
    pub(crate) const fn leaves(&mut self, leftover: Leftover) {
        self.leftover = leftover;
    }

    /// Holds a permit until the connection is free again.
    pub(crate) fn keep(&mut self, permit: Option<OwnedSemaphorePermit>) {
        self.permits.extend(permit);
    }
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is taken only when dropped or closed")
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let clearing = match self.leftover {
            Leftover::Nothing => return self.pool.core.connections.put(connection),
            // An empty query is answered after everything before it.
            Leftover::Unread => "",
            Leftover::Transaction => "COMMIT",
        };
        let (pool, permits) = (Arc::clone(&self.pool), std::mem::take(&mut self.permits));
        // Without a runtime the connection is closed.
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
