//! The report of an account's insights, as `GET /insights` answers it in JSON.
//!
//! The server fills these types and the advisor reads them. Members that a reader does not know are ignored, and ones that
//! are missing are zero, so that releases understand each other's reports.

use serde::{Deserialize, Serialize};

/// The insights of an account over a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// The account's name.
    pub account: String,
    /// Where the span begins, as `2026-11-16T06:00:00Z`.
    pub since: String,
    /// Where it ends.
    pub until: String,
    /// The length of a slot: `minute` or `hour`.
    pub resolution: String,
    /// The busiest tables first.
    pub tables: Vec<TableReport>,
    /// Requests to tables that are not listed.
    pub other_requests: u64,
}

/// The traffic of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TableReport {
    /// The table's name.
    pub table: String,
    /// All requests.
    pub requests: u64,
    /// Requests at most that were missed before the table was tracked.
    pub missed_max: u64,
    /// Kinds of operations that occurred.
    pub operations: Vec<OperationReport>,
    /// The most frequent filters of queries, without literals.
    pub shapes: Vec<ShapeReport>,
    /// Queries with other filters.
    pub other_shapes: CountsReport,
    /// The busiest partitions first.
    pub partitions: Vec<PartitionReport>,
    /// About how many partitions were read or written.
    pub partitions_seen: u64,
    /// The busiest minutes of partitions, one for each; only of minutes with 1,200 entities or more.
    pub peaks: Vec<PeakReport>,
    /// Heat by ranges of keys, in key order.
    pub ranges: Vec<RangeReport>,
    /// The order of inserted keys over the whole table.
    pub insert_order: OrderReport,
    /// Sizes of entities that were inserted or replaced.
    pub entities: EntitiesReport,
    /// Entities that were written in transactions.
    pub transaction_writes: u64,
    /// Operations on another row of the same partition as the operation of that kind before.
    pub followed: FollowedReport,
    /// Heat of the ranges over time; only in the report of a single table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heat: Vec<HeatReport>,
}

/// One kind of operation. Except for `requests` and latencies, the members count outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationReport {
    /// `get`, `query`, `insert`, `replace`, `merge`, `delete` or `transaction`.
    pub operation: String,
    /// All requests.
    pub requests: u64,
    /// Successful ones.
    pub done: u64,
    /// 404.
    pub missing: u64,
    /// 409.
    pub exists: u64,
    /// 412.
    pub changed: u64,
    /// 503.
    pub busy: u64,
    /// Any other 4xx.
    pub refused: u64,
    /// Any other 5xx.
    pub failed: u64,
    /// The median latency.
    pub p50_micros: u64,
    /// The latency that 99 % stay below.
    pub p99_micros: u64,
}

/// One filter without its literals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShapeReport {
    /// The filter, such as `PartitionKey eq ? and Age gt ?`; empty for queries without one.
    pub shape: String,
    /// The kind of the last one's plan, such as `partition-scan`.
    pub plan: String,
    /// Queries, rows and waste.
    #[serde(flatten)]
    pub counts: CountsReport,
    /// Queries at most that were missed before the filter was tracked.
    pub missed_max: u64,
    /// The median latency.
    pub p50_micros: u64,
    /// The latency that 99 % stay below.
    pub p99_micros: u64,
}

/// Figures of queries; each page is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CountsReport {
    /// Pages.
    pub queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows returned.
    pub rows_returned: u64,
    /// Pages that read at least 100 rows and returned less than a tenth of them.
    pub wasteful: u64,
}

/// One partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartitionReport {
    /// The PartitionKey, perhaps cut.
    pub partition: String,
    /// Entities read by key, and pages of queries in the partition.
    pub reads: u64,
    /// Entities written.
    pub writes: u64,
    /// Reads and writes at most that were missed before the partition was tracked.
    pub missed_max: u64,
    /// 409 and 412.
    pub conflicts: u64,
    /// 503.
    pub throttled: u64,
    /// About how many rows were read or written by key.
    pub rows_seen: u64,
    /// The order of inserted rows.
    pub insert_order: OrderReport,
}

/// The busiest minute of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PeakReport {
    /// The PartitionKey, perhaps cut.
    pub partition: String,
    /// When the minute began.
    pub time: String,
    /// Entities read by key or written, and pages of queries in the partition.
    pub entities: u64,
}

/// The heat of a range of keys, which ends where the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RangeReport {
    /// The first PartitionKey, perhaps cut.
    pub partition: String,
    /// The first RowKey, perhaps cut.
    pub row: String,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// How many inserted keys came after, or before, all keys of the same minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrderReport {
    /// Inserts that had another one before them to compare with.
    pub compared: u64,
    /// Those that came after all before them.
    pub above: u64,
    /// Those that came before all before them.
    pub below: u64,
}

/// Sizes of entities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EntitiesReport {
    /// The largest one, in stored bytes.
    pub bytes_max: u64,
    /// The most properties, of every eighth entity.
    pub properties_max: u64,
    /// Entities by size.
    pub by_size: Vec<SizeReport>,
}

/// Entities of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SizeReport {
    /// Each has fewer bytes than this, and at least half.
    pub bytes_below: u64,
    /// How many.
    pub entities: u64,
}

/// Operations on another row of the same partition as the one of that kind before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FollowedReport {
    /// Reads by key.
    pub gets: u64,
    /// Inserts outside of transactions.
    pub inserts: u64,
    /// Deletes outside of transactions.
    pub deletes: u64,
}

/// The heat of one slot of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeatReport {
    /// Where the slot begins.
    pub time: String,
    /// Reads, for each of the table's ranges.
    pub reads: Vec<u64>,
    /// Writes, for each of the table's ranges.
    pub writes: Vec<u64>,
}

impl TableReport {
    /// The figures of a kind of operation; zeros if there were none.
    #[must_use]
    pub fn operation(&self, name: &str) -> OperationReport {
        self.operations.iter().find(|operation| operation.operation == name).cloned().unwrap_or_default()
    }
}
