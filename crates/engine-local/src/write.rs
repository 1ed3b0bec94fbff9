//! A write: decides by the rows of its partition and enqueues what it decided, both under the partition's latch.

use larimar_engine::{Act, Beside, EditError, Expect, Fault, Op, ReadError, SpaceId, WriteError};
use larimar_model::Timestamp;

use crate::committer::{self, Commit, Writes};
use crate::key::{self, KEY_BUFFER};
use crate::latch::{Latches, Stripe};
use crate::recovery::fault;
use crate::shared::Shared;
use crate::snapshot::split_value;
use crate::store::{Bytes, Snapshot};

impl Shared {
    /// Decides by the rows of a partition and enqueues the writes, all under the partition's latch. The buffer given to
    /// `decide` holds the encoded partition.
    pub(crate) fn decide<T, X>(
        &self,
        space: SpaceId,
        partition: &str,
        now: Timestamp,
        decide: impl FnOnce(&mut Plan<'_>, &mut Vec<u8>) -> Result<T, X>,
    ) -> Result<Decided<T, X>, ReadError> {
        KEY_BUFFER.with_borrow_mut(|key| {
            key.clear();
            key::put_partition(key, space, partition);
            let stripe_index = Latches::stripe_of(key);
            let mut stripe = self.latches.lock(stripe_index);
            let live = self.catalogue.live.read();
            if !live.contains(&space) {
                return Err(ReadError::SpaceGone);
            }
            let snapshot = self.published.now()?;
            let version = self.versions.next(now)?;
            let is_below_rows = self.versions.is_below_rows();
            let mut plan = Plan::new(&stripe, snapshot.as_ref(), version, is_below_rows);
            let decision = decide(&mut plan, key);
            let Plan { version, mut writes, mut pending, saw_pending, growth, .. } = plan;
            if decision.is_err() {
                (writes, pending) = (Writes::None, Writes::None);
            }
            let has_writes = !writes.as_slice().is_empty();
            if !has_writes && !saw_pending {
                // Decided by committed rows alone, and nothing to write: no need to wait for a commit.
                return Ok(Decided { outcome: None, version, decision });
            }
            let stripe_of_writes = has_writes.then_some(stripe_index);
            let commit = Commit { writes, stripe: stripe_of_writes, is_small: growth.is_small(), ..Commit::default() };
            let (ticket, outcome) = self.queue.push(commit)?;
            for (key, value) in pending.as_slice() {
                stripe.insert(key.clone(), value.clone(), ticket);
            }
            Ok(Decided { outcome: Some(outcome), version, decision })
        })
    }
}

/// A decision, which is valid once the writes that it depends on are durable.
pub(crate) struct Decided<T, X> {
    outcome: Option<committer::Outcome>,
    version: Timestamp,
    decision: Result<T, X>,
}

impl<T, X: From<Fault>> Decided<T, X> {
    /// Waits for the commit; returns the decision's value and the version of the rows it put.
    pub(crate) async fn wait(self) -> Result<(T, Timestamp), X> {
        if let Some(outcome) = self.outcome {
            outcome.wait().await?;
        }
        self.decision.map(|value| (value, self.version))
    }
}

/// The rows as a decision finds them, pending writes before committed ones, and the writes it makes.
pub(crate) struct Plan<'a> {
    stripe: &'a Stripe,
    snapshot: &'a dyn Snapshot,
    version: Timestamp,
    /// Whether rows may have versions above those of the clock.
    is_below_rows: bool,
    writes: Writes,
    /// Those of the writes that later decisions must see before they are committed.
    pending: Writes,
    /// Whether the decision depends on a pending write: then the answer has to wait for it.
    saw_pending: bool,
    growth: Growth,
}

/// How much larger a batch makes the stored data. The size of an old row is known if the decision read it.
#[derive(Default)]
struct Growth {
    bytes: i64,
    has_deletes: bool,
}

impl Growth {
    fn add(&mut self, key_bytes: usize, old_body: Option<usize>, new_value: Option<usize>) {
        let size = |bytes: Option<usize>| bytes.map_or(0, |bytes| (key_bytes + bytes) as i64);
        self.bytes += size(new_value) - size(old_body.map(|body| body + VERSION_BYTES));
        self.has_deletes |= new_value.is_none();
    }

    /// Whether the batch may run on a full disk: it makes the data smaller, or it deletes rows and adds very little, as the
    /// deletion of a snapshot and the claim of a message do.
    fn is_small(&self) -> bool {
        self.bytes < 0 || self.has_deletes && self.bytes <= GROWTH_MAX
    }
}

impl<'a> Plan<'a> {
    fn new(stripe: &'a Stripe, snapshot: &'a dyn Snapshot, version: Timestamp, is_below_rows: bool) -> Self {
        let (writes, pending) = (Writes::None, Writes::None);
        Self {
            stripe,
            snapshot,
            version,
            is_below_rows,
            writes,
            pending,
            saw_pending: false,
            growth: Growth::default(),
        }
    }

