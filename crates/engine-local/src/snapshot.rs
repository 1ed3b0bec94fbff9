//! Reads of one moment: scans and look-ups in a snapshot of the store, and the snapshot that a page pins.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larimar_engine::{Budget, Fault, Flow, Key, KeyRange, Position, ReadError, RowRef, Snapshot, SpaceId};
use larimar_model::Timestamp;

use crate::key::{self, KEY_BUFFER};
use crate::recovery::fault;
use crate::shared::Shared;
use crate::store::{self, Bytes, StoreError};

/// The rows of a [`LocalEngine`](crate::LocalEngine) at one moment. It is pinned until it is dropped or the store is
/// reopened.
pub struct LocalSnapshot {
    shared: Arc<Shared>,
    pin: u64,
}

impl LocalSnapshot {
    pub(crate) async fn open(shared: &Arc<Shared>) -> Result<Self, Fault> {
        let pin = shared.published.pin().await?;
        Ok(Self { shared: Arc::clone(shared), pin })
    }
}

impl Drop for LocalSnapshot {
    fn drop(&mut self) {
        self.shared.published.unpin(self.pin);
    }
}

impl Snapshot for LocalSnapshot {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let snapshot = self.shared.published.pinned(self.pin)?;
        self.shared.scan(snapshot, space, range, budget, visit).await
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        let (mut yielded, mut flow) = (Instant::now(), Flow::Continue);
        let mut visited = 0;
        for (index, &(partition, row)) in keys.iter().enumerate() {
            let now = Instant::now();
            if visited > 0 && (visited >= budget.rows_max || now >= budget.deadline) {
                return Ok(Some(index));
            }
            if flow == Flow::Pause || now - yielded >= YIELD_EVERY {
                tokio::task::yield_now().await;
                yielded = Instant::now();
            }
            if !self.shared.catalogue.is_live(space) {
                return Err(ReadError::SpaceGone);
            }
            let snapshot = self.shared.published.pinned(self.pin)?;
            let found = look_up(snapshot.as_ref(), Key { space, partition, row });
            drop(snapshot);
            let Some(value) = found.map_err(|error| fault(&error))? else { continue };
            let (version, body) = split_value(&value)?;
            flow = visit(RowRef { partition, row, version, body });
            if flow == Flow::StopHere {
                return Ok(Some(index));
            }
            visited += 1;
        }
        Ok(None)
    }
}

impl Shared {
    /// Visits the rows of a range.
    pub(crate) async fn scan(
        &self,
        snapshot: Arc<dyn store::Snapshot>,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        if !self.catalogue.is_live(space) {
            return Err(ReadError::SpaceGone);
        }
        let next = self.scan_rows(snapshot, space, range, budget, visit).await?;
        // The rows of a dropped space are reclaimed, also those that a snapshot shows.
        if next.is_none() && !self.catalogue.is_live(space) {
            return Err(ReadError::SpaceGone);
        }
        Ok(next)
    }

    /// Visits the rows of a range, whether or not the space is there.
    pub(crate) async fn scan_rows(
        &self,
        snapshot: Arc<dyn store::Snapshot>,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        if range.is_empty() {
            return Ok(None);
        }
        let generation = self.published.generation();
        let (from, to) = bounds(space, range);
        let rows = snapshot.range(Bound::Included(&from), Bound::Excluded(&to));
        drop(snapshot);
        let mut decoder = key::Decoder::default();
        let (mut yielded, mut flow) = (Instant::now(), Flow::Continue);
        for (visited, row) in rows.enumerate() {
            let (key, value) = row.map_err(|error| fault(&error))?;
            let (_, key) = key::split_space(&key).ok_or_else(|| Fault::Damaged("a key has no space".to_owned()))?;
            let (partition, row) = decoder.decode(key)?;
            let mut is_spent = visited > 0 && visited >= budget.rows_max;
            let is_paused = flow == Flow::Pause;
            if is_paused || visited == 1 || visited % ROWS_PER_LOOK == 0 && visited > 0 {
                let now = Instant::now();
                is_spent |= now >= budget.deadline;
                if is_paused || now - yielded >= YIELD_EVERY {
                    tokio::task::yield_now().await;
                    yielded = Instant::now();
                    // The files of this iterator may be gone after the store was reopened.
                    is_spent |= generation != self.published.generation();
                }
            }
            let (version, body) = split_value(&value)?;
            if !is_spent {
                flow = visit(RowRef { partition, row, version, body });
            }
            if is_spent || flow == Flow::StopHere {
                return Ok(Some(Position::new(partition, row)));
            }
        }
        Ok(None)
    }
}

/// Visits rows of a dropped container from a place on, a bounded number; returns where to continue.
pub(crate) fn read_dropped(
    snapshot: &dyn store::Snapshot,
    space: SpaceId,
    from: &Position,
    mut visit: impl FnMut(RowRef<'_>),
) -> Result<Option<Position>, ReadError> {
    let (from, to) = bounds(space, &KeyRange { start: from.clone(), end: None });
    let mut decoder = key::Decoder::default();
    for (visited, row) in snapshot.range(Bound::Included(&from), Bound::Excluded(&to)).enumerate() {
        let (key, value) = row.map_err(|error| fault(&error))?;
        let (_, key) = key::split_space(&key).ok_or_else(|| Fault::Damaged("a key has no space".to_owned()))?;
        let (partition, row) = decoder.decode(key)?;
        if visited == DROPPED_ROWS {
            return Ok(Some(Position::new(partition, row)));
        }
        let (version, body) = split_value(&value)?;
        visit(RowRef { partition, row, version, body });
    }
    Ok(None)
}

/// The value stored at a key.
pub(crate) fn look_up(snapshot: &dyn store::Snapshot, key: Key<'_>) -> Result<Option<Bytes>, StoreError> {
    KEY_BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        key::put_partition(buffer, key.space, key.partition);
        key::put_row(buffer, key.row);
        snapshot.get(buffer)
    })
}

/// A stored value is the version, eight bytes big-endian, and the body.
pub(crate) fn split_value(value: &[u8]) -> Result<(Timestamp, &[u8]), Fault> {
    let (version, body) = value.split_first_chunk().ok_or_else(|| Fault::Damaged("a row has no version".to_owned()))?;
    Ok((Timestamp::from_ticks(u64::from_be_bytes(*version)), body))
}

fn bounds(space: SpaceId, range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    let position = |position: &Position| {
        let mut key = Vec::with_capacity(16 + position.partition.len() + position.row.len());
        key::put_partition(&mut key, space, &position.partition);
        key::put_row(&mut key, &position.row);
        key
    };
    (position(&range.start), range.end.as_ref().map_or_else(|| key::space_end(space), position))
}

/// Rows of a dropped container that are read at once.
const DROPPED_ROWS: usize = 256;
/// A scan looks at the clock after this many rows.
const ROWS_PER_LOOK: usize = 32;
/// A scan lets others run after this long.
const YIELD_EVERY: Duration = Duration::from_millis(2);
