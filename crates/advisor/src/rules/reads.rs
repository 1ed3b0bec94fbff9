//! Lists that clients read one row at a time.

use super::{cost, figure, finding, is_share};
use crate::finding::{Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::TableReport;

/// Reads of one partition that follow each other.
///
/// Reads that are independent of each other follow one in the same partition at most as often as the busiest partition is
/// read. Only a share well above that shows that clients read row after row.
pub(super) fn row_by_row(table: &TableReport) -> Option<Finding> {
    let gets = table.operation("get").requests;
    let queries = table.operation("query").requests;
    let followed = table.followed.gets.min(gets);
    let busiest =
        table.partitions.iter().map(|partition| partition.reads.saturating_add(partition.missed_max)).max()?;
    let is_by_chance = !is_share(gets.saturating_add(queries), busiest, 10_000 / BUSIEST_PERCENT_MAX);
    if gets < GETS_MIN || is_by_chance || !is_share(followed, gets, FOLLOWED_PERCENT_MIN) {
        return None;
    }
    let runs = (gets - followed).max(1);
    Some(Finding {
        summary: format!(
            "{followed} of {gets} reads were of another row in the partition of the read before: about {} rows of a \
             partition are read one by one",
            gets / runs
        ),
        evidence: vec![
            figure("reads by key", gets),
            figure("of the partition of the read before", followed),
            figure("reads of the busiest partition, at most", busiest),
            figure("different partitions, about", table.partitions_seen),
        ],
        advice:
            "choose RowKeys that begin alike for what is read together, and read it with one query: PartitionKey and a \
                 range of RowKeys"
                .to_owned(),
        cost: cost("these reads", Work::new(gets, gets), Work::new(runs, gets)),
        ..finding(FindingKind::RowByRow, Severity::Notice, table)
    })
}

const GETS_MIN: u64 = 200;
const FOLLOWED_PERCENT_MIN: u64 = 75;
const BUSIEST_PERCENT_MAX: u64 = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{FollowedReport, OperationReport, PartitionReport};

    fn table(gets: u64, followed: u64, busiest: u64) -> TableReport {
        let get = OperationReport { operation: "get".to_owned(), requests: gets, ..OperationReport::default() };
        let partition = PartitionReport { reads: busiest, ..PartitionReport::default() };
        let followed = FollowedReport { gets: followed, ..FollowedReport::default() };
        TableReport { operations: vec![get], partitions: vec![partition], followed, ..TableReport::default() }
    }

    #[test]
    fn runs_of_reads_are_found_where_chance_does_not_explain_them() {
        let found = row_by_row(&table(400, 380, 20)).expect("runs of 20 rows");
        assert_eq!((found.cost.now.requests, found.cost.after.requests), (400, 20));
        for (gets, followed, busiest) in [(200, 150, 100), (1000, 1000, 500)] {
            assert!(row_by_row(&table(gets, followed, busiest)).is_some(), "{gets} {followed} {busiest}");
        }
        for (gets, followed, busiest) in [
            (199, 199, 10),
            (400, 299, 20),
            // Most reads are of one partition, so most follow another read of it.
            (400, 380, 201),
            (400, 399, 400),
            (0, 0, 0),
        ] {
            assert!(row_by_row(&table(gets, followed, busiest)).is_none(), "{gets} {followed} {busiest}");
        }
    }
}
