//! Why a description is refused.

/// Why a description is refused. Messages name the place in the description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// The text is not a description or a sample.
    #[error("{reason}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// What was expected.
        reason: String,
    },
    /// The text is too long.
    #[error("expected a text of at most 1 MiB, found {bytes} bytes")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// There is more of something than is allowed.
    #[error("expected at most {max} {what}, found {found}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        max: usize,
        /// How many there are.
        found: usize,
    },
    /// Something is named that the description does not have.
    #[error("{place}: unknown {what} '{name}'{hint}")]
    Unknown {
        /// Where it is named.
        place: String,
        /// What it should be.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are, if they are few.
        hint: String,
    },
    /// A value that cannot be.
    #[error("{place}: {expected}")]
    Invalid {
        /// Where it is.
        place: String,
        /// What was expected, and what was found.
        expected: String,
    },
}

impl DesignError {
    pub(crate) fn invalid(place: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Invalid { place: place.into(), expected: expected.into() }
    }
}
