//! T10: an entity of many parts is written and read as one, and never seen half.

use crate::atomic::fixture::{Fixture, odd_text};
use larimar_client::{DynamicEntity, Table, Value};
use larimar_patterns::Error;
use larimar_patterns::wide_entity::WideTable;
use proptest::prelude::*;

pub(crate) fn answers(row_key: &str, count: usize, value: i32) -> DynamicEntity {
    (0..count).fold(DynamicEntity::new("Sales", row_key), |entity, n| entity.with(format!("Answer{n:05}"), value))
}

async fn rows(table: &Table) -> Vec<String> {
    table.query::<DynamicEntity>().all().await.expect("read").into_iter().map(|row| row.row_key).collect()
}

pub(crate) async fn read(employees: &WideTable, row_key: &str) -> Option<DynamicEntity> {
    let read = employees.get::<DynamicEntity>("Sales", row_key).await.expect("read");
    read.map(|read| {
        let mut entity = read.entity;
        (entity.etag, entity.timestamp) = (None, None);
        entity
    })
}

#[tokio::test]
async fn t10_more_than_252_properties_are_one_request_each_way() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = WideTable::new(table.clone());
    for (count, parts) in [(0, 1), (1, 1), (240, 1), (241, 2), (2000, 9), (24_000, 100)] {
        let row_key = format!("{count}");
        let entity = answers(&row_key, count, 7);
        let (version, requests) = fixture.counted(employees.insert(&entity)).await;
        assert_eq!((version.expect("inserted").parts(), requests), (parts, 1));
        let (found, requests) = fixture.counted(read(&employees, &row_key)).await;
        assert_eq!((found.as_ref(), requests), (Some(&entity), 1));
    }
    let too_many = employees.insert(&answers("x", 24_001, 7)).await;
    assert!(matches!(too_many, Err(Error::Client(_) | Error::Key(_))), "{too_many:?}");
    assert_eq!(rows(&table).await.len(), 1 + 1 + 1 + 2 + 9 + 100);
}

#[tokio::test]
async fn t10_more_than_a_mebibyte_is_cut_by_size() {
    let fixture = Fixture::new().await;
    let employees = WideTable::new(fixture.table("Employees").await);
    let mut entity = DynamicEntity::new("Sales", "1");
    for n in 0..45 {
        entity.set(format!("Photo{n}"), Value::Binary(vec![n; 64 * 1024]));
    }
    assert!(entity.size() > 2 * 1024 * 1024);
    let (version, requests) = fixture.counted(employees.insert(&entity)).await;
    assert_eq!((version.expect("inserted").parts(), requests), (4, 1), "14 photos fit into a part");
    assert_eq!(read(&employees, "1").await.as_ref(), Some(&entity));
    entity.partition_key = "Marketing".to_owned();
    for n in 45..60 {
        entity.set(format!("Photo{n}"), Value::Binary(vec![n; 64 * 1024]));
    }
    let (refused, requests) = fixture.counted(employees.insert(&entity)).await;
    assert!(matches!(refused, Err(Error::Client(_))), "more than a transaction takes: {refused:?}");
    assert_eq!(requests, 0);
}

#[tokio::test]
async fn t10_what_shrinks_leaves_nothing_behind() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = WideTable::new(table.clone());
    let first = employees.insert(&answers("1", 1000, 1)).await.expect("inserted");
    assert!(matches!(employees.insert(&answers("1", 1, 1)).await, Err(Error::Exists)));
    let (second, requests) = fixture.counted(employees.replace(&answers("1", 300, 2), &first)).await;
    let second = second.expect("replaced");
    assert_eq!((second.parts(), requests), (2, 1));
    assert_eq!(rows(&table).await, ["1!00", "1!01"]);
    assert_eq!(read(&employees, "1").await, Some(answers("1", 300, 2)));
    assert!(matches!(employees.replace(&answers("1", 1, 3), &first).await, Err(Error::Changed)), "an old version");
    assert!(matches!(employees.replace(&answers("2", 1, 3), &second).await, Err(Error::NotFound)));

    let (put, requests) = fixture.counted(employees.insert_or_replace(&answers("1", 600, 4))).await;
    assert_eq!((put.expect("written").parts(), requests), (3, 2));
    let (put, requests) = fixture.counted(employees.insert_or_replace(&answers("2", 1, 4))).await;
    assert_eq!((put.expect("written").parts(), requests), (1, 2));
    let shrink = |one: &mut DynamicEntity| drop(one.take_properties());
    let (updated, requests) = fixture.counted(employees.update("Sales", "1", shrink)).await;
    assert_eq!((updated.expect("updated").expect("it is there").version.parts(), requests), (1, 2));
    assert_eq!(rows(&table).await, ["1!00", "2!00"]);
    let (deleted, requests) = fixture.counted(employees.delete("Sales", "1")).await;
    assert_eq!((deleted.expect("deleted"), requests), (true, 2));
    assert!(!employees.delete("Sales", "1").await.expect("no error"));
    assert_eq!(read(&employees, "1").await, None);
    assert!(employees.update::<DynamicEntity>("Sales", "1", |_| ()).await.expect("no error").is_none());
    assert_eq!(rows(&table).await, ["2!00"]);
}

