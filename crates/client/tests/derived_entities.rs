//! Derived types over a server of their own: written, read back, filtered, projected, and distinguished by type (C1, C2, C4, C6).
#![cfg(feature = "derive")]

use crate::common::table;
use larimar_client::{DynamicEntity, ETag, Entity, EntityEnum, Properties, Property, Table, Timestamp, Value, keys};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Property)]
enum Status {
    Active,
    OnLeave,
}

#[derive(Clone, Debug, PartialEq, Properties)]
struct Address {
    city: String,
    street: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(entity_type = "Employee")]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    #[entity(timestamp)]
    written_at: Option<Timestamp>,
    #[entity(etag)]
    etag: Option<ETag>,
    last_name: String,
    age: Option<u32>,
    rating: f64,
    status: Status,
    #[entity(json)]
    tags: Vec<String>,
    #[entity(flatten = "Home_")]
    home: Address,
    #[entity(flatten)]
    rest: BTreeMap<String, Value>,
}

fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id: format!("empid_{id:06}"),
        written_at: None,
        etag: None,
        last_name: ["Hall", "O'Hara", "Größe 100%", "\u{1F600}"][id as usize % 4].to_owned(),
        age: (!id.is_multiple_of(3)).then_some(20 + id),
        rating: f64::from(id) / 7.0,
        status: if id.is_multiple_of(2) { Status::Active } else { Status::OnLeave },
        tags: vec!["a\"b".to_owned(); id as usize],
        home: Address { city: "Oslo".to_owned(), street: None },
        rest: BTreeMap::from([("Badge".to_owned(), Value::Binary(vec![7; id as usize]))]),
    }
}

/// The part that the service does not set.
fn bare(employee: &Employee) -> Employee {
    Employee { written_at: None, etag: None, ..employee.clone() }
}

async fn fill(table: &Table) {
    for id in 0..12 {
        table.insert(&employee(id)).await.expect("inserted");
    }
}

#[tokio::test]
async fn c1_what_is_written_is_read_back_with_its_time_and_version() {
    let (_server, table) = table().await;
    for id in 0..4 {
        let etag = table.insert(&employee(id)).await.expect("inserted");
        let key = employee(id).id;
        let read: Employee = table.get("Sales", &key).await.expect("read").expect("it is there");
        assert_eq!(bare(&read), employee(id));
        assert_eq!(read.etag, Some(etag.clone()));
        assert!(read.written_at.is_some());
        let changed = Employee { rating: -1.0, ..read };
        let newer = table.replace(&changed, &etag).await.expect("the version is the one that was read");
        assert_ne!(newer, etag);
        table.replace(&changed, etag).await.expect_err("the version is an old one");
    }
    assert_eq!(table.get::<Employee>("Sales", "nobody").await.expect("asked"), None);
}

#[tokio::test]
async fn c2_filters_from_types_select_what_they_say() {
    let (_server, table) = table().await;
    fill(&table).await;
    let all: Vec<_> = (0..12).map(employee).collect();
    for (filter, is_wanted) in [
        (Employee::last_name().eq("O'Hara"), (|e| e.last_name == "O'Hara") as fn(&Employee) -> bool),
        (Employee::last_name().eq("Größe 100%"), |e| e.last_name == "Größe 100%"),
        (Employee::last_name().starts_with("\u{1F600}"), |e| e.last_name == "\u{1F600}"),
        (Employee::age().ge(25u32), |e| e.age.is_some_and(|age| age >= 25)),
        (Employee::age().lt(u64::MAX), |e| e.age.is_some()),
        (!Employee::age().ge(25), |e| e.age.is_none_or(|age| age < 25)),
        (Employee::rating().between(0.5, 1.0), |e| (0.5..1.0).contains(&e.rating)),
        (Employee::status().eq(Status::OnLeave), |e| e.status == Status::OnLeave),
        (Employee::id().starts_with("empid_00001"), |e| e.id.as_str() >= "empid_000010"),
        (Employee::id().in_values(["empid_000003", "x"]), |e| e.id == "empid_000003"),
        (Address::city().prefixed("Home_").eq("Oslo"), |_| true),
        (Employee::written_at().gt(Timestamp::MAX), |_| false),
        (keys::partition_key().eq("Sales") & (Employee::age().eq(21) | Employee::age().eq(22)), |e| {
            matches!(e.age, Some(21 | 22))
        }),
    ] {
        let found = table.query::<Employee>().filter(filter.clone()).all().await.expect("read");
        let wanted: Vec<_> = all.iter().filter(|e| is_wanted(e)).cloned().collect();
        assert_eq!(found.iter().map(bare).collect::<Vec<_>>(), wanted, "{filter}");
    }
}

