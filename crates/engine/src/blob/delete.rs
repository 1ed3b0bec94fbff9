//! Delete Blob: the blob, its snapshots, both, or one snapshot.

use super::access::{Admit, BlobRef};
use super::bytes::ByteStore;
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
use larimar_model::blob::{Access, DeleteSnapshots, SnapshotTime};

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
        access: &Access,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let row = access.admit_delete(stored.row, now)?;
            if row.snapshots > 0 && snapshots.is_none() {
                return Err(BlobReject::SnapshotsPresent.into());
            }
            let gone = if row.snapshots > 0 { self.snapshot_rows(at).await? } else { Vec::new() };
            let (blob, leftover) = match snapshots {
                Some(DeleteSnapshots::Only) => {
                    let leftover = Leftover { extents: Vec::new(), has_rows: true, shared: Shared::Anywhere };
                    (Some(BlobRow { snapshots: 0, shared_since: None, ..row }), leftover)
                }
                Some(DeleteSnapshots::Include) | None => (row.remains(now), Leftover::of(row)),
            };
            let leftover = with_snapshots(&gone, leftover);
            let deletes = gone.into_iter().map(|(name, _)| name);
            Ok(Decision::Commit(Change::put_or_delete(blob).with_deletes(deletes).leaving(leftover), ()))
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
        access: &Access,
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

    /// The names of the rows of all snapshots, and their layouts.
    async fn snapshot_rows(&self, at: BlobRef<'_>) -> Result<Vec<(String, Layout)>, EngineError> {
        let mut rows = Vec::new();
        self.visit_rows(at, keys::SNAPSHOTS, |row| {
            rows.push((row.row.to_owned(), BlobRow::decode(row.body)?.layout));
            Ok(Flow::Continue)
        })
        .await?;
        Ok(rows)
    }
}

/// Adds what these snapshots leave behind.
fn with_snapshots(snapshots: &[(String, Layout)], mut leftover: Leftover) -> Leftover {
    for (_, layout) in snapshots {
        leftover.has_rows |= layout.has_rows();
        leftover.extents.extend(layout.extents());
    }
    leftover
}
