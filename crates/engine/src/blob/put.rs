//! Put Blob: creates a blob, or replaces it.

use super::Blobs;
use super::access::{Admit, BlobRef, Written};
use super::bytes::{ByteStore, Extent};
use super::change::{Change, Decision};
use super::layout::{Blocks, Layout, Pages};
use super::lease::Lease;
use super::reclaim::Leftover;
use super::reject::BlobReject;
use super::row::{BlobRow, Pending};
use crate::contract::Engine;
use crate::error::EngineError;
use larimar_model::Timestamp;
use larimar_model::blob::{AccessConditions, BlobType, NewBlob};

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Puts a block blob of these bytes, or an empty one. Snapshots stay; uncommitted blocks are removed.
    ///
    /// # Errors
    /// Conditions, the lease, a tier for other blobs.
    pub async fn put_block_blob(
        &self,
        at: BlobRef<'_>,
        extent: Option<Extent>,
        new: &NewBlob,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let length = extent.map_or(0, |extent| extent.length);
        let layout = |_| Layout::Blocks(Blocks::of(extent));
        let put = self.put(at, BlobType::Block, (length, 0), layout, new, access, now).await;
        if let Some(extent) = extent.filter(|extent| extent.length == 0 && put.is_ok()) {
            // A payload without bytes is not pointed to.
            self.bytes.discard(vec![extent]);
        }
        self.settle(put, extent.as_slice())
    }

    /// Puts an empty append blob.
    ///
    /// # Errors
    /// Conditions and the lease.
    pub async fn put_append_blob(
        &self,
        at: BlobRef<'_>,
        new: &NewBlob,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let layout = |_| Layout::Blocks(Blocks::default());
        self.put(at, BlobType::Append, (0, 0), layout, new, access, now).await
    }

    /// Puts a page blob of this length, all zeros.
    ///
    /// # Errors
    /// Conditions, the lease, a tier for other blobs.
    pub async fn put_page_blob(
        &self,
        at: BlobRef<'_>,
        (length, sequence_number): (u64, u64),
        new: &NewBlob,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let layout = |changed: Timestamp| Layout::Pages(Pages { map: changed.ticks(), epoch: 0 });
        self.put(at, BlobType::Page, (length, sequence_number), layout, new, access, now).await
    }

    #[expect(clippy::too_many_arguments, reason = "the three above are its callers")]
    async fn put(
        &self,
        at: BlobRef<'_>,
        kind: BlobType,
        (length, sequence_number): (u64, u64),
        layout: impl Fn(Timestamp) -> Layout + Send + Sync,
        new: &NewBlob,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let now = self.now(now).await?;
        self.edit(at, now, |old| {
            access.admit_create(old.as_ref(), now)?;
            let mut row = replacement(kind, new, old.as_ref(), now)?;
            row.layout = layout(row.changed);
            row.released.admit(row.layout.extents())?;
            (row.length, row.sequence_number) = (length, sequence_number);
            let written = Written { last_modified: row.changed };
            let leftover = old.map(Leftover::of).unwrap_or_default();
            Ok(Decision::Commit(Change::put(row).leaving(leftover), written))
        })
        .await
    }
}

/// The row of a new blob that replaces an old one: the lease and the snapshots stay. It has no bytes yet.
pub(crate) fn replacement(
    kind: BlobType,
    new: &NewBlob,
    old: Option<&BlobRow>,
    now: Timestamp,
) -> Result<BlobRow, BlobReject> {
    if new.tier.is_some_and(|tier| !tier.is_of(kind)) {
        return Err(BlobReject::InvalidBlobTier);
    }
    let changed = old.map_or(now, |old| old.next_change(now));
    let pending = Pending { generation: old.map_or(0, |old| old.pending.generation), id_length: 0 };
    Ok(BlobRow {
        is_committed: true,
        kind,
        changed,
        content: new.content.clone(),
        metadata: new.metadata.clone(),
        tags: new.tags.clone(),
        tier: new.tier.map(|tier| (tier, changed)),
        lease: old.map_or(Lease::None, |old| old.lease.after_write(now)),
        snapshots: old.map_or(0, |old| old.snapshots),
        pending,
        released: old.map_or_else(Default::default, |old| old.released.kept(now)),
        ..BlobRow::uncommitted(now)
    })
}
