//! S5 under the patterns: what a type encrypts is encrypted in every copy and part, and plain text in its place is
//! refused.

use crate::atomic::fixture::Fixture;
use futures_util::TryStreamExt as _;
use larimar_client::encryption::{Encryption, KeyRing, LocalKey};
use larimar_client::{DynamicEntity, Entity, Filter, Table, Value};
use larimar_patterns::log_tail::LogTail;
use larimar_patterns::secondary_index::{Index, IndexRange, IndexedTable};
use larimar_patterns::spread_key::SpreadKey;
use larimar_patterns::wide_entity::WideTable;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    email: String,
    #[entity(encrypt)]
    iban: String,
    #[entity(flatten)]
    others: BTreeMap<String, Value>,
}

fn employee(id: &str, iban: &str) -> Employee {
    let [department, id, email, iban] = ["Sales", id, "don@x", iban].map(str::to_owned);
    Employee { department, id, email, iban, others: BTreeMap::new() }
}

/// The table as it is stored, and the same one with a key.
async fn tables(fixture: &Fixture) -> (Table, Table) {
    let table = fixture.table("Employees").await;
    let encryption = Encryption::new(KeyRing::new(LocalKey::new("2026", [7; 32])));
    (table.clone(), table.encrypted(Arc::new(encryption)))
}

/// Every row that has an IBAN has it as bytes.
async fn assert_hidden(plain: &Table, rows: usize) {
    let stored = plain.query::<DynamicEntity>().all().await.expect("read");
    let found: Vec<_> = stored.iter().filter_map(|row| row.value("Iban")).collect();
    assert_eq!(found.len(), rows);
    assert!(found.iter().all(|value| matches!(value, Value::Binary(_))), "{found:?}");
}

#[tokio::test]
async fn t1_copies_are_encrypted_and_plain_ones_are_refused() {
    let fixture = Fixture::new().await;
    let (plain, table) = tables(&fixture).await;
    let email = Index::unique("email", |employee: &Employee| Some(employee.email.clone()));
    let employees = IndexedTable::new(table, "empid").and_then(|table| table.index(email)).expect("an index");
    employees.insert(&employee("1", "NO1")).await.expect("inserted");
    assert_hidden(&plain, 2).await;
    assert_eq!(employees.get_by("Sales", "email", "don@x").await.expect("read"), Some(employee("1", "NO1")));
    let raise = |one: &mut Employee| {
        one.iban = "NO2".to_owned();
        one.email = "new@x".to_owned();
    };
    employees.update("Sales", "1", raise).await.expect("updated").expect("it is there");
    assert_hidden(&plain, 2).await;
    let all = employees.query::<Employee>("Sales", "email", IndexRange::All).expect("an index").all().await;
    assert_eq!(all.expect("read")[0].iban, "NO2");

    let forged = DynamicEntity::new("Sales", "email_new@x").with("Email", "new@x").with("Iban", "EVIL");
    plain.insert_or_replace(&forged.with("PrimaryRowKey", "1")).await.expect("written");
    assert!(employees.get_by("Sales", "email", "new@x").await.is_err());
    let all = employees.query::<Employee>("Sales", "email", IndexRange::All).expect("an index").all().await;
    assert!(all.is_err());
}

#[tokio::test]
async fn t7_t10_t12_rows_and_parts_are_encrypted() {
    let fixture = Fixture::new().await;
    let (plain, table) = tables(&fixture).await;
    let wide = WideTable::new(table.clone());
    let mut large = employee("1", "NO1");
    large.others = (0..600).map(|n| (format!("Answer{n:03}"), Value::Int32(n))).collect();
    let version = wide.insert(&large).await.expect("inserted");
    assert_eq!(version.parts(), 3);
    assert_hidden(&plain, 1).await;
    let read = wide.get::<Employee>("Sales", "1").await.expect("read").expect("it is there");
    assert_eq!(read.entity, large);
    large.iban = "NO2".to_owned();
    wide.insert_or_replace(&large).await.expect("written");
    let read = wide.get::<Employee>("Sales", "1").await.expect("read").expect("it is there");
    assert_eq!(read.entity.iban, "NO2");
    assert!(wide.delete("Sales", "1").await.expect("deleted"));

    let tail = LogTail::new(table.clone());
    tail.append(&employee("", "NO3")).await.expect("appended");
    assert_hidden(&plain, 1).await;
    assert_eq!(tail.latest::<Employee>("Sales", 1).await.expect("read")[0].iban, "NO3");

    let spread = SpreadKey::new(2).expect("buckets");
    for id in ["1", "2", "3"] {
        let department = spread.by_hash("day", id);
        table.insert(&Employee { department, ..employee(id, id) }).await.expect("inserted");
    }
    assert_hidden(&plain, 4).await;
    let all = spread.read::<Employee>(&table, "day", Filter::everything());
    let all: Vec<_> = all.map_ok(|one| one.iban).try_collect().await.expect("read");
    assert_eq!(all, ["1", "2", "3"]);
}
