//! All findings of a report, in order.

use crate::finding::Finding;
use crate::report::Report;
use crate::rules;
use larimar_model::Timestamp;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// What the advisor has to say about an account's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    /// The account's name.
    pub account: String,
    /// Where the span of the report begins.
    pub since: String,
    /// Where it ends.
    pub until: String,
    /// Warnings first; in each severity the ones that cost the most first.
    pub findings: Vec<Finding>,
    /// Findings beyond [`FINDINGS_MAX`].
    pub left_out: u64,
}

/// What counts as a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Every query that scans is one, also if it read few rows: for test runs, which have little data.
    pub every_scan: bool,
}

/// The findings of a report.
#[must_use]
pub fn advise(report: &Report, options: Options) -> Advice {
    let seconds = seconds(report);
    let mut findings: Vec<Finding> =
        report.tables.iter().flat_map(|table| rules::findings(table, seconds, options)).collect();
    findings.sort_by(|one, other| order(one).cmp(&order(other)));
    let left_out = findings.len().saturating_sub(FINDINGS_MAX) as u64;
    findings.truncate(FINDINGS_MAX);
    let excerpt = crate::excerpt::excerpt;
    Advice {
        account: excerpt(&report.account),
        since: excerpt(&report.since),
        until: excerpt(&report.until),
        findings,
        left_out,
    }
}

fn order(finding: &Finding) -> impl Ord {
    let Finding { id, severity, table, subject, cost, .. } = finding;
    (Reverse(*severity), Reverse(cost.now.rows), table.clone(), *id, subject.clone())
}

/// The length of the report's span; a report without one cannot show a rate.
fn seconds(report: &Report) -> Option<u64> {
    let [since, until] = [&report.since, &report.until].map(|text| Timestamp::parse(text).ok());
    let span = until?.to_unix().checked_sub(since?.to_unix())?;
    Some(span.as_secs()).filter(|seconds| *seconds > 0)
}

/// Findings at most.
pub const FINDINGS_MAX: usize = 100;
