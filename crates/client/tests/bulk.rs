//! Bulk writes over a server of its own: grouped as promised, in order, and reported group by group.

use crate::common::faults::{Fault, faulty_table};
use crate::common::table;
use futures_util::{StreamExt as _, stream};
use larimar_client::{Account, BulkGroup, BulkOperation, DynamicEntity, IfMatch, Table};
use larimar_embedded::Larimar;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn upsert(partition: &str, row: impl Into<String>, value: i32) -> BulkOperation {
    let entity = DynamicEntity::new(partition, row).with("Value", value);
    BulkOperation::insert_or_replace(&entity).expect("an entity")
}

#[tokio::test]
async fn c9_operations_are_grouped_by_partition_and_divided_by_hundreds() {
    let (server, table) = table().await;
    let operations: Vec<_> = (0..450).map(|n| upsert(["a", "b", "c"][n % 3], n.to_string(), 0)).collect();
    let before = server.requests().table;
    let report = table.bulk().submit(operations).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(server.requests().table - before, 6);
    let mut sizes: Vec<_> = report.groups().iter().map(|group| group.operations.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [50, 50, 50, 100, 100, 100]);
    assert_eq!(table.query::<DynamicEntity>().all().await.expect("all").len(), 450);
    let etags = report.into_result().expect("a success");
    assert_eq!(etags.len(), 450);
    let stored: DynamicEntity = table.get("b", "301").await.expect("read").expect("found");
    assert_eq!(stored.etag, etags[301], "ETags are in the order of the operations");
}

#[tokio::test]
async fn c9_groups_are_divided_by_four_mebibytes() {
    let (_server, table) = table().await;
    let large = |row: usize| DynamicEntity::new("p", row.to_string()).with("Blob", vec![0_u8; 60_000]);
    let operations = (0..100).map(|row| BulkOperation::insert(&large(row)).expect("an entity"));
    let report = table.bulk().submit(operations).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.groups().len(), 2);
    assert_eq!(table.query::<DynamicEntity>().select(["RowKey"]).all().await.expect("all").len(), 100);
}

#[tokio::test]
async fn c9_a_group_that_fails_holds_up_no_other() {
    let (_server, table) = table().await;
    table.insert(&DynamicEntity::new("a", "2")).await.expect("inserted");
    let insert = |partition: &str, row: &str| BulkOperation::insert(&DynamicEntity::new(partition, row)).expect("one");
    let operations = [insert("a", "1"), insert("b", "1"), insert("a", "2"), insert("a/", "x"), insert("a", "3")];
    let groups = table.bulk().submit(operations).await.into_groups();
    let [a, b, invalid] = <[BulkGroup; 3]>::try_from(groups).expect("three groups");
    assert_eq!((a.partition_key.as_str(), a.operations.as_slice()), ("a", [0, 2, 4].as_slice()));
    assert!(a.outcome.as_ref().expect_err("a conflict").is_conflict());
    assert_eq!(a.failed_operation(), Some(2));
    assert!(b.outcome.is_ok());
    assert_eq!((invalid.operations.as_slice(), invalid.failed_operation()), ([3].as_slice(), Some(3)));
    assert_eq!(table.query::<DynamicEntity>().all().await.expect("all").len(), 2);
}

#[tokio::test]
async fn c9_a_group_that_the_service_finds_too_large_is_halved() {
    let (_server, table, faults) = faulty_table().await;
    let operations: Vec<_> = (0..5).map(|row| upsert("p", row.to_string(), row)).collect();
    faults.plan([Fault::Answer(413, vec![]), Fault::Pass, Fault::Answer(413, vec![])]);
    let report = table.bulk().submit(operations).await;
    assert!(report.is_success(), "{report:?}");
    let groups: Vec<_> = report.groups().iter().map(|group| group.operations.clone()).collect();
    assert_eq!(groups, [vec![0, 1], vec![2], vec![3, 4]]);
    // What cannot be divided any further is reported.
    faults.plan([Fault::Answer(413, vec![])]);
    let report = table.bulk().submit([upsert("p", "1", 1)]).await;
    assert_eq!(report.into_result().expect_err("too large").status(), Some(413));
}

