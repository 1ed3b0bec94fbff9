//! Findings as text, for people, and as annotations, for CI.
//!
//! An advice may come from another process, so its texts are escaped here too.

use crate::advice::Advice;
use crate::finding::{Finding, Severity, Work};
use larimar_model::escape;
use std::fmt::Write as _;

impl Advice {
    /// The text for people; the code of patterns is not in it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self { account, since, until, findings, left_out, hidden, .. } = self;
        let count = match findings.len() {
            0 => "no findings".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let mut out = format!("{}, {} to {}: {count}\n", escape(account), escape(since), escape(until));
        for finding in findings {
            write_finding(&mut out, finding);
        }
        if *left_out > 0 {
            writeln!(out, "\n{left_out} more are not shown").expect(INFALLIBLE);
        }
        match hidden {
            0 => {}
            1 => out.push_str("\n1 finding is dismissed: --all shows it\n"),
            count => writeln!(out, "\n{count} findings are dismissed: --all shows them").expect(INFALLIBLE),
        }
        out
    }

    /// A line for each finding that is not dismissed; GitHub, and runners that imitate it, show it as an annotation.
    #[must_use]
    pub fn to_annotations(&self) -> String {
        let mut out = String::new();
        for finding in self.findings.iter().filter(|finding| !finding.dismissed) {
            let Finding { id, severity, table, subject, summary, advice, pattern, .. } = finding;
            let subject = subject.as_ref().map(|subject| format!(" [{subject}]")).unwrap_or_default();
            let text = format!("{table}: {summary}{subject}. {advice} ({})", pattern.link);
            let title = format!("larimar {} in {table}", id.id());
            writeln!(out, "::{} title={}::{}", severity.name(), property(&title), data(&text)).expect(INFALLIBLE);
        }
        out
    }

    /// How many findings are of this severity or a higher one.
    #[must_use]
    pub fn count_from(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity >= severity).count()
    }
}

fn write_finding(out: &mut String, finding: &Finding) {
    let Finding { id, severity, table, subject, summary, evidence, advice, cost, pattern, dismissed, .. } = finding;
    let dismissed = if *dismissed { " (dismissed)" } else { "" };
    let mut line = |text: &str| writeln!(out, "{}", escape(text)).expect(INFALLIBLE);
    line("");
    line(&format!("{} {} in {table}{dismissed}: {summary}", severity.name(), id.id()));
    if let Some(subject) = subject {
        line(&format!("  where     {subject}"));
    }
    let figures: Vec<String> = evidence.iter().map(|figure| format!("{}: {}", figure.name, figure.value)).collect();
    line(&format!("  evidence  {}", figures.join("; ")));
    line(&format!("  cost      {}: {} now, {} after", cost.of, work(cost.now), work(cost.after)));
    line(&format!("  advice    {advice}"));
    line(&format!("  pattern   {} {}, {}", pattern.number, pattern.name, pattern.link));
}

fn work(Work { requests, rows }: Work) -> String {
    let counted = |count: u64, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    format!("{} and {}", counted(requests, "request"), counted(rows, "row"))
}

/// The text of a command to a runner: one line.
fn data(text: &str) -> String {
    escape(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a command's property, which a comma or colon would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

const INFALLIBLE: &str = "a string takes every write";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CountsReport, Report, ShapeReport, TableReport};
    use crate::{Dismissal, Dismissals, FindingKind, Options, advise};

    fn advice(table: &str, shape: &str) -> Advice {
        let counts = CountsReport { queries: 20, rows_read: 20_000, rows_returned: 20, wasteful: 20 };
        let shape =
            ShapeReport { shape: shape.to_owned(), plan: "table-scan".to_owned(), counts, ..ShapeReport::default() };
        let table = TableReport { table: table.to_owned(), shapes: vec![shape], ..TableReport::default() };
        let [account, since, until] = ["one", "2026-11-16T06:00:00Z", "2026-11-16T07:00:00Z"].map(str::to_owned);
        let report = Report { account, since, until, tables: vec![table], ..Report::default() };
        advise(&report, Options::default(), &Dismissals::default())
    }

    #[test]
    fn a_finding_is_shown_with_its_evidence_and_cost() {
        let expected = "\
one, 2026-11-16T06:00:00Z to 2026-11-16T07:00:00Z: 1 finding

warning table-scan in orders: queries with this filter read the table, or a range of partitions: 20000 rows to return 20
  where     Email eq ?
  evidence  pages of these queries: 20; rows read: 20000; rows returned: 20; pages that read 100 rows or more and \
returned less than a tenth: 20
  cost      these queries: 20 requests and 20000 rows now, 20 requests and 20 rows after
  advice    store a copy of each entity in a partition of the index, with a RowKey that begins with '<Email>', and query \
that range
  pattern   T2 inter-partition secondary index, docs/advisor.md#table-scan
";
        assert_eq!(advice("orders", "Email eq ?").to_text(), expected);
        let none = Advice { account: "one".to_owned(), ..Advice::default() };
        assert_eq!(none.to_text(), "one,  to : no findings\n");
    }

    #[test]
    fn dismissed_findings_are_hidden_and_counted_or_marked() {
        let mut advice = advice("orders", "Email eq ?");
        advice.dismiss(&[Dismissal::new(FindingKind::TableScan, Some("people".to_owned()))]);
        assert!(!advice.findings[0].dismissed, "of another table");
        advice.dismiss(&[Dismissal::new(FindingKind::TableScan, Some("ORDERS".to_owned()))]);
        assert!(advice.to_text().contains("warning table-scan in orders (dismissed): queries"));
        assert_eq!(advice.to_annotations(), "", "CI shows what is to be done");
        advice.hide_dismissed();
        assert!(advice.to_text().ends_with(": no findings\n\n1 finding is dismissed: --all shows it\n"));
        advice.hidden = 2;
        assert!(advice.to_text().ends_with("\n2 findings are dismissed: --all shows them\n"));
    }

    #[test]
    fn annotations_are_one_line_each_and_cannot_be_ended_by_a_key() {
        let text = advice("or,d:ers", "A%B\n::error::x eq ?").to_annotations();
        let start = "::warning title=larimar table-scan in or%2Cd%3Aers::or,d:ers: queries with this filter read the \
                     table, or a range of partitions: 20000 rows to return 20 [A%25B\\n::error::x eq ?]. ";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(text.lines().count(), 1);
        let mut foreign = advice("orders", "Email eq ?");
        foreign.findings[0].summary = "a\r\n::error::b".to_owned();
        assert_eq!(foreign.to_annotations().lines().count(), 1);
        assert!(foreign.to_text().contains("a\\r\\n::error::b"));
    }
}