#[tokio::test]
async fn c4_a_smaller_type_reads_a_part() {
    #[derive(Debug, PartialEq, Entity)]
    struct Name {
        #[entity(partition_key)]
        department: String,
        #[entity(row_key)]
        id: String,
        last_name: String,
        #[entity(flatten = "Home_")]
        home: Option<Address>,
    }
    let (_server, table) = table().await;
    fill(&table).await;
    let names = table.query::<Employee>().filter(Employee::age().eq(21)).project::<Name>().all().await.expect("read");
    let don = employee(1);
    let expected = Name { department: don.department, id: don.id, last_name: don.last_name, home: Some(don.home) };
    assert_eq!(names, [expected]);
}

#[derive(Debug, PartialEq, Entity)]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    key: String,
    employees: i32,
}

#[derive(Debug, PartialEq, Entity)]
struct Review {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    key: String,
    score: u8,
}

#[derive(Debug, PartialEq, EntityEnum)]
enum Record {
    Employee(Box<Employee>),
    Department(Department),
    #[entity(row_key_prefix = "review_")]
    Review(Review),
    #[entity(other)]
    Other(DynamicEntity),
}

#[tokio::test]
async fn c6_d4_one_query_reads_entities_of_several_types() {
    let (_server, table) = table().await;
    let review = Review { department: "Sales".to_owned(), key: "review_1".to_owned(), score: 5 };
    let department = Department { name: "Sales".to_owned(), key: "department".to_owned(), employees: 2 };
    for record in [
        Record::Employee(Box::new(employee(1))),
        Record::Department(department),
        Record::Review(review),
        Record::Other(DynamicEntity::new("Sales", "unknown").with("Colour", "red")),
    ] {
        table.insert(&record).await.expect("inserted");
    }
    let read = table.query::<Record>().partition("Sales").all().await.expect("read");
    let [Record::Department(department), Record::Employee(don), Record::Review(review), Record::Other(other)] =
        &read[..]
    else {
        panic!("expected one of each in the order of their keys: {read:?}");
    };
    assert_eq!((department.employees, bare(don), review.score), (2, employee(1), 5));
    assert_eq!(other.get::<String>("Colour").expect("a colour"), "red");
    let employees = table.query::<Employee>().filter(Employee::type_filter()).all().await.expect("read");
    assert_eq!(employees.iter().map(bare).collect::<Vec<_>>(), [employee(1)]);
    // The type itself refuses the others.
    let error = table.query::<Employee>().all().await.expect_err("a department is not an employee");
    assert!(error.to_string().contains("EntityType"), "{error}");
}

#[cfg(feature = "encryption")]
#[tokio::test]
async fn a_map_refuses_what_was_encrypted_rather_than_write_it_back_as_plain_text() {
    use larimar_client::encryption::{Encryption, KeyRing, LocalKey};

    #[derive(Debug, PartialEq, Entity)]
    struct Account {
        #[entity(partition_key)]
        department: String,
        #[entity(row_key)]
        id: String,
        #[entity(encrypt)]
        iban: String,
    }
    #[derive(Debug, Entity)]
    #[allow(dead_code)]
    struct Loose {
        #[entity(partition_key)]
        department: String,
        #[entity(row_key)]
        id: String,
        #[entity(flatten)]
        rest: BTreeMap<String, Value>,
    }
    #[derive(Debug, Entity)]
    struct Strict {
        #[entity(partition_key)]
        department: String,
        #[entity(row_key)]
        id: String,
        #[entity(encrypt)]
        iban: String,
        #[entity(flatten)]
        rest: BTreeMap<String, Value>,
    }
    let (_server, plain) = table().await;
    let table = plain.encrypted(std::sync::Arc::new(Encryption::new(KeyRing::new(LocalKey::new("k", [7; 32])))));
    let account = Account { department: "Sales".to_owned(), id: "1".to_owned(), iban: "DE00".to_owned() };
    table.insert(&account).await.expect("inserted");
    let error = table.get::<Loose>("Sales", "1").await.expect_err("it would lose its encryption");
    assert!(error.to_string().contains("'Iban'"), "{error}");
    let read = table.get::<Strict>("Sales", "1").await.expect("read").expect("it is there");
    assert_eq!((read.iban.as_str(), read.rest.len()), ("DE00", 0), "the metadata is none of the rest");
    table.insert_or_replace(&read).await.expect("written back");
    assert_eq!(table.get::<Account>("Sales", "1").await.expect("read"), Some(account));
}
