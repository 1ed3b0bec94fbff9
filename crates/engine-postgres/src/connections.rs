//! The connections of this process: opened when they are needed, kept while they are used, and passed on when no more
//! can be opened.
//!
//! When the database has no slot left, or the password has changed, the open connections still work. A task that needs
//! one then takes an idle one or waits for the next that is free, so that few connections serve all kinds of requests
//! in turn. Opening more is tried again after a pause. A connection that is idle for long is closed, and while the
//! database has hardly a slot left, every server closes some of its connections, so that other servers find one.

use crate::connection::Connection;
use crate::core::{Core, jittered};
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The idle connections, and the tasks that wait for one.
#[derive(Default)]
pub(crate) struct Connections {
    idle: Mutex<Vec<(Connection, Instant)>>,
    /// Notified when a waiting task should try again.
    changed: Notify,
    /// How many tasks wait for a connection.
    wanted: AtomicUsize,
    /// Notified when tasks that keep an idle connection should pass it on.
    needed: Notify,
    growth: Mutex<Growth>,
    /// How many connections are open.
    open: Arc<AtomicUsize>,
    /// How many may be open while the database is short of slots; 0 for no limit.
    open_max: AtomicUsize,
    /// Whether the engine is closed, so that no connection is kept.
    is_closed: AtomicBool,
}

/// When to try to open another connection.
#[derive(Default)]
struct Growth {
    not_before: Option<Instant>,
    pause: Duration,
}

/// Counts one open connection as long as it lives.
pub(crate) struct OpenGuard(Arc<AtomicUsize>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Connections {
    /// Counts one more connection as long as the value lives.
    pub(crate) fn count(&self) -> OpenGuard {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenGuard(Arc::clone(&self.open))
    }

    /// Whether there are more connections than this server should have.
    pub(crate) fn are_too_many(&self) -> bool {
        self.open.load(Ordering::Acquire) > self.open_max()
    }

    fn open_max(&self) -> usize {
        match self.open_max.load(Ordering::Acquire) {
            0 => usize::MAX,
            limit => limit,
        }
    }

    /// Adapts to the number of slots that the database has left: with hardly any, this server uses fewer connections;
    /// with more, it takes them back one by one.
    pub(crate) fn adapt(&self, slots_free: i64) {
        let (open, most) = (self.open.load(Ordering::Acquire), self.open_max.load(Ordering::Acquire));
        let most = if slots_free < SLOTS_FREE_MIN {
            open.saturating_sub(CLOSED_AT_ONCE).max(OPEN_MIN)
        } else if most > open + OPEN_MIN {
            0
        } else if most > 0 && slots_free > SLOTS_FREE_MIN * 2 {
            most + 1
        } else {
            most
        };
        self.open_max.store(most, Ordering::Release);
        while self.are_too_many() && self.idle.lock().pop().is_some() {}
    }

    /// Keeps an idle connection for the next task that needs one.
    pub(crate) fn put(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if !connection.is_closed() && !self.are_too_many() && !self.is_closed.load(Ordering::Acquire) {
            idle.push((connection, Instant::now()));
        }
        drop(idle);
        self.changed.notify_one();
    }

    /// Closes the idle connections, and each of the others when it is put back.
    pub(crate) fn close_all(&self) {
        let mut idle = self.idle.lock();
        self.is_closed.store(true, Ordering::Release);
        idle.clear();
    }

    /// Whether a task waits for a connection.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > 0
    }

    /// Waits until a task needs a connection.
    pub(crate) async fn needed(&self) {
        self.needed.notified().await;
    }

    /// Closes all but one of the connections that have been idle for long.
    pub(crate) fn close_idle(&self) {
        let mut idle = self.idle.lock();
        idle.retain(|(connection, _)| !connection.is_closed());
        // They are in the order of their last use.
        while idle.len() > 1 && idle[0].1.elapsed() > IDLE_MAX {
            idle.remove(0);
        }
    }

    /// How many connections are idle.
    #[cfg(all(test, feature = "test-postgres"))]
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.lock().len()
    }

    /// How many connections are open.
    #[cfg(all(test, feature = "test-postgres"))]
    pub(crate) fn open_count(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// The idle connection that was used last.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some((connection, _)) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn may_grow(&self) -> bool {
        self.open.load(Ordering::Acquire) < self.open_max()
            && self.growth.lock().not_before.is_none_or(|moment| moment <= Instant::now())
    }

    /// Notes whether a connection could be opened.
    fn grew(&self, is_opened: bool) {
        let mut growth = self.growth.lock();
        let now = Instant::now();
        if is_opened {
            if growth.not_before.is_some() {
                // Other tasks may succeed too.
                self.changed.notify_waiters();
            }
            *growth = Growth::default();
        } else if growth.not_before.is_none_or(|moment| moment <= now) {
            growth.pause = (growth.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
            growth.not_before = Some(now + jittered(growth.pause));
        }
    }

    /// Waits for an idle connection, or for the next attempt to open one.
    async fn wait(&self) {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let waiting = WaitGuard(&self.wanted);
        self.needed.notify_waiters();
        let pause = self.growth.lock().pause.max(PAUSE_MIN);
        let _ = tokio::time::timeout(jittered(pause), self.changed.notified()).await;
        drop(waiting);
    }
}

/// Counts a waiting task, also if it is dropped.
struct WaitGuard<'a>(&'a AtomicUsize);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Core {
    /// A connection: a new one or, if the caller prefers that, an idle one; if none can be opened, the next that is
    /// free.
    /// `missed` is called each time that there is none yet.
    ///
    /// # Errors
    /// If the database has not answered for long.
    pub(crate) async fn obtain(
        &self,
        lock_timeout: Duration,
        prefers_idle: bool,
        missed: impl Fn(),
    ) -> Result<Connection, Fault> {
        let mut takes_idle = prefers_idle;
        loop {
            if takes_idle && let Some(connection) = self.connections.take() {
                match connection.set_lock_timeout(lock_timeout).await {
                    Ok(()) => return Ok(connection),
                    Err(_) => continue,
                }
            }
            if self.connections.may_grow() {
                let connected = self.connect_with(lock_timeout).await;
                self.connections.grew(connected.is_ok());
                if let Ok(connection) = connected {
                    return Ok(connection);
                }
            }
            missed();
            self.health.check()?;
            if takes_idle {
                self.connections.wait().await;
            }
            takes_idle = true;
        }
    }
}

/// How long a connection may be idle.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(60);
/// Connections that a server may always open.
const OPEN_MIN: usize = 2;
/// Slots of the database that servers leave to other clients, and how many connections each closes per second to do so.
const SLOTS_FREE_MIN: i64 = 3;
const CLOSED_AT_ONCE: usize = 2;
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
