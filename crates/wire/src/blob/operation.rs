//! What requests to the Blob service ask for, with everything that their headers say.

use super::find::FindMarker;
use super::headers::CopySource;
use super::list_marker::ListMarker;
use larimar_model::blob::{
    Access, AccessTier, AppendConditions, BlockId, BlockListKind, ByteRange, Conditions, ContentHeaders,
    DeleteSnapshots, LeaseAction, LeaseId, ListInclude, NewBlob, PageRange, PublicAccess, RehydratePriority,
    SequenceConditions, SequenceNumberAction, SnapshotTime, TagCondition, TagQuery, Tags,
};
use larimar_model::{Guid, Metadata, limits};

/// An operation on the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the service's reference")]
pub enum ServiceOperation {
    ListContainers(ListContainers),
    FindBlobs(FindBlobs),
    GetProperties,
    SetProperties,
    GetStats,
    Batch,
}

/// An operation on a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the service's reference")]
pub enum ContainerOperation {
    Create { metadata: Metadata, public_access: PublicAccess },
    GetProperties { lease: Option<LeaseId> },
    GetMetadata { lease: Option<LeaseId> },
    SetMetadata { metadata: Metadata, access: Access },
    GetAcl { lease: Option<LeaseId> },
    SetAcl { public_access: PublicAccess, access: Access },
    Delete { access: Access },
    Lease { action: LeaseAction, conditions: Conditions },
    ListBlobs(ListBlobs),
    FindBlobs(FindBlobs),
    Batch,
}

/// An operation on a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the service's reference")]
pub enum BlobOperation {
    Put(Box<PutBlob>),
    Get(GetBlob),
    GetProperties(BlobRead),
    GetMetadata(BlobRead),
    SetMetadata {
        metadata: Metadata,
        access: Access,
    },
    SetHeaders(Box<SetHeaders>),
    Delete {
        snapshot: Option<SnapshotTime>,
        snapshots: Option<DeleteSnapshots>,
        access: Access,
    },
    /// Without metadata the snapshot keeps the blob's.
    Snapshot {
        metadata: Option<Metadata>,
        access: Access,
    },
    Lease {
        action: LeaseAction,
        access: Access,
    },
    Copy(Box<CopyBlob>),
    IncrementalCopy(Box<IncrementalCopyBlob>),
    AbortCopy {
        id: Guid,
        lease: Option<LeaseId>,
    },
    SetTier {
        tier: AccessTier,
        priority: Option<RehydratePriority>,
        snapshot: Option<SnapshotTime>,
        access: Access,
    },
    GetTags {
        snapshot: Option<SnapshotTime>,
        access: Access,
    },
    SetTags {
        access: Access,
        checks: BodyChecks,
    },
    PutBlock(Box<PutBlock>),
    PutBlockList(Box<PutBlockList>),
    GetBlockList {
        kind: BlockListKind,
        snapshot: Option<SnapshotTime>,
        access: Access,
    },
    AppendBlock(Box<AppendBlock>),
    /// Append Blob Seal; `position` is how long the blob must be.
    Seal {
        position: Option<u64>,
        access: Access,
    },
    PutPage(Box<PutPage>),
    GetPageRanges(GetPageRanges),
}

/// Which blob is read, and under what conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobRead {
    /// The snapshot, if not the blob itself.
    pub snapshot: Option<SnapshotTime>,
    /// The conditions.
    pub access: Access,
}

/// What the bytes of a body are checked against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyChecks {
    /// Bytes of the body, as `Content-Length` says.
    pub length: u64,
    /// `Content-MD5`.
    pub md5: Option<[u8; 16]>,
    /// `x-ms-content-crc64`: a CRC-64 in eight bytes as they were sent.
    pub crc64: Option<[u8; 8]>,
}

/// What List Containers is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListContainers {
    /// Only containers whose names begin with this.
    pub prefix: Option<String>,
    /// The marker as it was sent, for the answer.
    pub marker: Option<String>,
    /// Where the listing goes on, which the marker stands for.
    pub from: Option<String>,
    /// How many at most, if the request says so.
    pub count_max: Option<usize>,
    /// Whether metadata is told.
    pub metadata: bool,
    /// Whether `$logs` and its like are told.
    pub system: bool,
}

/// What List Blobs is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListBlobs {
    /// Only blobs whose names begin with this.
    pub prefix: Option<String>,
    /// Names are told up to this text after the prefix, each such beginning once.
    pub delimiter: Option<String>,
    /// The marker as it was sent, for the answer.
    pub marker: Option<String>,
    /// Where the listing goes on, which the marker stands for.
    pub from: Option<ListMarker>,
    /// The name that the listing begins with (`startFrom`), if there is no marker.
    pub start: Option<String>,
    /// How many at most, if the request says so.
    pub count_max: Option<usize>,
    /// What is told besides names and properties.
    pub include: ListInclude,
}

/// What Find Blobs by Tags is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindBlobs {
    /// The expression as it was sent, for the answer.
    pub expression: String,
    /// What the expression means.
    pub query: TagQuery,
    /// Where the search goes on, which the marker stands for.
    pub from: Option<FindMarker>,
    /// How many at most, if the request says so.
    pub count_max: Option<usize>,
}

