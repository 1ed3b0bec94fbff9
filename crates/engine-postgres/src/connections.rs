//! The connections of this process: made when they are needed, kept while they are used, and passed on when no more can
//! be made.
//!
//! A database that has no slot left, or a password that has changed, leaves the connections that are open as they are.
//! Whoever needs one then takes one that lies idle or waits for the next that is free, so that few connections serve all
//! kinds of requests in turn. Making more is tried again now and then. What lies idle for long is closed, and while the
//! database has hardly a slot left, every server closes some of its connections, so that others find one.

use crate::connection::Connection;
use crate::core::{Core, jittered};
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The connections that nobody uses at the moment, and who needs one.
#[derive(Default)]
pub(crate) struct Connections {
    idle: Mutex<Vec<(Connection, Instant)>>,
    /// Told when there is reason to look again.
    changed: Notify,
    /// How many wait for a connection.
    wanted: AtomicUsize,
    /// Told to those who keep a connection without using it.
    needed: Notify,
    growth: Mutex<Growth>,
    /// Connections that are open.
    open: Arc<AtomicUsize>,
    /// How many there should be at most while the database is short of slots; 0 if it is not.
    most: AtomicUsize,
}

/// When another connection may be tried.
#[derive(Default)]
struct Growth {
    not_before: Option<Instant>,
    pause: Duration,
}

/// One connection that is open, counted.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Connections {
    /// Counts one more connection as long as the value lives.
    pub(crate) fn count(&self) -> Counted {
        self.open.fetch_add(1, Ordering::AcqRel);
        Counted(Arc::clone(&self.open))
    }

    /// Whether there are more connections than this server should have.
    pub(crate) fn are_too_many(&self) -> bool {
        self.open.load(Ordering::Acquire) > self.most()
    }

    fn most(&self) -> usize {
        match self.most.load(Ordering::Acquire) {
            0 => usize::MAX,
            most => most,
        }
    }

    /// Takes in how many slots the database has left. With hardly any, this server does with fewer connections; with
    /// more, it takes them back one by one.
    pub(crate) fn adapt(&self, slots_free: i64) {
        let (open, most) = (self.open.load(Ordering::Acquire), self.most.load(Ordering::Acquire));
        let most = if slots_free < SLOTS_FREE_MIN {
            open.saturating_sub(CLOSED_AT_ONCE).max(OPEN_MIN)
        } else if most > open + OPEN_MIN {
            0
        } else if most > 0 && slots_free > SLOTS_FREE_MIN * 2 {
            most + 1
        } else {
            most
        };
        self.most.store(most, Ordering::Release);
        while self.are_too_many() && self.idle.lock().pop().is_some() {}
    }

    /// Keeps a connection for the next who needs one.
    pub(crate) fn put(&self, connection: Connection) {
        if !connection.is_closed() && !self.are_too_many() {
            self.idle.lock().push((connection, Instant::now()));
        }
        self.changed.notify_one();
    }

    /// Whether somebody waits for a connection.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > 0
    }

    /// Waits until somebody needs a connection.
    pub(crate) async fn needed(&self) {
        self.needed.notified().await;
    }

    /// Closes all but one of the connections that have been idle for long.
    pub(crate) fn close_idle(&self) {
        let mut idle = self.idle.lock();
        idle.retain(|(connection, _)| !connection.is_closed());
        // The one that was used last is the last.
        while idle.len() > 1 && idle[0].1.elapsed() > IDLE_MAX {
            idle.remove(0);
        }
    }

    /// How many connections are idle.
    #[cfg(all(test, feature = "test-postgres"))]
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.lock().len()
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
        self.open.load(Ordering::Acquire) < self.most()
            && self.growth.lock().not_before.is_none_or(|moment| moment <= Instant::now())
    }

    /// Notes that a connection was made or not.
    fn grew(&self, is_made: bool) {
        let mut growth = self.growth.lock();
        let now = Instant::now();
        if is_made {
            if growth.not_before.is_some() {
                // Others may succeed too.
                self.changed.notify_waiters();
            }
            *growth = Growth::default();
        } else if growth.not_before.is_none_or(|moment| moment <= now) {
            growth.pause = (growth.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
            growth.not_before = Some(now + jittered(growth.pause));
        }
    }

    /// Waits for a connection that is given back, or for the next attempt to make one.
    async fn wait(&self) {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let wanted = Wanted(&self.wanted);
        self.needed.notify_waiters();
        let pause = self.growth.lock().pause.max(PAUSE_MIN);
        let _ = tokio::time::timeout(jittered(pause), self.changed.notified()).await;
        drop(wanted);
    }
}

/// Counts one who waits, also if the waiting is broken off.
struct Wanted<'a>(&'a AtomicUsize);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Core {
    /// A connection: a new one or, as the caller prefers, one that lies idle; if none can be made, the next that is free.
    /// `missed` is called each time that there is none yet.
    ///
    /// # Errors
    /// If the database has been away for long.
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

/// How long a connection may lie idle.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(60);
/// Connections that a server keeps however few slots there are.
const OPEN_MIN: usize = 2;
/// Slots of the database that servers leave to others, and how many connections each closes in a second to that end.
const SLOTS_FREE_MIN: i64 = 3;
const CLOSED_AT_ONCE: usize = 2;
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
