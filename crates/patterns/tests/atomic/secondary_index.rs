//! T1: whatever writers do to each other, every entity has exactly its copies, and all are equal.

use crate::atomic::fixture::Fixture;
use larimar_client::{DynamicEntity, ETag, Entity, IfMatch, Table};
use larimar_patterns::Error;
use larimar_patterns::key_text::{KeyError, escape};
use larimar_patterns::secondary_index::{Index, IndexRange, IndexedTable};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    #[entity(etag)]
    etag: Option<ETag>,
    pub(crate) last_name: String,
    pub(crate) email: Option<String>,
    pub(crate) salary: i64,
}

#[derive(Debug, PartialEq, Entity)]
struct Name {
    #[entity(row_key)]
    id: String,
    #[entity(partition_key)]
    department: String,
    last_name: String,
}

pub(crate) fn employee(id: &str, last_name: &str, email: &str) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id: id.to_owned(),
        etag: None,
        last_name: last_name.to_owned(),
        email: (!email.is_empty()).then(|| email.to_owned()),
        salary: 1000,
    }
}

pub(crate) fn indexed(table: Table) -> IndexedTable<Employee> {
    IndexedTable::new(table, "empid")
        .and_then(|table| table.index(Index::unique("email", |employee: &Employee| employee.email.clone())))
        .and_then(|table| table.index(Index::many("lastname", |employee: &Employee| Some(employee.last_name.clone()))))
        .and_then(|table| {
            let short = Index::many("short", |employee: &Employee| employee.last_name.chars().next().map(String::from));
            table.index(short.only(["LastName"]))
        })
        .expect("indexes")
}

/// Every row of the partition is the primary copy of an employee or one of its copies, and equal to it.
pub(crate) async fn audit(table: &Table) -> usize {
    let rows = table.query::<DynamicEntity>().partition("Sales").all().await.expect("read");
    let mut rows: BTreeMap<String, DynamicEntity> = rows.into_iter().map(|row| (row.row_key.clone(), row)).collect();
    let primary: Vec<_> = rows.keys().filter(|row| row.starts_with("empid_")).cloned().collect();
    for row_key in &primary {
        let id = row_key.strip_prefix("empid_").expect("a prefix");
        let stored = rows.remove(row_key).expect("it was listed");
        let last_name: String = stored.get("LastName").expect("a name");
        let email: Option<String> = stored.get("Email").expect("an address");
        let first = last_name.chars().next().map(String::from).expect("a name");
        let full = [
            email.map(|email| format!("email_{email}")),
            Some(format!("lastname_{}!{}", escape(&last_name), escape(id))),
        ];
        for copy in full.into_iter().flatten() {
            let mut copy = rows.remove(&copy).unwrap_or_else(|| panic!("{row_key} has no copy {copy}"));
            assert_eq!(copy.take::<String>("PrimaryRowKey").expect("a key"), id);
            assert!(copy.properties().eq(stored.properties()), "{copy:?} differs from {stored:?}");
        }
        let short = rows.remove(&format!("short_{}!{}", escape(&first), escape(id))).expect("a short copy");
        assert_eq!(short.properties().len(), 2, "{short:?}");
        assert_eq!(short.get::<String>("LastName").expect("a name"), last_name);
    }
    assert!(rows.is_empty(), "left over: {:?}", rows.keys());
    primary.len()
}

#[tokio::test]
async fn t1_reads_by_any_index_are_one_request() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    let don = employee("000123", "Hall", "donh@contoso.com");
    let (inserted, requests) = fixture.counted(employees.insert(&don)).await;
    inserted.expect("inserted");
    assert_eq!(requests, 1);
    employees.insert(&employee("000124", "Hall", "")).await.expect("inserted");
    employees.insert(&employee("000125", "Hallberg", "x@contoso.com")).await.expect("inserted");
    assert_eq!(audit(&table).await, 3);

    let (found, requests) = fixture.counted(employees.get("Sales", "000123")).await;
    let found = found.expect("read").expect("it is there");
    assert!(found.etag.is_some());
    assert_eq!((Employee { etag: None, ..found }, requests), (don.clone(), 1));
    let (found, requests) = fixture.counted(employees.get_by("Sales", "email", "donh@contoso.com")).await;
    assert_eq!((found.expect("read"), requests), (Some(don.clone()), 1), "a copy has no version of the entity");
    assert_eq!(employees.get_by("Sales", "email", "donh@contoso.co").await.expect("read"), None);
    assert_eq!(employees.get_by("Marketing", "email", "donh@contoso.com").await.expect("read"), None);

    let (halls, requests) = fixture.counted(employees.find("Sales", "lastname", "Hall")).await;
    let halls: Vec<_> = halls.expect("read").into_iter().map(|hall| hall.id).collect();
    assert_eq!((halls, requests), (vec!["000123".to_owned(), "000124".to_owned()], 1));
    let range = |range| employees.query::<Employee>("Sales", "lastname", range).expect("an index");
    assert_eq!(range(IndexRange::StartsWith("Hall".to_owned())).all().await.expect("read").len(), 3);
    assert_eq!(range(IndexRange::Between("Hallb".to_owned(), "I".to_owned())).all().await.expect("read").len(), 1);
    assert_eq!(range(IndexRange::Between("A".to_owned(), "Hall".to_owned())).all().await.expect("read").len(), 0);
    let by_id = employees.query::<Employee>("Sales", "empid", IndexRange::All).expect("the primary key");
    let (by_id, requests) = fixture.counted(by_id.limit(2).all()).await;
    let by_id: Vec<_> = by_id.expect("read").into_iter().map(|employee| employee.id).collect();
    assert_eq!((by_id, requests), (vec!["000123".to_owned(), "000124".to_owned()], 1));

    let short = employees.query::<Name>("Sales", "short", IndexRange::Equal("H".to_owned())).expect("an index");
    let (short, requests) = fixture.counted(short.all()).await;
    assert_eq!((short.expect("read").len(), requests), (3, 1));
    assert!(matches!(employees.get_by("Sales", "short", "H").await, Err(Error::Invalid(_))), "not unique");
    assert!(matches!(employees.get_by("Sales", "none", "H").await, Err(Error::Invalid(_))), "not there");
}

