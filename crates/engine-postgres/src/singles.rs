//! Writes of one row: those of concurrent requests share a statement, and so a commit.
//!
//! A few tasks keep a connection each. A task takes waiting writes of one kind, of distinct rows, and sends them as one
//! statement; each write has its own condition, and one whose condition does not hold does not disturb the others. Writes
//! of the same row follow one another: a row that is in some task's hands is left to wait.
//!
//! A row that another session holds stops the statement that writes it, and with it all writes of the group. The statement
//! gives up after a while; then each of its writes is sent by itself, on some of the connections only, and further writes
//! of a row that was held are too, until one succeeds.

use crate::connection::{Connection, Parameters, column};
use crate::core::{Core, LOCK_TIMEOUT, Line};
use crate::failure::Failure;
use crate::gathering::Gathering;
use crate::reads::distinct;
use crate::statements::{DELETE_MANY, INSERT_MANY, UPDATE_MANY, UPSERT_MANY};
use larimar_engine::Fault;
use larimar_model::Timestamp;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// What a write does, and on which condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Stores a row where none is.
    Insert,
    /// Stores a row.
    Upsert,
    /// Stores a row where one is, of the expected version if one is expected.
    Update,
    /// Removes a row, of the expected version if one is expected.
    Delete,
}

/// A write of one row.
#[derive(Debug)]
pub(crate) struct Single {
    pub(crate) kind: Kind,
    pub(crate) space: i64,
    pub(crate) pk: Vec<u8>,
    pub(crate) rk: Vec<u8>,
    /// The version that the row must have; -1 for any.
    pub(crate) expected: i64,
    pub(crate) token: i64,
    pub(crate) body: Vec<u8>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It took effect, and the row has this version, or had it if it was deleted.
    Done(Timestamp),
    /// It changed nothing: its condition did not hold, or its space is gone.
    Missed,
}

/// The writes that wait, and whom to wake.
pub(crate) struct Singles {
    core: Arc<Core>,
    queue: Mutex<Queue>,
    wake: Notify,
}

struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Rows in some task's hands, by their hash. Two rows of one hash only wait for each other.
    busy: FxHashSet<u64>,
    /// Rows of a statement that met a lock: perhaps they are held, so they are written one at a time.
    suspects: FxHashSet<u64>,
    /// Statements under way for such rows, and how many there may be.
    alone: usize,
    alone_max: usize,
    gathering: Gathering,
}

struct Waiting {
    write: Single,
    row: u64,
    since: Instant,
    reply: oneshot::Sender<Result<Outcome, Failure>>,
}

impl Singles {
    pub(crate) fn new(core: Arc<Core>, connections: usize) -> Arc<Self> {
        let queue = Queue {
            waiting: VecDeque::new(),
            bytes: 0,
            busy: FxHashSet::default(),
            suspects: FxHashSet::default(),
            alone: 0,
            alone_max: (connections / 2).max(1),
            gathering: Gathering::new(RUNNING_FREELY, GATHERED),
        };
        Arc::new(Self { core, queue: Mutex::new(queue), wake: Notify::new() })
    }

    /// Writes one row. The write goes on even if the caller goes away.
    pub(crate) async fn write(&self, write: Single) -> Result<Outcome, Failure> {
        let refused = |text: &str| Failure::Refused(text.to_owned());
        let (reply, outcome) = oneshot::channel();
        let row = hash(&write.pk, &write.rk);
        {
            let mut queue = self.queue.lock();
            self.core.health.check().map_err(|fault| Failure::Refused(fault.to_string()))?;
            if queue.waiting.len() >= WAITING_MAX || queue.bytes >= WAITING_BYTES_MAX {
                return Err(refused("too many writes wait for the database"));
            }
            queue.bytes += write.bytes();
            queue.waiting.push_back(Waiting { write, row, since: Instant::now(), reply });
        }
        self.wake.notify_one();
        outcome.await.unwrap_or_else(|_| Err(refused("the engine is closed")))
    }

