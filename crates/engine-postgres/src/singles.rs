//! Writes of one row: those of concurrent requests share a statement, and so a commit.
//!
//! A few tasks keep a connection each. A task takes waiting writes of one kind, of distinct rows, and sends them as one
//! statement; each write has its own condition, and one whose condition does not hold does not disturb the others. Writes
//! of the same row follow one another: a row that is in some task's hands is left to wait.

use crate::connection::{Connection, Parameters, column};
use crate::core::{Core, Line};
use crate::failure::Failure;
use crate::reads::distinct;
use crate::statements::{DELETE_MANY, INSERT_MANY, UPDATE_MANY, UPSERT_MANY};
use larimar_engine::Fault;
use larimar_model::Timestamp;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;
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

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Rows in some task's hands, by their hash. Two rows of one hash only wait for each other.
    busy: FxHashSet<u64>,
    /// Statements under way.
    running: usize,
}

struct Waiting {
    write: Single,
    row: u64,
    since: Instant,
    reply: oneshot::Sender<Result<Outcome, Failure>>,
}

impl Singles {
    pub(crate) fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core, queue: Mutex::default(), wake: Notify::new() })
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
                self.wake.notified().await;
            }
            let connection = line.connection(|fault| self.refuse(fault)).await;
            let group = self.take();
            if group.is_empty() {
                self.queue.lock().running -= 1;
                continue;
            }
            let started = Instant::now();
            let result = carry_out(connection, &group).await;
            self.core.committed(group.len(), started);
            let rows: Vec<u64> = group.iter().map(|waiting| waiting.row).collect();
            match result {
                Ok(done) => answer(group, &done),
                Err(Failure::Broken(reason)) => {
                    let puts = group.iter().map(|waiting| &waiting.write).filter(|write| write.kind != Kind::Delete);
                    let puts: Vec<_> = puts.map(|write| (&*write.pk, &*write.rk, write.token)).collect();
                    let found = line.confirm(&puts).await;
                    let confirmed = puts.iter().zip(found).filter_map(|((.., token), found)| Some((*token, found?)));
                    let confirmed = confirmed.collect();
                    answer_broken(group, &confirmed, &reason);
                }
                Err(failure) => {
                    if failure.ends_connection() {
                        line.give_up();
                    }
                    for waiting in group {
                        let _ = waiting.reply.send(Err(failure.clone()));
                    }
                }
            }
            self.queue.lock().running -= 1;
            self.release(&rows);
        }
    }

    /// Takes writes of one kind and of distinct rows that nobody holds, in the order they came. Whoever takes is running.
    fn take(&self) -> Vec<Waiting> {
        let mut queue = self.queue.lock();
        queue.running += 1;
        let mut group: Vec<Waiting> = Vec::new();
        let mut left = VecDeque::with_capacity(queue.waiting.len());
        // A row with a write that was left waiting must not be overtaken by its next write.
        let mut passed = FxHashSet::default();
        let mut bytes = 0;
        let Queue { waiting, busy, .. } = &mut *queue;
        while let Some(next) = waiting.pop_front() {
            let is_kind = group.first().is_none_or(|first| first.write.kind == next.write.kind);
            let is_free = !busy.contains(&next.row) && !passed.contains(&next.row);
            let is_room = group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX;
            if is_kind && is_free && is_room {
                bytes += next.write.bytes();
                busy.insert(next.row);
                group.push(next);
            } else {
                passed.insert(next.row);
                left.push_back(next);
            }
        }
        queue.waiting = left;
        queue.bytes -= bytes;
        let is_more = queue.has_work();
        drop(queue);
        if is_more {
            self.wake.notify_one();
        }
        let timeout = self.core.target.timeout;
        let (late, mut group): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|waiting| waiting.since.elapsed() > timeout);
        if !late.is_empty() {
            self.release(&late.iter().map(|waiting| waiting.row).collect::<Vec<_>>());
        }
        for waiting in late {
            let _ = waiting.reply.send(Err(Failure::Refused("the database is too slow".to_owned())));
        }
        // Everyone locks rows in the same order, so nobody waits in a circle.
        group.sort_unstable_by(|a, b| (&a.write.pk, &a.write.rk).cmp(&(&b.write.pk, &b.write.rk)));
        group
    }

    fn release(&self, rows: &[u64]) {
        let mut queue = self.queue.lock();
        for row in rows {
            queue.busy.remove(row);
        }
        let is_more = queue.has_work();
        drop(queue);
        if is_more {
            self.wake.notify_one();
        }
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

impl Queue {
    /// Whether another statement is worth it: those that wait are many, or few statements are under way. A commit costs
    /// the same for one write and for many.
    fn has_work(&self) -> bool {
        let enough = if self.running < RUNNING_FREELY { 1 } else { GATHERED };
        self.waiting.len() >= enough && self.waiting.iter().any(|waiting| !self.busy.contains(&waiting.row))
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
const WAITING_BYTES_MAX: usize = 64 << 20;
