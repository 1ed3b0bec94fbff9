//! What tables do, over any server: each case takes an account and makes a table of its own.

use crate::suite::unique;
use futures_util::TryStreamExt as _;
use larimar_client::{Account, BulkOperation, Column, DynamicEntity, Guid, IfMatch, Table, Timestamp, Value};

async fn table(account: &Account) -> Table {
    let table = account.table(unique("Employees"));
    assert!(table.create_if_missing().await.expect("created"));
    table
}

fn entity(row: impl Into<String>) -> DynamicEntity {
    DynamicEntity::new("p", row)
}

pub(crate) async fn c1_an_entity_is_inserted_read_changed_and_deleted(account: &Account) {
    let table = table(account).await;
    assert!(!table.create_if_missing().await.expect("there already"));

    let don = DynamicEntity::new("Sales", "O'Neil +%ü").with("Age", 34).with("Name", "Don");
    let first = table.insert(&don).await.expect("inserted");
    assert!(table.insert(&don).await.expect_err("a second insert").is_conflict());
    let read: DynamicEntity = table.get("Sales", "O'Neil +%ü").await.expect("read").expect("found");
    assert_eq!((read.etag.as_ref(), read.get::<i32>("Age").ok()), (Some(&first), Some(34)));
    assert_eq!(table.get::<DynamicEntity>("Sales", "nobody").await.expect("read"), None);

    let second = table.merge(&DynamicEntity::new("Sales", "O'Neil +%ü").with("Age", 35), &first).await.expect("merged");
    let stale = table.replace(&don, &first).await.expect_err("an old version");
    assert!(stale.is_changed() && stale.is_conflict(), "{stale}");
    table.replace(&don, second).await.expect("replaced");
    table.delete("Sales", "O'Neil +%ü", IfMatch::Any).await.expect("deleted");
    assert!(table.delete("Sales", "O'Neil +%ü", IfMatch::Any).await.expect_err("gone").is_not_found());
    let missing = account.table("Nothing").get::<DynamicEntity>("a", "b").await.expect_err("no table");
    assert!(missing.is_not_found(), "{missing}");
    table.delete_table().await.expect("deleted");
    assert!(!table.delete_table_if_exists().await.expect("it is gone"));
}

pub(crate) async fn d3_values_of_every_type_come_back_as_they_were(account: &Account) {
    let table = table(account).await;
    let time: Timestamp = "2024-02-29T12:30:00.1234567Z".parse().expect("a time");
    let guid: Guid = "c9da6455-213d-42c9-9a79-3e9149a57833".parse().expect("a guid");
    let all = entity("all")
        .with("Text", "<\"ü\u{1F600}\\\n'> ")
        .with("Empty", "")
        .with("Int32", i32::MIN)
        .with("Int64", i64::MAX)
        .with("Double", 0.1)
        .with("Whole", 3.0)
        .with("Infinite", f64::NEG_INFINITY)
        .with("Boolean", true)
        .with("Time", time)
        .with("Guid", guid)
        .with("Binary", vec![0_u8, 255, 10]);
    table.insert_or_replace(&all).await.expect("written");
    let read: DynamicEntity = table.get("p", "all").await.expect("read").expect("found");
    let pairs = |entity: &DynamicEntity| -> Vec<(String, Value)> {
        let mut pairs: Vec<_> = entity.properties().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        pairs.sort_by(|left, right| left.0.cmp(&right.0));
        pairs
    };
    assert_eq!(pairs(&read), pairs(&all));
    table.delete_table().await.expect("deleted");
}

pub(crate) async fn c3_queries_follow_pages_and_filters(account: &Account) {
    let table = table(account).await;
    for row in 0..7 {
        table.insert(&entity(format!("r{row}")).with("Row", row).with("Text", "long")).await.expect("inserted");
    }
    table.insert(&DynamicEntity::new("q", "O'Neil & Co").with("Row", 2)).await.expect("inserted");
    let row: Column<i32> = Column::named("Row");
    let rows = |entities: Vec<DynamicEntity>| entities.into_iter().map(|entity| entity.row_key).collect::<Vec<_>>();

    let query = table.query::<DynamicEntity>().page_size(3);
    let pages: Vec<_> = query.clone().pages().try_collect().await.expect("pages");
    assert_eq!(pages.iter().map(|page| page.entities.len()).collect::<Vec<_>>(), [3, 3, 2]);
    let rest = query.start_at(pages[0].continuation.clone().expect("there is more")).all().await.expect("the rest");
    assert_eq!(rows(rest), ["r3", "r4", "r5", "r6", "O'Neil & Co"]);
    let filtered = table.query::<DynamicEntity>().partition("p").filter(row.ge(2)).filter(row.lt(4));
    assert_eq!(rows(filtered.all().await.expect("all")), ["r2", "r3"]);
    let key = larimar_client::keys::row_key().eq("O'Neil & Co");
    let selected = table.query::<DynamicEntity>().filter(key).select(["Row"]).all().await.expect("all");
    assert_eq!(selected.len(), 1);
    assert_eq!(selected[0].get::<i32>("Row").expect("a number"), 2);
    assert_eq!(table.query::<DynamicEntity>().limit(5).all().await.expect("all").len(), 5);
    assert_eq!(table.query::<DynamicEntity>().partition("none").first().await.expect("asked"), None);
    table.delete_table().await.expect("deleted");
}

