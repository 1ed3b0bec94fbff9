//! A table that is read in parallel: every entity exactly once, whatever its keys are.

use futures_util::TryStreamExt as _;
use larimar_client::{Account, BulkOperation, DynamicEntity, Filter, Table};
use larimar_embedded::Larimar;
use larimar_tool::ranges::Scan;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;

type Keys = BTreeSet<(String, String)>;

async fn filled(server: &Larimar, name: &str, keys: &Keys) -> Table {
    let table = Account::connect(&server.connection_string()).expect("an account").table(name);
    table.create().await.expect("created");
    let operations = keys.iter().map(|(partition, row)| {
        BulkOperation::insert(&DynamicEntity::new(partition, row).with("Length", row.len() as i64)).expect("an entity")
    });
    assert!(table.bulk().submit(operations).await.is_success());
    table
}

/// The keys that a scan brings. None may come twice.
async fn scanned(scan: Scan) -> Keys {
    let mut found = Keys::new();
    let mut pages = scan.pages();
    while let Some(page) = pages.try_next().await.expect("a page") {
        for entity in page {
            let key = (entity.partition_key, entity.row_key);
            assert!(found.insert(key.clone()), "{key:?} came twice");
        }
    }
    found
}

/// Keys as people use them, and as they should not.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[0-9]{4}",
        2 => "[a-z]{1,3}",
        1 => Just(String::new()),
        1 => "['\"& +%~ éЖ日]{1,3}",
        1 => "[a\u{D7FF}\u{E000}\u{FFFD}😀\u{10FFFF}]{1,4}",
        1 => "(long){40}[0-9]{2}",
    ]
}

#[test]
fn every_entity_comes_exactly_once() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let server = runtime.block_on(Larimar::ephemeral()).expect("a server");
    let number = std::cell::Cell::new(0);
    let partitions = prop_oneof![prop::collection::vec(key(), 1..4), prop::collection::vec(key(), 20..40)];
    let keys = partitions
        .prop_flat_map(|partitions| prop::collection::btree_set((prop::sample::select(partitions), key()), 0..120));
    let input = (keys, 1_usize..9, 1_usize..7);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&input, |(keys, parallel, page_size)| {
        number.set(number.get() + 1);
        let found = runtime.block_on(async {
            let table = filled(&server, &format!("Table{}", number.get()), &keys).await;
            scanned(Scan::new(table).parallel(parallel).page_size(page_size)).await
        });
        prop_assert_eq!(found, keys);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_partition_is_read_by_several_workers() {
    let server = Larimar::ephemeral().await.expect("a server");
    let keys: Keys = (0..600).map(|row| ("p".to_owned(), format!("row-{row:05}"))).collect();
    let table = filled(&server, "OnePartition", &keys).await;
    let before = server.requests().table;
    assert_eq!(scanned(Scan::new(table.clone()).page_size(10).parallel(1)).await, keys);
    let alone = server.requests().table - before;
    assert!((60..=61).contains(&alone), "{alone} requests of one worker");
    assert_eq!(scanned(Scan::new(table.clone()).page_size(10).parallel(6)).await, keys);
    let probes = server.requests().table - before - 2 * alone;
    assert!(probes > 0, "the partition was divided");
    let filter = Filter::raw("Length eq 9L and RowKey ge 'row-00300'");
    assert_eq!(scanned(Scan::new(table).filter(filter).select(["Length"]).page_size(10)).await.len(), 300);
}

#[tokio::test]
async fn a_missing_table_is_an_error_and_the_end() {
    let server = Larimar::ephemeral().await.expect("a server");
    let table = Account::connect(&server.connection_string()).expect("an account").table("Missing");
    let mut pages = Scan::new(table).pages();
    let error = pages.try_next().await.expect_err("no table");
    assert_eq!(error.exit_code(), 3, "{error}");
    assert!(pages.try_next().await.expect("the end").is_none());
}
