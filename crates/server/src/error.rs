//! Every error of the layers below becomes the service's code, status and message, by `?`.

use crate::fault_log;
use larimar_engine::blob::{BlobReject, LeaseReject};
use larimar_engine::queue::MessageError;
use larimar_engine::{EngineError, Fault, ReadError, Reject, WriteError};
use larimar_model::Service;
use larimar_wire::cors::CorsError;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::service_properties::PropertiesError;
use larimar_wire::table::entity_json::body_error;

/// What a handler returns.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a request fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With this response.
    Reply(ErrorReply),
    /// The table, queue or container that was found does not exist any more. Each service has its own code for it.
    SpaceGone,
}

impl Failure {
    /// The code that a service responds with.
    pub(crate) const fn code(&self, service: Service) -> ErrorCode {
        match (self, service) {
            (Self::Reply(reply), _) => reply.code,
            (Self::SpaceGone, Service::Table) => ErrorCode::TableNotFound,
            (Self::SpaceGone, Service::Queue) => ErrorCode::QueueNotFound,
            (Self::SpaceGone, Service::Blob) => ErrorCode::ContainerNotFound,
        }
    }

    /// The response of a service.
    pub(crate) fn into_reply(self, service: Service) -> ErrorReply {
        match self {
            Self::SpaceGone => ErrorReply::new(self.code(service)),
            Self::Reply(reply) => reply,
        }
    }
}

/// Errors of the protocol, which `wire` turns into responses.
macro_rules! from_wire {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Reply(error.into())
            }
        })+
    };
}

from_wire!(ErrorReply, ErrorCode, CorsError, PropertiesError);

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Reply(engine_error(&error))
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Reply(self::fault(&fault))
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SpaceGone => Self::SpaceGone,
            ReadError::Fault(fault) => fault.into(),
        }
    }
}

/// The error of a write without conditions.
impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::SpaceGone => Self::SpaceGone,
            WriteError::Fault(fault) => fault.into(),
            WriteError::Condition { .. } | WriteError::Refused { .. } => {
                tracing::error!(%error, "the engine refused a write without conditions");
                ErrorCode::InternalError.into()
            }
        }
    }
}

impl From<MessageError> for Failure {
    fn from(error: MessageError) -> Self {
        match error {
            MessageError::NotFound => ErrorCode::MessageNotFound.into(),
            MessageError::ReceiptMismatch => ErrorCode::PopReceiptMismatch.into(),
            MessageError::ExpiresBefore => ErrorCode::OutOfRangeQueryParameterValue.into(),
            MessageError::SpaceGone => Self::SpaceGone,
            MessageError::Fault(fault) => fault.into(),
        }
    }
}

/// The response to an engine's error. It names an operation of a transaction by its index.
pub(crate) fn engine_error(error: &EngineError) -> ErrorReply {
    match error {
        EngineError::Reject(reject) => self::reject(reject),
        EngineError::RejectAt { op, reject } => self::reject(reject).at_index(*op),
        EngineError::Fault(fault) => self::fault(fault),
    }
}

/// The response to a request that the engine refused.
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

/// The response to a request that the Blob service refused.
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

/// The response to a fault: try again later, or the outcome is unknown. The reason is in the log, for the operator.
pub(crate) fn fault(fault: &Fault) -> ErrorReply {
    fault_log::log(fault);
    match fault {
        Fault::Unavailable(_) => ErrorReply::new(ErrorCode::ServerBusy),
        Fault::Ambiguous(_) => ErrorReply::new(ErrorCode::OperationTimedOut),
        Fault::Damaged(_) => ErrorReply::new(ErrorCode::InternalError),
    }
}