pub(crate) async fn c5_a_transaction_takes_place_whole_or_not_at_all(account: &Account) {
    let table = table(account).await;
    let old = table.insert(&entity("replaced").with("A", 1)).await.expect("inserted");
    table.insert(&entity("deleted")).await.expect("inserted");
    let mut transaction = table.transaction();
    transaction.insert(&entity("new ü").with("A", 1)).expect("added");
    transaction.replace(&entity("replaced").with("A", 2), &old).expect("added");
    transaction.delete("p", "deleted", IfMatch::Any).expect("added");
    transaction.insert_or_merge(&entity("merged").with("A", 3)).expect("added");
    let etags = transaction.submit().await.expect("submitted");
    for (row, etag) in ["new ü", "replaced", "deleted", "merged"].into_iter().zip(&etags) {
        let stored = table.get::<DynamicEntity>("p", row).await.expect("read");
        assert_eq!(stored.and_then(|stored| stored.etag), *etag, "{row}");
    }
    let mut refused = table.transaction();
    refused.insert(&entity("1")).and_then(|t| t.insert(&entity("merged"))).expect("added");
    let error = refused.submit().await.expect_err("the second insert is refused");
    assert_eq!((error.is_conflict(), error.operation()), (true, Some(1)), "{error}");
    assert_eq!(table.get::<DynamicEntity>("p", "1").await.expect("read"), None);
    table.delete_table().await.expect("deleted");
}

pub(crate) async fn d5_a_transaction_of_a_hundred_is_taken(account: &Account) {
    let table = table(account).await;
    let mut transaction = table.transaction();
    for row in 0..100 {
        transaction.insert(&entity(format!("O'Neil {row}")).with("Text", "--\r\nü".repeat(500))).expect("added");
    }
    let etags = transaction.submit().await.expect("submitted");
    assert_eq!((etags.len(), etags.iter().flatten().count()), (100, 100));
    assert_eq!(table.query::<DynamicEntity>().all().await.expect("all").len(), 100);
    table.delete_table().await.expect("deleted");
}

pub(crate) async fn c7_an_entity_is_updated_without_knowing_its_type(account: &Account) {
    let table = table(account).await;
    table.insert(&entity("r").with("Count", 1).with("Other", "kept")).await.expect("inserted");
    let increment = |entity: &mut DynamicEntity| {
        let count: i32 = entity.get("Count").unwrap_or_default();
        entity.set("Count", count + 1);
    };
    let (first, second) =
        tokio::join!(table.update_with_retry("p", "r", increment), table.update_with_retry("p", "r", increment));
    assert!(first.expect("updated").is_some() && second.expect("updated").is_some());
    let stored: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    assert_eq!((stored.get::<i32>("Count").ok(), stored.properties().len()), (Some(3), 2));
    assert!(table.update_with_retry("p", "none", increment).await.expect("asked").is_none());
    table.delete_table().await.expect("deleted");
}

pub(crate) async fn c9_bulk_writes_and_parallel_queries_cover_many_partitions(account: &Account) {
    let table = table(account).await;
    let entities = (0..250).map(|n| DynamicEntity::new(format!("p{}", n % 7), format!("r{n:03}")).with("N", n));
    let operations = entities.map(|entity| BulkOperation::insert(&entity).expect("an entity"));
    let report = table.bulk().concurrency(4).submit(operations).await;
    assert!(report.is_success(), "{report:?}");
    let all = table.query::<DynamicEntity>().all().await.expect("all");
    assert_eq!(all.len(), 250);
    let partitions = (0..7).rev().map(|n| format!("p{n}"));
    let query = table.query_partitions::<DynamicEntity>(partitions).page_size(20).concurrency(3).in_order();
    assert_eq!(query.all().await.expect("all"), all);
    table.delete_table().await.expect("deleted");
}

pub(crate) async fn d7_tables_are_listed(account: &Account) {
    let table = table(account).await;
    let names: Vec<_> = account.tables().list(None).map_ok(|table| table.name).try_collect().await.expect("listed");
    assert!(names.iter().any(|name| name == table.name()), "{names:?}");
    table.delete_table().await.expect("deleted");
    let names: Vec<_> = account.tables().list(None).map_ok(|table| table.name).try_collect().await.expect("listed");
    assert!(names.iter().all(|name| name != table.name()), "{names:?}");
}

macro_rules! table_cases {
    ($test:ident) => {
        $test! { tables:
            c1_an_entity_is_inserted_read_changed_and_deleted,
            d3_values_of_every_type_come_back_as_they_were,
            c3_queries_follow_pages_and_filters,
            c5_a_transaction_takes_place_whole_or_not_at_all,
            d5_a_transaction_of_a_hundred_is_taken,
            c7_an_entity_is_updated_without_knowing_its_type,
            c9_bulk_writes_and_parallel_queries_cover_many_partitions,
            d7_tables_are_listed,
        }
    };
}
pub(crate) use table_cases;
