//! Deletes of many rows, and conditional writes that mostly fail.

use super::key_time::are_keys_times;
use super::{cost, figure, finding, is_share};
use crate::finding::{Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::TableReport;

pub(super) fn mass_delete(table: &TableReport) -> Option<Finding> {
    let deletes = table.operation("delete").done;
    if deletes < DELETES_MIN || !are_keys_times(table) {
        return None;
    }
    Some(Finding {
        summary: format!("{deletes} entities of a table with times in its keys were deleted one by one"),
        evidence: vec![
            figure("entities deleted outside of transactions", deletes),
            figure("of the partition of the delete before", table.followed.deletes),
            figure("entities inserted outside of transactions", table.operation("insert").done),
            figure("entities written in transactions", table.transaction_writes),
        ],
        advice: "write to a table for each day, week or month, and drop whole tables".to_owned(),
        cost: cost("the removal of one period", Work::new(deletes, deletes), Work::new(1, 0)),
        ..finding(FindingKind::MassDelete, Severity::Notice, table)
    })
}

pub(super) fn conflict_retries(table: &TableReport) -> Option<Finding> {
    let conditional = ["replace", "merge", "delete", "transaction"].map(|name| table.operation(name));
    let sum =
        |of: fn(&crate::report::OperationReport) -> u64| conditional.iter().map(of).fold(0_u64, u64::saturating_add);
    let (done, changed) = (sum(|operation| operation.done), sum(|operation| operation.changed));
    if changed < CHANGED_MIN || !is_share(changed, done, CHANGED_TIMES_MIN * 100) {
        return None;
    }
    let gets = table.operation("get").done;
    let read = if gets < changed { "; there were fewer reads, so clients repeat without reading again" } else { "" };
    Some(Finding {
        summary: format!("{changed} writes failed because the entity had changed (412), and {done} succeeded{read}"),
        evidence: vec![
            figure("writes that failed with 412", changed),
            figure("writes that succeeded", done),
            figure("reads by key", gets),
        ],
        advice:
            "after a 412 read the entity again, change that version and wait a little longer each time, with a limit; \
                 for a counter that many clients change, keep several entities and add them up"
                .to_owned(),
        cost: cost(
            "the changes that succeeded",
            Work::new(done.saturating_add(changed), done.saturating_add(changed)),
            Work::new(done.saturating_mul(2), done.saturating_mul(2)),
        ),
        ..finding(FindingKind::ConflictRetries, Severity::Warning, table)
    })
}

const DELETES_MIN: u64 = 500;
const CHANGED_MIN: u64 = 100;
/// Failed writes for each successful one.
const CHANGED_TIMES_MIN: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{OperationReport, PartitionReport};

    fn table(name: &str, done: u64, changed: u64, partition: &str) -> TableReport {
        let operation = OperationReport { operation: name.to_owned(), done, changed, ..OperationReport::default() };
        let partition = PartitionReport { partition: partition.to_owned(), ..PartitionReport::default() };
        TableReport { operations: vec![operation], partitions: vec![partition], ..TableReport::default() }
    }

    #[test]
    fn many_deletes_of_dated_rows_are_found() {
        let found = mass_delete(&table("delete", 500, 0, "2026-11-16")).expect("a day's rows");
        assert_eq!((found.cost.now.requests, found.cost.after.requests), (500, 1));
        assert!(mass_delete(&table("delete", 499, 0, "2026-11-16")).is_none());
        assert!(mass_delete(&table("delete", 5000, 0, "customer-17")).is_none(), "no times in keys");
        assert!(mass_delete(&table("insert", 5000, 0, "2026-11-16")).is_none());
    }

    #[test]
    fn writes_that_mostly_fail_are_found() {
        for (name, done, changed, expected) in [
            ("replace", 10, 100, true),
            ("transaction", 0, 100, true),
            ("merge", 50, 100, true),
            ("merge", 51, 100, false),
            ("replace", 1, 99, false),
            ("replace", 100_000, 5000, false),
            ("insert", 0, 1000, false),
        ] {
            let found = conflict_retries(&table(name, done, changed, "p"));
            assert_eq!(found.is_some(), expected, "{name} {done} {changed}");
        }
    }
}