    /// Carries writes out on a connection of its own, for ever.
    pub(crate) async fn serve(self: Arc<Self>) {
        let mut line = Line::new(Arc::clone(&self.core));
        loop {
            while !self.queue.lock().has_work() {
                let patience = self.queue.lock().patience();
                line.rest(&self.wake, patience).await;
            }
            let connection = line.connection(&self.wake, |fault| self.refuse(fault)).await;
            let Some(Group { writes, started, is_alone }) = self.take() else { continue };
            let result = carry_out(connection, &writes).await;
            self.core.committed(writes.len(), started);
            let rows: Vec<u64> = writes.iter().map(|waiting| waiting.row).collect();
            let is_done = result.is_ok();
            let mut locked = Vec::new();
            match result {
                Ok(done) => answer(writes, &done),
                Err(Failure::Locked(_)) => locked = writes,
                Err(Failure::Broken(reason)) => {
                    let puts = writes.iter().map(|waiting| &waiting.write).filter(|write| write.kind != Kind::Delete);
                    let puts: Vec<_> = puts.map(|write| (&*write.pk, &*write.rk, write.token)).collect();
                    let found = line.confirm(&puts).await;
                    let confirmed = puts.iter().zip(found).filter_map(|((.., token), found)| Some((*token, found?)));
                    let confirmed = confirmed.collect();
                    answer_broken(writes, &confirmed, &reason);
                }
                Err(failure) => {
                    if failure.ends_connection() {
                        line.give_up();
                    }
                    for waiting in writes {
                        let _ = waiting.reply.send(Err(failure.clone()));
                    }
                }
            }
            let mut queue = self.queue.lock();
            line.share();
            queue.gathering.end(started, Instant::now());
            queue.alone -= usize::from(is_alone);
            queue.release(&rows, is_done);
            queue.put_back(locked, LOCK_TIMEOUT.min(self.core.target.timeout));
            let is_more = queue.has_work();
            drop(queue);
            if is_more {
                self.wake.notify_one();
            }
        }
    }

    /// Takes the writes for a statement, without those that waited too long; none if others were faster.
    fn take(&self) -> Option<Group> {
        let mut queue = self.queue.lock();
        if !queue.has_work() {
            return None;
        }
        let (writes, is_alone) = queue.take();
        let timeout = self.core.target.timeout;
        let (late, mut writes): (Vec<_>, Vec<_>) =
            writes.into_iter().partition(|waiting| waiting.since.elapsed() > timeout);
        queue.release(&late.iter().map(|waiting| waiting.row).collect::<Vec<_>>(), false);
        let started = Instant::now();
        if !writes.is_empty() {
            queue.gathering.begin(started);
            queue.alone += usize::from(is_alone);
        }
        let is_more = queue.has_work();
        drop(queue);
        if is_more {
            self.wake.notify_one();
        }
        for waiting in late {
            let _ = waiting.reply.send(Err(Failure::Refused("the database is too slow".to_owned())));
        }
        // Everyone locks rows in the same order, so nobody waits in a circle.
        writes.sort_unstable_by(|a, b| (&a.write.pk, &a.write.rk).cmp(&(&b.write.pk, &b.write.rk)));
        (!writes.is_empty()).then_some(Group { writes, started, is_alone })
    }

    /// Lets all go who wait; nothing of theirs was sent.
    pub(crate) fn refuse(&self, fault: &Fault) {
        let mut queue = self.queue.lock();
        queue.bytes = 0;
        for waiting in queue.waiting.drain(..) {
            let _ = waiting.reply.send(Err(Failure::Refused(fault.to_string())));
        }
    }
}

/// The writes of one statement.
struct Group {
    writes: Vec<Waiting>,
    started: Instant,
    /// Whether it is one write of a row that may be locked.
    is_alone: bool,
}

impl Queue {
    /// Whether another statement is worth it: those that wait are many, or few statements are under way. A commit costs
    /// the same for one write and for many.
    fn has_work(&self) -> bool {
        let mut ready = self.waiting.iter().filter(|waiting| self.is_ready(waiting));
        let Some(first) = ready.next() else { return false };
        let count = 1 + ready.take(self.gathering.enough()).count();
        self.gathering.is_due(count, first.since, Instant::now())
    }

    /// How long to wait for more, if anything can be written.
    fn patience(&self) -> Option<Duration> {
        self.waiting.iter().any(|waiting| self.is_ready(waiting)).then(|| self.gathering.patience())
    }

    /// Whether a write can be sent: nobody writes its row, and for one that may be locked a connection can be spared.
    fn is_ready(&self, waiting: &Waiting) -> bool {
        !self.busy.contains(&waiting.row) && (self.alone < self.alone_max || !self.suspects.contains(&waiting.row))
    }

    /// Takes writes of one kind and of distinct rows that nobody holds, in the order they came; or one write of a row
    /// that may be locked, which is told.
    fn take(&mut self) -> (Vec<Waiting>, bool) {
        let mut group: Vec<Waiting> = Vec::new();
        let mut left = VecDeque::with_capacity(self.waiting.len());
        // A row with a write that was left waiting must not be overtaken by its next write.
        let mut passed = FxHashSet::default();
        let (mut bytes, mut is_alone) = (0, false);
        while let Some(next) = self.waiting.pop_front() {
            let is_suspect = self.suspects.contains(&next.row);
            let is_kind = group.first().is_none_or(|first| first.write.kind == next.write.kind && !is_suspect);
            let is_room = !is_alone && group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX;
            if is_kind && is_room && self.is_ready(&next) && !passed.contains(&next.row) {
                bytes += next.write.bytes();
                is_alone = is_suspect;
                self.busy.insert(next.row);
                group.push(next);
            } else {
                passed.insert(next.row);
                left.push_back(next);
            }
        }
        self.waiting = left;
        self.bytes -= bytes;
        (group, is_alone)
    }

