//! Whether the database answers. While it does not for long, requests are refused at once instead of piling up.

use larimar_engine::Fault;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the connections learn of the database, together.
#[derive(Debug, Default)]
pub(crate) struct Health {
    trouble: Mutex<Option<Trouble>>,
    is_closed: AtomicBool,
}

#[derive(Debug)]
struct Trouble {
    since: Instant,
    reason: String,
}

impl Health {
    /// A connection was made or a statement was answered.
    pub(crate) fn good(&self) {
        let mut trouble = self.trouble.lock();
        if let Some(over) = trouble.take() {
            tracing::info!(after = ?over.since.elapsed(), "the database answers again");
        }
    }

    /// A connection could not be made.
    pub(crate) fn bad(&self, reason: &str) {
        let mut trouble = self.trouble.lock();
        match &mut *trouble {
            Some(trouble) => reason.clone_into(&mut trouble.reason),
            None => {
                tracing::warn!(reason, "the database does not answer");
                *trouble = Some(Trouble { since: Instant::now(), reason: reason.to_owned() });
            }
        }
    }

    /// Nothing is taken any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// `Ok` unless the database has been away for longer than a failover should take.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Fault::Unavailable("the engine is closed".to_owned()));
        }
        match &*self.trouble.lock() {
            Some(trouble) if trouble.since.elapsed() > PATIENCE => Err(Fault::Unavailable(trouble.reason.clone())),
            _ => Ok(()),
        }
    }

    /// `Ok` while the database answers.
    pub(crate) fn ready(&self) -> Result<(), Fault> {
        self.check()?;
        match &*self.trouble.lock() {
            Some(trouble) => Err(Fault::Unavailable(trouble.reason.clone())),
            None => Ok(()),
        }
    }
}

/// How long requests wait for a database that is away.
const PATIENCE: Duration = Duration::from_secs(5);
