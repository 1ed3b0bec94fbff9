//! What is to be done for an intent.

use larimar_client::BoxError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is to be done for an intent: idempotent steps in their order.
///
/// A step may be carried out any number of times, also after later ones, and its future may be dropped at any await
/// ([what is guaranteed](crate::eventual#what-is-guaranteed)).
pub trait Work: Send + Sync {
    /// What is written down before anything is done.
    type Intent: Serialize + DeserializeOwned + Send + Sync;

    /// How many steps this intent takes.
    fn steps(&self, intent: &Self::Intent) -> usize {
        let _ = intent;
        1
    }

    /// Carries out a step, counted from 0.
    fn perform(&self, intent: &Self::Intent, step: usize) -> impl Future<Output = Result<(), WorkError>> + Send;
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// It may succeed later: the message comes back after a while.
    #[error("{0}")]
    Retry(#[source] BoxError),
    /// It never will: the message goes to the poison queue at once.
    #[error("{0}")]
    Poison(#[source] BoxError),
}

impl WorkError {
    /// A failure that may pass.
    pub fn retry(reason: impl Into<BoxError>) -> Self {
        Self::Retry(reason.into())
    }

    /// A failure that will not pass.
    pub fn poison(reason: impl Into<BoxError>) -> Self {
        Self::Poison(reason.into())
    }
}

impl From<larimar_client::Error> for WorkError {
    fn from(error: larimar_client::Error) -> Self {
        Self::Retry(error.into())
    }
}

/// What no repetition cures is poison; everything else may pass.
impl From<crate::Error> for WorkError {
    fn from(error: crate::Error) -> Self {
        match error.is_permanent() {
            true => Self::Poison(error.into()),
            false => Self::Retry(error.into()),
        }
    }
}
