//! The rejections of the Blob service that depend on the stored state.

/// Why an operation on a container or a blob is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobReject {
    /// The container does not exist.
    #[error("the container does not exist")]
    ContainerNotFound,
    /// A container with this name exists.
    #[error("the container exists already")]
    ContainerExists,
    /// The blob does not exist, or has only uncommitted blocks.
    #[error("the blob does not exist")]
    BlobNotFound,
    /// The blob exists, and the request requires that it does not.
    #[error("the blob exists already")]
    BlobExists,
    /// The blob has not changed since the caller read it (304).
    #[error("the blob has not changed")]
    NotModified,
    /// A condition does not hold (412).
    #[error("the condition does not hold")]
    ConditionNotMet,
    /// A condition on tags, of the blob or of a source, does not hold (412).
    #[error("the condition on tags does not hold")]
    TagConditionNotMet,
    /// A condition on the source of a copy does not hold (412).
    #[error("the condition on the source does not hold")]
    SourceConditionNotMet(SourceCondition),
    /// The bytes of a copy are not those that the caller expected (see `CopyInspector`).
    #[error("the bytes of the source are not the expected ones")]
    SourceRefused,
    /// The source of a copy does not exist.
    #[error("the source of the copy does not exist")]
    SourceNotFound,
    /// The source range is longer than the operation accepts.
    #[error("expected at most {bytes_max} bytes of the source")]
    SourceTooLarge {
        /// The most bytes it accepts.
        bytes_max: u64,
    },
    /// The operation is for blobs of another type.
    #[error("the blob is of another type")]
    InvalidBlobType,
    /// A block list names an unknown block.
    #[error("the list names an unknown block")]
    InvalidBlockList,
    /// A block list has too many entries.
    #[error("expected at most 50000 blocks")]
    BlockListTooLong,
    /// A block's id has another length than those of the other blocks.
    #[error("expected an id as long as those of the other blocks")]
    InvalidBlobOrBlock,
    /// There are too many uncommitted or appended blocks.
    #[error("the blob has too many blocks")]
    BlockCountExceedsLimit,
    /// The blob has snapshots, and the request does not state whether to delete them.
    #[error("the blob has snapshots")]
    SnapshotsPresent,
    /// The range begins after the end of the blob, which has this length.
    #[error("expected a range within the blob's {length} bytes")]
    InvalidRange {
        /// The blob's length.
        length: u64,
    },
    /// The pages lie outside of the blob.
    #[error("expected pages within the blob")]
    InvalidPageRange,
    /// The blob has another length than the append expects.
    #[error("the blob has another length")]
    AppendPositionConditionNotMet,
    /// The blob would be longer than the append allows.
    #[error("the blob would be too long")]
    MaxBlobSizeConditionNotMet,
    /// The condition on the sequence number does not hold.
    #[error("the condition on the sequence number does not hold")]
    SequenceNumberConditionNotMet,
    /// The sequence number is already the largest.
    #[error("the sequence number cannot grow")]
    SequenceNumberIncrementTooLarge,
    /// The snapshot to compare with does not exist.
    #[error("the earlier snapshot does not exist")]
    PreviousSnapshotNotFound,
    /// The snapshot to compare with is not earlier.
    #[error("expected an earlier snapshot")]
    PreviousSnapshotCannotBeNewer,
    /// Blobs of this type do not have this tier.
    #[error("the tier is not for blobs of this type")]
    InvalidBlobTier,
    /// The blob is sealed: nothing more is appended (409).
    #[error("the blob is sealed")]
    Sealed,
    /// The blob is in the archive (409).
    #[error("the blob is in the archive")]
    Archived,
    /// The blob is being rehydrated to another tier (409).
    #[error("the blob is being rehydrated")]
    BeingRehydrated,
    /// The write took so long that its bytes were reclaimed; it can be repeated from the start.
    #[error("the write took so long that its bytes are gone")]
    WriteTooLate,
    /// There is no copy to abort: all copies end before they are answered.
    #[error("no copy is pending")]
    NoPendingCopy,
    /// The blob is the destination of incremental copies, and the operation is not for such a blob (409).
    #[error("the blob is the destination of incremental copies")]
    IncrementalCopyBlob,
    /// The source of an incremental copy is not a snapshot (409).
    #[error("expected a snapshot as the source of an incremental copy")]
    IncrementalCopySourceMustBeSnapshot,
    /// The destination has incremental copies of another blob (409).
    #[error("the destination has incremental copies of another blob")]
    IncrementalCopyBlobMismatch,
    /// The source of an incremental copy is not later than that of the last one (409).
    #[error("expected a snapshot later than the last one that was copied")]
    IncrementalCopyOfEarlierSnapshot,
    /// The source of an incremental copy is not a page blob (409).
    #[error("expected a page blob as the source")]
    InvalidSourceBlobType,
    /// The source of an incremental copy was replaced since the last copy (409).
    #[error("the source was replaced since the last copy")]
    SourceOverwritten,
    /// A blob's lease forbids it.
    #[error(transparent)]
    Lease(#[from] LeaseReject),
    /// A container's lease forbids it.
    #[error(transparent)]
    ContainerLease(LeaseReject),
}

/// The condition on the source of a copy that does not hold; the protocol's errors differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceCondition {
    /// `x-ms-source-if-match`.
    IfMatch,
    /// `x-ms-source-if-unmodified-since`.
    IfUnmodifiedSince,
    /// `x-ms-source-if-none-match` and `x-ms-source-if-modified-since`.
    NotModified,
}

/// Why a lease forbids an operation. The protocol's error codes differ for containers and blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseReject {
    /// Acquire: there is a lease (409).
    #[error("there is a lease already")]
    AlreadyPresent,
    /// Acquire: the lease is breaking (409).
    #[error("the lease is breaking and cannot be acquired")]
    BreakingAndCannotBeAcquired,
    /// Change: the lease is breaking (409).
    #[error("the lease is breaking and cannot be changed")]
    BreakingAndCannotBeChanged,
    /// Renew: the lease was broken (409).
    #[error("the lease is broken and cannot be renewed")]
    BrokenAndCannotBeRenewed,
    /// A lease operation names another id than the lease has (409).
    #[error("the lease has another id")]
    IdMismatchWithLeaseOperation,
    /// A lease operation finds no lease (409).
    #[error("there is no lease")]
    NotPresentWithLeaseOperation,
    /// A write to a leased container or blob has no lease id (412).
    #[error("there is a lease and the request names no id")]
    IdMissing,
    /// Another operation names another id than the lease has (412).
    #[error("the lease has another id")]
    IdMismatch,
    /// Another operation names an id, and there is no lease (412).
    #[error("there is no lease")]
    NotPresent,
    /// Another operation names an id, and the lease has ended (412).
    #[error("the lease has ended")]
    Lost,
}