impl FindBlobs {
    /// How many blobs a page holds at most.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

impl ListContainers {
    /// How many containers a page holds at most.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

impl ListBlobs {
    /// How many blobs and prefixes a page holds at most.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

/// Put Blob and Put Blob From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlob {
    /// The type of the blob, and where its bytes come from.
    pub content: PutBlobContent,
    /// What the blob gets besides its bytes.
    pub blob: NewBlob,
    /// The conditions.
    pub access: Access,
}

/// What a blob is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBlobContent {
    /// A block blob of the bytes in the body.
    Block(BodyChecks),
    /// A block blob of the bytes of another blob.
    BlockFrom {
        /// The other blob.
        source: Source,
        /// Whether headers that the request does not name come from there.
        copy_headers: bool,
        /// Whether the tags come from there.
        copy_tags: bool,
    },
    /// An append blob without content.
    Append,
    /// A page blob of zeros.
    Page {
        /// Its bytes.
        length: u64,
        /// Its sequence number.
        sequence_number: u64,
    },
}

/// Another blob whose bytes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it is.
    pub url: CopySource,
    /// Which of its bytes, if not all.
    pub range: Option<ByteRange>,
    /// How many bytes may be taken at most.
    pub bytes_max: u64,
    /// `x-ms-source-content-md5`.
    pub md5: Option<[u8; 16]>,
    /// `x-ms-source-content-crc64`: a CRC-64 in eight bytes as they were sent.
    pub crc64: Option<[u8; 8]>,
    /// Conditions on it.
    pub conditions: Conditions,
    /// `x-ms-source-if-tags`.
    pub if_tags: Option<TagCondition>,
}

/// Get Blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetBlob {
    /// Which blob, under what conditions.
    pub read: BlobRead,
    /// Which bytes, if not all.
    pub range: Option<ByteRange>,
    /// The checksum of the range that the answer carries, if one is asked for.
    pub range_sum: Option<RangeSum>,
}

/// The checksum of a range that Get Blob is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSum {
    /// `x-ms-range-get-content-md5`.
    Md5,
    /// `x-ms-range-get-content-crc64`.
    Crc64,
}

impl RangeSum {
    /// The header that asks for it.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Self::Md5 => "x-ms-range-get-content-md5",
            Self::Crc64 => "x-ms-range-get-content-crc64",
        }
    }
}

/// Set Blob Properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetHeaders {
    /// What readers are told from now on; without, as before.
    pub headers: Option<ContentHeaders>,
    /// The bytes that a page blob has from now on.
    pub length: Option<u64>,
    /// What happens to a page blob's sequence number.
    pub sequence_number: Option<SequenceNumberAction>,
    /// The conditions.
    pub access: Access,
}

/// Copy Blob and Copy Blob From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBlob {
    /// The blob to copy.
    pub source: Source,
    /// `x-ms-source-lease-id`.
    pub source_lease: Option<LeaseId>,
    /// Whether the answer waits for the copy to end.
    pub is_sync: bool,
    /// The metadata; without, that of the source.
    pub metadata: Option<Metadata>,
    /// The tags; without, those of the source.
    pub tags: Option<Tags>,
    /// The tier, if one is asked for.
    pub tier: Option<AccessTier>,
    /// Whether an append blob is sealed; without, as the source is.
    pub seal: Option<bool>,
    /// How urgent it is to bring the source from the archive, if it is there.
    pub priority: Option<RehydratePriority>,
    /// The conditions on what is there.
    pub access: Access,
}

/// Incremental Copy Blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncrementalCopyBlob {
    /// The snapshot to copy.
    pub source: Source,
    /// The conditions on what is there.
    pub access: Access,
}

/// Put Block and Put Block From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlock {
    /// The block's id.
    pub id: BlockId,
    /// What the body is checked against.
    pub checks: BodyChecks,
    /// The blob that the bytes come from, if not from the body.
    pub source: Option<Source>,
    /// `x-ms-lease-id`.
    pub lease: Option<LeaseId>,
}

/// Put Block List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlockList {
    /// What the body is checked against.
    pub checks: BodyChecks,
    /// What the blob gets besides its bytes.
    pub blob: NewBlob,
    /// The conditions.
    pub access: Access,
}

/// Append Block and Append Block From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendBlock {
    /// What the body is checked against.
    pub checks: BodyChecks,
    /// The blob that the bytes come from, if not from the body.
    pub source: Option<Source>,
    /// Conditions on the blob's length.
    pub append: AppendConditions,
    /// The conditions.
    pub access: Access,
}

/// Put Page and Put Page From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutPage {
    /// The pages.
    pub range: PageRange,
    /// What happens to them.
    pub write: PageWrite,
    /// Conditions on the sequence number.
    pub sequence: SequenceConditions,
    /// The conditions.
    pub access: Access,
}

/// What happens to pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageWrite {
    /// They become zeros.
    Clear,
    /// They become the bytes of the body.
    Update(BodyChecks),
    /// They become bytes of another blob.
    UpdateFrom(Source),
}

/// Get Page Ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetPageRanges {
    /// Which blob, under what conditions.
    pub read: BlobRead,
    /// The snapshot since which changes are told.
    pub previous: Option<SnapshotTime>,
    /// Only ranges within these bytes.
    pub range: Option<ByteRange>,
    /// Where the listing goes on, which the marker stands for.
    pub from: Option<String>,
    /// How many ranges at most, if the request says so.
    pub count_max: Option<usize>,
}
