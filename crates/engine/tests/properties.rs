//! Whatever the filter and the data, a planned query returns exactly what a scan of all rows with a naive
//! reading of the filter returns, page by page.

use larimar_engine::table::{Plan, PlanningWork};
use larimar_engine::{MemoryEngine, Position};
use larimar_model::{EntityBody, Filter, Timestamp, filter as meaning};
use larimar_testkit::queries::{filter, hostile_filter, planned, rows};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_planned_query_returns_what_a_full_scan_with_the_naive_filter_returns(
        rows in rows(), node in filter(), entities_max in 1usize..50, is_hurried: bool,
    ) {
        let text = node.text();
        let filter = Filter::parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let expected: Vec<_> =
            rows.iter().filter(|row| node.admits(row)).map(|row| (row.0.clone(), row.1.clone())).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        let found = runtime.block_on(planned(&MemoryEngine::new(), &rows, &filter, entities_max, is_hurried));
        prop_assert_eq!(&found, &expected, "{} planned as {}", text, Plan::new(Some(&filter)));
    }

    #[test]
    fn the_text_of_a_filter_means_the_same_when_it_is_written_again(node in filter()) {
        let filter = Filter::parse(&node.text()).expect("a filter");
        prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter));
    }

    #[test]
    fn the_ranges_of_a_plan_are_disjoint_and_in_order(node in filter()) {
        let plan = Plan::new(Some(&Filter::parse(&node.text()).expect("a filter")));
        for range in &plan.ranges {
            prop_assert!(!range.is_empty());
        }
        for pair in plan.ranges.windows(2) {
            prop_assert!(pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start), "{}", plan);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_work_of_a_plan_is_bounded_whatever_the_filter_is(
        node in hostile_filter(), keys in prop::collection::vec((0..2000u32, 0..2000u32), 20),
    ) {
        let filter = node.filter();
        let (plan, work) = Plan::counted(Some(&filter));
        prop_assert!(work.comparisons <= 2 * PlanningWork::COMPARISONS_MAX, "{work:?}");
        prop_assert!(work.intervals_max <= 4 * PlanningWork::RANGES_MAX, "{work:?}");
        prop_assert!(plan.ranges.len() <= PlanningWork::RANGES_MAX);
        for pair in plan.ranges.windows(2) {
            prop_assert!(pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start), "{}", plan);
        }
        // The plan admits the rows that the filter admits, no more and no fewer.
        for (partition, row) in keys {
            let (partition, row) = (format!("{partition:04}"), format!("{row:04}"));
            let place = Position::new(partition.as_str(), row.as_str());
            let body = EntityBody::from_trusted(&[1]);
            let stored = meaning::Row { partition: &partition, row: &row, version: Timestamp::EDM_MIN, body };
            let is_read = plan.ranges.iter().any(|range| range.contains(&place));
            let is_found = is_read && plan.residual.as_ref().is_none_or(|residual| residual.admits(&stored));
            prop_assert_eq!(is_found, node.admits(&(partition.clone(), row.clone(), Vec::new())), "{}/{}", partition, row);
        }
    }
}
