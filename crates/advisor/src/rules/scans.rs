//! Queries that read many rows and return few, because no key or index leads to them.

use super::{cost, figure, finding, is_share};
use crate::advice::Options;
use crate::excerpt::excerpt;
use crate::finding::{Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::{ShapeReport, TableReport};
use std::cmp::Reverse;

pub(super) fn findings(table: &TableReport, options: Options) -> Vec<Finding> {
    let mut findings: Vec<Finding> = table.shapes.iter().filter_map(|shape| scan(table, shape, options)).collect();
    findings.sort_by_key(|finding| Reverse(finding.cost.now.rows));
    findings.truncate(FINDINGS_OF_TABLE_MAX);
    findings
}

fn scan(table: &TableReport, shape: &ShapeReport, options: Options) -> Option<Finding> {
    let kind = match &*shape.plan {
        "table-scan" => FindingKind::TableScan,
        "partition-scan" => FindingKind::PartitionScan,
        _ => return None,
    };
    let terms = Terms::of(&shape.shape);
    // A filter on PartitionKey alone returns what it reads, and so does a query without a filter.
    let others: Vec<&str> = terms.properties.iter().copied().filter(|name| *name != "PartitionKey").collect();
    if others.is_empty() {
        return None;
    }
    let counts = shape.counts;
    let is_wasteful = counts.wasteful >= WASTEFUL_MIN
        && is_share(counts.wasteful, counts.queries, WASTEFUL_PERCENT_MIN)
        && counts.rows_read / ROWS_PER_ROW_MIN >= counts.rows_returned;
    let severity = match is_wasteful {
        true => Severity::Warning,
        // What a RowKey is compared with leaves the rows of a partition that are read: a range that happens to be all.
        false if kind == FindingKind::PartitionScan && *others == ["RowKey"] => return None,
        false if options.every_scan && counts.queries > 0 => Severity::Notice,
        false => return None,
    };
    let reads =
        if kind == FindingKind::TableScan { "the table, or a range of partitions" } else { "a whole partition" };
    let requests = counts.queries;
    Some(Finding {
        subject: Some(excerpt(&shape.shape)),
        summary: format!(
            "queries with this filter read {reads}: {} rows to return {}",
            counts.rows_read, counts.rows_returned
        ),
        evidence: vec![
            figure("pages of these queries", counts.queries),
            figure("rows read", counts.rows_read),
            figure("rows returned", counts.rows_returned),
            figure("pages that read 100 rows or more and returned less than a tenth", counts.wasteful),
        ],
        advice: advice(kind, &terms, &others),
        cost: cost(
            "these queries",
            Work::new(requests, counts.rows_read),
            Work::new(requests, counts.rows_returned.min(counts.rows_read)),
        ),
        ..finding(kind, severity, table)
    })
}

/// The key or index that leads to the rows.
fn advice(kind: FindingKind, terms: &Terms<'_>, others: &[&str]) -> String {
    if *others == ["RowKey"] && kind == FindingKind::TableScan {
        return "add the PartitionKey to the filter; if clients do not know it, store a copy of each entity whose \
                PartitionKey is made of the RowKey"
            .to_owned();
    }
    let named = || others.iter().take(KEY_PARTS_MAX).map(|name| excerpt(name)).collect::<Vec<_>>().join(", ");
    if !terms.is_conjunction || others.contains(&"RowKey") || others.len() > KEY_PARTS_MAX {
        return format!("keep an index for each of the values that are compared: {}", named());
    }
    // Equal values first, so that what is compared by order is a range of the keys below them.
    let (equal, ordered): (Vec<&str>, Vec<&str>) = others.iter().partition(|name| terms.equal.contains(name));
    let parts: Vec<String> = equal.iter().chain(&ordered).map(|name| format!("<{}>", excerpt(name))).collect();
    let first = excerpt(equal.iter().chain(&ordered).next().copied().unwrap_or_default()).to_ascii_lowercase();
    let key = parts.join("_");
    match kind {
        FindingKind::PartitionScan => format!(
            "store a copy of each entity in its partition under the RowKey '{first}_{key}', in the same transaction, and \
             query that range"
        ),
        _ => format!(
            "store a copy of each entity in a partition of the index, with a RowKey that begins with '{key}', and query \
             that range"
        ),
    }
}

/// What a filter compares.
struct Terms<'a> {
    /// Each property once, in the order of the filter.
    properties: Vec<&'a str>,
    /// Those that are compared with `eq`.
    equal: Vec<&'a str>,
    /// Whether all comparisons have to hold, and an index can lead to each.
    is_conjunction: bool,
}

impl<'a> Terms<'a> {
    fn of(shape: &'a str) -> Self {
        let mut terms = Self { properties: Vec::new(), equal: Vec::new(), is_conjunction: true };
        let words = shape.split([' ', '(', ')']).filter(|word| !word.is_empty());
        for word in words {
            match word {
                "and" | "gt" | "ge" | "lt" | "le" | "?" => {}
                "or" | "not" | "ne" | "…" => terms.is_conjunction = false,
                "eq" => terms.equal.extend(terms.properties.last()),
                property => {
                    // It is last from here on, for the operator that follows.
                    terms.properties.retain(|known| *known != property);
                    terms.properties.push(property);
                }
            }
        }
        terms
    }
}

