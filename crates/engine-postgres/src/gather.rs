//! Gathers concurrent requests and sends them to the database in groups.
//!
//! While a group is under way, further requests wait. A worker takes those that can share a statement, sends them as
//! one group and returns the answers. A row looked up or written within a group costs the database a fraction of a
//! statement of its own, and all writes of a group share one commit (`docs/decisions/0005-postgres-engine.md`). What a
//! group looks like in SQL is said by each [`RequestKind`]; everything else about gathering is here:
//!
//! - **Bounds.** [`Limits`] bounds the requests and bytes that wait and those of a group. A request that waits longer than
//!   the database may take over a statement is refused, even while every worker hangs. Nothing of a refused request was
//!   sent.
//! - **Turns.** Requests with the same [`RequestKind::turn`] are sent one after the other, in the order they came.
//! - **A caller that goes away** changes nothing: its request is sent all the same and the answer is discarded.
//! - **A group that fails** is answered with the failure, or sent again, as [`RequestKind::retry`] decides.
//! - **A connection that breaks** leaves open whether a group took effect. Its writes are looked up on a new connection
//!   ([`RequestKind::find`]); those that are not found are answered with `Failure::Unknown`.
//! - **Locks.** A row that another session has locked stops the whole group. Each of its requests is then sent alone, on
//!   at most half of the workers, and so are further requests of the same turn until one succeeds.
//! - **A worker that panics** frees the turns of its group and continues with the next. The outcome of the group is
//!   unknown.

mod timing;
mod waiting;

use crate::connection::Connection;
use crate::core::{Core, LOCK_TIMEOUT, jittered};
use crate::failure::Failure;
use crate::kept_connection::{Keep, KeptConnection};
use crate::pool::{Pool, pause};
use futures_util::FutureExt as _;
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use waiting::{Outcome, State, Waiting};

/// A kind of request that is sent in groups.
pub(crate) trait RequestKind: Send + Sync + Sized + 'static {
    /// One request.
    type Request: Send + Sync + 'static;
    /// The answer to one request.
    type Answer: Send + 'static;

    const LIMITS: Limits;

    /// When a worker keeps its connection.
    const KEEP: Keep;

    /// Bytes of a request that count towards the limits.
    fn bytes(_request: &Self::Request) -> usize {
        0
    }

    /// How many writes a request is; 0 for a read.
    fn writes(request: &Self::Request) -> usize;

    /// Requests of the same turn are sent one after the other.
    fn turn(_request: &Self::Request) -> Option<u64> {
        None
    }

    /// Whether the caller knows that a row of the request is locked by another session.
    fn met_lock(_request: &Self::Request) -> bool {
        false
    }

    /// Whether two requests can be sent in one group.
    fn shares_group(first: &Self::Request, next: &Self::Request) -> bool;

    /// What to do with the requests of a group that failed.
    fn retry(failure: &Failure) -> Retry;

    /// Sends a group. Returns an answer for each request, in their order.
    fn send(
        connection: &Connection,
        group: &[&Self::Request],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, Failure>> + Send;

    /// Whether the database shows afterwards that a request took effect.
    fn is_findable(_request: &Self::Request) -> bool {
        false
    }

    /// Looks up which requests of a group took effect, and returns the answers of those.
    fn find(
        _connection: &Connection,
        group: &[&Self::Request],
    ) -> impl Future<Output = Result<Vec<Option<Self::Answer>>, Failure>> + Send {
        std::future::ready(Ok(group.iter().map(|_| None).collect()))
    }
}

/// The bounds of a kind of request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// What the requests are called in errors.
    pub(crate) name: &'static str,
    /// Groups under way beyond which requests wait for others to join them.
    pub(crate) running_freely: usize,
    /// Waiting requests that are sent at once however many groups are under way.
    pub(crate) enough: usize,
    pub(crate) group_max: usize,
    /// Bytes after which no request joins a group.
    pub(crate) group_bytes_max: usize,
    pub(crate) waiting_max: usize,
    /// Waiting bytes after which requests are refused.
    pub(crate) waiting_bytes_max: usize,
}

/// What happens to the requests of a group that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// They are answered with the failure.
    No,
    /// The outcome is unknown: they are looked up.
    Find,
    /// They are sent again until this many attempts have failed. A broken connection is no failure of the request and
    /// does not count.
    Again { attempts_max: u32 },
    /// They met a lock: each is sent alone, until it has waited as long as a write waits for a lock.
    Alone,
}

