//! Inserts that all go to one end of the key space, and logs.

use super::key_time::are_keys_times;
use super::partitions::BUCKETS;
use super::{cost, figure, finding, is_share};
use crate::finding::{Figure, Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::{OrderReport, TableReport};

/// A log is found as one, not as inserts in order besides.
pub(super) fn findings(table: &TableReport, seconds: Option<u64>) -> Option<Finding> {
    log_data(table).or_else(|| append_only(table, seconds))
}

fn append_only(table: &TableReport, seconds: Option<u64>) -> Option<Finding> {
    let end = End::of(table.insert_order)?;
    let inserts = table.insert_order.compared;
    let rate = seconds.map_or(0, |seconds| inserts / seconds);
    let throttled: u64 = table.partitions.iter().fold(0, |sum, partition| sum.saturating_add(partition.throttled));
    let is_fast = rate >= RATE_MIN || throttled > 0;
    // In a single partition the order of rows does not matter before the partition itself is hot.
    if table.partitions_seen < PARTITIONS_MIN && !is_fast {
        return None;
    }
    let mut evidence = order_figures(table);
    evidence.push(figure("different partitions, about", table.partitions_seen));
    evidence.push(figure("inserts a second, on average", rate));
    evidence.push(figure("requests throttled (503)", throttled));
    Some(Finding {
        summary: format!(
            "new keys come {} all others, so one partition, or one range of partitions on one node, takes every insert",
            end.place()
        ),
        evidence,
        advice: format!(
            "put one of {BUCKETS} buckets before the PartitionKey, by a hash of the RowKey or by turns; a range is then \
             read from all buckets and merged"
        ),
        cost: cost(
            "inserts into the range that takes the most",
            Work::new(inserts, inserts),
            Work::new(inserts.div_ceil(BUCKETS), inserts.div_ceil(BUCKETS)),
        ),
        ..finding(FindingKind::AppendOnly, if is_fast { Severity::Warning } else { Severity::Notice }, table)
    })
}

fn log_data(table: &TableReport) -> Option<Finding> {
    let end = End::of(table.insert_order)?;
    let inserts = table.insert_order.compared;
    let requests =
        |names: &[&str]| names.iter().fold(0_u64, |sum, name| sum.saturating_add(table.operation(name).requests));
    let reads = requests(&["get", "query"]);
    let changes = requests(&["replace", "merge"]);
    if changes > 0 || !is_share(inserts, reads, READS_TIMES_MIN * 100) || !are_keys_times(table) {
        return None;
    }
    let bytes = table
        .entities
        .by_size
        .iter()
        .fold(0_u64, |sum, size| sum.saturating_add(size.entities.saturating_mul(size.bytes_below / 4 * 3)));
    let mut evidence = order_figures(table);
    evidence.push(figure("reads and queries", reads));
    evidence.push(figure("replaced or merged entities", changes));
    Some(Finding {
        summary: format!(
            "{inserts} entities with times in their keys were inserted, each {} all others; none was changed, and {reads} \
             requests read some: this is a log",
            end.place()
        ),
        evidence,
        advice: "write the lines to append blobs that are named by service and time, buffered in the client, and find \
                 them by prefix"
            .to_owned(),
        cost: cost(
            "the writes, with a buffer of 64 KiB",
            Work::new(requests(&["insert", "transaction"]), inserts),
            Work::new(bytes.div_ceil(BUFFER_BYTES).max(1), 0),
        ),
        ..finding(FindingKind::LogData, Severity::Notice, table)
    })
}

fn order_figures(table: &TableReport) -> Vec<Figure> {
    let OrderReport { compared, above, below } = table.insert_order;
    vec![
        figure("inserts that were compared with those before", compared),
        figure("after all others", above),
        figure("before all others", below),
    ]
}

/// The end of the key space where inserts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Last,
    First,
}

