//! Tests of the ranges: segments together return every entity once, however they are split.

use super::span::compare;
use super::*;
use proptest::prelude::*;

/// A model of the service's answer to the filter of a segment.
fn is_in(span: &Span, partition: &str, row: &str) -> bool {
    let is_after_start = match &span.start {
        Start::Partition(start) => compare(partition, start).is_ge(),
        Start::AfterPartition(start) => compare(partition, start).is_gt(),
        Start::Row(of, start) => compare(partition, of).then_with(|| compare(row, start)).is_ge(),
        Start::AfterRow(of, start) => compare(partition, of).then_with(|| compare(row, start)).is_gt(),
    };
    is_after_start && !span.end.is_before(partition, row)
}

fn is_passed(filter: &Filter, partition: &str, row: &str) -> bool {
    let unquoted = |literal: &str| literal.trim_matches('\'').to_owned();
    filter.as_str().split(" and ").all(|comparison| {
        let mut words = comparison.split(' ');
        let (column, operator, literal) = (words.next(), words.next(), words.next());
        let value = if column == Some("PartitionKey") { partition } else { row };
        let order = compare(value, &unquoted(literal.expect("a literal")));
        match operator.expect("an operator") {
            "eq" => order.is_eq(),
            "ge" => order.is_ge(),
            "gt" => order.is_gt(),
            "lt" => order.is_lt(),
            "le" => order.is_le(),
            other => panic!("{other}"),
        }
    })
}

fn starts() -> impl Strategy<Value = Start> {
    let key = "[a-d\u{E000}😀]{0,2}";
    prop_oneof![
        key.prop_map(Start::Partition),
        key.prop_map(Start::AfterPartition),
        (key, key).prop_map(|(partition, row)| Start::Row(partition, row)),
        (key, key).prop_map(|(partition, row)| Start::AfterRow(partition, row)),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    let key = "[a-d\u{E000}😀]{0,2}";
    prop_oneof![
        Just(End::Table),
        key.prop_map(End::Partition),
        (key, key).prop_map(|(partition, row)| End::Row(partition, row)),
        (key, key).prop_map(|(partition, row)| End::AfterRow(partition, row)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_segments_of_a_span_have_each_of_its_keys_once(
        start in starts(),
        end in ends(),
        keys in prop::collection::vec(("[a-d\u{E000}😀]{0,2}", "[a-d\u{E000}😀]{0,2}"), 1..50),
    ) {
        let span = Span { start, end };
        let mut next = Some(span.clone());
        let mut filters = Vec::new();
        while let Some(segment) = next.take().and_then(|span| span.segment()) {
            filters.push(segment.filter);
            next = segment.rest.map(|start| Span { start, end: span.end.clone() });
            prop_assert!(filters.len() <= 3, "{filters:?}");
        }
        for (partition, row) in &keys {
            // A worker discards what is beyond the end of its span.
            let passed = filters.iter().filter(|filter| is_passed(filter, partition, row)).count();
            let read = if span.end.is_before(partition, row) { 0 } else { passed };
            prop_assert_eq!(read, usize::from(is_in(&span, partition, row)), "{:?} {:?} {:?}", span, partition, row);
        }
    }
}