    /// Lets rows go. Those that were written are not locked.
    fn release(&mut self, rows: &[u64], is_done: bool) {
        for row in rows {
            self.busy.remove(row);
            if is_done {
                self.suspects.remove(row);
            }
        }
    }

    /// Puts writes back whose statement met a lock, to be sent one at a time: those of a group at the front, since most
    /// of their rows are free; one that was alone behind the others. A write that waited too long is given back.
    fn put_back(&mut self, writes: Vec<Waiting>, wait_max: Duration) {
        let is_group = writes.len() > 1;
        if self.suspects.len() > SUSPECTS_MAX {
            self.suspects.clear();
        }
        for waiting in writes.into_iter().rev() {
            self.suspects.insert(waiting.row);
            if waiting.since.elapsed() > wait_max {
                let _ = waiting.reply.send(Err(Failure::Locked("another session holds the row".to_owned())));
                continue;
            }
            self.bytes += waiting.write.bytes();
            if is_group { self.waiting.push_front(waiting) } else { self.waiting.push_back(waiting) }
        }
    }
}

impl Single {
    fn bytes(&self) -> usize {
        self.pk.len() + self.rk.len() + self.body.len()
    }
}

/// Sends a group as one statement. Returns the versions of those that took effect, by their tokens.
async fn carry_out(connection: &Connection, group: &[Waiting]) -> Result<FxHashMap<i64, Timestamp>, Failure> {
    let writes = || group.iter().map(|waiting| &waiting.write);
    let spaces: Vec<i64> = writes().map(|write| write.space).collect();
    let pks: Vec<&[u8]> = writes().map(|write| write.pk.as_slice()).collect();
    let rks: Vec<&[u8]> = writes().map(|write| write.rk.as_slice()).collect();
    let tokens: Vec<i64> = writes().map(|write| write.token).collect();
    let bodies: Vec<&[u8]> = writes().map(|write| write.body.as_slice()).collect();
    let expected: Vec<i64> = writes().map(|write| write.expected).collect();
    let of = distinct(&spaces);
    let (statement, parameters): (_, Parameters<'_>) = match group[0].write.kind {
        Kind::Insert => (INSERT_MANY, &[&spaces, &pks, &rks, &tokens, &bodies, &of]),
        Kind::Upsert => (UPSERT_MANY, &[&spaces, &pks, &rks, &tokens, &bodies, &of]),
        Kind::Update => (UPDATE_MANY, &[&spaces, &pks, &rks, &tokens, &bodies, &of, &expected]),
        Kind::Delete => (DELETE_MANY, &[&spaces, &pks, &rks, &tokens, &expected, &of]),
    };
    let rows = connection.query(statement, parameters).await?;
    connection.check_commit()?;
    versions(&rows)
}

/// The versions in an answer, by the tokens beside them.
fn versions(rows: &[tokio_postgres::Row]) -> Result<FxHashMap<i64, Timestamp>, Failure> {
    rows.iter()
        .map(|row| {
            let version: i64 = column(row, 1)?;
            Ok((column(row, 0)?, Timestamp::from_ticks(version.cast_unsigned())))
        })
        .collect()
}

fn answer(group: Vec<Waiting>, done: &FxHashMap<i64, Timestamp>) {
    for waiting in group {
        let outcome = done.get(&waiting.write.token).map_or(Outcome::Missed, |version| Outcome::Done(*version));
        // Nobody may be waiting any more; the write stands all the same.
        let _ = waiting.reply.send(Ok(outcome));
    }
}

/// Answers after the connection broke: those that are found took effect, of the others nobody knows.
fn answer_broken(group: Vec<Waiting>, confirmed: &FxHashMap<i64, Timestamp>, reason: &str) {
    for waiting in group {
        let outcome = match confirmed.get(&waiting.write.token) {
            Some(version) => Ok(Outcome::Done(*version)),
            None => Err(Failure::Broken(reason.to_owned())),
        };
        let _ = waiting.reply.send(outcome);
    }
}

fn hash(pk: &[u8], rk: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    (pk, rk).hash(&mut hasher);
    hasher.finish()
}

/// Statements that begin as soon as one write waits, and how many have to wait for a further one.
const RUNNING_FREELY: usize = 2;
const GATHERED: usize = 16;
const GROUP_MAX: usize = 128;
const GROUP_BYTES_MAX: usize = 1 << 20;
const WAITING_MAX: usize = 20_000;
/// Rows remembered as locked. Beyond that all are forgotten and found out anew.
const SUSPECTS_MAX: usize = 10_000;
const WAITING_BYTES_MAX: usize = 64 << 20;
