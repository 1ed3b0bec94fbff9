//! Snapshots: rows that share the blob's payloads, chunks and pages.

use super::access::{Admit, BlobRef, Written};
use super::bytes::ByteStore;
use super::change::{Change, Decision};
use super::conditions::{Purpose, check};
use super::layout::{Layout, Pages};
use super::lease::Lease;
use super::reject::BlobReject;
use super::released::Released;
use super::row::{BlobRow, Pending};
use super::{Blobs, keys};
use crate::contract::Engine;
use crate::error::EngineError;
use larimar_model::blob::{AccessConditions, SnapshotTime};
use larimar_model::{Metadata, Timestamp};

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Takes a snapshot of a blob, with its metadata or, if some is given, with that. The blob's etag stays.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease if one is named.
    pub async fn snapshot_blob(
        &self,
        at: BlobRef<'_>,
        metadata: Option<&Metadata>,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<(SnapshotTime, Written), EngineError> {
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            // The lease need not be named, because the blob does not change.
            let row = stored.row.filter(|row| row.is_committed).ok_or(BlobReject::BlobNotFound)?;
            row.lease.admit_read(access.lease, now).map_err(BlobReject::from)?;
            check(&access.conditions, Some(row.changed), Purpose::Write)?;
            access.admit_tags(&row)?;
            row.admit_online(now)?;
            row.admit_ordinary()?;
            let time = self.free_snapshot_time(at, self.earliest_snapshot_time(stored.version, now)).await?;
            let mut snapshot = frozen(&row);
            if let Some(metadata) = metadata {
                snapshot.metadata = metadata.clone();
            }
            let written = Written { last_modified: row.changed };
            let change = Change::put(next_epoch(row, time)).with_puts([(keys::snapshot(time), snapshot.encode())]);
            Ok(Decision::Commit(change, (time, written)))
        })
        .await
    }

    /// The earliest time that a new snapshot may have: after the version that the blob's row got from the store's clock when
    /// the last snapshot was taken. Servers know that clock up to a few milliseconds only, and it may be set back; snapshots
    /// stay in order nevertheless.
    pub(crate) fn earliest_snapshot_time(&self, version: Option<Timestamp>, now: Timestamp) -> Timestamp {
        version.map_or(now, |version| now.max(Timestamp::from_ticks(version.ticks() + 1)))
    }

    /// The first time from a given one on that no snapshot has. All changes of snapshots change the blob's row, so it stays
    /// free until that is changed. Few times are taken: [`Self::earliest_snapshot_time`] is after the version that the last
    /// snapshot gave the blob's row, and a snapshot is ahead of that version by the error of the server's clock at most.
    pub(crate) async fn free_snapshot_time(
        &self,
        at: BlobRef<'_>,
        now: Timestamp,
    ) -> Result<SnapshotTime, EngineError> {
        let mut ticks = now.ticks();
        while self.load(at, &keys::snapshot(SnapshotTime(Timestamp::from_ticks(ticks)))).await?.is_some() {
            ticks += 1;
        }
        Ok(SnapshotTime(Timestamp::from_ticks(ticks)))
    }
}

/// The row of a snapshot: the blob's row without lease, snapshots and uncommitted blocks.
pub(crate) fn frozen(row: &BlobRow) -> BlobRow {
    BlobRow {
        lease: Lease::None,
        snapshots: 0,
        shared_since: None,
        pending: Pending::default(),
        released: Released::default(),
        ..row.clone()
    }
}

/// The blob's row after a snapshot: pages are written to rows of a new epoch from now on.
pub(crate) fn next_epoch(row: BlobRow, taken: SnapshotTime) -> BlobRow {
    let layout = match row.layout {
        Layout::Pages(pages) => Layout::Pages(Pages { epoch: pages.epoch + 1, ..pages }),
        blocks @ Layout::Blocks(_) => blocks,
    };
    let shared_since = Some(row.shared_since.map_or(taken, |since| since.min(taken)));
    BlobRow { layout, snapshots: row.snapshots + 1, shared_since, ..row }
}
