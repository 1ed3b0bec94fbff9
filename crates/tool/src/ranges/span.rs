//! Ranges of keys, and the queries that read them.

use larimar_client::{Filter, keys};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The keys from a start to an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    /// The first keys.
    pub(super) start: Start,
    /// The first keys that are not of the span.
    pub(super) end: End,
}

/// Where a span starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Start {
    /// At this partition, or the next one if it does not exist.
    Partition(String),
    /// After this partition.
    AfterPartition(String),
    /// In this partition, at this row or the next one.
    Row(String, String),
    /// In this partition, after this row.
    AfterRow(String, String),
}

/// Where a span ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// With the table.
    Table,
    /// Before this partition.
    Partition(String),
    /// In this partition, before this row.
    Row(String, String),
    /// In this partition, after this row.
    AfterRow(String, String),
}

impl Span {
    /// All keys.
    pub(crate) const fn all() -> Self {
        Self { start: Start::Partition(String::new()), end: End::Table }
    }

    /// A query that reads the first part of the span, and where the rest starts. Each is a plain range, either of
    /// partitions or of the rows of one partition: services other than Larimar answer `or` by reading the whole table.
    pub(super) fn segment(&self) -> Option<Segment> {
        // The end moves, and may come before the place where a reader of the span is.
        if self.is_empty() {
            return None;
        }
        let partition = keys::partition_key();
        let row = keys::row_key();
        let (of, low) = match &self.start {
            Start::Row(of, low) => (of, row.ge(low.as_str())),
            Start::AfterRow(of, low) => (of, row.gt(low.as_str())),
            Start::Partition(low) if low.is_empty() => return self.partitions(Filter::everything()),
            Start::Partition(low) => return self.partitions(partition.ge(low.as_str())),
            Start::AfterPartition(low) => return self.partitions(partition.gt(low.as_str())),
        };
        let rows = partition.eq(of.as_str()).and(low);
        Some(match &self.end {
            End::Row(last, high) if last == of => Segment { filter: rows.and(row.lt(high.as_str())), rest: None },
            End::AfterRow(last, high) if last == of => Segment { filter: rows.and(row.le(high.as_str())), rest: None },
            _ => Segment { filter: rows, rest: Some(Start::AfterPartition(of.clone())) },
        })
    }

    /// Whether the start is at the end or beyond it.
    fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Start::AfterPartition(start), End::Row(last, _) | End::AfterRow(last, _)) => compare(start, last).is_ge(),
            (Start::Partition(start) | Start::AfterPartition(start), end) => end.is_before(start, ""),
            (Start::Row(of, start) | Start::AfterRow(of, start), end) => end.is_before(of, start),
        }
    }

    /// The segment of a span that starts with a partition.
    fn partitions(&self, low: Filter) -> Option<Segment> {
        let partition = keys::partition_key();
        match &self.end {
            End::Table => Some(Segment { filter: low, rest: None }),
            End::Partition(high) => Some(Segment { filter: low.and(partition.lt(high.as_str())), rest: None }),
            End::Row(last, high) | End::AfterRow(last, high) => match &self.start {
                Start::Partition(start) if start == last => {
                    let row = keys::row_key();
                    let high = match &self.end {
                        End::AfterRow(..) => row.le(high.as_str()),
                        _ => row.lt(high.as_str()),
                    };
                    Some(Segment { filter: partition.eq(last.as_str()).and(high), rest: None })
                }
                _ => {
                    let rest = Some(Start::Partition(last.clone()));
                    Some(Segment { filter: low.and(partition.lt(last.as_str())), rest })
                }
            },
        }
    }
}

/// A part of a span that one query reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) filter: Filter,
    /// Where the rest of the span starts; none if there is no rest.
    pub(super) rest: Option<Start>,
}

impl End {
    /// Whether the key is beyond the end.
    pub(super) fn is_before(&self, partition: &str, row: &str) -> bool {
        match self {
            Self::Table => false,
            Self::Partition(end) => compare(partition, end).is_ge(),
            Self::Row(last, end) => compare(partition, last).then_with(|| compare(row, end)).is_ge(),
            Self::AfterRow(last, end) => compare(partition, last).then_with(|| compare(row, end)).is_gt(),
        }
    }
}

/// The order of keys: by UTF-16 code units.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}
