//! What all parts of the engine share: where the database is, how it fares, the figures.

use crate::connection::{ConnectError, Connection, column};
use crate::connections::{Connections, IDLE_MAX};
use crate::failure::Failure;
use crate::health::Health;
use crate::settings::Target;
use crate::statements::CONFIRM;
use larimar_engine::{Fault, Histogram};
use larimar_model::Timestamp;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(crate) struct Core {
    pub(crate) target: Target,
    pub(crate) health: Arc<Health>,
    pub(crate) connections: Connections,
    pub(crate) commit_writes: Histogram,
    pub(crate) commit_seconds: Histogram,
    pub(crate) store_bytes: AtomicU64,
    pub(crate) dropped_spaces: AtomicU64,
}

impl Core {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            health: Arc::default(),
            connections: Connections::default(),
            commit_writes: Histogram::new(Histogram::COUNTS),
            commit_seconds: Histogram::new(Histogram::SECONDS),
            store_bytes: AtomicU64::new(0),
            dropped_spaces: AtomicU64::new(0),
        }
    }

    /// Makes a connection for one caller at a time and notes how it went. A caller can wait for a lock.
    pub(crate) async fn connect(&self) -> Result<Connection, ConnectError> {
        self.connect_with(LOCK_TIMEOUT).await
    }

    pub(crate) async fn connect_with(&self, lock_timeout: Duration) -> Result<Connection, ConnectError> {
        let connected = Connection::open(&self.target, lock_timeout, &self.health, self.connections.count()).await;
        match &connected {
            Ok(_) => self.health.connected(),
            Err(error) if error.is_silent => self.health.silent(&error.reason),
            Err(error) => self.health.refused(&error.reason),
        }
        connected
    }

    /// Notes a commit.
    pub(crate) fn committed(&self, writes: usize, since: Instant) {
        self.commit_writes.record(writes as f64);
        self.commit_seconds.record(since.elapsed().as_secs_f64());
    }
}

/// A connection that a task keeps while it has work, made again when it breaks.
pub(crate) struct Line {
    core: Arc<Core>,
    connection: Option<Connection>,
}

impl Line {
    pub(crate) const fn new(core: Arc<Core>) -> Self {
        Self { core, connection: None }
    }

    /// The connection, as soon as there is one. Until then other tasks are woken, which may have one; while the database
    /// is away for long, `refuse` lets the requests go that wait.
    pub(crate) async fn connection(&mut self, wake: &Notify, refuse: impl Fn(&Fault)) -> &Connection {
        while self.connection.as_ref().is_none_or(Connection::is_closed) {
            self.connection = None;
            match self.core.obtain(SHARED_LOCK_TIMEOUT, false, || wake.notify_one()).await {
                Ok(connection) => self.connection = Some(connection),
                Err(fault) => {
                    refuse(&fault);
                    tokio::time::sleep(jittered(PAUSE)).await;
                }
            }
        }
        self.connection.as_ref().expect("the loop ends with a connection")
    }

    /// The versions of those of some rows that carry the token of the write that was to write them, on a new connection:
    /// those writes took effect. Of the others nothing is known, and neither if the database does not answer in time.
    pub(crate) async fn confirm(&mut self, puts: &[(&[u8], &[u8], i64)]) -> Vec<Option<Timestamp>> {
        self.give_up();
        if puts.is_empty() {
            return Vec::new();
        }
        let timeout = self.core.target.timeout.min(CONFIRM_TIME_MAX);
        let pks: Vec<&[u8]> = puts.iter().map(|(pk, _, _)| *pk).collect();
        let rks: Vec<&[u8]> = puts.iter().map(|(_, rk, _)| *rk).collect();
        let tokens: Vec<i64> = puts.iter().map(|(_, _, token)| *token).collect();
        let asked = async {
            let connection = self.connection(&Notify::new(), |_| ()).await;
            let rows = connection.query(CONFIRM, &[&pks, &rks, &tokens]).await?;
            connection.check_commit()?;
            // The rows of a transaction share its token, and may have different versions.
            let found = rows.iter().map(|row| {
                let version: i64 = column(row, 2)?;
                Ok(((column(row, 0)?, column::<Vec<u8>>(row, 1)?), Timestamp::from_ticks(version.cast_unsigned())))
            });
            found.collect::<Result<FxHashMap<(i64, Vec<u8>), Timestamp>, Failure>>()
        };
        let found = match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => {
                self.give_up();
                FxHashMap::default()
            }
        };
        puts.iter().map(|(_, rk, token)| found.get(&(*token, rk.to_vec())).copied()).collect()
    }

    /// Waits for a call, and no longer than requests gather. Meanwhile a connection that others need is passed on, and
    /// one that is idle for long is closed.
    pub(crate) async fn rest(&mut self, wake: &Notify, patience: Option<Duration>) {
        let connections = &self.core.connections;
        tokio::select! {
            () = wake.notified() => {}
            () = connections.needed(), if self.connection.is_some() => self.pass_on(),
            () = tokio::time::sleep(patience.unwrap_or(IDLE_MAX)) => {
                if patience.is_none() {
                    self.give_up();
                }
            }
        }
    }

    /// Passes the connection on if somebody needs one, here or on another server.
    pub(crate) fn share(&mut self) {
        if self.core.connections.is_wanted() || self.core.connections.are_too_many() {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.core.connections.put(connection);
        }
    }

    /// Ends the connection; the next call makes another.
    pub(crate) fn give_up(&mut self) {
        self.connection = None;
    }
}

/// A span between half of this and all of it, so that those who wait do not come back together.
pub(crate) fn jittered(span: Duration) -> Duration {
    span / 2 + span.mul_f64(0.5 * (random() % 1024) as f64 / 1024.0)
}

/// A number nobody else has.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u64::from_le_bytes(bytes)
}

/// A token for a write: never 0, which stands for none.
pub(crate) fn token() -> i64 {
    (random() | 1) as i64
}

/// Whoever waits has waited for a statement already, and clients give up after half a minute.
const CONFIRM_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a statement waits for a lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for statements that others wait for. What gives up is tried again, behind the others.
const SHARED_LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// Between looks while the database is away.
const PAUSE: Duration = Duration::from_millis(100);
