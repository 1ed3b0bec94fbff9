//! The rule that names of containers and queues share.

use crate::limits;

/// Why a text is not a valid name of a container or queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceNameError {
    /// Too short or too long.
    #[error("expected 3 to 63 characters")]
    Length,
    /// A character outside of `a-z0-9-`, a dash at an end, or two dashes in a row.
    #[error("expected lower-case letters, digits and single dashes between them")]
    Characters,
}

/// Checks the rule: 3 to 63 lower-case letters, digits, and single dashes between them.
pub(crate) fn check(text: &str) -> Result<(), ResourceNameError> {
    let is_known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let has_stray_dash = text.starts_with('-') || text.ends_with('-') || text.contains("--");
    if !text.bytes().all(is_known) || has_stray_dash {
        return Err(ResourceNameError::Characters);
    }
    if !limits::RESOURCE_NAME_CHARS.contains(&text.len()) {
        return Err(ResourceNameError::Length);
    }
    Ok(())
}
