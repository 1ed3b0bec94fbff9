//! The properties of a blob: what a writer gives, and what a reader gets.

use super::conditions::BlobETag;
use super::content::{ContentHeaders, CopyInfo};
use super::lease::LeaseView;
use super::tags::Tags;
use super::words::{AccessTier, BlobType, RehydratePriority};
use crate::{Metadata, Timestamp};

/// What a writer gives a new blob besides its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBlob {
    /// The content headers.
    pub content: ContentHeaders,
    /// The metadata.
    pub metadata: Metadata,
    /// The tags.
    pub tags: Tags,
    /// The tier, if the request names one.
    pub tier: Option<AccessTier>,
}

/// The properties of a blob or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobProperties {
    /// The type of the blob.
    pub kind: BlobType,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last changed, to the tick; [`BlobProperties::etag`] is derived from it.
    pub last_modified: Timestamp,
    /// The length in bytes.
    pub length: u64,
    /// The content headers.
    pub content: ContentHeaders,
    /// The metadata.
    pub metadata: Metadata,
    /// The tags.
    pub tags: Tags,
    /// The tier that was set, and when; block blobs without one are reported as hot.
    pub tier: Option<(AccessTier, Timestamp)>,
    /// The rehydration in progress.
    pub rehydration: Option<Rehydration>,
    /// The lease at the time of the read.
    pub lease: LeaseView,
    /// The copy that made the content, if one did.
    pub copy: Option<CopyInfo>,
    /// The sequence number of a page blob.
    pub sequence_number: u64,
    /// Whether an append blob is sealed: nothing more can be appended.
    pub is_sealed: bool,
    /// The number of blocks appended to an append blob.
    pub appended_blocks: u32,
    /// Whether the blob has only blocks that were never committed; only listings include such a blob.
    pub is_uncommitted: bool,
}

impl BlobProperties {
    /// The etag.
    #[must_use]
    pub const fn etag(&self) -> BlobETag {
        BlobETag(self.last_modified)
    }
}

/// The rehydration of a blob: it is moved from the archive to another tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rehydration {
    /// The tier that it will have.
    pub to: AccessTier,
    /// The priority; it does not change how long a rehydration takes here.
    pub priority: RehydratePriority,
    /// When it ends.
    pub until: Timestamp,
    /// Whether it is part of a copy from the archive: the copy stays pending until it ends.
    pub is_copy: bool,
}
