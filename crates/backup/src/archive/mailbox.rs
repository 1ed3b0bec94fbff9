//! Commits on their way from the committer to the spool. The committer never waits: beyond the bound the line ends.

use super::spool::SpoolEnd;
use larimar_engine::{Clock, SystemClock};
use larimar_engine_local::{CommitFeed, CommitGroup, CommitPoint, ContainerRows};
use larimar_model::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Where the engine leaves commits for the archive.
#[derive(Debug, Default)]
pub struct CommitMailbox {
    inner: Mutex<Inner>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    /// Where the feed began, and when: before any of its commits was published.
    begun: Option<(CommitPoint, Timestamp)>,
    containers: Option<ContainerRows>,
    groups: Vec<CommitGroup>,
    bytes: usize,
    /// The number of the last commit that was published.
    last: u64,
    /// Why no more commits are taken.
    failed: Option<&'static str>,
    is_closed: bool,
    is_awaited: bool,
}

/// What was in the mailbox.
#[derive(Debug)]
pub(super) enum Taken {
    Groups(Vec<CommitGroup>),
    /// Commits are missing from here on.
    Failed(&'static str),
    /// No more will come.
    Closed,
}

impl CommitMailbox {
    /// Where and when the feed began, with the containers that there were.
    pub(super) fn started(&self) -> Option<(SpoolEnd, ContainerRows)> {
        let mut inner = self.inner.lock();
        let start = inner.begun.map(|(point, published)| SpoolEnd { point, published });
        start.zip(inner.containers.take())
    }

    /// The number of the last commit that was published.
    pub(super) fn last(&self) -> u64 {
        self.inner.lock().last
    }

    /// Lets [`Self::take`] return [`Taken::Closed`] when everything is taken.
    pub(super) fn close(&self) {
        self.inner.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Everything that has arrived; waits for something, until `patience` is over.
    pub(super) fn take(&self, patience: Duration) -> Taken {
        let deadline = Instant::now() + patience;
        let mut inner = self.inner.lock();
        while inner.groups.is_empty() && inner.failed.is_none() && !inner.is_closed {
            inner.is_awaited = true;
            if self.arrived.wait_until(&mut inner, deadline).timed_out() {
                break;
            }
        }
        inner.is_awaited = false;
        if let Some(reason) = inner.failed {
            return Taken::Failed(reason);
        }
        if inner.groups.is_empty() && inner.is_closed {
            return Taken::Closed;
        }
        inner.bytes = 0;
        Taken::Groups(std::mem::take(&mut inner.groups))
    }

    fn fail(&self, reason: &'static str) {
        let mut inner = self.inner.lock();
        inner.failed.get_or_insert(reason);
        inner.groups = Vec::new();
        drop(inner);
        self.arrived.notify_all();
    }
}

impl CommitFeed for CommitMailbox {
    fn begin(&self, point: CommitPoint) {
        *self.inner.lock() =
            Inner { begun: Some((point, SystemClock.now().max(point.time))), last: point.sequence, ..Inner::default() };
    }

    fn containers(&self, containers: ContainerRows) {
        self.inner.lock().containers = Some(containers);
    }

    fn commits(&self, group: CommitGroup) {
        let bytes = group.bytes() + size_of::<CommitGroup>();
        let mut inner = self.inner.lock();
        inner.last = group.point.sequence;
        if inner.failed.is_some() {
            return;
        }
        inner.bytes += bytes;
        if inner.bytes > MAILBOX_BYTES_MAX {
            drop(inner);
            return self.fail("commits came faster than the disk of the spool takes them");
        }
        inner.groups.push(group);
        let wake = std::mem::take(&mut inner.is_awaited);
        drop(inner);
        if wake {
            self.arrived.notify_one();
        }
    }

    fn lost(&self) {
        self.fail("the store has lost its last commits");
    }
}

/// About a second of the fastest writes.
const MAILBOX_BYTES_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn group(sequence: u64, bytes: usize) -> CommitGroup {
        let time = Timestamp::from_ticks(sequence);
        let commits = vec![vec![(b"key".into(), Some(vec![7; bytes].into()))]];
        CommitGroup { point: CommitPoint { sequence, time }, published: time, commits }
    }

    #[test]
    fn commits_are_taken_in_order_and_beyond_the_bound_none_is_until_it_begins_again() {
        let mailbox = CommitMailbox::default();
        let begin = || mailbox.begin(CommitPoint { sequence: 4, time: Timestamp::from_ticks(4) });
        begin();
        let taken = || match mailbox.take(Duration::ZERO) {
            Taken::Groups(groups) => Some(groups.iter().map(|group| group.point.sequence).collect::<Vec<_>>()),
            _ => None,
        };
        mailbox.commits(group(5, 10));
        mailbox.commits(group(6, 10));
        assert_eq!((taken(), mailbox.last()), (Some(vec![5, 6]), 6));
        assert_eq!(taken(), Some(vec![]));
        // What is taken makes room.
        for number in 7..20 {
            mailbox.commits(group(number, MAILBOX_BYTES_MAX / 2));
            assert_eq!(taken(), Some(vec![number]));
        }
        mailbox.commits(group(20, MAILBOX_BYTES_MAX));
        mailbox.commits(group(21, 1));
        assert!(matches!(mailbox.take(Duration::ZERO), Taken::Failed(_)));
        assert_eq!(mailbox.last(), 21);
        begin();
        mailbox.commits(group(5, 1));
        mailbox.close();
        assert_eq!(taken(), Some(vec![5]));
        assert!(matches!(mailbox.take(Duration::from_secs(60)), Taken::Closed));
    }
}
