//! Whether the database answers. When it has not for long, requests are refused at once instead of piling up.
//!
//! A connection that cannot be opened is a weak sign: there may be no slot left, or the password has changed, while the
//! open connections work. So a recent answer shows that the database is well, and failed connections count only without
//! one.

use larimar_engine::Fault;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What all connections have seen of the database.
#[derive(Debug)]
pub(crate) struct Health {
    trouble: Mutex<Option<Trouble>>,
    is_closed: AtomicBool,
    opened: Instant,
    /// When a statement was last answered, in milliseconds since the engine was opened.
    answered: AtomicU64,
}

#[derive(Debug)]
struct Trouble {
    since: Instant,
    reason: String,
    /// Whether a statement got no answer at all.
    is_silent: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            trouble: Mutex::default(),
            is_closed: AtomicBool::new(false),
            opened: Instant::now(),
            answered: AtomicU64::new(0),
        }
    }
}

impl Health {
    /// A connection was opened.
    pub(crate) fn connected(&self) {
        self.answered();
        if let Some(over) = self.trouble.lock().take() {
            tracing::info!(after = ?over.since.elapsed(), "the database takes connections again");
        }
    }

    /// A statement was answered.
    pub(crate) fn answered(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.answered.fetch_max(now, Ordering::AcqRel);
    }

    /// A connection could not be opened.
    pub(crate) fn refused(&self, reason: &str) {
        self.note(reason, false);
    }

    /// A statement got no answer in time.
    pub(crate) fn silent(&self, reason: &str) {
        self.note(reason, true);
    }

    fn note(&self, reason: &str, is_silent: bool) {
        let mut trouble = self.trouble.lock();
        match &mut *trouble {
            Some(trouble) => {
                reason.clone_into(&mut trouble.reason);
                trouble.is_silent |= is_silent;
            }
            None => {
                tracing::warn!(reason, "the database does not answer or takes no connection");
                *trouble = Some(Trouble { since: Instant::now(), reason: reason.to_owned(), is_silent });
            }
        }
    }

    /// From now on every request is refused.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// `Ok` unless the database has not answered for longer than a failover should take.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Fault::Unavailable("the engine is closed".to_owned()));
        }
        match &*self.trouble.lock() {
            Some(trouble) if trouble.since.elapsed() > PATIENCE && self.last_answer().elapsed() > PATIENCE => {
                Err(Fault::Unavailable(trouble.reason.clone()))
            }
            _ => Ok(()),
        }
    }

    /// `Ok` while the database answers.
    pub(crate) fn ready(&self) -> Result<(), Fault> {
        self.check()?;
        let trouble = self.trouble.lock();
        let Some(trouble) = &*trouble else { return Ok(()) };
        let last = self.last_answer();
        let answers = last > trouble.since && last.elapsed() < PATIENCE;
        let answered = !trouble.is_silent && last.elapsed() < READY_PATIENCE;
        if answers || answered { Ok(()) } else { Err(Fault::Unavailable(trouble.reason.clone())) }
    }

    fn last_answer(&self) -> Instant {
        self.opened + Duration::from_millis(self.answered.load(Ordering::Acquire))
    }
}

/// How long requests wait for a database that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last answer counts when no connection can be opened. Background work sends a statement every second.
const READY_PATIENCE: Duration = Duration::from_secs(3);
