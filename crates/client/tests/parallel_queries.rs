//! Queries of several partitions at once.

use crate::common::table;
use futures_util::{StreamExt as _, TryStreamExt as _};
use larimar_client::{BulkOperation, Column, DynamicEntity, Table, keys};

/// Partitions `p00` to `p19` with eleven rows each.
async fn fill(table: &Table) {
    let entities =
        (0..220).map(|n| DynamicEntity::new(format!("p{:02}", n % 20), format!("r{:02}", n / 20)).with("N", n));
    let operations = entities.map(|entity| BulkOperation::insert(&entity).expect("an entity"));
    assert!(table.bulk().submit(operations).await.is_success());
}

fn partitions(step: usize) -> Vec<String> {
    (0..20).rev().step_by(step).map(|n| format!("p{n:02}")).collect()
}

#[tokio::test]
async fn c9_partitions_are_read_in_the_order_of_keys_or_as_they_come() {
    let (server, table) = table().await;
    fill(&table).await;
    let all = table.query::<DynamicEntity>().all().await.expect("all");
    for concurrency in [1, 3, 50] {
        let query = table.query_partitions::<DynamicEntity>(partitions(1)).page_size(4).concurrency(concurrency);
        let before = server.requests().table;
        assert_eq!(query.clone().in_order().all().await.expect("in order"), all);
        assert_eq!(server.requests().table - before, 60, "three pages of each");
        let mut found = query.all().await.expect("as they come");
        found.sort_by(|left, right| (&left.partition_key, &left.row_key).cmp(&(&right.partition_key, &right.row_key)));
        assert_eq!(found, all);
    }
    let n: Column<i32> = Column::named("N");
    let some = table.query_partitions::<DynamicEntity>(["p03", "p01", "p03", "none"]).filter(n.lt(40)).in_order();
    let rows = some.resolve(|entity| Ok(format!("{}/{}", entity.partition_key, entity.row_key)));
    assert_eq!(rows.all().await.expect("rows"), ["p01/r00", "p01/r01", "p03/r00", "p03/r01"]);
    assert_eq!(table.query_partitions::<DynamicEntity>(Vec::<String>::new()).all().await.expect("none"), []);
}

#[tokio::test]
async fn c9_ranges_of_keys_divide_a_scan() {
    let (_server, table) = table().await;
    fill(&table).await;
    let partition = keys::partition_key();
    let ranges = [partition.lt("p05"), partition.between("p05", "p15"), partition.ge("p15")];
    let found = table.query_each::<DynamicEntity>(ranges).in_order().page_size(7).all().await.expect("all");
    assert_eq!(found, table.query::<DynamicEntity>().all().await.expect("all"));
}

#[tokio::test]
async fn c9_no_more_is_fetched_ahead_than_the_concurrency_allows() {
    let (server, table) = table().await;
    fill(&table).await;
    let before = server.requests().table;
    let query = table.query_partitions::<DynamicEntity>(partitions(1)).page_size(5).concurrency(4);
    let mut in_order = query.clone().in_order().stream();
    assert_eq!(server.requests().table, before, "a stream is lazy");
    in_order.next().await.expect("one").expect("read");
    assert!(server.requests().table - before <= 4, "one page of each that is under way");
    drop(in_order);
    let before = server.requests().table;
    let mut as_they_come = query.clone().stream();
    as_they_come.next().await.expect("one").expect("read");
    assert!(server.requests().table - before <= 4);
    drop(as_they_come);

    for query in [query.clone().limit(7), query.limit(7).in_order()] {
        assert_eq!(query.all().await.expect("some").len(), 7, "a limit is a total");
    }
}

#[tokio::test]
async fn an_error_ends_all_queries() {
    let (server, _) = table().await;
    let account = larimar_client::Account::connect(&server.connection_string()).expect("an account");
    let query = account.table("Nothing").query_partitions::<DynamicEntity>(partitions(2));
    for query in [query.clone(), query.in_order()] {
        let mut stream = query.stream();
        let error = stream.try_next().await.expect_err("no table");
        assert_eq!(error.code(), Some("TableNotFound"));
        assert!(stream.next().await.is_none());
    }
}
