//! The row of a blob or of a snapshot: its properties, and where its bytes are.

mod codec;

use super::layout::{Blocks, Layout};
use super::lease::Lease;
use super::released::Released;
use larimar_model::blob::{
    AccessTier, BlobProperties, BlobType, ContentHeaders, CopyInfo, Rehydration, SnapshotTime, Tags,
};
use larimar_model::{Metadata, Timestamp};

/// A stored blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobRow {
    /// Whether there is committed content; if not, there are only uncommitted blocks.
    pub(crate) is_committed: bool,
    /// The type of the blob.
    pub(crate) kind: BlobType,
    /// When it was created.
    pub(crate) created: Timestamp,
    /// When it was last changed; the etag is derived from it.
    pub(crate) changed: Timestamp,
    /// Its length in bytes.
    pub(crate) length: u64,
    pub(crate) content: ContentHeaders,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Tags,
    /// The tier that was set, and when. The effective one is [`BlobRow::tier_at`].
    pub(crate) tier: Option<(AccessTier, Timestamp)>,
    /// The last rehydration, which may have ended.
    pub(crate) rehydration: Option<Rehydration>,
    pub(crate) lease: Lease,
    pub(crate) copy: Option<CopyInfo>,
    pub(crate) sequence_number: u64,
    /// Whether an append blob is sealed.
    pub(crate) is_sealed: bool,
    /// The number of snapshots.
    pub(crate) snapshots: u32,
    /// The earliest snapshot that may share payloads with the current content; `None` if no snapshot does.
    pub(crate) shared_since: Option<SnapshotTime>,
    pub(crate) pending: Pending,
    /// Payloads that may no longer be committed.
    pub(crate) released: Released,
    pub(crate) layout: Layout,
}

/// The uncommitted blocks: those whose rows have this generation, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// Grows whenever a new list of blocks is started.
    pub(crate) generation: u64,
    /// The length of their ids; 0 if there are none.
    pub(crate) id_length: u8,
}

impl BlobRow {
    /// A row for uncommitted blocks of a blob that does not exist yet.
    pub(crate) fn uncommitted(now: Timestamp) -> Self {
        Self {
            is_committed: false,
            kind: BlobType::Block,
            created: now,
            changed: now,
            length: 0,
            content: ContentHeaders::default(),
            metadata: Metadata::new(),
            tags: Tags::new(),
            tier: None,
            rehydration: None,
            lease: Lease::None,
            copy: None,
            sequence_number: 0,
            is_sealed: false,
            snapshots: 0,
            shared_since: None,
            pending: Pending::default(),
            released: Released::default(),
            layout: Layout::Blocks(Blocks::default()),
        }
    }

    /// What remains of the row when the blob is deleted: nothing, or a row that only lists released payloads.
    pub(crate) fn remains(&self, now: Timestamp) -> Option<Self> {
        let released = self.released.kept(now);
        let pending = Pending { id_length: 0, ..self.pending };
        (!released.is_empty()).then(|| Self { changed: self.changed, pending, released, ..Self::uncommitted(now) })
    }

    /// Whether there is neither content nor a block: the row only lists released payloads.
    pub(crate) const fn is_vacant(&self) -> bool {
        !self.is_committed && self.pending.id_length == 0
    }

    /// The time of the next change: now, but always later than the last change.
    pub(crate) fn next_change(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_ticks(self.changed.ticks() + 1))
    }

    /// The properties that requests return.
    pub(crate) fn into_properties(self, now: Timestamp) -> BlobProperties {
        let blocks = match &self.layout {
            Layout::Blocks(blocks) => blocks.count(),
            Layout::Pages(_) => 0,
        };
        self.into_properties_with(blocks, now)
    }

    /// As [`BlobRow::into_properties`], for a row that was decoded without its blocks.
    pub(crate) fn into_properties_with(self, blocks: u32, now: Timestamp) -> BlobProperties {
        let (tier, rehydration) = (self.tier_at(now), self.rehydration_at(now));
        let appended_blocks = if self.kind == BlobType::Append { blocks } else { 0 };
        BlobProperties {
            kind: self.kind,
            created: self.created,
            last_modified: self.changed,
            length: self.length,
            content: self.content,
            metadata: self.metadata,
            tags: self.tags,
            tier,
            rehydration,
            lease: self.lease.view(now),
            copy: self.copy,
            sequence_number: self.sequence_number,
            is_sealed: self.is_sealed,
            appended_blocks,
            is_uncommitted: !self.is_committed,
        }
    }
}

#[cfg(test)]
mod tests;
