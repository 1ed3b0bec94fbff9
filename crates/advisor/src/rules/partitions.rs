//! Partitions that take too much of the traffic, have too many rows, or have only one.

use super::{cost, figure, finding, is_share};
use crate::advice::Options;
use crate::excerpt::{excerpt, quoted};
use crate::finding::{Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::{PartitionReport, PeakReport, TableReport};

pub(super) fn findings(table: &TableReport, seconds: Option<u64>, options: Options) -> Vec<Finding> {
    let mut findings = hot_partitions(table, seconds, options.partition_rate_target);
    let rows_max = options.partition_rows_max;
    let large = table.partitions.iter().filter_map(|partition| large_partition(table, partition, rows_max));
    findings.extend(large.take(FINDINGS_OF_TABLE_MAX));
    findings.extend(one_entity_per_partition(table));
    findings
}

/// A partition with its busiest minute, as far as they are known.
struct Load<'a> {
    partition: PartitionReport,
    peak: Option<&'a PeakReport>,
    /// Entities a second: in the busiest minute, or over the whole span if that is more.
    rate: u64,
}

/// The hottest partitions first.
fn hot_partitions(table: &TableReport, seconds: Option<u64>, target: u64) -> Vec<Finding> {
    let average = |partition: &PartitionReport| {
        seconds.map_or(0, |seconds| partition.reads.saturating_add(partition.writes) / seconds)
    };
    let of_peak = |peak: &PeakReport| peak.entities / MINUTE_SECONDS;
    let known = table.partitions.iter().map(|partition| {
        let peak = table.peaks.iter().find(|peak| peak.partition == partition.partition);
        let rate = average(partition).max(peak.map_or(0, of_peak));
        Load { partition: partition.clone(), peak, rate }
    });
    // A partition that was busy for a minute need not be among the busiest of the day.
    let is_other = |peak: &&PeakReport| table.partitions.iter().all(|it| it.partition != peak.partition);
    let others = table.peaks.iter().filter(is_other).map(|peak| {
        let partition = PartitionReport { partition: peak.partition.clone(), ..PartitionReport::default() };
        Load { partition, peak: Some(peak), rate: of_peak(peak) }
    });
    let is_hot = |load: &Load<'_>| load.rate >= target.div_ceil(2) || load.partition.throttled >= THROTTLED_MIN;
    let mut hot: Vec<Load<'_>> = known.chain(others).filter(is_hot).collect();
    hot.sort_by(|one, other| {
        other.rate.cmp(&one.rate).then_with(|| one.partition.partition.cmp(&other.partition.partition))
    });
    hot.iter().take(FINDINGS_OF_TABLE_MAX).map(|load| hot_partition(table, load, target)).collect()
}

fn hot_partition(table: &TableReport, load: &Load<'_>, target: u64) -> Finding {
    let PartitionReport { reads, writes, throttled, .. } = load.partition;
    let (key, rate) = (quoted(&load.partition.partition), load.rate);
    let peak = load.peak.filter(|peak| peak.entities / MINUTE_SECONDS == rate);
    let (when, of, entities) = match peak {
        Some(peak) => (format!("in the minute of {}", excerpt(&peak.time)), "its busiest minute", peak.entities),
        None => ("on average".to_owned(), "the partition", reads.saturating_add(writes)),
    };
    let mut evidence = vec![figure("entities a second", rate), figure("requests throttled (503)", throttled)];
    if let Some(peak) = load.peak {
        evidence.push(figure("entities in the busiest minute", peak.entities));
    }
    // Without figures of its own, the partition is not among the busiest of the span.
    if reads > 0 || writes > 0 {
        evidence.extend([figure("entities read", reads), figure("entities written", writes)]);
    }
    Finding {
        summary: format!(
            "the partition {key} took {rate} entities a second {when}, of the {target} that the service has as its target \
             for one partition, and {throttled} requests to it were throttled"
        ),
        subject: Some(key),
        evidence,
        advice: format!("put one of {BUCKETS} buckets before the PartitionKey, by a hash of the RowKey or by turns"),
        cost: cost(
            of,
            Work::new(entities, entities),
            Work::new(entities.div_ceil(BUCKETS), entities.div_ceil(BUCKETS)),
        ),
        ..finding(FindingKind::HotPartition, Severity::Warning, table)
    }
}

fn large_partition(table: &TableReport, partition: &PartitionReport, rows_max: u64) -> Option<Finding> {
    let rows = partition.rows_seen;
    if rows < rows_max {
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
const MINUTE_SECONDS: u64 = 60;
const THROTTLED_MIN: u64 = 10;
/// Buckets that the advice has in mind.
pub(super) const BUCKETS: u64 = 8;
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
        findings(table, seconds, Options::default()).into_iter().map(|finding| finding.id).collect()
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
        let hot = &findings(&partition(60_000, 0, 0, 1), Some(60), Options::default())[0];
        assert_eq!((hot.id, hot.cost.after.requests), (FindingKind::HotPartition, 7500));
    }

    #[test]
    fn a_partition_is_hot_by_its_busiest_minute() {
        let peak = |partition: &str, entities| PeakReport {
            partition: partition.to_owned(),
            time: "2026-11-16T06:07:00Z".to_owned(),
            entities,
        };
        let mut table = partition(30_000, 30_000, 0, 1);
        table.peaks = vec![peak("p", 59_999)];
        assert_eq!(kinds(&table, Some(86_400)), []);
        table.peaks = vec![peak("p", 60_000), peak("gone", 120_000)];
        let found = findings(&table, Some(86_400), Options::default());
        let subjects: Vec<_> = found.iter().map(|finding| finding.subject.as_deref().expect("a key")).collect();
        assert_eq!(subjects, ["'gone'", "'p'"], "the hottest first");
        assert!(
            found[0].summary.contains("took 2000 entities a second in the minute of 2026-11-16T06:07:00Z, of the 2000")
        );
        assert_eq!((found[0].cost.now.requests, found[0].evidence.len()), (120_000, 3));
        assert_eq!((found[1].cost.now.requests, found[1].evidence.len()), (60_000, 5));
        let lower = Options { partition_rate_target: 100, partition_rows_max: 1, ..Options::default() };
        assert_eq!(findings(&partition(3000, 0, 0, 1), Some(60), lower).len(), 2, "the targets are values");
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
        let found = &findings(&alone(), Some(3600), Options::default())[0];
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
