//! Any error of the layers below, turned into the service's code, status and message.

use crate::fault_log;
use larimar_engine::blob::{BlobReject, LeaseReject};
use larimar_engine::{EngineError, Fault, ReadError, Reject};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::table::entity_json::body_error;

/// What a client is told of an engine's error. An operation of a transaction is named by its index.
pub(crate) fn engine_error(error: &EngineError) -> ErrorReply {
    match error {
        EngineError::Reject(reject) => self::reject(reject),
        EngineError::RejectAt { op, reject } => self::reject(reject).at_index(*op),
        EngineError::Fault(fault) => self::fault(fault),
    }
}

/// What a client is told of a read that failed.
pub(crate) fn read_error(error: &ReadError) -> ErrorReply {
    match error {
        ReadError::SpaceGone => reject(&Reject::TableNotFound),
        ReadError::Fault(fault) => self::fault(fault),
    }
}

/// What a client is told of a refusal.
pub(crate) fn reject(reject: &Reject) -> ErrorReply {
    match reject {
        Reject::TableNotFound => ErrorReply::new(ErrorCode::TableNotFound),
        Reject::TableExists => ErrorReply::new(ErrorCode::TableAlreadyExists),
        Reject::QueueNotFound => ErrorReply::new(ErrorCode::QueueNotFound),
        Reject::QueueExists => ErrorReply::new(ErrorCode::QueueAlreadyExists),
        Reject::EntityNotFound => ErrorReply::new(ErrorCode::ResourceNotFound),
        Reject::EntityExists => ErrorReply::new(ErrorCode::EntityAlreadyExists),
        Reject::ConditionNotMet => ErrorReply::new(ErrorCode::UpdateConditionNotSatisfied),
        Reject::Body(error) => body_error(error),
        Reject::Blob(reject) => blob_reject(*reject),
    }
}

