//! Any error of the layers below, turned into the service's code, status and message.

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
    }
}

/// What a client is told of a fault: to try again later, or that nobody knows. The operator finds the reason in the log.
pub(crate) fn fault(fault: &Fault) -> ErrorReply {
    tracing::error!(%fault, "the engine failed");
    match fault {
        Fault::Unavailable(_) => ErrorReply::new(ErrorCode::ServerBusy),
        Fault::Ambiguous(_) => ErrorReply::new(ErrorCode::OperationTimedOut),
        Fault::Damaged(_) => ErrorReply::new(ErrorCode::InternalError),
    }
}
