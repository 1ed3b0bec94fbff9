//! Passes over all containers: rows that interrupted requests left, and blocks that were never committed.
//!
//! Rows come before payloads, because an unreachable row still points to its payloads.

use super::unreachable::payloads_of;
use crate::blob::Blobs;
use crate::blob::access::BlobRef;
use crate::blob::bytes::{ByteStore, Extent, Owner, Owners, Reclaimed};
use crate::blob::change::{Change, Decision};
use crate::blob::keys::{self, RowName};
use crate::blob::reject::BlobReject;
use crate::blob::row::{BlobRow, Pending};
use crate::blob::store::read_error;
use crate::blob::tag_index::PARTITION;
use crate::contract::{Budget, Compaction, Engine, Flow, KeyRange, Position, SpaceId, SpaceKind, SpaceName, successor};
use crate::error::{EngineError, Fault, Reject};
use crate::hidden::{is_hidden, is_hidden_container};
use larimar_model::blob::BlobName;
use larimar_model::{Timestamp, limits};
use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

/// What a pass over rows removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimedRows {
    /// Blobs whose uncommitted blocks expired after a week.
    pub expired: u64,
    /// Unreachable rows that were removed.
    pub rows: u64,
}

/// What a compaction on request removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Rows of blobs.
    pub rows: ReclaimedRows,
    /// Payloads of blobs.
    pub payloads: Reclaimed,
    /// The engine's store; `None` if its database compacts by itself.
    pub store: Option<Compaction>,
}

