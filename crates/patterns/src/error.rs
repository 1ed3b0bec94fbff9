//! What can go wrong in a pattern, beyond what goes wrong in the client below it.

/// The result of a pattern's call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a pattern's call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request failed.
    #[error(transparent)]
    Client(#[from] larimar_client::Error),
    /// A text is not a key.
    #[error(transparent)]
    Key(#[from] crate::key_text::KeyError),
    /// What was asked for is not possible.
    #[error("{0}")]
    Invalid(String),
    /// A value that must be unique is another entity's.
    #[error("the value in the index '{index}' is another entity's")]
    Duplicate {
        /// The name of the index.
        index: String,
    },
    /// A transaction would break a rule.
    #[error(transparent)]
    Transaction(#[from] larimar_client::TransactionError),
    /// A value is not an entity, or an entity no value.
    #[error(transparent)]
    Entity(#[from] larimar_client::EntityError),
    /// An intent does not fit into a message of the queue.
    #[error("an intent has {bytes} bytes, and {bytes_max} is the most; put what is large elsewhere")]
    IntentTooLarge {
        /// Bytes of the message it would be.
        bytes: usize,
        /// The most that are taken.
        bytes_max: usize,
    },
    /// An intent cannot be written as JSON.
    #[error("the intent is not JSON: {0}")]
    Intent(#[source] serde_json::Error),
    /// An entity with these keys exists already.
    #[error("an entity with these keys is there already")]
    Exists,
    /// There is no such entity.
    #[error("there is no entity with these keys")]
    NotFound,
    /// The entity changed since it was read.
    #[error("the entity changed since it was read")]
    Changed,
    /// Others kept changing the same entity; the call may succeed later.
    #[error("others keep changing the same entity")]
    Contended,
    /// A list of row keys is as large as it may be.
    #[error("the list of '{value}' would have {bytes} bytes, and {bytes_max} is the most")]
    ListFull {
        /// The value that the list is of.
        value: String,
        /// Bytes of the list.
        bytes: usize,
        /// The most that are taken.
        bytes_max: usize,
    },
    /// Records of a log could not be written for so long that there is no room for more.
    #[error("the log has {bytes_max} bytes of records in memory that could not be written")]
    LogFull {
        /// The most that are kept.
        bytes_max: usize,
    },
    /// The service's answer lacks something.
    #[error("the service answered with {0}")]
    Answer(&'static str),
}

impl Error {
    /// Whether the same call will fail again, however often it is tried.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Client(error) => {
                matches!(error.status(), Some(400 | 413)) || matches!(error, larimar_client::Error::Invalid(_))
            }
            Self::Contended | Self::Changed | Self::LogFull { .. } => false,
            _ => true,
        }
    }
}