/// The requests of one kind that wait, and the groups under way.
pub(crate) struct Gather<K: RequestKind> {
    pool: Arc<Pool>,
    state: Mutex<State<K>>,
    wake: Notify,
    workers: usize,
}

/// Requests that are sent together. Their turns are busy until it is ended or, if a worker panics, dropped.
struct Group<'a, K: RequestKind> {
    gather: &'a Gather<K>,
    /// Empty when the group has ended.
    requests: Vec<Waiting<K>>,
    started: Instant,
    /// Whether it is one request that met a lock before.
    is_alone: bool,
}

impl<K: RequestKind> Drop for Group<'_, K> {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            self.gather.state.lock().end_group(&self.requests, self.started, self.is_alone, false);
            self.gather.wake.notify_one();
        }
    }
}

impl<K: RequestKind> Gather<K> {
    /// Gathers requests for a number of workers, which [`Self::start`] starts.
    pub(crate) fn new(pool: &Arc<Pool>, workers: usize) -> Arc<Self> {
        let state = State::new(workers);
        Arc::new(Self { pool: Arc::clone(pool), state: Mutex::new(state), wake: Notify::new(), workers })
    }

    /// Starts the workers, which run until their tasks are aborted.
    pub(crate) fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        for _ in 0..self.workers {
            let this = Arc::clone(self);
            tasks.spawn(async move {
                while AssertUnwindSafe(this.serve()).catch_unwind().await.is_err() {
                    tracing::error!("a worker for {} panicked; it continues with the next group", K::LIMITS.name);
                }
            });
        }
        tasks.spawn(Arc::clone(self).refuse_late());
    }

    /// Sends a request with the next group. It is sent even if the caller stops waiting.
    pub(crate) async fn request(&self, request: K::Request) -> Result<K::Answer, Failure> {
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state.lock();
            // Checked under the lock: what is let in after `close` would never be answered.
            self.core().health.check()?;
            if state.is_full() {
                return Err(Failure::Refused(format!("too many {} wait for the database", K::LIMITS.name)));
            }
            let turn = K::turn(&request);
            state.push_back(Waiting { request, turn, since: Instant::now(), failed_attempts: 0, reply });
        }
        self.wake.notify_one();
        // Without an answer the worker was aborted or panicked, perhaps while the request was under way.
        answer.await.unwrap_or_else(|_| Err(Failure::Unknown("the worker for the request has stopped".to_owned())))
    }

    /// Answers all waiting requests with a fault. Nothing of them was sent.
    pub(crate) fn refuse(&self, fault: &Fault) {
        self.refuse_where(fault, |_| true);
    }

    /// Refuses each request at its time limit, whether or not a worker is free.
    async fn refuse_late(self: Arc<Self>) {
        let timeout = self.core().target.timeout;
        let too_slow = Fault::Unavailable("the database is too slow".to_owned());
        loop {
            self.refuse_where(&too_slow, |one| one.since.elapsed() >= timeout);
            // A request that comes later reaches its limit later.
            let oldest = self.state.lock().oldest();
            let pause = oldest.map_or(timeout, |since| timeout.saturating_sub(since.elapsed()));
            tokio::time::sleep(pause.max(LATE_MAX)).await;
        }
    }

    fn refuse_where(&self, fault: &Fault, is_refused: impl Fn(&Waiting<K>) -> bool) {
        let refused = self.state.lock().remove(is_refused);
        for one in refused {
            let _ = one.reply.send(Err(fault.clone().into()));
        }
    }

    fn core(&self) -> &Core {
        self.pool.core()
    }

    /// Sends groups on a connection of its own, without end.
    async fn serve(&self) {
        let mut kept = KeptConnection::new(Arc::clone(&self.pool), K::KEEP);
        let mut failures = 0;
        loop {
            while let Some(wait_max) = self.wait() {
                kept.rest(&self.wake, wait_max).await;
            }
            match kept.connect(|| self.wake.notify_one()).await {
                Ok(_) => {}
                Err(fault) => {
                    self.refuse_unreachable(&fault);
                    tokio::time::sleep(jittered(PAUSE)).await;
                    continue;
                }
            }
            let Some(group) = self.take() else { continue };
            let outcome = self.send(&mut kept, &group).await;
            failures = match &outcome {
                Outcome::Failed(_, Retry::Again { .. }) => failures + 1,
                _ => 0,
            };
            self.end(group, outcome);
            kept.share();
            pause(failures).await;
        }
    }

    /// `None` when a group is to be sent; otherwise how long to wait for more requests, or for the first if there are
    /// none that can be sent.
    fn wait(&self) -> Option<Option<Duration>> {
        let state = self.state.lock();
        if state.is_due() {
            return None;
        }
        Some(state.has_ready().then(|| state.timing.wait_max()))
    }

    /// There is no connection: all requests are refused while the database is away for long, otherwise those that have
    /// waited too long.
    fn refuse_unreachable(&self, fault: &Fault) {
        let is_away = self.core().health.check().is_err();
        let timeout = self.core().target.timeout;
        self.refuse_where(fault, |one| is_away || one.since.elapsed() > timeout);
    }

    /// Takes the next group; none if another worker was faster.
    fn take(&self) -> Option<Group<'_, K>> {
        let started = Instant::now();
        let mut state = self.state.lock();
        if !state.is_due() {
            return None;
        }
        let (requests, is_alone) = state.take();
        state.begin_group(started, is_alone);
        let is_more = state.is_due();
        drop(state);
        if is_more {
            self.wake.notify_one();
        }
        Some(Group { gather: self, requests, started, is_alone })
    }

    async fn send(&self, kept: &mut KeptConnection, group: &Group<'_, K>) -> Outcome<K::Answer> {
        let requests: Vec<&K::Request> = group.requests.iter().map(|one| &one.request).collect();
        let writes: usize = requests.iter().map(|request| K::writes(request)).sum();
        let sent = match kept.connection() {
            Some(connection) => match K::send(connection, &requests).await {
                Ok(answers) if writes > 0 => connection.check_commit().map(|()| answers),
                sent => sent,
            },
            None => Err(Failure::Elsewhere("there is no connection".to_owned())),
        };
        if writes > 0 {
            self.core().committed(writes, group.started);
        }
        let failure = match sent {
            Ok(answers) => return Outcome::Answered(answers.into_iter().map(Ok).collect()),
            Err(failure) => failure,
        };
        if failure.ends_connection() {
            kept.close();
        }
        match K::retry(&failure) {
            Retry::Find => {
                let found = self.find(kept, &requests).await;
                Outcome::Answered(found.into_iter().map(|answer| answer.ok_or_else(|| failure.clone())).collect())
            }
            retry => Outcome::Failed(failure, retry),
        }
    }

    /// The answers of those requests that took effect although the connection broke. Nothing is known about the others,
    /// nor about any if the database does not answer in time.
    async fn find(&self, kept: &mut KeptConnection, requests: &[&K::Request]) -> Vec<Option<K::Answer>> {
        if !requests.iter().any(|request| K::is_findable(request)) {
            return requests.iter().map(|_| None).collect();
        }
        let time_max = self.core().target.timeout.min(FIND_TIME_MAX);
        let finding = async {
            loop {
                if let Ok(connection) = kept.connect(|| ()).await
                    && let Ok(found) = K::find(connection, requests).await
                    && connection.check_commit().is_ok()
                {
                    return found;
                }
                kept.close();
                tokio::time::sleep(jittered(PAUSE)).await;
            }
        };
        let found = tokio::time::timeout(time_max, finding).await;
        found.unwrap_or_else(|_| {
            // The statement may still be under way.
            kept.close();
            requests.iter().map(|_| None).collect()
        })
    }

    /// Ends a group: its turns are free again before a caller can send the next request of the same turn.
    fn end(&self, mut group: Group<'_, K>, outcome: Outcome<K::Answer>) {
        let lock_wait_max = LOCK_TIMEOUT.min(self.core().target.timeout);
        let requests = std::mem::take(&mut group.requests);
        let (replies, is_more) = {
            let mut state = self.state.lock();
            state.end_group(&requests, group.started, group.is_alone, matches!(outcome, Outcome::Answered(_)));
            let replies = state.settle(requests, outcome, lock_wait_max);
            (replies, state.is_due())
        };
        if is_more {
            self.wake.notify_one();
        }
        for (reply, answer) in replies {
            // The caller may have gone away; what was written stands all the same.
            let _ = reply.send(answer);
        }
    }
}

/// How long after its time limit a request may be refused.
const LATE_MAX: Duration = Duration::from_millis(10);
/// Between attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// The callers have waited for a statement already, and clients time out after half a minute.
const FIND_TIME_MAX: Duration = Duration::from_secs(10);

#[cfg(all(test, feature = "test-postgres"))]
mod tests;