    /// Turns operations into writes.
    pub(crate) fn apply(&mut self, key: &mut Vec<u8>, ops: &[Op<'_>]) -> Result<(), WriteError> {
        let puts = ops.iter().filter(|op| matches!(op.act, Act::Put(_) | Act::Edit(_)));
        self.raise_version(key, puts.map(|op| op.row))?;
        let partition_bytes = key.len();
        for (index, op) in ops.iter().enumerate() {
            key.truncate(partition_bytes);
            key::put_row(key, op.row);
            let is_blind = op.expect == Expect::Any && !matches!(op.act, Act::Edit(_));
            let current = if is_blind { None } else { self.find(key)? };
            let current = current.as_deref().map(split_value).transpose()?;
            if !op.expect.admits(current.map(|(version, _)| version)) {
                return Err(WriteError::Condition { op: index, found: current.map(|(version, _)| version) });
            }
            let old_bytes = current.map(|(_, body)| body.len());
            match op.act {
                Act::Put(body) => self.write(key, old_bytes, Some(body)),
                Act::Edit(edit) => {
                    let body = edit(current.map(|(_, body)| body));
                    let body = body.map_err(|reason| WriteError::Refused { op: index, reason })?;
                    self.write(key, old_bytes, Some(&body));
                }
                Act::Delete => self.write(key, old_bytes, None),
                Act::Check => {}
            }
        }
        self.pending = self.writes.clone();
        Ok(())
    }

    /// Edits one row; returns the value that the edit computed.
    pub(crate) fn edit<T, R>(
        &mut self,
        key: &mut Vec<u8>,
        row: &str,
        edit: impl FnOnce(Option<&[u8]>) -> Result<(Vec<u8>, T), R>,
    ) -> Result<T, EditError<R>> {
        self.raise_version(key, std::iter::once(row))?;
        key::put_row(key, row);
        let current = self.find(key)?;
        let current = current.as_deref().map(split_value).transpose()?.map(|(_, body)| body);
        let (body, value) = edit(current).map_err(EditError::Refused)?;
        self.write(key, current.map(<[u8]>::len), Some(&body));
        self.pending = self.writes.clone();
        Ok(value)
    }

    /// Adds a write of a row of the partition.
    fn write(&mut self, key: &[u8], old_body: Option<usize>, new_body: Option<&[u8]>) {
        let value = new_body.map(|body| join_value(self.version, body));
        self.growth.add(key.len(), old_body, value.as_ref().map(|value| value.len()));
        self.writes.push((key.into(), value));
    }

    /// Adds rows beside the partition. No decision reads them, so they need not be found among the pending writes.
    pub(crate) fn put_beside(&mut self, space: SpaceId, beside: &[Beside<'_>]) {
        for row in beside {
            let mut key = Vec::with_capacity(16 + row.partition.len() + row.row.len());
            key::put_partition(&mut key, space, row.partition);
            key::put_row(&mut key, row.row);
            self.write(&key, None, row.body);
        }
    }

    /// Raises the version above those of the rows to put, which may be ahead of a clock that was reset.
    fn raise_version<'r>(&mut self, key: &mut Vec<u8>, rows: impl Iterator<Item = &'r str>) -> Result<(), Fault> {
        if !self.is_below_rows {
            return Ok(());
        }
        let partition_bytes = key.len();
        for row in rows {
            key.truncate(partition_bytes);
            key::put_row(key, row);
            if let Some(row) = self.find(key)? {
                let above = split_value(&row)?.0.ticks().saturating_add(1);
                self.version = self.version.max(Timestamp::from_ticks(above));
            }
        }
        key.truncate(partition_bytes);
        Ok(())
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        if let Some(pending) = self.stripe.pending(key) {
            self.saw_pending = true;
            return Ok(pending.cloned());
        }
        self.snapshot.get(key).map_err(|error| fault(&error))
    }
}

/// A stored value is the version, eight bytes big-endian, and the body.
pub(crate) fn join_value(version: Timestamp, body: &[u8]) -> Bytes {
    byteview::ByteView::fused(&version.ticks().to_be_bytes(), body).into()
}

const VERSION_BYTES: usize = 8;
/// What a batch with deletes may add on a full disk.
const GROWTH_MAX: i64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_full_disk_batches_are_taken_that_do_not_grow() {
        let grown = |rows: &[(Option<usize>, Option<usize>)]| {
            let mut growth = Growth::default();
            for (old_body, new_value) in rows {
                growth.add(10, *old_body, *new_value);
            }
            growth.is_small()
        };
        // A row is deleted, whether it was read or not.
        assert!(grown(&[(Some(100), None)]));
        assert!(grown(&[(None, None)]));
        // A row is deleted and another of its size is added.
        assert!(grown(&[(Some(100), None), (None, Some(108))]));
        // A row becomes smaller; one that stays as it is would take room for nothing.
        assert!(grown(&[(Some(100), Some(100))]));
        assert!(!grown(&[(Some(100), Some(108))]));
        assert!(!grown(&[(None, Some(1))]));
        assert!(!grown(&[(Some(100), None), (None, Some(1000))]));
    }
}
