//! Group commit: one thread takes everything that is enqueued, writes one batch, syncs once, answers all.
//!
//! While a sync runs, the next group gathers; the slower the disk, the larger the groups. Order in the
//! queue is order of commit, so a write that saw another's pending rows is never durable without it.
//! What happens when a commit fails is in `recovery.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larimar_engine::{Clock, Fault, SystemClock};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::catalogue::{self, CommitPoint};
use crate::commit_feed::CommitGroup;
use crate::recovery;
use crate::shared::Shared;
use crate::store::{Batch, Bytes, StoreError, SyncTo};

/// Writes that belong together.
#[derive(Default)]
pub(crate) struct Commit {
    /// What to write; nothing for those who only wait for the writes before them.
    pub(crate) writes: Writes,
    /// The latch stripe that lists the writes as pending.
    pub(crate) stripe: Option<usize>,
    /// Whether it frees space although it writes something, as a drop does. One that only deletes needs not say so.
    pub(crate) frees: bool,
    /// Whether it leaves the stored data about as large as it was, or smaller. On a full disk such commits are taken too,
    /// as long as there is some room.
    pub(crate) is_small: bool,
    /// Runs after the commit, before the answer: `true` if it succeeded.
    pub(crate) effect: Option<Effect>,
}

/// A commit in the queue, and where its outcome is sent.
pub(crate) struct Queued {
    commit: Commit,
    reply: oneshot::Sender<Result<(), Fault>>,
    ticket: u64,
}

/// Called after a commit with whether it succeeded.
pub(crate) type Effect = Box<dyn FnOnce(bool) + Send>;

/// Some writes; a single one needs no allocation.
#[derive(Clone, Default)]
pub(crate) enum Writes {
    #[default]
    None,
    One([Write; 1]),
    Many(Vec<Write>),
}

/// A key and its new value, or none to delete it.
pub(crate) type Write = (Bytes, Option<Bytes>);

impl Writes {
    pub(crate) fn push(&mut self, write: Write) {
        *self = match std::mem::take(self) {
            Self::None => Self::One([write]),
            Self::One([first]) => Self::Many(vec![first, write]),
            Self::Many(mut writes) => {
                writes.push(write);
                Self::Many(writes)
            }
        };
    }

    fn into_vec(self) -> Vec<Write> {
        match self {
            Self::None => Vec::new(),
            Self::One(writes) => writes.into(),
            Self::Many(writes) => writes,
        }
    }

    pub(crate) fn as_slice(&self) -> &[Write] {
        match self {
            Self::None => &[],
            Self::One(writes) => writes,
            Self::Many(writes) => writes,
        }
    }
}

impl Queued {
    /// Answers with the outcome.
    pub(crate) fn finish(self, outcome: &Result<(), Fault>) {
        if let Some(effect) = self.commit.effect {
            effect(outcome.is_ok());
        }
        // The caller may have gone; the write stands all the same.
        let _ = self.reply.send(outcome.clone());
    }

    fn writes(&self) -> &[Write] {
        self.commit.writes.as_slice()
    }

    fn bytes(&self) -> usize {
        let size = |(key, value): &Write| key.len() + value.as_ref().map_or(0, |value| value.len());
        self.writes().iter().map(size).sum()
    }
}

/// The outcome of a commit, to wait for.
pub(crate) struct Outcome(oneshot::Receiver<Result<(), Fault>>);

impl Outcome {
    pub(crate) async fn wait(self) -> Result<(), Fault> {
        self.0.await.unwrap_or_else(|_| Err(closed()))
    }

    /// For threads of the engine's own.
    pub(crate) fn wait_blocking(self) -> Result<(), Fault> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(closed()))
    }
}

/// What waits for the committer.
pub(crate) struct CommitQueue {
    inner: Mutex<Inner>,
    wake: Condvar,
}

struct Inner {
    waiting: Vec<Queued>,
    gate: Gate,
    last_ticket: u64,
    idle: bool,
    /// Whether the store is to be opened again in the mode that suits the disk.
    reopen: bool,
    /// Whether a full disk has no room but for deletes and drops.
    deletes_only: bool,
    /// The number of the last commit before the disk was full.
    full_since: u64,
}

