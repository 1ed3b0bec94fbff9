//! The kinds of findings: their ids, the guide's pattern that solves each, and code for it.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::str::FromStr;

/// What a finding is about. The names are stable: dismissals and CI settings hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Queries read the table to return a few of its rows.
    TableScan,
    /// Queries read a partition to return a few of its rows.
    PartitionScan,
    /// A partition is near the service's target for one, or was throttled.
    HotPartition,
    /// Inserts go to one end of the key space.
    AppendOnly,
    /// A partition has very many rows.
    LargePartition,
    /// Entities that are read together each have a partition of their own.
    OneEntityPerPartition,
    /// Entities come near the limit of their size.
    LargeEntity,
    /// Entities come near the limit of their properties.
    WideEntity,
    /// Rows of a partition are read one by one.
    RowByRow,
    /// A table holds a log.
    LogData,
    /// Old rows are deleted one by one.
    MassDelete,
    /// Most conditional writes fail.
    ConflictRetries,
}

/// A pattern of the table design guide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// The number in `docs/guide.md`.
    pub number: Cow<'static, str>,
    /// The name that the guide gives it.
    pub name: Cow<'static, str>,
    /// Where the finding and the pattern are explained, in the repository.
    pub link: String,
}

/// An example of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// With `larimar-client` and `larimar-patterns`.
    pub rust: Cow<'static, str>,
    /// With the Python SDK `azure-data-tables`.
    pub python: Cow<'static, str>,
}

impl FindingKind {
    /// Every kind, in the order of `docs/advisor.md`.
    pub const ALL: [Self; 12] = [
        Self::TableScan,
        Self::PartitionScan,
        Self::HotPartition,
        Self::AppendOnly,
        Self::LargePartition,
        Self::OneEntityPerPartition,
        Self::LargeEntity,
        Self::WideEntity,
        Self::RowByRow,
        Self::LogData,
        Self::MassDelete,
        Self::ConflictRetries,
    ];

    /// The stable name.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::TableScan => "table-scan",
            Self::PartitionScan => "partition-scan",
            Self::HotPartition => "hot-partition",
            Self::AppendOnly => "append-only",
            Self::LargePartition => "large-partition",
            Self::OneEntityPerPartition => "one-entity-per-partition",
            Self::LargeEntity => "large-entity",
            Self::WideEntity => "wide-entity",
            Self::RowByRow => "row-by-row",
            Self::LogData => "log-data",
            Self::MassDelete => "mass-delete",
            Self::ConflictRetries => "conflict-retries",
        }
    }

    /// The pattern that solves it.
    #[must_use]
    pub fn pattern(self) -> Pattern {
        let (number, name) = match self {
            Self::TableScan => ("T2", "inter-partition secondary index"),
            Self::PartitionScan => ("T1", "intra-partition secondary index"),
            Self::HotPartition | Self::AppendOnly => ("T12", "keys that spread inserts over partitions"),
            Self::LargePartition | Self::OneEntityPerPartition | Self::RowByRow => ("T6", "compound key"),
            Self::LargeEntity => ("T11", "large entities"),
            Self::WideEntity => ("T10", "wide entities"),
            Self::LogData => ("T13", "logs in blobs"),
            Self::MassDelete => ("T8", "high-volume delete"),
            Self::ConflictRetries => ("M7", "optimistic concurrency"),
        };
        Pattern { number: number.into(), name: name.into(), link: format!("docs/advisor.md#{}", self.id()) }
    }

    /// An example of the pattern.
    #[must_use]
    pub const fn code(self) -> Code {
        macro_rules! code {
            ($name:literal) => {
                Code {
                    rust: Cow::Borrowed(include_str!(concat!("../snippets/", $name, ".rs.txt"))),
                    python: Cow::Borrowed(include_str!(concat!("../snippets/", $name, ".py.txt"))),
                }
            };
        }
        match self {
            Self::TableScan => code!("table_scan"),
            Self::PartitionScan => code!("partition_scan"),
            Self::HotPartition | Self::AppendOnly => code!("spread_key"),
            Self::LargePartition => code!("large_partition"),
            Self::OneEntityPerPartition => code!("one_entity_per_partition"),
            Self::LargeEntity => code!("large_entity"),
            Self::WideEntity => code!("wide_entity"),
            Self::RowByRow => code!("row_by_row"),
            Self::LogData => code!("log_data"),
            Self::MassDelete => code!("mass_delete"),
            Self::ConflictRetries => code!("conflict_retries"),
        }
    }
}

impl FromStr for FindingKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.id() == text).ok_or(UnknownKind)
    }
}

/// An id that no finding has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKind;

impl std::fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = FindingKind::ALL.map(FindingKind::id);
        write!(f, "unknown finding: expected one of {}", all.join(", "))
    }
}

impl std::error::Error for UnknownKind {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_json_and_can_be_read() {
        for kind in FindingKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("JSON"), kind.id());
            assert_eq!(kind.id().parse(), Ok(kind));
        }
        assert_eq!("nonsense".parse::<FindingKind>(), Err(UnknownKind));
    }

    #[test]
    fn every_kind_has_a_section_in_the_documentation_with_its_code() {
        let page = include_str!("../../../docs/advisor.md");
        for kind in FindingKind::ALL {
            let section =
                page.split(&format!("\n## {}\n", kind.id())).nth(1).unwrap_or_else(|| panic!("{}", kind.id()));
            let section = section.split("\n## ").next().expect("the section");
            let Code { rust, python } = kind.code();
            assert!(section.contains(&format!("```rust,ignore\n{rust}```")), "{} Rust", kind.id());
            assert!(section.contains(&format!("```python\n{python}```")), "{} Python", kind.id());
            assert!(section.contains(&*kind.pattern().number) && section.contains("**Evidence.**"), "{}", kind.id());
        }
    }
}