#[tokio::test]
async fn c9_a_stream_is_read_only_as_far_as_there_is_room() {
    let (_server, table) = table().await;
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let operations = stream::iter(0..1_000).map(move |n: usize| {
        counted.fetch_add(1, SeqCst);
        upsert(&format!("p{}", n % 20), n.to_string(), 0)
    });
    let mut groups = table.bulk().concurrency(2).held_max(50).run(operations);
    assert_eq!(read.load(SeqCst), 0, "nothing is read before groups are asked for");
    let (mut done, mut ahead) = (0, 0);
    while let Some(group) = groups.next().await {
        done += group.outcome.expect("written").len();
        ahead = ahead.max(read.load(SeqCst) - (done - group.operations.len()));
    }
    assert_eq!(done, 1_000);
    assert!(ahead <= 50, "{ahead} operations were held");
    assert_eq!(table.query::<DynamicEntity>().all().await.expect("all").len(), 1_000);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(i32),
    Upsert(i32),
    Delete,
}

type Key = (String, String);

fn any_steps() -> impl Strategy<Value = Vec<(Key, Step)>> {
    let key = ("[ab]", "[a-e]");
    let step = prop_oneof![
        1 => any::<i32>().prop_map(Step::Insert),
        6 => any::<i32>().prop_map(Step::Upsert),
        1 => Just(Step::Delete),
    ];
    prop::collection::vec((key, step), 0..60)
}

fn operation(((partition, row), step): &(Key, Step)) -> BulkOperation {
    let entity = |value: i32| DynamicEntity::new(partition, row).with("Value", value);
    match step {
        Step::Insert(value) => BulkOperation::insert(&entity(*value)).expect("an entity"),
        Step::Upsert(value) => BulkOperation::insert_or_replace(&entity(*value)).expect("an entity"),
        Step::Delete => BulkOperation::delete(partition, row, IfMatch::Any),
    }
}

/// What a group does to the rows, if all of it can be done; or else the operation that cannot.
fn apply(rows: &mut BTreeMap<Key, i32>, steps: &[(Key, Step)], group: &BulkGroup) -> Result<(), usize> {
    let mut changed = rows.clone();
    for operation in &group.operations {
        let (key, step) = &steps[*operation];
        let is_possible = match step {
            Step::Insert(value) => changed.insert(key.clone(), *value).is_none(),
            Step::Upsert(value) => {
                changed.insert(key.clone(), *value);
                true
            }
            Step::Delete => changed.remove(key).is_some(),
        };
        if !is_possible {
            return Err(*operation);
        }
    }
    *rows = changed;
    Ok(())
}

async fn check(table: &Table, steps: &[(Key, Step)], concurrency: usize, held_max: usize) -> Result<(), TestCaseError> {
    let writer = table.bulk().concurrency(concurrency).held_max(held_max);
    let operations: Vec<_> = steps.iter().map(operation).collect();
    let mut groups: Vec<_> = writer.run(stream::iter(operations)).collect().await;
    groups.sort_by_key(|group| group.operations[0]);
    let mut grouped: Vec<_> = groups.iter().flat_map(|group| group.operations.clone()).collect();
    grouped.sort_unstable();
    prop_assert_eq!(grouped, (0..steps.len()).collect::<Vec<_>>(), "every operation is in one group");
    for partition in ["a", "b"] {
        let of_partition = groups.iter().filter(|group| group.partition_key == partition);
        let order: Vec<_> = of_partition.flat_map(|group| group.operations.clone()).collect();
        prop_assert!(order.is_sorted(), "operations of a partition keep their order: {:?}", order);
    }
    let mut rows = BTreeMap::new();
    for group in &groups {
        prop_assert_eq!(apply(&mut rows, steps, group).err(), group.failed_operation(), "{:?}", group);
    }
    let stored = table.query::<DynamicEntity>().all().await.expect("all");
    let stored: BTreeMap<_, _> = stored
        .into_iter()
        .map(|entity| {
            ((entity.partition_key.clone(), entity.row_key.clone()), entity.get::<i32>("Value").expect("one"))
        })
        .collect();
    prop_assert_eq!(stored, rows);
    Ok(())
}

#[test]
fn c9_bulk_writes_equal_the_same_groups_one_after_the_other() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(Larimar::ephemeral()).expect("a server");
    let account = Account::connect(&server.connection_string()).expect("an account");
    let cases = AtomicUsize::new(0);
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in any_steps(), concurrency in 1_usize..4, held_max in 1_usize..80)| {
        let table = account.table(format!("Case{}", cases.fetch_add(1, SeqCst)));
        runtime.block_on(async {
            table.create().await.expect("created");
            check(&table, &steps, concurrency, held_max).await
        })?;
    });
}