/// The report for the operator.
impl fmt::Display for Compacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, payloads, store } = self;
        let Reclaimed { seen, removed, removed_bytes } = payloads;
        writeln!(
            f,
            "blobs: {removed} of {seen} payloads with {removed_bytes} bytes and {} rows are removed",
            rows.rows
        )?;
        match store {
            Some(Compaction { bytes_before, bytes_after }) => {
                let freed = bytes_before.saturating_sub(*bytes_after);
                writeln!(f, "rows: {freed} bytes are freed ({bytes_before} bytes before, {bytes_after} after)")
            }
            None => writeln!(
                f,
                "rows: the database reuses the room of deleted rows by itself (autovacuum); VACUUM FULL returns it to the \
                 disk and locks a table meanwhile"
            ),
        }
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Removes the unreachable rows of every container, then the payloads that no row points to. A container that is
    /// deleted meanwhile is skipped.
    ///
    /// # Errors
    /// Faults of the engine and of the store.
    pub async fn reclaim(&self, now: Timestamp) -> Result<(ReclaimedRows, Reclaimed), Fault> {
        let mut rows = ReclaimedRows::default();
        for account in self.engine.accounts().await?.into_iter().filter(|account| !is_hidden(account)) {
            let mut from = String::new();
            loop {
                let name = SpaceName { account: &account, kind: SpaceKind::Container, name: &from };
                let containers = self.engine.list_spaces(name, CONTAINERS_AT_ONCE).await?;
                for (_, space) in &containers {
                    match self.reclaim_container(space.id, now).await {
                        Ok(reclaimed) => {
                            rows.expired += reclaimed.expired;
                            rows.rows += reclaimed.rows;
                        }
                        Err(EngineError::Fault(fault)) => return Err(fault),
                        Err(EngineError::Reject(_) | EngineError::RejectAt { .. }) => {}
                    }
                }
                let Some((last, _)) = containers.last() else { break };
                from = successor(last);
            }
        }
        Ok((rows, self.bytes.reclaim(&self.owners(now)).await?))
    }

    /// Reclaims what nothing refers to and compacts the engine's store, on request; see [`Blobs::reclaim`] and
    /// [`Engine::compact`].
    ///
    /// # Errors
    /// Faults of the engine and of the store, and a compaction that is under way.
    pub async fn compact(&self, now: Timestamp) -> Result<Compacted, Fault> {
        let (rows, payloads) = self.reclaim(now).await?;
        Ok(Compacted { rows, payloads, store: self.engine.compact().await? })
    }

    /// The rows as the owners of payloads, for [`ByteStore::reclaim`].
    #[must_use]
    pub const fn owners(&self, now: Timestamp) -> RowOwners<'_, E, B> {
        RowOwners { blobs: self, now }
    }

    /// Removes the unreachable rows of a container, and uncommitted blocks a week after the last of them was put. Scans
    /// every row, in bounded batches.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`] if it was deleted meanwhile.
    pub async fn reclaim_container(&self, container: SpaceId, now: Timestamp) -> Result<ReclaimedRows, EngineError> {
        let now = self.now(now).await?;
        let mut reclaimed = ReclaimedRows::default();
        let mut range = KeyRange { start: Position::new(successor(PARTITION), ""), end: None };
        loop {
            let Some(name) = self.next_with_rows(container, &mut range).await? else { break };
            let Ok(name) = name.parse::<BlobName>() else { continue };
            let at = BlobRef { container, name: &name };
            reclaimed.expired += u64::from(self.expire_uncommitted(at, now).await?);
            reclaimed.rows += self.reclaim_unreachable(at, Vec::new(), now).await? as u64;
        }
        match self.check_tag_index(container, now).await {
            // A reader of that row gets the error; other blobs are reclaimed all the same.
            Err(EngineError::Fault(Fault::Damaged(_))) => Ok(reclaimed),
            checked => checked.map(|()| reclaimed),
        }
    }

    /// The next blob that has rows besides its own and its snapshots, or was never committed. The range then begins
    /// after that blob.
    async fn next_with_rows(&self, container: SpaceId, range: &mut KeyRange) -> Result<Option<String>, EngineError> {
        loop {
            let mut found = None;
            let budget = Budget { rows_max: 1000, deadline: Instant::now() + Duration::from_secs(5) };
            let next = self.engine.scan(container, range, budget, |row| {
                let is_common = match RowName::parse(row.row) {
                    Some(RowName::Blob) => BlobRow::is_committed_in(row.body),
                    name => matches!(name, Some(RowName::Snapshot(_))),
                };
                if is_common {
                    return Flow::Continue;
                }
                found = Some(row.partition.to_owned());
                Flow::StopHere
            });
            let next = next.await.map_err(read_error)?;
            if let Some(found) = found {
                range.start = Position::new(successor(&found), "");
                return Ok(Some(found));
            }
            match next {
                Some(next) => range.start = next,
                None => return Ok(None),
            }
        }
    }

    /// Removes uncommitted blocks if the last of them was put long ago, and a row without a blob once no write can be
    /// under way that it would refuse. Returns whether blocks expired.
    async fn expire_uncommitted(&self, at: BlobRef<'_>, now: Timestamp) -> Result<bool, EngineError> {
        let oldest = now.before(Duration::from_secs(limits::UNCOMMITTED_DAYS * 86_400));
        self.change(at, now, |stored| async move {
            let Some(row) = stored.row else { return Ok(Decision::Keep(false)) };
            if row.is_vacant() && row.remains(now).is_none() {
                return Ok(Decision::Commit(Change::put_or_delete(None), false));
            }
            if row.pending.id_length == 0 {
                return Ok(Decision::Keep(false));
            }
            let mut is_recent = false;
            self.visit_rows(at, (&keys::uncommitted(row.pending.generation, ""), keys::UNCOMMITTED.1), |row| {
                is_recent = row.version > oldest;
                Ok(if is_recent { Flow::StopHere } else { Flow::Continue })
            })
            .await?;
            if is_recent {
                return Ok(Decision::Keep(false));
            }
            let pending = Pending { id_length: 0, ..row.pending };
            let blob = if row.is_committed { Some(BlobRow { pending, ..row }) } else { row.remains(now) };
            Ok(Decision::Commit(Change::put_or_delete(blob), true))
        })
        .await
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Releases those payloads of a blob that no row points to, and returns them. A write that still holds one is
    /// refused afterwards: the commit that adds them to the blob's row proves that no row points to them, and every
    /// later commit reads that row.
    pub(crate) async fn release(
        &self,
        at: BlobRef<'_>,
        extents: &[Extent],
        now: Timestamp,
    ) -> Result<HashSet<Extent>, EngineError> {
        let now = self.now(now).await?;
        self.change_unlocked(at, now, |stored| async move {
            let mut row = stored.row.unwrap_or_else(|| BlobRow::uncommitted(now));
            let mut unowned: HashSet<Extent> = extents.iter().copied().collect();
            self.retain_unowned(at, &mut unowned).await?;
            let mut unowned: Vec<Extent> = unowned.into_iter().collect();
            row.released = row.released.kept(now);
            unowned.truncate(row.released.add(&unowned, now));
            if unowned.is_empty() {
                return Ok(Decision::Keep(HashSet::new()));
            }
            Ok(Decision::Commit(Change::put(row), unowned.into_iter().collect()))
        })
        .await
    }

    /// Removes the payloads that rows point to. Unreachable rows count too: they are removed before their payloads.
    async fn retain_unowned(&self, at: BlobRef<'_>, unowned: &mut HashSet<Extent>) -> Result<(), EngineError> {
        self.visit_rows(at, (keys::BLOB, "\u{FFFF}"), |row| {
            for extent in payloads_of(row)? {
                unowned.remove(&extent);
            }
            Ok(if unowned.is_empty() { Flow::StopHere } else { Flow::Continue })
        })
        .await
    }
}

/// The rows of all blobs as the owners of payloads.
#[derive(Debug)]
pub struct RowOwners<'a, E, B> {
    blobs: &'a Blobs<E, B>,
    now: Timestamp,
}

impl<E: Engine, B: ByteStore> Owners for RowOwners<'_, E, B> {
    async fn release(&self, owner: Owner<'_>, extents: &[Extent]) -> Result<Vec<bool>, Fault> {
        let Ok(name) = owner.blob.parse::<BlobName>() else { return Ok(vec![true; extents.len()]) };
        let at = BlobRef { container: owner.space, name: &name };
        // The rows of a container that is being filled come after their payloads.
        if self.blobs.holds.is_held(at) || is_hidden_container(&*self.blobs.engine, owner.space).await? {
            return Ok(vec![false; extents.len()]);
        }
        match self.blobs.release(at, extents, self.now).await {
            Ok(released) => Ok(extents.iter().map(|extent| released.contains(extent)).collect()),
            // No write to a deleted container succeeds, so no row ever points to its payloads again.
            Err(EngineError::Reject(Reject::Blob(BlobReject::ContainerNotFound))) => Ok(vec![true; extents.len()]),
            Err(EngineError::Fault(fault)) => Err(fault),
            Err(other) => Err(Fault::Damaged(format!("a read was refused: {other}"))),
        }
    }
}

/// Containers that are listed in one call.
const CONTAINERS_AT_ONCE: usize = 100;
