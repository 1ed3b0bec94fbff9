//! The operations of the Blob service, with everything that comes in the head of a request.

use super::find::FindMarker;
use super::headers::CopySource;
use super::list_marker::ListMarker;
use larimar_model::blob::{
    AccessConditions, AccessTier, AppendConditions, BlockId, BlockListKind, ByteRange, Conditions, ContentHeaders,
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
    SetMetadata { metadata: Metadata, access: AccessConditions },
    GetAcl { lease: Option<LeaseId> },
    SetAcl { public_access: PublicAccess, access: AccessConditions },
    Delete { access: AccessConditions },
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
        access: AccessConditions,
    },
    SetHeaders(Box<SetHeaders>),
    Delete {
        snapshot: Option<SnapshotTime>,
        snapshots: Option<DeleteSnapshots>,
        access: AccessConditions,
    },
    /// Without metadata the snapshot gets the blob's.
    Snapshot {
        metadata: Option<Metadata>,
        access: AccessConditions,
    },
    Lease {
        action: LeaseAction,
        access: AccessConditions,
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
        access: AccessConditions,
    },
    GetTags {
        snapshot: Option<SnapshotTime>,
        access: AccessConditions,
    },
    SetTags {
        access: AccessConditions,
        checks: BodyChecks,
    },
    PutBlock(Box<PutBlock>),
    PutBlockList(Box<PutBlockList>),
    GetBlockList {
        kind: BlockListKind,
        snapshot: Option<SnapshotTime>,
        access: AccessConditions,
    },
    AppendBlock(Box<AppendBlock>),
    /// Append Blob Seal; `position` is the length that the blob must have.
    Seal {
        position: Option<u64>,
        access: AccessConditions,
    },
    PutPage(Box<PutPage>),
    GetPageRanges(GetPageRanges),
}

/// A read of a blob or a snapshot, with its conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobRead {
    /// The snapshot; `None` reads the blob itself.
    pub snapshot: Option<SnapshotTime>,
    /// The conditions.
    pub access: AccessConditions,
}

/// The length and the checksums that a body must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyChecks {
    /// `Content-Length`.
    pub length: u64,
    /// `Content-MD5`.
    pub md5: Option<[u8; 16]>,
    /// `x-ms-content-crc64`: the eight bytes of the CRC-64 in the order in which they were sent.
    pub crc64: Option<[u8; 8]>,
}

/// The parameters of List Containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListContainers {
    /// Only containers whose names begin with this.
    pub prefix: Option<String>,
    /// The marker as it was sent; the response repeats it.
    pub marker: Option<String>,
    /// The position that the marker encodes.
    pub from: Option<String>,
    /// `maxresults`.
    pub count_max: Option<usize>,
    /// Whether metadata is included.
    pub metadata: bool,
    /// Whether system containers are listed.
    pub system: bool,
}

/// The parameters of List Blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListBlobs {
    /// Only blobs whose names begin with this.
    pub prefix: Option<String>,
    /// Groups names up to the delimiter into one `BlobPrefix`.
    pub delimiter: Option<String>,
    /// The marker as it was sent; the response repeats it.
    pub marker: Option<String>,
    /// The position that the marker encodes.
    pub from: Option<ListMarker>,
    /// `startFrom`: the name to start with; a marker takes precedence.
    pub start: Option<String>,
    /// `maxresults`.
    pub count_max: Option<usize>,
    /// What is included besides names and properties.
    pub include: ListInclude,
}

/// The parameters of Find Blobs by Tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindBlobs {
    /// The expression as it was sent; the response repeats it.
    pub expression: String,
    /// The parsed expression.
    pub query: TagQuery,
    /// The position that the marker encodes.
    pub from: Option<FindMarker>,
    /// `maxresults`.
    pub count_max: Option<usize>,
}

