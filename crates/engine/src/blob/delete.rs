//! Delete Blob: the blob, its snapshots, both, or one snapshot.

use super::access::{Admit, BlobRef};
use super::bytes::{ByteStore, Extent};
use super::change::{Change, Decision};
use super::conditions::{Purpose, check};
use super::layout::Layout;
use super::reclaim::{Leftover, Shared};
use super::reject::BlobReject;
use super::row::BlobRow;
use super::{Blobs, keys};
use crate::contract::{Engine, Flow};
use crate::error::EngineError;
use larimar_model::Timestamp;
use larimar_model::blob::{AccessConditions, DeleteSnapshots, SnapshotTime};
use std::collections::HashSet;

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Deletes a blob with its uncommitted blocks; `snapshots` states whether its snapshots are deleted with it, or
    /// alone.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease, [`BlobReject::SnapshotsPresent`].
    pub async fn delete_blob(
        &self,
        at: BlobRef<'_>,
        snapshots: Option<DeleteSnapshots>,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let row = access.admit_delete(stored.row, now)?;
            if row.snapshots > 0 && snapshots.is_none() {
                return Err(BlobReject::SnapshotsPresent.into());
            }
            let gone = if row.snapshots > 0 { self.all_snapshots(at).await? } else { GoneSnapshots::default() };
            let (blob, leftover) = match snapshots {
                Some(DeleteSnapshots::Only) => {
                    let leftover = Leftover { extents: Vec::new(), has_rows: true, shared: Shared::Anywhere };
                    (Some(BlobRow { snapshots: 0, shared_since: None, ..row }), leftover)
                }
                Some(DeleteSnapshots::Include) | None => (row.remains(now), Leftover::of(row)),
            };
            let leftover = Leftover {
                has_rows: leftover.has_rows || gone.has_rows,
                extents: gone.extents.into_iter().chain(leftover.extents).collect(),
                ..leftover
            };
            Ok(Decision::Commit(Change::put_or_delete(blob).with_deletes(gone.names).leaving(leftover), ()))
        })
        .await
    }

    /// Deletes one snapshot of a blob.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease if one is named.
    pub async fn delete_snapshot(
        &self,
        at: BlobRef<'_>,
        snapshot: SnapshotTime,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let blob = stored.row.ok_or(BlobReject::BlobNotFound)?;
            let row = self.load_version(at, Some(snapshot)).await?;
            check(&access.conditions, Some(row.changed), Purpose::Write)?;
            access.admit_tags(&row)?;
            access.admit_tier(&row)?;
            blob.lease.admit_read(access.lease, now).map_err(BlobReject::from)?;
            let leftover = Leftover { shared: Shared::Anywhere, ..Leftover::of(row) };
            let snapshots = blob.snapshots.saturating_sub(1);
            let shared_since = blob.shared_since.filter(|_| snapshots > 0);
            let change = Change::put(BlobRow { snapshots, shared_since, ..blob });
            Ok(Decision::Commit(change.with_deletes([keys::snapshot(snapshot)]).leaving(leftover), ()))
        })
        .await
    }

    /// All snapshots of a blob, to be deleted.
    async fn all_snapshots(&self, at: BlobRef<'_>) -> Result<GoneSnapshots, EngineError> {
        let mut gone = GoneSnapshots::default();
        self.visit_rows(at, keys::SNAPSHOTS, |row| {
            gone.add(row.row, &BlobRow::decode(row.body)?.layout, EXTENTS_MAX);
            Ok(Flow::Continue)
        })
        .await?;
        Ok(gone)
    }
}

/// Snapshots that are deleted, and what they leave behind. One commit deletes them all, so their names are held; of what
/// they point to only a bounded part.
#[derive(Debug, Default)]
struct GoneSnapshots {
    names: Vec<String>,
    /// Whether their other rows may become unreachable.
    has_rows: bool,
    /// Payloads that they point to. The next pass over all payloads finds those beyond the bound.
    extents: HashSet<Extent>,
}

impl GoneSnapshots {
    fn add(&mut self, name: &str, layout: &Layout, extents_max: usize) {
        self.names.push(name.to_owned());
        self.has_rows |= layout.has_rows();
        let room = extents_max.saturating_sub(self.extents.len());
        self.extents.extend(layout.extents().take(room));
    }
}

/// Most payloads of deleted snapshots that are removed with them: 4 MiB of memory.
const EXTENTS_MAX: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::layout::{Block, Blocks, Piece};

    /// A layout of blocks with one payload each, the first of them of this number.
    fn layout(first: u64, count: u64) -> Layout {
        let extent = |number: u64| Extent { file: [1; 16], offset: number, length: 1 };
        let block = |number: u64| Block { id: number.to_string(), piece: Piece::whole(extent(number)) };
        Layout::Blocks(Blocks { tail: (first..first + count).map(block).collect(), ..Blocks::default() })
    }

    #[test]
    fn deleted_snapshots_hold_each_shared_payload_once_and_no_more_than_the_bound() {
        let mut gone = GoneSnapshots::default();
        for number in 0..100 {
            gone.add(&format!("s{number}"), &layout(0, 50), 60);
        }
        assert_eq!((gone.names.len(), gone.extents.len()), (100, 50));
        for number in 0..100 {
            gone.add(&format!("s{number}"), &layout(number * 50, 50), 60);
        }
        assert_eq!((gone.names.len(), gone.extents.len()), (200, 60));
    }
}
