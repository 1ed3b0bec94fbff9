//! What can go wrong, distinguished by who can act: the caller (`Reject`) or the operator (`Fault`).

use crate::blob::BlobReject;
use larimar_model::{BodyError, Timestamp};

/// A failure that the caller can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// The table is not there.
    #[error("the table does not exist")]
    TableNotFound,
    /// There is a table of this name.
    #[error("the table exists already")]
    TableExists,
    /// The queue is not there.
    #[error("the queue does not exist")]
    QueueNotFound,
    /// There is a queue of this name with other metadata.
    #[error("the queue exists already")]
    QueueExists,
    /// The entity is not there.
    #[error("the entity does not exist")]
    EntityNotFound,
    /// There is an entity of this key.
    #[error("the entity exists already")]
    EntityExists,
    /// The entity has another version than the condition names.
    #[error("the entity has changed")]
    ConditionNotMet,
    /// The entity would break a limit.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// An operation of the Blob service is refused.
    #[error(transparent)]
    Blob(#[from] BlobReject),
}

/// A failure that the operator can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Writes are not possible for now, such as with a full disk; nothing was acknowledged.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// Whether a write took effect is not known: the connection to the store broke before its answer came.
    #[error("the outcome of the write is not known: {0}")]
    Ambiguous(String),
    /// The store holds what it should not.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

/// Why an engine did not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The space was dropped.
    #[error("the space does not exist")]
    SpaceGone,
    /// The engine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Why an engine did not apply a batch. Nothing of it was applied, except perhaps after a `Fault`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A condition did not hold.
    #[error("the condition of operation {op} does not hold")]
    Condition {
        /// The index of the first operation whose condition failed.
        op: usize,
        /// The version that was found, if any row was.
        found: Option<Timestamp>,
    },
    /// An edit refused the row it was given.
    #[error("operation {op} was refused")]
    Refused {
        /// The index of the operation.
        op: usize,
        /// What the edit said.
        #[source]
        reason: Reject,
    },
    /// The space was dropped.
    #[error("the space does not exist")]
    SpaceGone,
    /// The engine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Why an engine did not edit a row. Nothing was written, except perhaps after a `Fault`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError<R> {
    /// The edit refused the row it was given.
    #[error("the edit was refused")]
    Refused(R),
    /// The space was dropped.
    #[error("the space does not exist")]
    SpaceGone,
    /// The engine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Any failure of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The caller can act.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// The caller can act, on this operation of a transaction.
    #[error("operation {op} was refused")]
    RejectAt {
        /// The index of the operation.
        op: usize,
        /// Why it was refused.
        #[source]
        reject: Reject,
    },
    /// The operator can act.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<BlobReject> for EngineError {
    fn from(reject: BlobReject) -> Self {
        Self::Reject(Reject::Blob(reject))
    }
}

impl From<ReadError> for EngineError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SpaceGone => Self::Reject(Reject::TableNotFound),
            ReadError::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl<R> From<ReadError> for EditError<R> {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SpaceGone => Self::SpaceGone,
            ReadError::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SpaceGone => Self::SpaceGone,
            ReadError::Fault(fault) => Self::Fault(fault),
        }
    }
}
