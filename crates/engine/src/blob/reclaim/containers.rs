//! The sweep of a container's rows: what requests that were cut off have left, and blocks that nobody committed.
//!
//! It goes before the sweep of the bytes: a row that nothing refers to still points to its payloads.

use crate::blob::Blobs;
use crate::blob::access::BlobRef;
use crate::blob::bytes::{ByteStore, Extent, Owner, Owners, Reclaimed};
use crate::blob::change::{Change, Decision};
use crate::blob::keys::{self, RowName};
use crate::blob::reject::BlobReject;
use crate::blob::row::{BlobRow, Pending};
use crate::blob::store::read_error;
use crate::blob::tag_index::PARTITION;
use crate::contract::{Budget, Engine, Flow, KeyRange, Position, SpaceId, SpaceKind, SpaceName, successor};
use crate::error::{EngineError, Fault, Reject};
use larimar_model::blob::BlobName;
use larimar_model::{Timestamp, limits};
use std::time::{Duration, Instant};

/// What a sweep of rows did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimedRows {
    /// Blobs whose blocks nobody had committed in a week.
    pub expired: u64,
    /// Rows that nothing referred to.
    pub rows: u64,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Removes what nothing refers to: in every container the rows, then in the store the bytes. A container that is
    /// deleted meanwhile is passed over.
    ///
    /// # Errors
    /// Faults of the engine and of the store.
    pub async fn reclaim(&self, now: Timestamp) -> Result<(ReclaimedRows, Reclaimed), Fault> {
        let mut rows = ReclaimedRows::default();
        for account in self.engine.accounts().await? {
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

    /// The rows as the owners of payloads, for a sweep of the bytes.
    #[must_use]
    pub const fn owners(&self, now: Timestamp) -> RowOwners<'_, E, B> {
        RowOwners { blobs: self, now }
    }

    /// Removes from a container the rows that nothing refers to, and blocks that were not committed within a week of the
    /// last one that was put. Looks at every row, a few at a time.
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
            // Who reads that row is value; the bytes of other blobs are reclaimed all the same.
            Err(EngineError::Fault(Fault::Damaged(_))) => Ok(reclaimed),
            checked => checked.map(|()| reclaimed),
        }
    }

    /// The next blob that has rows besides its own and its snapshots, or was never committed; the range begins behind it
    /// afterwards.
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

    /// Forgets blocks that are not committed if the last of them was put long ago, and a row without a blob once no write
    /// can be under way that it would refuse.
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
        if self.blobs.holds.is_held(at) {
            return Ok(vec![false; extents.len()]);
        }
        match self.blobs.release(at, extents, self.now).await {
            Ok(released) => Ok(extents.iter().map(|extent| released.contains(extent)).collect()),
            // No write to a container that is gone succeeds, so nothing ever points to its payloads again.
            Err(EngineError::Reject(Reject::Blob(BlobReject::ContainerNotFound))) => Ok(vec![true; extents.len()]),
            Err(EngineError::Fault(fault)) => Err(fault),
            Err(other) => Err(Fault::Damaged(format!("a read was refused: {other}"))),
        }
    }
}

/// Containers that are looked up in one go.
const CONTAINERS_AT_ONCE: usize = 100;
