//! Messages put and deleted: those of concurrent requests share a statement, and so a commit.
//!
//! Whoever finds fewer than a few statements under way begins one, in a task of its own, so that it ends even if the caller goes
//! away; meanwhile the next requests gather. A group is of one kind, and deletes of one queue. A put is never sent twice
//! unless the database said that nothing took effect; when its answer is lost the message is looked for by its name.

use crate::connection::{Parameters, column};
use crate::core::{Core, jittered};
use crate::failure::Failure;
use crate::pool::{Pool, Unanswered};
use crate::reads::distinct;
use crate::statements::{CONFIRM_MESSAGES, DELETE_MESSAGES, PUT_MESSAGES};
use larimar_engine::Fault;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio_postgres::Row;

/// A message to add. Times are ticks.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) queue: i64,
    pub(crate) id: Vec<u8>,
    pub(crate) hidden_for: i64,
    /// -1 for ever.
    pub(crate) lives_for: i64,
    pub(crate) receipt: i64,
    pub(crate) body: Vec<u8>,
}

/// A message to delete.
#[derive(Debug)]
pub(crate) struct Delete {
    pub(crate) queue: i64,
    pub(crate) id: Vec<u8>,
    pub(crate) receipt: i64,
    pub(crate) visible_at: i64,
}

/// When a message was added, is visible, and expires, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) inserted: i64,
    pub(crate) visible_at: i64,
    pub(crate) expires: i64,
}

pub(crate) struct Posts {
    core: Arc<Core>,
    pool: Arc<Pool>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    puts: VecDeque<Waiting<Put, Times>>,
    deletes: VecDeque<Waiting<Delete, ()>>,
    bytes: usize,
    /// Statements under way.
    running: usize,
}

/// A request, and whom to tell. `None` means that nothing happened: there is no such queue, or no such delivery.
struct Waiting<W, A> {
    work: W,
    since: Instant,
    reply: oneshot::Sender<Result<Option<A>, Fault>>,
}

type Group<W, A> = Vec<Waiting<W, A>>;

enum Taken {
    Puts(Group<Put, Times>),
    Deletes(Group<Delete, ()>),
}

