//! All findings of a report, in order.

use crate::dismissal::{Dismissal, Dismissals};
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
    /// Those that are not dismissed first, warnings before notices; in each severity the ones that cost the most first.
    pub findings: Vec<Finding>,
    /// Findings beyond [`FINDINGS_MAX`].
    pub left_out: u64,
    /// Findings that are not here because they are dismissed. The server sends all; `larimar advise` hides them.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub hidden: u64,
    /// What is dismissed at the server.
    #[serde(default)]
    pub dismissals: Vec<Dismissal>,
}

/// What counts as a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Every query that scans is one, also if it read few rows: for test runs, which have little data.
    pub every_scan: bool,
    /// Entities a second that a partition is meant to take. From half of that on it is hot.
    pub partition_rate_target: u64,
    /// Rows from which on a partition is large.
    pub partition_rows_max: u64,
}

impl Default for Options {
    /// The targets of the service (table design guide), and a million rows.
    fn default() -> Self {
        Self { every_scan: false, partition_rate_target: 2000, partition_rows_max: 1_000_000 }
    }
}

impl Advice {
    /// Marks what other dismissals cover, too.
    pub fn dismiss(&mut self, dismissals: &[Dismissal]) {
        for finding in &mut self.findings {
            finding.dismissed |= dismissals.iter().any(|dismissal| dismissal.covers(finding));
        }
    }

    /// Leaves dismissed findings out, and counts them.
    pub fn hide_dismissed(&mut self) {
        let before = self.findings.len();
        self.findings.retain(|finding| !finding.dismissed);
        self.hidden += (before - self.findings.len()) as u64;
    }
}

/// The findings of a report, those marked that are dismissed.
#[must_use]
pub fn advise(report: &Report, options: Options, dismissals: &Dismissals) -> Advice {
    let seconds = seconds(report);
    let mut findings: Vec<Finding> =
        report.tables.iter().flat_map(|table| rules::findings(table, seconds, options)).collect();
    for finding in &mut findings {
        finding.dismissed = dismissals.all().iter().any(|dismissal| dismissal.covers(finding));
    }
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
        hidden: 0,
        dismissals: dismissals.all().to_vec(),
    }
}

fn order(finding: &Finding) -> impl Ord {
    let Finding { id, severity, table, subject, cost, dismissed, .. } = finding;
    (*dismissed, Reverse(*severity), Reverse(cost.now.rows), table.clone(), *id, subject.clone())
}

/// The length of the report's span; a report without one cannot show a rate.
fn seconds(report: &Report) -> Option<u64> {
    let [since, until] = [&report.since, &report.until].map(|text| Timestamp::parse(text).ok());
    let span = until?.to_unix().checked_sub(since?.to_unix())?;
    Some(span.as_secs()).filter(|seconds| *seconds > 0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Findings at most.
pub const FINDINGS_MAX: usize = 100;