/// Whether the queue takes commits.
enum Gate {
    Open,
    /// Not while the store cannot write.
    Shut(Fault),
    /// Only those that free space, as the disk is full.
    Freeing(Fault),
    /// Not any more.
    Stopping,
}

impl CommitQueue {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            waiting: Vec::new(),
            gate: Gate::Open,
            last_ticket: 0,
            idle: false,
            reopen: false,
            deletes_only: false,
            full_since: 0,
        };
        Self { inner: Mutex::new(inner), wake: Condvar::new() }
    }

    /// Enqueues a commit; returns its ticket and its outcome.
    pub(crate) fn push(&self, commit: Commit) -> Result<(u64, Outcome), Fault> {
        let (reply, outcome) = oneshot::channel();
        let mut inner = self.inner.lock();
        if let Err(fault) = inner.admit(&commit) {
            drop(inner);
            if let Some(effect) = commit.effect {
                effect(false);
            }
            return Err(fault);
        }
        inner.last_ticket += 1;
        let ticket = inner.last_ticket;
        inner.waiting.push(Queued { commit, reply, ticket });
        let wake = std::mem::take(&mut inner.idle);
        drop(inner);
        if wake {
            self.wake.notify_one();
        }
        Ok((ticket, Outcome(outcome)))
    }

    /// `Ok` while commits are taken.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.inner.lock().check()
    }

    /// Ends the committer once everything enqueued is done.
    pub(crate) fn stop(&self) {
        self.inner.lock().gate = Gate::Stopping;
        self.wake.notify_one();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.inner.lock().gate, Gate::Stopping)
    }

    /// Refuses commits from now on; returns those that were waiting.
    pub(crate) fn shut(&self, fault: Fault) -> Vec<Queued> {
        let mut inner = self.inner.lock();
        inner.note_full();
        if !matches!(inner.gate, Gate::Stopping) {
            inner.gate = Gate::Shut(fault);
        }
        std::mem::take(&mut inner.waiting)
    }

    /// Takes commits again.
    pub(crate) fn open(&self) {
        self.turn(Gate::Open);
    }

    /// Takes only commits that free space, if all were taken until now; whether that is so.
    pub(crate) fn narrow(&self, fault: Fault) -> bool {
        let mut inner = self.inner.lock();
        let is_open = matches!(inner.gate, Gate::Open);
        if is_open {
            inner.note_full();
            inner.gate = Gate::Freeing(fault);
        }
        is_open
    }

    /// Takes all commits, if only those that free space were taken until now; whether that is so.
    pub(crate) fn widen(&self) -> bool {
        let mut inner = self.inner.lock();
        let is_freeing = matches!(inner.gate, Gate::Freeing(_));
        if is_freeing {
            inner.gate = Gate::Open;
        }
        is_freeing
    }

    /// Takes commits that free space, and refuses the others.
    pub(crate) fn open_for_freeing(&self, fault: Fault) {
        self.turn(Gate::Freeing(fault));
    }

    /// Has the committer open the store again, in the mode that suits the disk.
    pub(crate) fn request_reopen(&self) {
        self.inner.lock().reopen = true;
        self.wake.notify_one();
    }

    /// Sets what is answered to commits that a full disk has no room for, and whether it has room for deletes and drops
    /// only.
    pub(crate) fn set_full(&self, fault: Fault, deletes_only: bool) {
        let mut inner = self.inner.lock();
        inner.deletes_only = deletes_only;
        if let Gate::Freeing(answer) = &mut inner.gate {
            *answer = fault;
        }
    }

    /// Whether something may have been deleted since the disk is full; unknown after a start, so it may.
    pub(crate) fn may_have_freed(&self) -> bool {
        let inner = self.inner.lock();
        inner.full_since == 0 || inner.last_ticket > inner.full_since
    }

    /// The number of the last commit that was enqueued.
    pub(crate) fn last_ticket(&self) -> u64 {
        self.inner.lock().last_ticket
    }

    /// Whether only commits that free space are taken.
    pub(crate) fn is_freeing(&self) -> bool {
        matches!(self.inner.lock().gate, Gate::Freeing(_))
    }

    /// Changes what is taken, unless the end has begun.
    fn turn(&self, gate: Gate) {
        let mut inner = self.inner.lock();
        if !matches!(inner.gate, Gate::Stopping) {
            inner.gate = gate;
        }
        // It was opened just now.
        inner.reopen = false;
    }

    /// Moves everything enqueued to `taken`; waits for something, until `deadline` at most.
    fn take(&self, taken: &mut VecDeque<Queued>, deadline: Option<Instant>) -> Taken {
        let mut inner = self.inner.lock();
        while inner.waiting.is_empty() {
            if matches!(inner.gate, Gate::Stopping) {
                return Taken::Stop;
            }
            if std::mem::take(&mut inner.reopen) {
                return Taken::Reopen;
            }
            inner.idle = true;
            match deadline {
                None => self.wake.wait(&mut inner),
                Some(deadline) => {
                    if self.wake.wait_until(&mut inner, deadline).timed_out() && inner.waiting.is_empty() {
                        inner.idle = false;
                        return Taken::Nothing;
                    }
                }
            }
        }
        inner.idle = false;
        taken.extend(inner.waiting.drain(..));
        Taken::Some
    }
}