impl Posts {
    pub(crate) fn new(core: Arc<Core>, pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self { core, pool, queue: Mutex::default() })
    }

    /// Adds a message; `None` if its queue is gone.
    pub(crate) async fn put(self: &Arc<Self>, work: Put) -> Result<Option<Times>, Fault> {
        let (reply, answer) = oneshot::channel();
        {
            let mut queue = self.admit(work.body.len())?;
            queue.puts.push_back(Waiting { work, since: Instant::now(), reply });
        }
        self.begin();
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Deletes a message; `None` if the receipt does not hold.
    pub(crate) async fn delete(self: &Arc<Self>, work: Delete) -> Result<Option<()>, Fault> {
        let (reply, answer) = oneshot::channel();
        {
            let mut queue = self.admit(0)?;
            queue.deletes.push_back(Waiting { work, since: Instant::now(), reply });
        }
        self.begin();
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    fn admit(&self, bytes: usize) -> Result<parking_lot::MutexGuard<'_, Queue>, Fault> {
        self.core.health.check()?;
        let mut queue = self.queue.lock();
        if queue.puts.len() + queue.deletes.len() >= WAITING_MAX || queue.bytes >= WAITING_BYTES_MAX {
            return Err(Fault::Unavailable("too many messages wait for the database".to_owned()));
        }
        queue.bytes += bytes;
        Ok(queue)
    }

    /// Starts a task for what waits, unless there are enough.
    fn begin(self: &Arc<Self>) {
        {
            let mut queue = self.queue.lock();
            if queue.running >= RUNNING_MAX || queue.puts.is_empty() && queue.deletes.is_empty() {
                return;
            }
            queue.running += 1;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            // Its drop also counts when the runtime ends the task.
            let running = Running(this);
            while let Some(taken) = running.0.take() {
                match taken {
                    Taken::Puts(group) => running.0.carry_out_puts(group).await,
                    Taken::Deletes(group) => running.0.carry_out_deletes(group).await,
                }
            }
        });
    }

    /// Takes what has waited longest, and what goes with it.
    fn take(&self) -> Option<Taken> {
        let mut queue = self.queue.lock();
        let since = |first: Option<Instant>| first.unwrap_or_else(Instant::now);
        let puts_since = queue.puts.front().map(|first| first.since);
        let deletes_since = queue.deletes.front().map(|first| first.since);
        if puts_since.is_some() && (deletes_since.is_none() || since(puts_since) <= since(deletes_since)) {
            let (mut group, mut bytes) = (Vec::new(), 0);
            while group.len() < GROUP_MAX
                && bytes < GROUP_BYTES_MAX
                && let Some(next) = queue.puts.pop_front()
            {
                bytes += next.work.body.len();
                group.push(next);
            }
            queue.bytes -= bytes;
            return Some(Taken::Puts(group));
        }
        let of = queue.deletes.front()?.work.queue;
        let (mut group, mut left, mut ids) = (Vec::new(), VecDeque::new(), FxHashSet::default());
        while let Some(next) = queue.deletes.pop_front() {
            let fits = group.len() < GROUP_MAX && next.work.queue == of && ids.insert(next.work.id.clone());
            if fits { group.push(next) } else { left.push_back(next) }
        }
        queue.deletes = left;
        Some(Taken::Deletes(group))
    }

    async fn carry_out_puts(&self, group: Group<Put, Times>) {
        let started = Instant::now();
        let puts = || group.iter().map(|waiting| &waiting.work);
        let queues: Vec<i64> = puts().map(|put| put.queue).collect();
        let ids: Vec<&[u8]> = puts().map(|put| put.id.as_slice()).collect();
        let hidden: Vec<i64> = puts().map(|put| put.hidden_for).collect();
        let lives: Vec<i64> = puts().map(|put| put.lives_for).collect();
        let receipts: Vec<i64> = puts().map(|put| put.receipt).collect();
        let bodies: Vec<&[u8]> = puts().map(|put| put.body.as_slice()).collect();
        let of = distinct(&queues);
        let parameters: Parameters<'_> = &[&queues, &ids, &hidden, &lives, &receipts, &bodies, &of];
        let sent = self.pool.send(PUT_MESSAGES, parameters).await;
        self.core.committed(group.len(), started);
        let found = match &sent {
            Ok(rows) => times(rows),
            // Of those that are not there nothing is known.
            Err(Unanswered::Lost(_)) => self.confirmed(&queues, &ids).await,
            Err(Unanswered::Undone(_)) => FxHashMap::default(),
        };
        for waiting in group {
            let answer = match (found.get(&waiting.work.id), &sent) {
                (Some(times), _) => Ok(Some(*times)),
                (None, Ok(_)) => Ok(None),
                (None, Err(unanswered)) => Err(unanswered.clone().into()),
            };
            // Nobody may be waiting any more; the message is there all the same.
            let _ = waiting.reply.send(answer);
        }
    }

    async fn carry_out_deletes(&self, mut group: Group<Delete, ()>) {
        let started = Instant::now();
        // Every server locks messages in the same order, so that none waits in a circle.
        group.sort_unstable_by(|a, b| a.work.id.cmp(&b.work.id));
        let deletes = || group.iter().map(|waiting| &waiting.work);
        let ids: Vec<&[u8]> = deletes().map(|delete| delete.id.as_slice()).collect();
        let receipts: Vec<i64> = deletes().map(|delete| delete.receipt).collect();
        let ends: Vec<i64> = deletes().map(|delete| delete.visible_at).collect();
        let sent = self.pool.send(DELETE_MESSAGES, &[&group[0].work.queue, &ids, &receipts, &ends]).await;
        self.core.committed(group.len(), started);
        let gone = sent.map(|rows| rows.iter().filter_map(|row| column(row, 0).ok()).collect::<FxHashSet<Vec<u8>>>());
        for waiting in group {
            let answer = match &gone {
                Ok(gone) => Ok(gone.contains(&waiting.work.id).then_some(())),
                Err(unanswered) => Err(unanswered.clone().into()),
            };
            let _ = waiting.reply.send(answer);
        }
    }

    /// Those of some messages that are there, by a new connection.
    async fn confirmed(&self, queues: &[i64], ids: &[&[u8]]) -> FxHashMap<Vec<u8>, Times> {
        let asked = async {
            loop {
                match self.pool.ask(CONFIRM_MESSAGES, &[&queues, &ids]).await {
                    Ok(rows) => return times(&rows),
                    Err(_) => tokio::time::sleep(jittered(CONFIRM_PAUSE)).await,
                }
            }
        };
        let patience = self.core.target.timeout.min(CONFIRM_TIME_MAX);
        tokio::time::timeout(patience, asked).await.unwrap_or_default()
    }
}

/// A task that carries out statements.
struct Running(Arc<Posts>);

impl Drop for Running {
    fn drop(&mut self) {
        let is_more = {
            let mut queue = self.0.queue.lock();
            queue.running -= 1;
            !queue.puts.is_empty() || !queue.deletes.is_empty()
        };
        // Something may have come between the last look and now.
        if is_more && tokio::runtime::Handle::try_current().is_ok() {
            self.0.begin();
        }
    }
}

fn times(rows: &[Row]) -> FxHashMap<Vec<u8>, Times> {
    let entry = |row: &Row| -> Result<_, Failure> {
        let times = Times { inserted: column(row, 1)?, visible_at: column(row, 2)?, expires: column(row, 3)? };
        Ok((column(row, 0)?, times))
    };
    rows.iter().filter_map(|row| entry(row).ok()).collect()
}

fn closed() -> Fault {
    Fault::Unavailable("the engine is closed".to_owned())
}

/// Statements under way at once. Few make large groups.
const RUNNING_MAX: usize = 4;
const GROUP_MAX: usize = 128;
const GROUP_BYTES_MAX: usize = 1 << 20;
const WAITING_MAX: usize = 20_000;
const WAITING_BYTES_MAX: usize = 64 << 20;
const CONFIRM_PAUSE: Duration = Duration::from_millis(100);
/// Whoever waits has waited for a statement already, and clients give up after half a minute.
const CONFIRM_TIME_MAX: Duration = Duration::from_secs(10);
