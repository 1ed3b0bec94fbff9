//! What an error of the database means for a statement.

use crate::settings::chain;
use larimar_engine::queue::MessageError;
use larimar_engine::{Fault, ReadError, WriteError};
use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

/// Why a statement did not succeed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// A guard in the statement failed: a condition does not hold. Nothing took effect.
    Guard,
    /// Nothing took effect, and trying again may help: a deadlock, a lost race.
    Again(String),
    /// Nothing took effect: another session has locked a row for long.
    Locked(String),
    /// Nothing took effect. Another connection may work: this one leads to a server that takes no writes.
    Elsewhere(String),
    /// The connection is broken. Whether the statement took effect is unknown.
    Broken(String),
    /// The database refused. Nothing took effect.
    Refused(String),
}

impl Failure {
    /// What the error of a statement means. An error in an answer means that nothing took effect, unless the session
    /// ended with it: a commit that was waiting for a standby is then done, although it was not acknowledged.
    pub(crate) fn of(error: &Error) -> Self {
        let Some(answer) = error.as_db_error() else { return Self::Broken(chain(error)) };
        let text = format!("{} ({})", answer.message(), answer.code().code());
        let code = answer.code();
        let ends_session = !matches!(answer.parsed_severity(), Some(Severity::Error));
        match code {
            _ if ends_session || is_class(code, "57P") || is_class(code, "08") => Self::Broken(text),
            &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Self::Broken(text),
            // A failed guard, or an insert of a row that exists.
            &SqlState::DIVISION_BY_ZERO | &SqlState::UNIQUE_VIOLATION => Self::Guard,
            &SqlState::READ_ONLY_SQL_TRANSACTION => Self::Elsewhere(text),
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::QUERY_CANCELED => {
                Self::Again(text)
            }
            &SqlState::LOCK_NOT_AVAILABLE => Self::Locked(text),
            // A statement that was prepared before the tables changed.
            &SqlState::FEATURE_NOT_SUPPORTED | &SqlState::INVALID_SQL_STATEMENT_NAME => Self::Elsewhere(text),
            _ => Self::Refused(text),
        }
    }

    /// Whether the connection has to be closed.
    pub(crate) const fn ends_connection(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Elsewhere(_))
    }

    /// The fault of a read, or of a write of which nothing took effect.
    pub(crate) fn into_unavailable(self) -> Fault {
        match self {
            Self::Guard => Fault::Damaged("a statement without a guard failed like a guard".to_owned()),
            Self::Again(text)
            | Self::Locked(text)
            | Self::Elsewhere(text)
            | Self::Broken(text)
            | Self::Refused(text) => Fault::Unavailable(text),
        }
    }

    /// The fault of a write that was sent.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Self::Broken(text) => Fault::Ambiguous(text),
            other => other.into_unavailable(),
        }
    }
}

/// What the caller of a write gets. The outcome is unknown if the connection broke.
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

/// What the error of a statement means.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

/// A fault found before anything was sent.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unavailable(text) => Self::Refused(text),
            Fault::Damaged(_) => Self::Refused(fault.to_string()),
            Fault::Ambiguous(text) => Self::Broken(text),
        }
    }
}

fn is_class(code: &SqlState, class: &str) -> bool {
    code.code().starts_with(class)
}
