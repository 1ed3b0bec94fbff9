//! An update by a type that knows some properties of an entity keeps the others, in every copy and part.

use crate::atomic::fixture::Fixture;
use larimar_client::encryption::{Encryption, KeyRing, LocalKey};
use larimar_client::{DynamicEntity, Entity, IfMatch, Table, Value};
use larimar_patterns::Error;
use larimar_patterns::denormalised::{Denormalised, Embeds};
use larimar_patterns::secondary_index::{Index, IndexedTable};
use larimar_patterns::wide_entity::WideTable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An employee as an older release knows it.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    email: String,
    phone: Option<String>,
}

/// The same employee as a newer release knows it.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Newer {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    email: String,
    phone: Option<String>,
    room: i32,
    #[entity(encrypt)]
    iban: Option<String>,
}

fn newer(iban: Option<&str>) -> Newer {
    let [department, id, email] = ["Sales", "1", "old@x"].map(str::to_owned);
    Newer { department, id, email, phone: Some("555".to_owned()), room: 12, iban: iban.map(str::to_owned) }
}

/// Changes one property that the older release knows and removes another.
fn change(employee: &mut Employee) {
    employee.email = "new@x".to_owned();
    employee.phone = None;
}

fn changed(iban: Option<&str>) -> Newer {
    Newer { email: "new@x".to_owned(), phone: None, ..newer(iban) }
}

fn by_email<E: Entity + Send + Sync + 'static>(table: &Table, email: fn(&E) -> Option<String>) -> IndexedTable<E> {
    let short = Index::many("short", email).only(["Email"]);
    IndexedTable::new(table.clone(), "id")
        .and_then(|table| table.index(Index::unique("email", email)))
        .and_then(|table| table.index(short))
        .expect("indexes")
}

/// All rows of a table by row key, without keys and versions.
async fn rows(table: &Table) -> BTreeMap<String, BTreeMap<String, Value>> {
    let rows = table.query::<DynamicEntity>().all().await.expect("read");
    rows.into_iter().map(|mut row| (row.row_key.clone(), row.take_properties())).collect()
}

fn encrypted(table: &Table) -> Table {
    table.encrypted(Arc::new(Encryption::new(KeyRing::new(LocalKey::new("2026", [7; 32])))))
}

#[tokio::test]
async fn t1_an_update_keeps_unknown_properties_in_all_copies() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let newer_one = DynamicEntity::new("Sales", "1").with("Email", "old@x").with("Phone", "555").with("Room", 12);
    let all = by_email(&table, |one: &DynamicEntity| one.get("Email").ok());
    all.insert(&newer_one).await.expect("inserted");
    let employees = by_email(&table, |one: &Employee| Some(one.email.clone()));
    let (updated, requests) = fixture.counted(employees.update("Sales", "1", change)).await;
    assert_eq!((updated.expect("updated").map(|one| one.email), requests), (Some("new@x".to_owned()), 2));
    let rows = rows(&table).await;
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["email_new@x", "id_1", "short_new@x!1"]);
    let primary = [("Email".to_owned(), "new@x".into()), ("Room".to_owned(), 12.into())];
    assert_eq!(rows["id_1"], BTreeMap::from(primary.clone()));
    let row_key = ("PrimaryRowKey".to_owned(), Value::from("1"));
    assert_eq!(rows["email_new@x"], BTreeMap::from(primary.clone()).into_iter().chain([row_key.clone()]).collect());
    assert_eq!(rows["short_new@x!1"], BTreeMap::from([primary[0].clone(), row_key]));

    // A replace is another matter: it takes all properties of the entity in place of those that are there.
    let [department, id, email] = ["Sales", "1", "new@x"].map(str::to_owned);
    let entity = Employee { department, id, email, phone: None };
    employees.replace(&entity, IfMatch::Any).await.expect("replaced");
    let all = all.get("Sales", "1").await.expect("read").expect("it is there");
    assert_eq!(all.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["Email"]);
}

#[tokio::test]
async fn t1_s5_unknown_properties_that_are_encrypted_stay_so() {
    let fixture = Fixture::new().await;
    let plain = fixture.table("Employees").await;
    let table = encrypted(&plain);
    let all = by_email(&table, |one: &Newer| Some(one.email.clone()));
    all.insert(&newer(Some("NO1"))).await.expect("inserted");
    let employees = by_email(&table, |one: &Employee| Some(one.email.clone()));
    employees.update("Sales", "1", change).await.expect("updated").expect("it is there");
    assert_eq!(all.get("Sales", "1").await.expect("read"), Some(changed(Some("NO1"))));
    assert_eq!(all.get_by("Sales", "email", "new@x").await.expect("read"), Some(changed(Some("NO1"))));
    let stored: Vec<_> = rows(&plain).await.into_values().filter_map(|mut row| row.remove("Iban")).collect();
    assert!(stored.len() == 2 && stored.iter().all(|iban| matches!(iban, Value::Binary(_))), "{stored:?}");

    // Without the key they cannot be written under the row keys of the copies.
    let before = rows(&plain).await;
    let keyless = by_email(&plain, |one: &Employee| Some(one.email.clone()));
    let refused = keyless.update("Sales", "1", |one| one.email = "other@x".to_owned()).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(rows(&plain).await, before);
}

