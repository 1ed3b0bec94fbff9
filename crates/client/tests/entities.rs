//! Reads and writes of single entities over a server of its own.

use larimar_client::{Account, DynamicEntity, IfMatch};
use larimar_embedded::Larimar;

#[tokio::test]
async fn c1_an_entity_is_inserted_read_changed_and_deleted() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = Account::connect(&server.connection_string()).expect("an account");
    let table = account.table("Employees");
    assert!(table.create_if_missing().await.expect("created"));
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
    assert_eq!(missing.code(), Some("TableNotFound"));
    table.delete_table().await.expect("deleted");
}