impl FindBlobs {
    /// The maximum number of blobs in a page.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

impl ListContainers {
    /// The maximum number of containers in a page.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

impl ListBlobs {
    /// The maximum number of blobs and prefixes in a page.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

/// Put Blob and Put Blob From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlob {
    /// The type of the blob, and the source of its bytes.
    pub content: PutBlobContent,
    /// What the blob gets besides its bytes.
    pub blob: NewBlob,
    /// The conditions.
    pub access: AccessConditions,
}

/// The type and the content of a new blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBlobContent {
    /// A block blob with the bytes of the body.
    Block(BodyChecks),
    /// A block blob with the bytes of another blob.
    BlockFrom {
        /// The other blob.
        source: Source,
        /// Whether content headers that the request does not set are copied.
        copy_headers: bool,
        /// Whether the tags are copied.
        copy_tags: bool,
    },
    /// An append blob without content.
    Append,
    /// A page blob of zeros.
    Page {
        /// The length in bytes.
        length: u64,
        /// The sequence number.
        sequence_number: u64,
    },
}

/// The source of a copy: another blob, with the conditions on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The URL.
    pub url: CopySource,
    /// The range to copy; `None` copies all.
    pub range: Option<ByteRange>,
    /// The maximum number of bytes to copy.
    pub bytes_max: u64,
    /// `x-ms-source-content-md5`.
    pub md5: Option<[u8; 16]>,
    /// `x-ms-source-content-crc64`: the eight bytes of the CRC-64 in the order in which they were sent.
    pub crc64: Option<[u8; 8]>,
    /// The conditional headers on the source.
    pub conditions: Conditions,
    /// `x-ms-source-if-tags`.
    pub if_tags: Option<TagCondition>,
}

/// Get Blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetBlob {
    /// The blob or snapshot, and the conditions.
    pub read: BlobRead,
    /// The range to read; `None` reads all.
    pub range: Option<ByteRange>,
    /// The checksum of the range to return.
    pub range_checksum: Option<RangeChecksum>,
}

/// A checksum of a range, returned by Get Blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeChecksum {
    /// `x-ms-range-get-content-md5`.
    Md5,
    /// `x-ms-range-get-content-crc64`.
    Crc64,
}

impl RangeChecksum {
    /// The request header.
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
    /// The new content headers; `None` keeps them.
    pub headers: Option<ContentHeaders>,
    /// The new length of a page blob.
    pub length: Option<u64>,
    /// The change of a page blob's sequence number.
    pub sequence_number: Option<SequenceNumberAction>,
    /// The conditions.
    pub access: AccessConditions,
}

/// Copy Blob and Copy Blob From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBlob {
    /// The blob to copy.
    pub source: Source,
    /// `x-ms-source-lease-id`.
    pub source_lease: Option<LeaseId>,
    /// `x-ms-requires-sync`: the response comes after the copy has ended.
    pub is_sync: bool,
    /// The metadata; `None` copies that of the source.
    pub metadata: Option<Metadata>,
    /// The tags; `None` copies those of the source.
    pub tags: Option<Tags>,
    /// The tier.
    pub tier: Option<AccessTier>,
    /// Whether an append blob is sealed; `None` copies the state of the source.
    pub seal: Option<bool>,
    /// The priority of rehydrating a source in the archive tier.
    pub priority: Option<RehydratePriority>,
    /// The conditions on the destination.
    pub access: AccessConditions,
}

/// Incremental Copy Blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncrementalCopyBlob {
    /// The snapshot to copy.
    pub source: Source,
    /// The conditions on the destination.
    pub access: AccessConditions,
}

/// Put Block and Put Block From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlock {
    /// The block's id.
    pub id: BlockId,
    /// The length and the checksums of the body.
    pub checks: BodyChecks,
    /// The source of the bytes; `None` takes them from the body.
    pub source: Option<Source>,
    /// `x-ms-lease-id`.
    pub lease: Option<LeaseId>,
}

/// Put Block List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlockList {
    /// The length and the checksums of the body.
    pub checks: BodyChecks,
    /// What the blob gets besides its bytes.
    pub blob: NewBlob,
    /// The conditions.
    pub access: AccessConditions,
}

/// Append Block and Append Block From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendBlock {
    /// The length and the checksums of the body.
    pub checks: BodyChecks,
    /// The source of the bytes; `None` takes them from the body.
    pub source: Option<Source>,
    /// Conditions on the blob's length.
    pub append: AppendConditions,
    /// The conditions.
    pub access: AccessConditions,
}

/// Put Page and Put Page From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutPage {
    /// The pages.
    pub range: PageRange,
    /// The change.
    pub write: PageWrite,
    /// Conditions on the sequence number.
    pub sequence: SequenceConditions,
    /// The conditions.
    pub access: AccessConditions,
}

/// A change of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageWrite {
    /// Clears them: they read as zeros.
    Clear,
    /// Writes the bytes of the body.
    Update(BodyChecks),
    /// Writes bytes of another blob.
    UpdateFrom(Source),
}

/// Get Page Ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetPageRanges {
    /// The blob or snapshot, and the conditions.
    pub read: BlobRead,
    /// `prevsnapshot`: lists only what changed since this snapshot.
    pub previous: Option<SnapshotTime>,
    /// Lists only ranges within these bytes.
    pub range: Option<ByteRange>,
    /// The position that the marker encodes.
    pub from: Option<String>,
    /// `maxresults`.
    pub count_max: Option<usize>,
}