/// A department that carries its manager's address.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Department {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    kind: String,
    manager: Option<String>,
    email: Option<String>,
}

impl Embeds<Employee> for Department {
    fn embeds(&self, manager: &Employee) -> bool {
        self.manager.as_ref() == Some(&manager.id)
    }

    fn embed(&mut self, manager: &Employee) {
        self.manager = Some(manager.id.clone());
        self.email = Some(manager.email.clone());
    }
}

#[tokio::test]
async fn t5_updates_and_assignments_keep_unknown_properties_of_both() {
    let fixture = Fixture::new().await;
    let plain = fixture.table("Company").await;
    let table = encrypted(&plain);
    table.insert(&newer(Some("NO1"))).await.expect("inserted");
    let department = DynamicEntity::new("Sales", "department").with("Budget", 7_i64);
    table.insert(&department).await.expect("inserted");
    let managers = Denormalised::<Employee, Department>::new(table.clone());
    let (assigned, requests) = fixture.counted(managers.assign("Sales", "1", "department")).await;
    assert_eq!((assigned.expect("assigned").email.as_deref(), requests), (Some("old@x"), 3));
    let read = async |id: &str| table.get::<Newer>("Sales", id).await.expect("read").expect("it is there");
    assert_eq!(read("1").await, newer(Some("NO1")));
    let (updated, requests) = fixture.counted(managers.update("Sales", "1", &["department"], change)).await;
    assert!(updated.expect("updated").is_some() && requests == 3);
    assert_eq!(read("1").await, changed(Some("NO1")));
    let rows = rows(&plain).await;
    let holder = BTreeMap::from([
        ("Budget".to_owned(), Value::from(7_i64)),
        ("Email".to_owned(), "new@x".into()),
        ("Manager".to_owned(), "1".into()),
    ]);
    assert_eq!(rows["department"], holder);
    assert!(matches!(rows["1"]["Iban"], Value::Binary(_)));
}

#[tokio::test]
async fn t10_an_update_keeps_unknown_properties_of_all_parts() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = WideTable::new(table.clone());
    let answers = |entity: DynamicEntity| (0..600).fold(entity, |one, n| one.with(format!("Answer{n:03}"), n));
    let first = DynamicEntity::new("Sales", "1").with("Email", "old@x").with("Phone", "555").with("Room", 12);
    employees.insert(&answers(first)).await.expect("inserted");
    let (updated, requests) = fixture.counted(employees.update("Sales", "1", change)).await;
    let updated = updated.expect("updated").expect("it is there");
    assert_eq!((updated.version.parts(), requests), (3, 2));
    let mut read = employees.get::<DynamicEntity>("Sales", "1").await.expect("read").expect("it is there").entity;
    let expected = DynamicEntity::new("Sales", "1").with("Email", "new@x").with("Room", 12);
    assert_eq!(read.take_properties(), answers(expected).take_properties());
}

#[tokio::test]
async fn t10_s5_parts_stay_encrypted_whoever_updates_them() {
    let fixture = Fixture::new().await;
    let plain = fixture.table("Employees").await;
    let employees = WideTable::new(encrypted(&plain));
    employees.insert(&newer(Some("NO1"))).await.expect("inserted");
    let add = |one: &mut DynamicEntity| {
        (0..600).for_each(|n| drop(one.set(format!("Answer{n:03}"), n)));
    };
    employees.update::<Employee>("Sales", "1", change).await.expect("updated").expect("it is there");
    employees.update("Sales", "1", add).await.expect("updated").expect("it is there");
    employees.update("Sales", "1", add).await.expect("updated").expect("it is there");
    let read = employees.get::<Newer>("Sales", "1").await.expect("read").expect("it is there");
    assert_eq!(read.entity, changed(Some("NO1")));
    let stored: Vec<_> = rows(&plain).await.into_values().filter_map(|mut row| row.remove("Iban")).collect();
    assert!(matches!(&stored[..], [Value::Binary(_)]), "{stored:?}");
    let refused = WideTable::new(plain.clone()).update("Sales", "1", change).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}
