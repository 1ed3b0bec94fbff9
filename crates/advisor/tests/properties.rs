//! What holds for every report, whatever clients made up: no panic, bounded and escaped findings, the same each time.

use larimar_advisor::report::*;
use larimar_advisor::{Advice, Dismissals, FINDINGS_MAX, Options, Report, advise};
use proptest::prelude::*;

/// Numbers near the limits of rules, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..5_u64, 90..2100_u64, 500_000..2_000_000_u64, any::<u64>(), Just(u64::MAX)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z]{0,8}",
        "\\PC{0,40}",
        ".{0,200}",
        Just("2026-11-16T10:00:00Z".to_owned()),
        Just("\u{1b}[2J\r\n::error::\u{202e}".repeat(40)),
        Just("ü".repeat(300)),
    ]
}

fn shape() -> impl Strategy<Value = ShapeReport> {
    let filter = prop_oneof![
        text(),
        Just("Email eq ?".to_owned()),
        Just("PartitionKey eq ? and A eq ? and B gt ?".to_owned()),
        Just("\u{7} eq ? and \n eq ?".to_owned()),
        (0..40_usize).prop_map(|count| (0..count).map(|n| format!("P{n} eq ?")).collect::<Vec<_>>().join(" and ")),
    ];
    let plan = prop_oneof![Just("table-scan"), Just("partition-scan"), Just("range"), Just("")];
    (filter, plan, [number(), number(), number(), number()]).prop_map(
        |(shape, plan, [queries, read, returned, wasteful])| {
            let counts = CountsReport { queries, rows_read: read, rows_returned: returned, wasteful };
            ShapeReport { shape, plan: plan.to_owned(), counts, ..ShapeReport::default() }
        },
    )
}

fn order() -> impl Strategy<Value = OrderReport> {
    [number(), number(), number()].prop_map(|[compared, above, below]| OrderReport { compared, above, below })
}

fn partition() -> impl Strategy<Value = PartitionReport> {
    (text(), [number(), number(), number(), number()], order()).prop_map(
        |(partition, [reads, writes, throttled, rows_seen], insert_order)| PartitionReport {
            partition,
            reads,
            writes,
            throttled,
            rows_seen,
            insert_order,
            missed_max: reads,
            conflicts: writes,
        },
    )
}

fn operation() -> impl Strategy<Value = OperationReport> {
    let kind =
        prop_oneof![Just("get"), Just("query"), Just("insert"), Just("replace"), Just("delete"), Just("transaction")];
    (kind, [number(), number(), number()]).prop_map(|(operation, [requests, done, changed])| OperationReport {
        operation: operation.to_owned(),
        requests,
        done,
        changed,
        ..OperationReport::default()
    })
}

fn table() -> impl Strategy<Value = TableReport> {
    let lists = (
        prop::collection::vec(operation(), 0..6),
        prop::collection::vec(shape(), 0..8),
        prop::collection::vec(partition(), 0..8),
        prop::collection::vec((text(), text()), 0..4),
        prop::collection::vec((text(), text(), number()), 0..4),
    );
    let sizes = prop::collection::vec((number(), number()), 0..3);
    (text(), lists, order(), [number(), number(), number(), number(), number()], sizes).prop_map(
        |(table, (operations, shapes, partitions, ranges, peaks), insert_order, numbers, sizes)| {
            let [partitions_seen, bytes_max, properties_max, transaction_writes, gets] = numbers;
            let range = |(partition, row)| RangeReport { partition, row, ..RangeReport::default() };
            let peak = |(partition, time, entities)| PeakReport { partition, time, entities };
            let size = |(bytes_below, entities)| SizeReport { bytes_below, entities };
            let by_size = sizes.into_iter().map(size).collect();
            TableReport {
                table,
                operations,
                shapes,
                partitions,
                ranges: ranges.into_iter().map(range).collect(),
                insert_order,
                peaks: peaks.into_iter().map(peak).collect(),
                partitions_seen,
                entities: EntitiesReport { bytes_max, properties_max, by_size },
                transaction_writes,
                followed: FollowedReport { gets, inserts: gets, deletes: gets },
                ..TableReport::default()
            }
        },
    )
}

fn report() -> impl Strategy<Value = Report> {
    let times = prop_oneof![Just("2026-11-16T06:00:00Z".to_owned()), Just("2026-11-16T06:01:00Z".to_owned()), text()];
    (text(), [times.clone(), times], prop::collection::vec(table(), 0..8))
        .prop_map(|(account, [since, until], tables)| Report { account, since, until, tables, ..Report::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn advice_is_bounded_escaped_and_the_same_each_time(report in report(), every_scan in any::<bool>()) {
        let options = Options { every_scan, ..Options::default() };
        let advice = advise(&report, options, &Dismissals::default());
        prop_assert_eq!(&advice, &advise(&report, options, &Dismissals::default()));
        prop_assert!(advice.findings.len() <= FINDINGS_MAX);
        let is_visible = |text: &str| !text.chars().any(|sign| sign.is_control() || sign == '\u{202e}');
        for finding in &advice.findings {
            let subject = finding.subject.clone().unwrap_or_default();
            for text in [&finding.table, &subject, &finding.summary, &finding.advice] {
                prop_assert!(text.len() <= 1200 && is_visible(text), "{text}");
            }
            prop_assert!(subject.len() <= 162, "{subject}");
            prop_assert!(!finding.evidence.is_empty());
        }
        let annotations = advice.to_annotations();
        prop_assert_eq!(annotations.lines().count(), advice.findings.len());
        prop_assert!(annotations.lines().all(|line| line.starts_with("::") && is_visible(line)));
        prop_assert!(advice.to_text().lines().all(is_visible));
        let json = serde_json::to_string(&advice).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Advice>(&json).expect("as written"), advice);
    }

    #[test]
    fn a_report_survives_json(report in report()) {
        let json = serde_json::to_string(&report).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Report>(&json).expect("as written"), report);
    }
}

#[test]
fn members_that_are_missing_or_unknown_are_no_error() {
    let json = r#"{"account":"one","tables":[{"table":"t","shapes":[{"shape":"A eq ?","later":1}],"later":{}}]}"#;
    let report: Report = serde_json::from_str(json).expect("a report");
    assert_eq!((report.tables[0].shapes[0].shape.as_str(), report.tables[0].requests), ("A eq ?", 0));
    assert_eq!(advise(&report, Options::default(), &Dismissals::default()).findings, []);
}
