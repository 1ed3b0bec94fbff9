//! Queue names: what they may look like.

use crate::resource_name::{ResourceNameError, check};
use std::fmt;
use std::str::FromStr;

/// A queue's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(String);

impl QueueName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QueueName {
    type Err = ResourceNameError;

    fn from_str(text: &str) -> Result<Self, ResourceNameError> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_and_past_their_limits() {
        for name in ["abc", "1-2", "my-queue-1", &"q".repeat(63)] {
            assert_eq!(name.parse::<QueueName>().map(|n| n.to_string()).as_deref(), Ok(name));
        }
        for name in ["", "ab", &"q".repeat(64)] {
            assert_eq!(name.parse::<QueueName>(), Err(ResourceNameError::Length), "{name}");
        }
        for name in ["-abc", "abc-", "a--b", "Abc", "a_b", "a.b", "$logs", "äbc", "a b c"] {
            assert_eq!(name.parse::<QueueName>(), Err(ResourceNameError::Characters), "{name}");
        }
    }
}
