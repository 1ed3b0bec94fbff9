//! Gives every commit, in order and without a hole, to a part beside the engine: the archive.
//!
//! The committer hands over a group after it is published and before it is acknowledged, and does nothing else for it: the
//! feed has to return at once. Rows are shared, not copied. Without a feed nothing is read or kept.

use std::ops::Bound;
use std::sync::Arc;

use larimar_engine::blob::bytes::Extent;
use larimar_engine::blob::relocate::payloads_in;
use larimar_engine::{Clock, Fault, RowRef, SpaceId, SpaceKind, SystemClock};
use larimar_model::Timestamp;
use rustc_hash::FxHashSet;

use crate::catalogue::{self, CommitPoint, DEAD, NAMES, NEXT_KEY};
use crate::engine::LocalEngine;
use crate::key;
use crate::recovery::fault;
use crate::snapshot::split_value;
use crate::store::{Bytes, Snapshot, StoreError};

/// Receives commits. No call may block or take long: the committer waits for it.
pub trait CommitFeed: Send + Sync + 'static {
    /// Commits after this point follow.
    fn begin(&self, point: CommitPoint);

    /// The containers that there are at that point; may come after some commits.
    fn containers(&self, containers: ContainerRows);

    /// The next commits.
    fn commits(&self, group: CommitGroup);

    /// The store has lost commits that were given, as after a sync that failed.
    fn lost(&self);
}

/// Commits that were published together.
#[derive(Debug)]
pub struct CommitGroup {
    /// The point after the last of them, as the store records it.
    pub point: CommitPoint,
    /// When they were published: later than every group before.
    pub published: Timestamp,
    /// What each commit writes; none is empty. The last one has the number of the point.
    pub commits: Vec<Vec<FedWrite>>,
}

/// A key of the store and its new value, or none if it is deleted.
pub type FedWrite = (Bytes, Option<Bytes>);

impl CommitGroup {
    /// The number of the first commit.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.point.sequence + 1 - self.commits.len() as u64
    }

    /// The bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let size = |(key, value): &FedWrite| key.len() + value.as_ref().map_or(0, |value| value.len());
        self.commits.iter().flatten().map(size).sum()
    }
}

/// The last commit, and what is given the next ones. Locked by the committer for the length of a commit.
pub(crate) struct LastCommit {
    pub(crate) point: CommitPoint,
    /// When the last group was published; a group that comes later has a later time. Kept while there is a feed.
    published: Timestamp,
    feed: Option<Arc<dyn CommitFeed>>,
}

impl LastCommit {
    /// At the start of an engine, before anything is committed.
    pub(crate) fn new(
        point: CommitPoint,
        feed: Option<Arc<dyn CommitFeed>>,
        snapshot: &dyn Snapshot,
    ) -> Result<Self, StoreError> {
        if let Some(feed) = &feed {
            feed.begin(point);
            feed.containers(ContainerRows::of(snapshot)?);
        }
        Ok(Self { point, published: point.time, feed })
    }

    /// After a group is published: the feed, and the group's time.
    pub(crate) fn advance(&mut self, point: CommitPoint) -> Option<(Arc<dyn CommitFeed>, Timestamp)> {
        self.point = point;
        let feed = self.feed.as_ref()?;
        self.published = Timestamp::from_ticks(self.published.ticks() + 1).max(SystemClock.now());
        Some((Arc::clone(feed), self.published))
    }

    /// The last commit, and the time of now: what follows is published later.
    pub(crate) fn until_now(&mut self) -> (CommitPoint, Timestamp) {
        self.published = self.published.max(SystemClock.now()).max(self.point.time);
        (self.point, self.published)
    }

    /// After the store was opened again: whether it still has the last commit.
    pub(crate) fn check(&self, snapshot: &dyn Snapshot) {
        if let Some(feed) = &self.feed
            && catalogue::last_commit(snapshot).map_or(true, |(_, stored)| stored != self.point)
        {
            feed.lost();
        }
    }
}

impl LocalEngine {
    /// Gives the commits from now on to a feed, in place of the one before.
    ///
    /// # Errors
    /// The store is closed or being reopened.
    pub fn feed_commits(&self, feed: Arc<dyn CommitFeed>) -> Result<(), Fault> {
        let mut last = self.shared.last_commit.lock();
        let snapshot = self.shared.published.now()?;
        feed.begin(last.point);
        last.published = last.published.max(last.point.time);
        last.feed = Some(Arc::clone(&feed));
        drop(last);
        // There may be many, and commits go on.
        feed.containers(ContainerRows::of(snapshot.as_ref()).map_err(|error| fault(&error))?);
        Ok(())
    }

    /// Ends the feed of commits.
    pub fn end_feed(&self) {
        self.shared.last_commit.lock().feed = None;
    }

    /// The last commit, and a time before which nothing later is published: that of now. Blocks for the length of a commit.
    #[must_use]
    pub fn commits_until_now(&self) -> (CommitPoint, Timestamp) {
        self.shared.last_commit.lock().until_now()
    }
}

/// Finds the payloads that rows of containers point to. Follows the commits, so that it knows which spaces are containers.
#[derive(Default)]
pub struct ContainerRows {
    containers: FxHashSet<SpaceId>,
    keys: key::Decoder,
}

impl ContainerRows {
    fn of(snapshot: &dyn Snapshot) -> Result<Self, StoreError> {
        let mut rows = Self::default();
        for row in snapshot.range(Bound::Included(NAMES), Bound::Excluded(NEXT_KEY)) {
            let (key, value) = row?;
            rows.note(&key, &value)?;
        }
        Ok(rows)
    }

    /// The payloads that a row points to after this write, which comes after all writes that were given before.
    ///
    /// # Errors
    /// A row that cannot be read.
    pub fn payloads(&mut self, (key, value): &FedWrite) -> Result<Vec<Extent>, Fault> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let Some((space, rest)) = key::split_space(key) else {
            self.note(key, value).map_err(|error| fault(&error))?;
            return Ok(Vec::new());
        };
        if !self.containers.contains(&space) {
            return Ok(Vec::new());
        }
        let (partition, row) = self.keys.decode(rest)?;
        let (version, body) = split_value(value)?;
        payloads_in(RowRef { partition, row, version, body })
    }

    /// Notes the record of a container that is there, or was dropped.
    fn note(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        if let Some(number) = key.strip_prefix(DEAD) {
            self.containers.remove(&SpaceId(catalogue::split_number(number)?.0));
        }
        if catalogue::split_name(key).is_some_and(|name| name.kind == SpaceKind::Container) {
            self.containers.insert(SpaceId(catalogue::split_number(value)?.0));
        }
        Ok(())
    }
}

impl std::fmt::Debug for ContainerRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerRows").field("containers", &self.containers.len()).finish_non_exhaustive()
    }
}