#[tokio::test]
async fn t1_changes_are_two_requests_and_leave_no_copy_behind() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    employees.insert(&employee("000123", "Hall", "donh@contoso.com")).await.expect("inserted");
    let changed = |don: &mut Employee| {
        don.last_name = "Abolrous".to_owned();
        don.email = Some("dona@contoso.com".to_owned());
    };
    let (updated, requests) = fixture.counted(employees.update("Sales", "000123", changed)).await;
    assert_eq!((updated.expect("updated").expect("it is there").last_name.as_str(), requests), ("Abolrous", 2));
    assert_eq!(audit(&table).await, 1);
    assert_eq!(employees.get_by("Sales", "email", "donh@contoso.com").await.expect("read"), None);

    // Out of an index, and into it again.
    let (replaced, requests) = fixture.counted(employees.replace(&employee("000123", "B", ""), IfMatch::Any)).await;
    replaced.expect("replaced");
    assert_eq!((requests, audit(&table).await), (2, 1));
    let (replaced, requests) = fixture.counted(employees.insert_or_replace(&employee("000123", "C", "e@f"))).await;
    replaced.expect("replaced");
    assert_eq!((requests, audit(&table).await), (2, 1));

    let read = employees.get("Sales", "000123").await.expect("read").expect("it is there");
    let etag = read.etag.clone().expect("a version");
    let newer = employees.replace(&read, &etag).await.expect("replaced");
    assert_eq!(employees.get("Sales", "000123").await.expect("read").and_then(|read| read.etag), Some(newer));
    assert!(matches!(employees.replace(&read, &etag).await, Err(Error::Changed)));
    assert!(matches!(employees.replace(&employee("9", "C", ""), IfMatch::Any).await, Err(Error::NotFound)));
    assert!(employees.update("Sales", "9", |_| ()).await.expect("no error").is_none());
    let moved = employees.update("Sales", "000123", |don| don.id = "9".to_owned()).await;
    assert!(matches!(moved, Err(Error::Invalid(_))));
    assert_eq!(audit(&table).await, 1);

    let (deleted, requests) = fixture.counted(employees.delete("Sales", "000123")).await;
    assert_eq!((deleted.expect("deleted"), requests), (true, 2));
    assert!(!employees.delete("Sales", "000123").await.expect("no error"));
    assert!(table.query::<DynamicEntity>().all().await.expect("read").is_empty());
}

#[tokio::test]
async fn t1_a_value_of_a_unique_index_is_taken_once() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    employees.insert(&employee("1", "Hall", "a@x")).await.expect("inserted");
    let refused = |outcome: Result<ETag, Error>, expected: &str| {
        assert!(matches!(&outcome, Err(Error::Duplicate { index }) if index == expected), "{outcome:?}");
    };
    refused(employees.insert(&employee("1", "Hall", "b@x")).await, "empid");
    refused(employees.insert(&employee("2", "Hall", "a@x")).await, "email");
    employees.insert(&employee("2", "Hall", "b@x")).await.expect("inserted");
    refused(employees.replace(&employee("2", "Other", "a@x"), IfMatch::Any).await, "email");
    refused(employees.insert_or_replace(&employee("2", "Other", "a@x")).await, "email");
    let update = employees.update("Sales", "2", |two| two.email = Some("a@x".to_owned())).await;
    assert!(matches!(update, Err(Error::Duplicate { index }) if index == "email"));
    assert_eq!(audit(&table).await, 2);
    // Given up by one, it is free for the other.
    employees.replace(&employee("1", "Hall", ""), IfMatch::Any).await.expect("replaced");
    employees.replace(&employee("2", "Hall", "a@x"), IfMatch::Any).await.expect("replaced");
    assert_eq!(audit(&table).await, 2);
}

