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
    /// A text is no key.
    #[error(transparent)]
    Key(#[from] crate::key_text::KeyError),
    /// What was asked for is not possible.
    #[error("{0}")]
    Invalid(String),
    /// A value is no entity, or an entity no value.
    #[error(transparent)]
    Entity(#[from] larimar_client::EntityError),
}
