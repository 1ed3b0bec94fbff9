//! Random filters over random rows: a planned query on PostgreSQL returns what a full scan with a naive filter returns.

use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_model::Filter;
use larimar_testkit::postgres::Cluster;
use larimar_testkit::queries::{Node, Row, filter, planned, rows};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const CASES: usize = 150;

/// One engine for all cases: opening one for each would take longer than the queries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_query_returns_what_a_full_scan_with_the_naive_filter_returns() {
    let settings = Settings::new(Cluster::shared().fresh_url());
    let engine = PostgresEngine::open(&settings).await.expect("the database");
    let mut runner = TestRunner::default();
    let cases = (rows(), filter(), 1usize..50, any::<bool>());
    for _ in 0..CASES {
        let (rows, node, entities_max, is_hurried): (Vec<Row>, Node, usize, bool) =
            cases.new_tree(&mut runner).expect("a case").current();
        let filter = Filter::parse(&node.text()).expect("a filter");
        let admitted = rows.iter().filter(|row| node.admits(row));
        let expected: Vec<_> = admitted.map(|row| (row.0.clone(), row.1.clone())).collect();
        let found = planned(&engine, &rows, &filter, entities_max, is_hurried).await;
        assert_eq!(found, expected, "{} over {rows:?}, pages of {entities_max}", node.text());
    }
}