/// What a client of the Blob service is told of a refusal.
fn blob_reject(reject: BlobReject) -> ErrorReply {
    let code = match reject {
        BlobReject::ContainerNotFound => ErrorCode::ContainerNotFound,
        BlobReject::ContainerExists => ErrorCode::ContainerAlreadyExists,
        BlobReject::BlobNotFound => ErrorCode::BlobNotFound,
        BlobReject::BlobExists => ErrorCode::BlobAlreadyExists,
        BlobReject::NotModified => return ErrorReply::new(ErrorCode::ConditionNotMet).with_status(304),
        BlobReject::ConditionNotMet | BlobReject::TagConditionNotMet => ErrorCode::ConditionNotMet,
        BlobReject::SourceConditionNotMet(_) => ErrorCode::SourceConditionNotMet,
        BlobReject::SourceRefused => ErrorCode::Md5Mismatch,
        BlobReject::SourceNotFound => return ErrorReply::new(ErrorCode::CannotVerifyCopySource).with_status(404),
        BlobReject::SourceTooLarge { bytes_max } => {
            let max = bytes_max.to_string();
            return ErrorReply::new(ErrorCode::RequestBodyTooLarge).with_detail("MaxLimit", &max);
        }
        BlobReject::InvalidBlobType => ErrorCode::InvalidBlobType,
        BlobReject::InvalidBlockList => ErrorCode::InvalidBlockList,
        BlobReject::BlockListTooLong => ErrorCode::BlockListTooLong,
        BlobReject::InvalidBlobOrBlock => ErrorCode::InvalidBlobOrBlock,
        BlobReject::BlockCountExceedsLimit => ErrorCode::BlockCountExceedsLimit,
        BlobReject::SnapshotsPresent => ErrorCode::SnapshotsPresent,
        BlobReject::InvalidRange { .. } => ErrorCode::InvalidRange,
        BlobReject::InvalidPageRange => ErrorCode::InvalidPageRange,
        BlobReject::AppendPositionConditionNotMet => ErrorCode::AppendPositionConditionNotMet,
        BlobReject::MaxBlobSizeConditionNotMet => ErrorCode::MaxBlobSizeConditionNotMet,
        BlobReject::SequenceNumberConditionNotMet => ErrorCode::SequenceNumberConditionNotMet,
        BlobReject::SequenceNumberIncrementTooLarge => ErrorCode::SequenceNumberIncrementTooLarge,
        BlobReject::PreviousSnapshotNotFound => ErrorCode::PreviousSnapshotNotFound,
        BlobReject::PreviousSnapshotCannotBeNewer => ErrorCode::PreviousSnapshotCannotBeNewer,
        BlobReject::InvalidBlobTier => ErrorCode::InvalidBlobTier,
        BlobReject::Sealed => ErrorCode::BlobIsSealed,
        BlobReject::Archived => ErrorCode::BlobArchived,
        BlobReject::BeingRehydrated => ErrorCode::BlobBeingRehydrated,
        BlobReject::WriteTooLate => ErrorCode::ServerBusy,
        BlobReject::IncrementalCopyBlob => ErrorCode::OperationNotAllowedOnIncrementalCopyBlob,
        BlobReject::IncrementalCopySourceMustBeSnapshot => ErrorCode::IncrementalCopySourceMustBeSnapshot,
        BlobReject::IncrementalCopyBlobMismatch => ErrorCode::IncrementalCopyBlobMismatch,
        BlobReject::IncrementalCopyOfEarlierSnapshot => ErrorCode::IncrementalCopyOfEralierVersionSnapshotNotAllowed,
        BlobReject::InvalidSourceBlobType => ErrorCode::InvalidSourceBlobType,
        BlobReject::SourceOverwritten => ErrorCode::BlobOverwritten,
        BlobReject::NoPendingCopy => ErrorCode::NoPendingCopyOperation,
        BlobReject::Lease(LeaseReject::IdMismatch) => ErrorCode::LeaseIdMismatchWithBlobOperation,
        BlobReject::Lease(LeaseReject::NotPresent) => ErrorCode::LeaseNotPresentWithBlobOperation,
        BlobReject::ContainerLease(LeaseReject::IdMismatch) => ErrorCode::LeaseIdMismatchWithContainerOperation,
        BlobReject::ContainerLease(LeaseReject::NotPresent) => ErrorCode::LeaseNotPresentWithContainerOperation,
        BlobReject::Lease(reject) | BlobReject::ContainerLease(reject) => lease_code(reject),
    };
    ErrorReply::new(code)
}

/// The words for refusals because of a lease that containers and blobs share.
fn lease_code(reject: LeaseReject) -> ErrorCode {
    match reject {
        LeaseReject::AlreadyPresent => ErrorCode::LeaseAlreadyPresent,
        LeaseReject::BreakingAndCannotBeAcquired => ErrorCode::LeaseIsBreakingAndCannotBeAcquired,
        LeaseReject::BreakingAndCannotBeChanged => ErrorCode::LeaseIsBreakingAndCannotBeChanged,
        LeaseReject::BrokenAndCannotBeRenewed => ErrorCode::LeaseIsBrokenAndCannotBeRenewed,
        LeaseReject::IdMismatchWithLeaseOperation => ErrorCode::LeaseIdMismatchWithLeaseOperation,
        LeaseReject::NotPresentWithLeaseOperation => ErrorCode::LeaseNotPresentWithLeaseOperation,
        LeaseReject::IdMissing => ErrorCode::LeaseIdMissing,
        LeaseReject::Lost => ErrorCode::LeaseLost,
        LeaseReject::IdMismatch => ErrorCode::LeaseIdMismatchWithBlobOperation,
        LeaseReject::NotPresent => ErrorCode::LeaseNotPresentWithBlobOperation,
    }
}

/// What a client is told of a fault: to try again later, or that nobody knows. The operator finds the reason in the log.
pub(crate) fn fault(fault: &Fault) -> ErrorReply {
    fault_log::log(fault);
    match fault {
        Fault::Unavailable(_) => ErrorReply::new(ErrorCode::ServerBusy),
        Fault::Ambiguous(_) => ErrorReply::new(ErrorCode::OperationTimedOut),
        Fault::Damaged(_) => ErrorReply::new(ErrorCode::InternalError),
    }
}