impl Inner {
    fn note_full(&mut self) {
        if matches!(self.gate, Gate::Open) {
            self.full_since = self.last_ticket;
        }
    }

    fn check(&self) -> Result<(), Fault> {
        match &self.gate {
            Gate::Open => Ok(()),
            Gate::Shut(fault) | Gate::Freeing(fault) => Err(fault.clone()),
            Gate::Stopping => Err(closed()),
        }
    }

    fn admit(&self, commit: &Commit) -> Result<(), Fault> {
        let only_deletes = || commit.writes.as_slice().iter().all(|(_, value)| value.is_none());
        match &self.gate {
            Gate::Freeing(_) if commit.frees || only_deletes() => Ok(()),
            Gate::Freeing(_) if commit.is_small && !self.deletes_only => Ok(()),
            _ => self.check(),
        }
    }
}

enum Taken {
    Some,
    Nothing,
    Stop,
    Reopen,
}

/// The committer's thread.
pub(crate) fn run(shared: &Arc<Shared>) {
    let _guard = Guard(shared);
    let mut taken = VecDeque::new();
    let mut group = Vec::new();
    // When commits that are only in the operating system have to be synced.
    let mut sync_at: Option<Instant> = None;
    loop {
        if taken.is_empty() {
            match shared.queue.take(&mut taken, sync_at) {
                Taken::Stop => return,
                Taken::Reopen => {
                    if !recovery::reopen(shared) {
                        return;
                    }
                    sync_at = None;
                }
                Taken::Some | Taken::Nothing => {}
            }
        }
        fill(&mut group, &mut taken);
        let mut result = if group.is_empty() { Ok(()) } else { commit(shared, &mut group) };
        if shared.sync_to == SyncTo::System && result.is_ok() {
            match sync_at {
                None => sync_at = Some(Instant::now() + ASYNC_SYNC_EVERY),
                Some(due) if Instant::now() >= due => {
                    result = shared.with_store(|store| store.sync());
                    sync_at = None;
                }
                Some(_) => {}
            }
        }
        if let Err(error) = result {
            group.extend(taken.drain(..));
            recovery::fail(shared, &mut group, &error);
            sync_at = None;
            if !recovery::recover(shared, &error) {
                return;
            }
        }
    }
}

/// Answers all waiting callers if the committer panics, so that none waits for ever.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let fault = Fault::Unavailable("the committer ended in a defect; restart the server".to_owned());
            for commit in self.0.queue.shut(fault.clone()) {
                commit.finish(&Err(fault.clone()));
            }
        }
    }
}

/// Takes commits off the front, as many as fit into one batch.
fn fill(group: &mut Vec<Queued>, taken: &mut VecDeque<Queued>) {
    let mut bytes = 0;
    while bytes < GROUP_BYTES_MAX
        && let Some(commit) = taken.pop_front()
    {
        bytes += commit.bytes();
        group.push(commit);
    }
}

