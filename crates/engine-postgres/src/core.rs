//! What all parts of the engine share: the address of the database, its health, the connections, the statistics.

use crate::connection::{ConnectError, Connection};
use crate::connections::Connections;
use crate::health::Health;
use crate::settings::Target;
use larimar_engine::Histogram;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

pub(crate) struct Core {
    pub(crate) target: Target,
    pub(crate) health: Arc<Health>,
    pub(crate) connections: Connections,
    pub(crate) commit_writes: Histogram,
    pub(crate) commit_seconds: Histogram,
    pub(crate) store_bytes: AtomicU64,
    pub(crate) dropped_spaces: AtomicU64,
    pub(crate) reclaimable_bytes: AtomicU64,
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
            reclaimable_bytes: AtomicU64::new(0),
        }
    }

    /// Opens a connection for one caller at a time, which can wait for a lock, and notes the result.
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

/// A random duration between half of `span` and `span`, so that waiting tasks do not retry all at once.
pub(crate) fn jittered(span: Duration) -> Duration {
    span / 2 + span.mul_f64(0.5 * (random() % 1024) as f64 / 1024.0)
}

/// A random number.
#[expect(clippy::disallowed_methods, reason = "this is the engine's source of randomness")]
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u64::from_le_bytes(bytes)
}

/// A token for a write: never 0, which means none.
pub(crate) fn token() -> i64 {
    (random() | 1) as i64
}

/// How long a statement waits for a lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for statements of workers, for which other requests wait. A request that met a lock is sent again.
pub(crate) const WORKER_LOCK_TIMEOUT: Duration = Duration::from_millis(250);