const FINDINGS_OF_TABLE_MAX: usize = 5;
/// Properties that an advice names.
const KEY_PARTS_MAX: usize = 4;
const WASTEFUL_MIN: u64 = 10;
const WASTEFUL_PERCENT_MIN: u64 = 50;
const ROWS_PER_ROW_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CountsReport;

    fn table(shape: &str, plan: &str, counts: [u64; 4]) -> TableReport {
        let [queries, rows_read, rows_returned, wasteful] = counts;
        let counts = CountsReport { queries, rows_read, rows_returned, wasteful };
        let shape = ShapeReport { shape: shape.to_owned(), plan: plan.to_owned(), counts, ..ShapeReport::default() };
        TableReport { table: "orders".to_owned(), shapes: vec![shape], ..TableReport::default() }
    }

    fn found(shape: &str, plan: &str, counts: [u64; 4], every_scan: bool) -> Option<(FindingKind, Severity)> {
        let findings = findings(&table(shape, plan, counts), Options { every_scan, ..Options::default() });
        findings.first().map(|finding| (finding.id, finding.severity))
    }

    #[test]
    fn scans_are_found_when_they_waste_rows() {
        let wasteful = [20, 20_000, 20, 20];
        for (shape, plan, counts, expected) in [
            ("Email eq ?", "table-scan", wasteful, Some(FindingKind::TableScan)),
            ("PartitionKey eq ? and Email eq ?", "partition-scan", wasteful, Some(FindingKind::PartitionScan)),
            ("RowKey eq ?", "table-scan", wasteful, Some(FindingKind::TableScan)),
            // A seek.
            ("PartitionKey eq ? and RowKey ge ?", "range", wasteful, None),
            // Everything that is read is returned.
            ("", "table-scan", [20, 20_000, 20_000, 0], None),
            ("PartitionKey eq ?", "partition-scan", [20, 20_000, 20_000, 0], None),
            ("PartitionKey ge ?", "table-scan", wasteful, None),
            ("Email eq ?", "table-scan", [20, 20_000, 9000, 0], None),
            // Too few to say.
            ("Email eq ?", "table-scan", [9, 9000, 9, 9], None),
            ("Email eq ?", "table-scan", [1000, 60_000, 1000, 10], None),
            ("Email eq ?", "table-scan", [20, 400, 20, 0], None),
        ] {
            let expected = expected.map(|kind| (kind, Severity::Warning));
            assert_eq!(found(shape, plan, counts, false), expected, "{shape} {counts:?}");
        }
    }

    #[test]
    fn a_range_of_rows_that_is_the_whole_partition_is_no_scan() {
        let filter = "PartitionKey eq ? and RowKey ge ?";
        assert_eq!(found(filter, "partition-scan", [20, 60, 60, 0], true), None);
        assert!(found("RowKey ge ?", "table-scan", [20, 60, 60, 0], true).is_some());
    }

    #[test]
    fn a_test_run_may_ask_for_every_scan() {
        let notice = Some((FindingKind::TableScan, Severity::Notice));
        assert_eq!(found("Email eq ?", "table-scan", [1, 3, 1, 0], true), notice);
        assert_eq!(found("Email eq ?", "table-scan", [1, 0, 0, 0], true), notice);
        assert_eq!(found("", "table-scan", [1, 3, 3, 0], true), None);
        assert_eq!(found("PartitionKey eq ?", "partition-scan", [1, 3, 3, 0], true), None);
        assert_eq!(found("PartitionKey eq ? and RowKey eq ?", "point", [1, 1, 1, 0], true), None);
    }

    #[test]
    fn the_advice_names_a_key() {
        for (shape, plan, expected) in [
            ("PartitionKey eq ? and Age gt ? and City eq ?", "partition-scan", "RowKey 'city_<City>_<Age>'"),
            ("Email eq ?", "table-scan", "begins with '<Email>'"),
            ("RowKey eq ?", "table-scan", "add the PartitionKey"),
            ("Email eq ? or Name eq ?", "table-scan", "an index for each of the values that are compared: Email, Name"),
            ("Age ge ? and Age lt ?", "table-scan", "begins with '<Age>'"),
            ("not (IsDone)", "table-scan", "compared: IsDone"),
        ] {
            let advice = &findings(&table(shape, plan, [20, 20_000, 20, 20]), Options::default())[0].advice;
            assert!(advice.contains(expected), "{shape}: {advice}");
        }
    }

    #[test]
    fn a_table_has_only_its_costliest_scans() {
        let mut table = table("A0 eq ?", "table-scan", [20, 20_000, 20, 20]);
        let shape = table.shapes[0].clone();
        for number in 1..10_u64 {
            let mut next = shape.clone();
            next.shape = format!("A{number} eq ?");
            next.counts.rows_read += number;
            table.shapes.push(next);
        }
        let subjects: Vec<_> = findings(&table, Options::default()).into_iter().filter_map(|it| it.subject).collect();
        assert_eq!(subjects, ["A9 eq ?", "A8 eq ?", "A7 eq ?", "A6 eq ?", "A5 eq ?"]);
    }
}