/// Commits a group and answers it; leaves it in place after an error.
fn commit(shared: &Shared, group: &mut Vec<Queued>) -> Result<(), StoreError> {
    let mut last = shared.last_commit.lock();
    let commits = group.iter().filter(|commit| !commit.writes().is_empty()).count() as u64;
    let point = last.point.after(commits, SystemClock.now());
    let mut feed = None;
    let batch = batch_of(group, shared.versions.last(), point);
    if !batch.writes.is_empty() {
        shared.figures.commit_writes.record(batch.writes.len() as f64);
        let started = Instant::now();
        let snapshot = shared.with_store(|store| {
            store.commit(batch, shared.sync_to)?;
            shared.figures.sync_seconds.record(started.elapsed().as_secs_f64());
            Ok(store.snapshot())
        })?;
        shared.published.publish(snapshot);
        feed = last.advance(point);
        shared.watch_room();
    }
    drop(last);
    for commit in &*group {
        if let Some(stripe) = commit.commit.stripe {
            let mut stripe = shared.latches.lock(stripe);
            for (key, _) in commit.writes() {
                stripe.remove(key, commit.ticket);
            }
        }
    }
    // Before the answers: what a payload was in a commit for is known before the payload can be discarded.
    if let Some((feed, published)) = feed {
        let taken = group.iter_mut().map(|commit| std::mem::take(&mut commit.commit.writes).into_vec());
        feed.commits(CommitGroup { point, published, commits: taken.filter(|writes| !writes.is_empty()).collect() });
    }
    for commit in group.drain(..) {
        commit.finish(&Ok(()));
    }
    Ok(())
}

/// One batch of all writes: in key order, the last one to a key wins. The last version given to any row goes
/// with it, so that a restart continues above it, and the number of the last commit.
fn batch_of(group: &[Queued], version: u64, point: CommitPoint) -> Batch {
    let count = group.iter().map(|commit| commit.writes().len()).sum::<usize>();
    if count == 0 {
        return Batch::default();
    }
    let mut writes: Vec<Write> = Vec::with_capacity(count + 1);
    for commit in group {
        writes.extend_from_slice(commit.writes());
    }
    if group.len() > 1 {
        // A stable sort of the reversed list puts the last write to a key before the earlier ones.
        writes.reverse();
        writes.sort_by(|(a, _), (b, _)| a.cmp(b));
        writes.dedup_by(|(later, _), (kept, _)| later == kept);
    }
    writes.push(catalogue::commit_record(version, point));
    Batch { writes }
}

pub(crate) fn closed() -> Fault {
    Fault::Unavailable("the engine is closed".to_owned())
}

/// Keeps batches well below the size of a memtable.
const GROUP_BYTES_MAX: usize = 16 << 20;
/// How much the durability mode `async` may lose.
const ASYNC_SYNC_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(writes: &[(&str, Option<&str>)]) -> Queued {
        let mut commit = Commit::default();
        for (key, value) in writes {
            commit.writes.push(((*key).into(), value.map(Bytes::from)));
        }
        Queued { commit, reply: oneshot::channel().0, ticket: 0 }
    }

    #[test]
    fn the_last_write_to_a_key_wins_within_a_group() {
        let group = [
            queued(&[("b", Some("1")), ("a", Some("1"))]),
            queued(&[("b", None)]),
            queued(&[("c", Some("1"))]),
            queued(&[("c", Some("2"))]),
        ];
        let point = CommitPoint { sequence: 7, ..CommitPoint::default() };
        let Batch { mut writes } = batch_of(&group, 8, point);
        assert_eq!(writes.pop(), Some(catalogue::commit_record(8, point)));
        assert_eq!(writes, [("a".into(), Some("1".into())), ("b".into(), None), ("c".into(), Some("2".into()))]);
    }

    #[test]
    fn those_who_only_wait_write_nothing() {
        assert!(batch_of(&[queued(&[])], 9, CommitPoint::default()).writes.is_empty());
    }
}
