//! One finding: what is wrong with a table's design, the figures that show it, and what to do.

use crate::kind::{Code, FindingKind, Pattern};
use serde::{Deserialize, Serialize};

/// A fault in the design of a table, or in how clients use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Which fault.
    pub id: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// The table.
    pub table: String,
    /// The filter or the partition that it is about, escaped and perhaps cut.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// What happens, in a sentence.
    pub summary: String,
    /// The figures of the report that show it.
    pub evidence: Vec<Figure>,
    /// What to do about it.
    pub advice: String,
    /// What it costs now and what it will cost.
    pub cost: Cost,
    /// The pattern that solves it.
    pub pattern: Pattern,
    /// An example of the pattern.
    pub code: Code,
    /// Whether it is known and accepted.
    #[serde(default)]
    pub dismissed: bool,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works, and costs more than it has to.
    Notice,
    /// It gets slow, or is refused, as the data or the traffic grows.
    Warning,
}

impl Severity {
    /// The name in output and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
        }
    }
}

/// A number that supports a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// What was counted.
    pub name: String,
    /// How many.
    pub value: u64,
}

/// What something costs before and after the advice was followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// What is done, such as `these queries`.
    pub of: String,
    /// The cost in the span of the report.
    pub now: Work,
    /// The cost of the same with the pattern.
    pub after: Work,
}

/// Requests, and rows that the service reads or writes for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Requests.
    pub requests: u64,
    /// Rows.
    pub rows: u64,
}

impl Work {
    pub(crate) const fn new(requests: u64, rows: u64) -> Self {
        Self { requests, rows }
    }
}
