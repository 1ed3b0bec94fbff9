//! A snapshot for work that takes long, such as a backup: every space, and every row, of one commit.
//!
//! Rows of spaces that are dropped meanwhile stay on disk, and so do old versions of rows, until the snapshot is dropped.
//! So that this has a bound, a snapshot is given up if the disk becomes full while it is held; and if the store is
//! reopened it is gone. Either way [`HeldSnapshot::scan`] fails from then on.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larimar_engine::{
    BackupPoint, BackupSnapshot, BackupSource, Budget, Clock as _, Fault, Flow, HeldSpace, KeyRange, OwnedRow,
    Position, ReadError, RowRef, SLICE_BYTES, SLICE_ROWS, Space, SpaceId, SpaceKind, SystemClock,
};
use larimar_model::Timestamp;

use crate::catalogue::{self, CommitPoint, NEXT_KEY, last_commit};
use crate::engine::LocalEngine;
use crate::recovery::fault;
use crate::shared::Shared;

/// The whole store after one commit. Other writes go on beside it.
pub struct HeldSnapshot {
    shared: Arc<Shared>,
    pin: Option<u64>,
    was_full: bool,
    taken: Timestamp,
}

impl LocalEngine {
    /// Holds the store as it is after the last commit that was acknowledged.
    pub async fn hold_snapshot(&self) -> Result<HeldSnapshot, Fault> {
        // Before the snapshot is taken: what was dropped earlier is not in it.
        self.shared.catalogue.dead.hold();
        let was_full = self.shared.is_full();
        let taken = SystemClock.now();
        let mut held = HeldSnapshot { shared: Arc::clone(&self.shared), pin: None, was_full, taken };
        held.pin = Some(self.shared.published.pin().await?);
        // The time of the last commit in it is read after it is visible.
        let shared = Arc::clone(&self.shared);
        let settled = tokio::task::spawn_blocking(move || shared.last_commit.lock().until_now().1).await;
        held.taken = settled.map_err(|error| Fault::Unavailable(format!("a thread ended early: {error}")))?;
        Ok(held)
    }
}

impl HeldSnapshot {
    /// The last version given to a row, and the last commit.
    pub fn point(&self) -> Result<(Timestamp, CommitPoint), Fault> {
        let (version, commit) = last_commit(self.snapshot()?.as_ref()).map_err(|error| fault(&error))?;
        Ok((Timestamp::from_ticks(version), commit))
    }

    /// When it was taken: not before anything in it was published.
    #[must_use]
    pub const fn taken(&self) -> Timestamp {
        self.taken
    }

    /// The next spaces after one, in the order of accounts, kinds and names; the system's own space is not among them.
    pub fn spaces(&self, after: Option<&HeldSpace>, max: usize) -> Result<Vec<HeldSpace>, Fault> {
        let start = after.map_or_else(|| catalogue::NAMES.to_vec(), |after| catalogue::name_key(after.name()));
        let start = if after.is_some() { Bound::Excluded(&start[..]) } else { Bound::Included(&start[..]) };
        let mut spaces = Vec::new();
        for row in self.snapshot()?.range(start, Bound::Excluded(NEXT_KEY)).take(max) {
            let (key, value) = row.map_err(|error| fault(&error))?;
            let name = catalogue::split_name(&key).ok_or_else(|| Fault::Damaged("a space has no name".to_owned()))?;
            let (number, meta) = catalogue::split_number(&value).map_err(|error| fault(&error))?;
            spaces.push(HeldSpace {
                account: name.account.to_owned(),
                kind: name.kind,
                name: name.name.to_owned(),
                space: Space { id: SpaceId(number), meta: meta.into() },
            });
        }
        Ok(spaces)
    }

    /// Visits the rows of a range, also those of a space that was dropped meanwhile; returns where to continue.
    pub async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let snapshot = self.snapshot()?;
        self.shared.scan_rows(snapshot, space, range, budget, visit).await
    }

    /// Whether the store was reopened, so that another snapshot has to be taken. Not if it was given up: on a full disk the
    /// store is reopened as well, and another snapshot would hold what is deleted.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        !self.is_given_up() && self.pin.is_none_or(|pin| self.shared.published.pinned(pin).is_err())
    }

    /// Whether the disk has become full since it was taken.
    fn is_given_up(&self) -> bool {
        !self.was_full && self.shared.is_full()
    }

    fn snapshot(&self) -> Result<Arc<dyn crate::store::Snapshot>, Fault> {
        if self.is_given_up() {
            let reason = "the disk of the data directory is full; a snapshot that was held is given up, as deleted data \
                          cannot be reclaimed while it is";
            return Err(Fault::Unavailable(reason.to_owned()));
        }
        self.shared.published.pinned(self.pin.unwrap_or(u64::MAX))
    }
}

impl Drop for HeldSnapshot {
    fn drop(&mut self) {
        if let Some(pin) = self.pin {
            self.shared.published.unpin(pin);
        }
        self.shared.catalogue.dead.release();
    }
}

impl BackupSource for LocalEngine {
    type Held = HeldSnapshot;

    const NAME: Option<&'static str> = None;

    async fn hold(&self) -> Result<HeldSnapshot, Fault> {
        self.hold_snapshot().await
    }
}

impl BackupSnapshot for HeldSnapshot {
    fn point(&self) -> Result<BackupPoint, Fault> {
        let (version, CommitPoint { sequence, time }) = Self::point(self)?;
        Ok(BackupPoint { taken: self.taken(), version, sequence, committed: time })
    }

    async fn spaces(&self, after: Option<&HeldSpace>, max: usize) -> Result<Vec<HeldSpace>, Fault> {
        Self::spaces(self, after, max)
    }

    async fn slice(
        &self,
        _kind: Option<SpaceKind>,
        space: SpaceId,
        start: Position,
    ) -> Result<(Vec<OwnedRow>, Option<Position>), ReadError> {
        let range = KeyRange { start, end: None };
        let budget = Budget { rows_max: SLICE_ROWS, deadline: Instant::now() + SLICE_TIME };
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let scanned = self.scan(space, &range, budget, |row| {
            if bytes >= SLICE_BYTES {
                return Flow::StopHere;
            }
            bytes += row.body.len() + row.partition.len() + row.row.len();
            rows.push(OwnedRow::of(&row));
            Flow::Continue
        });
        let next = scanned.await?;
        Ok((rows, next))
    }

    fn is_gone(&self) -> bool {
        Self::is_gone(self)
    }
}

const SLICE_TIME: Duration = Duration::from_secs(30);
