//! Which of the three switches of a log an operation falls under.

/// What an operation does to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It looks.
    Read,
    /// It changes.
    Write,
    /// It removes.
    Delete,
}

impl Access {
    /// Every kind, in the order in which a log's metadata names them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// The access of an operation by its name; of one that has none, by the method.
    #[must_use]
    pub fn of(operation: &str, method: &str) -> Self {
        let begins = |words: &[&str]| words.iter().any(|word| operation.starts_with(word));
        match operation {
            "Unknown" => match method {
                "GET" | "HEAD" | "OPTIONS" => Self::Read,
                "DELETE" => Self::Delete,
                _ => Self::Write,
            },
            "ClearMessages" => Self::Delete,
            _ if begins(&["Delete"]) => Self::Delete,
            _ if begins(&["Get", "List", "Query", "Peek", "Find"]) || operation.ends_with("PreflightRequest") => {
                Self::Read
            }
            _ => Self::Write,
        }
    }

    /// The word of a log's metadata.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_apart_by_their_names() {
        for (operation, method, access) in [
            ("QueryEntities", "GET", Access::Read),
            ("TablePreflightRequest", "OPTIONS", Access::Read),
            ("InsertEntity", "POST", Access::Write),
            ("EntityGroupTransaction", "POST", Access::Write),
            // A delete may be tunnelled through POST.
            ("DeleteEntity", "POST", Access::Delete),
            ("ClearMessages", "DELETE", Access::Delete),
            ("PeekMessages", "GET", Access::Read),
            ("Unknown", "HEAD", Access::Read),
            ("Unknown", "DELETE", Access::Delete),
            ("Unknown", "PATCH", Access::Write),
        ] {
            assert_eq!(Access::of(operation, method), access, "{method} {operation}");
        }
    }
}