impl End {
    fn of(OrderReport { compared, above, below }: OrderReport) -> Option<Self> {
        let is_most = |count| compared >= INSERTS_MIN && is_share(count, compared, ORDERED_PERCENT_MIN);
        match (is_most(above), is_most(below)) {
            (true, _) => Some(Self::Last),
            (_, true) => Some(Self::First),
            _ => None,
        }
    }

    const fn place(self) -> &'static str {
        match self {
            Self::Last => "after",
            Self::First => "before",
        }
    }
}

const INSERTS_MIN: u64 = 1000;
const ORDERED_PERCENT_MIN: u64 = 95;
const PARTITIONS_MIN: u64 = 2;
/// A quarter of the service's target for a partition.
const RATE_MIN: u64 = 500;
/// Inserts for each read, in a log.
const READS_TIMES_MIN: u64 = 100;
const BUFFER_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{OperationReport, PartitionReport, RangeReport};

    fn table(order: [u64; 3], partitions_seen: u64) -> TableReport {
        let [compared, above, below] = order;
        let insert_order = OrderReport { compared, above, below };
        // Somebody reads and changes it.
        let replace = OperationReport { operation: "replace".to_owned(), requests: 50, ..OperationReport::default() };
        TableReport { insert_order, partitions_seen, operations: vec![replace], ..TableReport::default() }
    }

    fn found(table: &TableReport, seconds: u64) -> Option<(FindingKind, Severity)> {
        findings(table, Some(seconds)).map(|finding| (finding.id, finding.severity))
    }

    #[test]
    fn inserts_at_one_end_are_found() {
        let notice = Some((FindingKind::AppendOnly, Severity::Notice));
        for (order, partitions, expected) in [
            ([1000, 950, 0], 2, notice),
            ([1000, 0, 950], 2, notice),
            ([1000, 949, 20], 2, None),
            ([999, 999, 0], 2, None),
            // What random keys look like.
            ([100_000, 12, 11], 5000, None),
            // A log tail in one partition, at a rate that one partition takes.
            ([1000, 0, 1000], 1, None),
        ] {
            assert_eq!(found(&table(order, partitions), 3600), expected, "{order:?}");
        }
        let warning = Some((FindingKind::AppendOnly, Severity::Warning));
        assert_eq!(found(&table([30_000, 30_000, 0], 1), 60), warning);
        let mut throttled = table([1000, 1000, 0], 1);
        throttled.partitions.push(PartitionReport { throttled: 1, ..PartitionReport::default() });
        assert_eq!(found(&throttled, 3600), warning);
    }

    #[test]
    fn a_log_has_times_in_its_keys_and_is_hardly_read() {
        let log = || {
            let mut log = table([5000, 5000, 0], 2);
            log.operations[0].operation = "insert".to_owned();
            log.operations[0].requests = 5000;
            let row = "2026-11-16T10:00:00Z".to_owned();
            log.ranges = vec![RangeReport::default(), RangeReport { row, ..RangeReport::default() }];
            log
        };
        assert_eq!(found(&log(), 3600), Some((FindingKind::LogData, Severity::Notice)));
        let kind_without = |change: fn(&mut TableReport)| {
            let mut table = log();
            change(&mut table);
            found(&table, 3600).map(|(kind, _)| kind)
        };
        let other = Some(FindingKind::AppendOnly);
        assert_eq!(kind_without(|log| log.ranges[1].row = "000123".to_owned()), other, "no times");
        let operation = |name: &str, requests| OperationReport {
            operation: name.to_owned(),
            requests,
            ..OperationReport::default()
        };
        let mut read = log();
        read.operations.push(operation("get", 51));
        assert_eq!(found(&read, 3600).map(|(kind, _)| kind), other, "read");
        let mut changed = log();
        changed.operations.push(operation("merge", 1));
        assert_eq!(found(&changed, 3600).map(|(kind, _)| kind), other, "changed");
        assert_eq!(kind_without(|log| log.insert_order.above = 100), None, "in no order");
    }
}
