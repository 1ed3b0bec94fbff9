//! Why an operation cannot be part of a transaction.

use crate::encryption_error::EncryptionError;
use crate::{EntityError, Error};

/// An operation that no service would take into the transaction.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use larimar_client::{Account, DynamicEntity, TransactionRefusal};
/// let table = Account::connect("UseDevelopmentStorage=true")?.table("Employees");
/// let mut transaction = table.transaction();
/// transaction.insert(&DynamicEntity::new("Sales", "1"))?;
/// let refused = transaction.insert(&DynamicEntity::new("Sales", "1")).expect_err("it exists already");
/// assert_eq!(refused.operation, 1);
/// assert!(matches!(refused.reason, TransactionRefusal::EntityTwice { .. }));
/// assert_eq!(refused.to_string(), "operation 1 of the transaction: expected each entity once, found row '1' again");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("operation {operation} of the transaction: {reason}")]
#[non_exhaustive]
pub struct TransactionError {
    /// Which operation it is, counted from 0.
    pub operation: usize,
    /// What is wrong with it.
    pub reason: TransactionRefusal,
}

/// What is wrong with an operation of a transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionRefusal {
    /// It is on another partition than the operations before it.
    #[error("expected partition '{expected}', found '{found}'")]
    OtherPartition {
        /// The partition of the operations before it.
        expected: String,
        /// Its partition.
        found: String,
    },
    /// It is on an entity that another operation is on.
    #[error("expected each entity once, found row '{row_key}' again")]
    EntityTwice {
        /// The entity's row.
        row_key: String,
    },
    /// The transaction has 100 operations already.
    #[error("expected at most 100 operations")]
    TooManyOperations,
    /// The request would be larger than 4 MiB.
    #[error("expected a request of at most 4 MiB, found {bytes} bytes")]
    TooLarge {
        /// Bytes of the request with this operation.
        bytes: usize,
    },
    /// The entity is larger than 1 MiB.
    #[error("expected an entity of at most 1 MiB, found {bytes} bytes")]
    EntityTooLarge {
        /// Bytes of the entity as the service counts them.
        bytes: usize,
    },
    /// The entity has more than 252 properties besides its keys and `Timestamp`.
    #[error("expected at most 252 properties, found {count}")]
    TooManyProperties {
        /// How many it has.
        count: usize,
    },
    /// A text or binary property is larger than 64 KiB.
    #[error("expected values of at most 64 KiB, found a larger one in '{property}'")]
    PropertyTooLarge {
        /// The property's name.
        property: String,
    },
    /// The name of a property is not an identifier, is longer than 255 characters, or is one of the service's own.
    #[error("expected names of up to 255 letters, digits and underscores, no digit first, found '{property}'")]
    PropertyName {
        /// The property's name.
        property: String,
    },
    /// A key is longer than 1 KiB in UTF-16.
    #[error("expected a {key} of at most 512 UTF-16 code units")]
    KeyTooLong {
        /// `PartitionKey` or `RowKey`.
        key: &'static str,
    },
    /// A key has a character that keys cannot have.
    #[error("expected a {key} without '/', '\\', '#', '?' and control characters")]
    KeyForbidden {
        /// `PartitionKey` or `RowKey`.
        key: &'static str,
    },
    /// The ETag of the condition is not an ETag.
    #[error("expected an ETag of printable ASCII")]
    Condition,
    /// The value is not an entity.
    #[error(transparent)]
    Entity(#[from] EntityError),
    /// Something of the entity is to be encrypted, and cannot be.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// The value is not an entity for another reason.
    #[error("{0}")]
    Invalid(String),
}

impl From<Error> for TransactionRefusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Entity(error) => Self::Entity(error),
            Error::Encryption(error) => Self::Encryption(error),
            other => Self::Invalid(other.to_string()),
        }
    }
}
