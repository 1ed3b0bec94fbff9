//! Partitions that take too much of the traffic, have too many rows, or have only one.

use super::{cost, figure, finding, is_share};
use crate::excerpt::quoted;
use crate::finding::{Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::{PartitionReport, TableReport};

pub(super) fn findings(table: &TableReport, seconds: Option<u64>) -> Vec<Finding> {
    let hot = table.partitions.iter().filter_map(|partition| hot_partition(table, partition, seconds));
    let mut findings: Vec<Finding> = hot.take(FINDINGS_OF_TABLE_MAX).collect();
    let large = table.partitions.iter().filter_map(|partition| large_partition(table, partition));
    findings.extend(large.take(FINDINGS_OF_TABLE_MAX));
    findings.extend(one_entity_per_partition(table));
    findings
}

fn hot_partition(table: &TableReport, partition: &PartitionReport, seconds: Option<u64>) -> Option<Finding> {
    let PartitionReport { reads, writes, throttled, .. } = *partition;
    let entities = reads.saturating_add(writes);
    let rate = seconds.map_or(0, |seconds| entities / seconds);
    if rate < RATE_MIN && throttled < THROTTLED_MIN {
        return None;
    }
    let key = quoted(&partition.partition);
    Some(Finding {
        summary: format!(
            "the partition {key} takes {rate} entities a second on average, of the {RATE_TARGET} that the service has as \
             its target for one partition, and {throttled} requests to it were throttled"
        ),
        subject: Some(key),
        evidence: vec![
            figure("entities read", reads),
            figure("entities written", writes),
            figure("entities a second, on average", rate),
            figure("requests throttled (503)", throttled),
        ],
        advice: format!("put one of {BUCKETS} buckets before the PartitionKey, by a hash of the RowKey or by turns"),
        cost: cost(
            "the busiest partition",
            Work::new(entities, entities),
            Work::new(entities.div_ceil(BUCKETS), entities.div_ceil(BUCKETS)),
        ),
        ..finding(FindingKind::HotPartition, Severity::Warning, table)
    })
}

fn large_partition(table: &TableReport, partition: &PartitionReport) -> Option<Finding> {
    let rows = partition.rows_seen;
    if rows < ROWS_MIN {
        return None;
    }
    let key = quoted(&partition.partition);
    let (pages, parts) = (rows.div_ceil(PAGE_ROWS), rows.div_ceil(BUCKETS));
    Some(Finding {
        summary: format!("about {rows} rows of the partition {key} were read or written by key"),
        subject: Some(key),
        evidence: vec![
            figure("different rows, about", rows),
            figure("reads", partition.reads),
            figure("writes", partition.writes),
        ],
        advice:
            "move the first part of the RowKey (a customer, a month) into the PartitionKey, so that a partition holds \
                 what is read or changed together"
                .to_owned(),
        cost: cost(
            &format!("a query over the partition, if it is divided into {BUCKETS}"),
            Work::new(pages, rows),
            Work::new(parts.div_ceil(PAGE_ROWS), parts),
        ),
        ..finding(FindingKind::LargePartition, Severity::Notice, table)
    })
}

fn one_entity_per_partition(table: &TableReport) -> Option<Finding> {
    let inserts = table.operation("insert").done;
    let is_alone = inserts >= INSERTS_MIN
        && table.transaction_writes == 0
        && is_share(table.partitions_seen, inserts, PARTITIONS_PERCENT_MIN)
        && table.partitions.iter().all(|partition| partition.rows_seen <= 1);
    // Entities that are read together belong together. A query without a filter may be an export.
    let (mut queries, mut returned) = (0_u64, 0_u64);
    for shape in table.shapes.iter().filter(|shape| !shape.shape.is_empty()) {
        match &*shape.plan {
            "table-scan" => {
                queries = queries.saturating_add(shape.counts.queries);
                returned = returned.saturating_add(shape.counts.rows_returned);
            }
            // The partitions have more entities than were inserted of late.
            _ if shape.counts.rows_returned > shape.counts.queries => return None,
            _ => {}
        }
    }
    if !is_alone || queries < QUERIES_MIN || returned / RETURNED_PER_QUERY_MIN < queries {
        return None;
    }
    Some(Finding {
        summary: format!(
            "{inserts} entities were inserted into about {} partitions and are read several at a time, across partitions",
            table.partitions_seen
        ),
        evidence: vec![
            figure("entities inserted, none in a transaction", inserts),
            figure("different partitions, about", table.partitions_seen),
            figure("queries across partitions", queries),
            figure("rows that they returned", returned),
        ],
        advice:
            "let entities that are read together share a PartitionKey, with what tells them apart in the RowKey: a \
                 range query reads them, and a transaction writes up to 100 of them"
                .to_owned(),
        cost: cost(
            "the inserts",
            Work::new(inserts, inserts),
            Work::new(inserts.div_ceil(TRANSACTION_WRITES), inserts),
        ),
        ..finding(FindingKind::OneEntityPerPartition, Severity::Notice, table)
    })
}

const FINDINGS_OF_TABLE_MAX: usize = 3;
/// Entities a second that the service has as its target for a partition (table design guide), and half of that.
const RATE_TARGET: u64 = 2000;
const RATE_MIN: u64 = RATE_TARGET / 2;
const THROTTLED_MIN: u64 = 10;
/// Buckets that the advice has in mind.
pub(super) const BUCKETS: u64 = 8;
const ROWS_MIN: u64 = 1_000_000;
const PAGE_ROWS: u64 = 1000;
const INSERTS_MIN: u64 = 500;
/// The number of partitions is an estimate with a standard error of 6.5 %.
const PARTITIONS_PERCENT_MIN: u64 = 70;
const QUERIES_MIN: u64 = 10;
const RETURNED_PER_QUERY_MIN: u64 = 5;
const TRANSACTION_WRITES: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CountsReport, OperationReport, ShapeReport};

    fn kinds(table: &TableReport, seconds: Option<u64>) -> Vec<FindingKind> {
        findings(table, seconds).into_iter().map(|finding| finding.id).collect()
    }

    fn partition(reads: u64, writes: u64, throttled: u64, rows_seen: u64) -> TableReport {
        let partition = "p".to_owned();
        let partition =
            PartitionReport { partition, reads, writes, throttled, rows_seen, ..PartitionReport::default() };
        TableReport { partitions: vec![partition], ..TableReport::default() }
    }

    #[test]
    fn a_partition_is_hot_by_its_rate_or_when_it_is_throttled() {
        for (table, seconds, expected) in [
            (partition(30_000, 30_000, 0, 1), Some(60), true),
            (partition(30_000, 29_939, 0, 1), Some(60), false),
            (partition(30_000, 30_000, 0, 1), Some(3600), false),
            (partition(30_000, 30_000, 0, 1), None, false),
            (partition(100, 100, 10, 1), Some(3600), true),
            (partition(100, 100, 9, 1), Some(3600), false),
        ] {
            assert_eq!(!kinds(&table, seconds).is_empty(), expected, "{table:?}");
        }
        let hot = &findings(&partition(60_000, 0, 0, 1), Some(60))[0];
        assert_eq!((hot.id, hot.cost.after.requests), (FindingKind::HotPartition, 7500));
    }

    #[test]
    fn a_partition_is_large_from_a_million_rows_on() {
        assert_eq!(kinds(&partition(0, 0, 0, 1_000_000), Some(3600)), [FindingKind::LargePartition]);
        assert_eq!(kinds(&partition(0, 0, 0, 999_999), Some(3600)), []);
    }

    /// 600 entities that are alone in their partitions, and 20 queries that return 10 each.
    fn alone() -> TableReport {
        let insert = OperationReport { operation: "insert".to_owned(), done: 600, ..OperationReport::default() };
        let counts = CountsReport { queries: 20, rows_read: 200, rows_returned: 200, wasteful: 0 };
        let (shape, plan) = ("PartitionKey ge ? and PartitionKey lt ?".to_owned(), "table-scan".to_owned());
        let shape = ShapeReport { shape, plan, counts, ..ShapeReport::default() };
        let partitions = partition(1, 1, 0, 1).partitions;
        TableReport {
            operations: vec![insert],
            partitions_seen: 570,
            shapes: vec![shape],
            partitions,
            ..TableReport::default()
        }
    }

    #[test]
    fn entities_that_are_read_together_and_alone_in_their_partitions_are_found() {
        let found = &findings(&alone(), Some(3600))[0];
        assert_eq!(
            (found.id, found.cost.now.requests, found.cost.after.requests),
            (FindingKind::OneEntityPerPartition, 600, 6)
        );
        let without = |change: fn(&mut TableReport)| {
            let mut table = alone();
            change(&mut table);
            kinds(&table, Some(3600))
        };
        assert_eq!(without(|table| table.operations[0].done = 499), [], "few inserts");
        assert_eq!(without(|table| table.partitions_seen = 300), [], "several entities in a partition");
        assert_eq!(without(|table| table.partitions[0].rows_seen = 2), [], "several rows in a partition");
        assert_eq!(without(|table| table.transaction_writes = 100), [], "transactions are used");
        assert_eq!(without(|table| table.shapes.clear()), [], "read by key only");
        assert_eq!(without(|table| table.shapes[0].shape.clear()), [], "exported");
        assert_eq!(without(|table| table.shapes[0].counts.rows_returned = 20), [], "one row at a time");
        assert_eq!(without(|table| table.shapes[0].plan = "partition-scan".to_owned()), [], "older rows");
    }
}
