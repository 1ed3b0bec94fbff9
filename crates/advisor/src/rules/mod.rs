//! The rules: each looks at the figures of one table and gives its findings.
//!
//! A rule names its least evidence as constants below it, and `docs/advisor.md` repeats them.

mod entities;
mod inserts;
mod key_time;
mod partitions;
mod reads;
mod scans;
mod writes;

use crate::advice::Options;
use crate::excerpt::excerpt;
use crate::finding::{Cost, Figure, Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::TableReport;

/// The findings of a table; `seconds` is the span of the report.
pub(crate) fn findings(table: &TableReport, seconds: Option<u64>, options: Options) -> Vec<Finding> {
    let mut findings = scans::findings(table, options);
    findings.extend(partitions::findings(table, seconds, options));
    findings.extend(inserts::findings(table, seconds));
    findings.extend(reads::row_by_row(table));
    findings.extend(entities::findings(table));
    findings.extend(writes::mass_delete(table));
    findings.extend(writes::conflict_retries(table));
    findings
}

/// A finding without its texts.
fn finding(id: FindingKind, severity: Severity, table: &TableReport) -> Finding {
    Finding {
        id,
        severity,
        table: excerpt(&table.table),
        subject: None,
        summary: String::new(),
        evidence: Vec::new(),
        advice: String::new(),
        cost: Cost { of: String::new(), now: Work::default(), after: Work::default() },
        pattern: id.pattern(),
        code: id.code(),
        dismissed: false,
    }
}

fn figure(name: &str, value: u64) -> Figure {
    Figure { name: name.to_owned(), value }
}

fn cost(of: &str, now: Work, after: Work) -> Cost {
    Cost { of: of.to_owned(), now, after }
}

/// Whether `part` is at least so many percent of `whole`.
fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}