#[tokio::test]
async fn t10_parts_of_different_versions_are_never_taken_for_an_entity() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = WideTable::new(table.clone());
    employees.insert(&answers("1", 600, 1)).await.expect("inserted");
    let old = table.get::<DynamicEntity>("Sales", "1!01").await.expect("read").expect("a part");
    employees.insert_or_replace(&answers("1", 600, 2)).await.expect("written");
    // What a reader would have seen whose second page came from before the write; then one that came late.
    table.insert_or_replace(&old).await.expect("written");
    assert!(matches!(employees.get::<DynamicEntity>("Sales", "1").await, Err(Error::Contended)));
    employees.insert_or_replace(&answers("1", 600, 3)).await.expect("written");
    table.delete("Sales", "1!02", larimar_client::IfMatch::Any).await.expect("deleted");
    assert!(matches!(employees.get::<DynamicEntity>("Sales", "1").await, Err(Error::Contended)));
    let reserved = answers("2", 1, 1).with("WideParts", 1);
    assert!(matches!(employees.insert(&reserved).await, Err(Error::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_readers_and_writers_that_meet_see_whole_entities() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = WideTable::new(table.clone());
    employees.insert(&answers("1", 251, 0)).await.expect("inserted");
    let mut tasks = Vec::new();
    for writer in 1..=3 {
        let employees = employees.clone();
        tasks.push(tokio::spawn(async move {
            for step in 0..6 {
                let count = 1 + (writer * 7 + step * 5) % 4 * 250;
                match step % 3 {
                    0 => drop(employees.insert_or_replace(&answers("1", count, writer as i32)).await.expect("written")),
                    1 => {
                        let change = |one: &mut DynamicEntity| *one = answers("1", count, writer as i32);
                        drop(employees.update("Sales", "1", change).await.expect("updated"));
                    }
                    _ if writer == 1 => drop(employees.delete("Sales", "1").await.expect("deleted")),
                    _ => {}
                }
            }
        }));
    }
    let reader = employees.clone();
    tasks.push(tokio::spawn(async move {
        for _ in 0..40 {
            let Some(found) = read(&reader, "1").await else { continue };
            let mut values = found.properties().map(|(_, value)| value.clone());
            let first = values.next().expect("each has one");
            assert!(values.all(|value| value == first), "parts of several writes");
            assert_eq!((found.properties().len() - 1) % 250, 0, "all parts of a write");
        }
    }));
    for task in tasks {
        task.await.expect("no panic");
    }
    let last = employees.insert_or_replace(&answers("1", 500, 9)).await.expect("written");
    assert_eq!(rows(&table).await.len(), last.parts(), "nothing is left over");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn t10_row_keys_that_look_alike_do_not_mix(keys in prop::collection::btree_set(odd_text(), 2..5)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let fixture = Fixture::new().await;
            let employees = WideTable::new(fixture.table("Employees").await);
            for (number, key) in keys.iter().enumerate() {
                employees.insert(&answers(key, 241 + number, number as i32)).await.expect("inserted");
            }
            for (number, key) in keys.iter().enumerate() {
                assert_eq!(read(&employees, key).await, Some(answers(key, 241 + number, number as i32)));
            }
            let deleted = keys.first().expect("two keys");
            assert!(employees.delete("Sales", deleted).await.expect("deleted"));
            for key in keys.iter().skip(1) {
                assert!(read(&employees, key).await.is_some());
            }
        });
    }
}
