//! What an error of the database means for a statement.

use crate::dialect::{Dialect, ErrorClass};
use crate::settings::chain;
use larimar_engine::queue::MessageError;
use larimar_engine::{Fault, ReadError, WriteError};
use tokio_postgres::Error;
use tokio_postgres::error::Severity;

/// Why a statement did not succeed, as [`ErrorClass`] sorts them.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// A guard in the statement failed: a condition does not hold. Nothing took effect.
    Guard,
    /// Nothing took effect, and another attempt may succeed: a deadlock, a conflict.
    Again(String),
    /// Nothing took effect: another session has locked a row for too long.
    Locked(String),
    /// Nothing took effect. Another connection may succeed: this one leads to a server that accepts no writes.
    Elsewhere(String),
    /// Whether the statement took effect is unknown: the connection broke, or the database does not know either.
    Unknown(String),
    /// The database refused. Nothing took effect.
    Refused(String),
}

impl Failure {
    /// What the error of a statement means. An error that ends the session leaves the outcome unknown: a commit that was
    /// waiting for a standby is then done, although it was not acknowledged.
    pub(crate) fn of(error: &Error, dialect: Dialect) -> Self {
        let Some(answer) = error.as_db_error() else { return Self::Unknown(chain(error)) };
        let code = answer.code().code();
        let text = format!("{} ({code})", answer.message());
        if !matches!(answer.parsed_severity(), Some(Severity::Error)) {
            return Self::Unknown(text);
        }
        match dialect.error_class(code) {
            ErrorClass::Guard => Self::Guard,
            ErrorClass::Again => Self::Again(text),
            ErrorClass::Locked => Self::Locked(text),
            ErrorClass::Elsewhere => Self::Elsewhere(text),
            ErrorClass::Unknown => Self::Unknown(text),
            ErrorClass::Refused => Self::Refused(text),
        }
    }

    /// Whether the connection has to be closed.
    pub(crate) const fn ends_connection(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Elsewhere(_))
    }

    /// The fault of a read, or of a write of which nothing took effect.
    pub(crate) fn into_unavailable(self) -> Fault {
        match self {
            Self::Guard => Fault::Damaged("a statement without a guard failed like a guard".to_owned()),
            Self::Again(text)
            | Self::Locked(text)
            | Self::Elsewhere(text)
            | Self::Unknown(text)
            | Self::Refused(text) => Fault::Unavailable(text),
        }
    }

    /// The fault of a write that was sent.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Self::Unknown(text) => Fault::Ambiguous(text),
            other => other.into_unavailable(),
        }
    }
}

/// The fault that the caller of a write gets.
impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        failure.into_fault()
    }
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        Self::Fault(failure.into_fault())
    }
}

impl From<Failure> for MessageError {
    fn from(failure: Failure) -> Self {
        Self::Fault(failure.into_fault())
    }
}

/// A read has no effect whose outcome could be unknown.
impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Fault(failure.into_unavailable())
    }
}

/// A fault found before anything was sent.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unavailable(text) => Self::Refused(text),
            Fault::Damaged(_) => Self::Refused(fault.to_string()),
            Fault::Ambiguous(text) => Self::Unknown(text),
        }
    }
}
