//! Table names: what they may look like, and how they compare.

use crate::limits;
use std::fmt;
use std::str::FromStr;

/// A table's name, spelled as its creator spelled it. Names compare without case.
#[derive(Clone, Debug)]
pub struct TableName(String);

/// Why a text is not a valid table name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableNameError {
    /// Too short or too long.
    #[error("expected 3 to 63 characters")]
    Length,
    /// A character outside of `A-Za-z0-9`, a digit in front, or the reserved name `tables`.
    #[error("expected ASCII letters and digits, a letter first, and not the reserved name 'tables'")]
    Characters,
}

impl TableName {
    /// The name as its creator spelled it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a table of storage analytics: the service writes it, its users only read and clear it.
    #[must_use]
    pub fn is_system(&self) -> bool {
        is_system(&self.0)
    }

    /// The name under which a table of storage analytics is kept: the first version of them had shorter names.
    #[must_use]
    pub fn to_current(&self) -> Option<Self> {
        let first = "$MetricsTransactions";
        let (start, service) = self.0.split_at_checked(first.len())?;
        start.eq_ignore_ascii_case(first).then(|| Self(format!("$MetricsHourPrimaryTransactions{service}")))
    }

    /// The form that two names for the same table share.
    #[must_use]
    pub fn to_folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl FromStr for TableName {
    type Err = TableNameError;

    fn from_str(text: &str) -> Result<Self, TableNameError> {
        // System tables (`$MetricsHourPrimaryTransactionsTable`) are named like others behind a dollar sign.
        let name = if is_system(text) { &text[1..] } else { text };
        if !name.bytes().all(|b| b.is_ascii_alphanumeric()) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(TableNameError::Characters);
        }
        if !limits::TABLE_NAME_CHARS.contains(&name.len()) {
            return Err(TableNameError::Length);
        }
        if name.eq_ignore_ascii_case("tables") {
            return Err(TableNameError::Characters);
        }
        Ok(Self(text.to_owned()))
    }
}

impl PartialEq for TableName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for TableName {}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_system(text: &str) -> bool {
    text.len() > 8 && text.as_bytes()[..8].eq_ignore_ascii_case(b"$metrics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d5_names_at_and_past_their_limits() {
        for name in ["abc", "A12", &"a".repeat(63), "$MetricsHourPrimaryTransactionsTable"] {
            assert_eq!(name.parse::<TableName>().map(|n| n.to_string()).as_deref(), Ok(name));
        }
        for name in ["", "ab", &"a".repeat(64)] {
            assert_eq!(name.parse::<TableName>(), Err(TableNameError::Length), "{name}");
        }
        for name in ["1abc", "a-b-c", "a_bc", "tables", "Tables", "äbc", "$metric", "a b c"] {
            assert_eq!(name.parse::<TableName>(), Err(TableNameError::Characters), "{name}");
        }
    }

    #[test]
    fn d1_names_compare_without_case_but_keep_their_spelling() {
        let (a, b): (TableName, TableName) = ("MyTable".parse().expect("a name"), "mytABLE".parse().expect("a name"));
        assert_eq!(a, b);
        assert_eq!(a.as_str(), "MyTable");
        assert!(!a.is_system() && a.to_current().is_none());
        let older: TableName = "$metricsTransactionsBlob".parse().expect("a name");
        let current: TableName = "$MetricsHourPrimaryTransactionsBlob".parse().expect("a name");
        assert_eq!((older.to_current(), current.to_current()), (Some(current.clone()), None));
        assert!("$metricsHourPrimaryTransactionsTable".parse::<TableName>().expect("a name").is_system());
    }
}