#[tokio::test]
async fn t1_odd_keys_are_kept_or_refused_before_they_are_sent() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    for (number, name) in ["a/b", "a", "a!1", "!", "a b", "\u{1f600}#?", "it's", "\u{1}"].into_iter().enumerate() {
        employees.insert(&employee(&format!("{number}!_'"), name, "")).await.expect(name);
        let found = employees.find("Sales", "lastname", name).await.expect("read");
        assert_eq!(found.iter().map(|found| found.last_name.as_str()).collect::<Vec<_>>(), [name]);
    }
    assert_eq!(audit(&table).await, 8);
    for (id, email, expected) in [
        ("9", "a/b@x", KeyError::Forbidden('/')),
        ("9#", "", KeyError::Forbidden('#')),
        ("9", &"x".repeat(507), KeyError::TooLong(513)),
    ] {
        let (refused, requests) = fixture.counted(employees.insert(&employee(id, "x", email))).await;
        assert!(matches!(&refused, Err(Error::Key(error)) if *error == expected), "{refused:?}");
        assert_eq!(requests, 0);
    }
    for prefix in ["", "emp_id", "emp/", "é"] {
        assert!(matches!(IndexedTable::<Employee>::new(table.clone(), prefix), Err(Error::Invalid(_))), "{prefix}");
    }
    for name in ["empid", "email", "lastname", "a_b"] {
        let again = indexed(table.clone()).index(Index::unique(name, |_: &Employee| None));
        assert!(matches!(again, Err(Error::Invalid(_))), "{name}");
    }
    let other = IndexedTable::<DynamicEntity>::new(table, "other").expect("a prefix");
    let reserved = DynamicEntity::new("Sales", "1").with("PrimaryRowKey", "x");
    assert!(matches!(other.insert(&reserved).await, Err(Error::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_writers_that_meet_leave_no_copy_unequal_or_orphaned() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    for id in 0..3 {
        employees.insert(&employee(&id.to_string(), "Hall", "")).await.expect("inserted");
    }
    let writers: Vec<_> = (0..8_u32)
        .map(|writer| {
            let employees = employees.clone();
            tokio::spawn(async move {
                // The same numbers for every run: a step takes an employee, a name, an address and what to do.
                for step in 0..12_u32 {
                    let seed = (writer * 12 + step).wrapping_mul(2_654_435_761) >> 8;
                    let id = (seed % 3).to_string();
                    let (name, email) =
                        (["A", "B", "C"][seed as usize / 3 % 3], ["", "x@x", "y@y"][seed as usize / 9 % 3]);
                    let outcome = match seed / 27 % 6 {
                        0 => employees.delete("Sales", &id).await.map(drop),
                        1 => employees.insert_or_replace(&employee(&id, name, email)).await.map(drop),
                        2 => employees.insert(&employee(&id, name, email)).await.map(drop),
                        _ => {
                            let change = |found: &mut Employee| {
                                found.last_name = name.to_owned();
                                found.email = (!email.is_empty()).then(|| email.to_owned());
                                found.salary += 1;
                            };
                            employees.update("Sales", &id, change).await.map(drop)
                        }
                    };
                    assert!(matches!(outcome, Ok(()) | Err(Error::Duplicate { .. })), "{outcome:?}");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    audit(&table).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_no_update_is_lost_and_readers_always_find_a_copy() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    employees.insert(&employee("1", "Hall", "fixed@x")).await.expect("inserted");
    let writers: Vec<_> = (0..6)
        .map(|_| {
            let employees = employees.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let raise = |found: &mut Employee| {
                        found.salary += 1;
                        found.last_name = format!("Hall{}", found.salary % 3);
                    };
                    employees.update("Sales", "1", raise).await.expect("updated").expect("it is there");
                    let by_email = employees.get_by("Sales", "email", "fixed@x").await.expect("read");
                    let by_email = by_email.expect("an address that does not change is always found");
                    assert_eq!(by_email.last_name, format!("Hall{}", by_email.salary % 3), "a whole copy");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    assert_eq!(employees.get("Sales", "1").await.expect("read").expect("it is there").salary, 1060);
    assert_eq!(audit(&table).await, 1);
}

#[tokio::test]
async fn t1_an_index_that_is_added_later_is_filled_by_updates() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let before = IndexedTable::<Employee>::new(table.clone(), "empid").expect("a prefix");
    before.insert(&employee("1", "Hall", "a@x")).await.expect("inserted");
    before.insert(&employee("2", "Hall", "b@x")).await.expect("inserted");
    let employees = indexed(table.clone());
    // A copy that never was need not be deleted, and what stays is written.
    let raised = employees.update("Sales", "1", |one| one.email = Some("new@x".to_owned())).await;
    raised.expect("updated").expect("it is there");
    employees.update("Sales", "2", |_| ()).await.expect("updated").expect("it is there");
    assert_eq!(audit(&table).await, 2);
}
