//! What the derive macros make of a type: names, keys, every attribute (C1, C4, C6, D4), and the columns for filters.
#![cfg(feature = "derive")]

use larimar_client::{
    Column, DynamicEntity, ETag, EncryptedProperty, Entity, EntityEnum, EntityError, Guid, Properties, Property,
    Timestamp, Value,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

#[derive(Clone, Copy, Debug, PartialEq, Property)]
enum Status {
    Active,
    #[entity(rename = "on leave")]
    OnLeave,
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Property)]
#[entity(rename_all = "kebab-case")]
enum Contract {
    FullTime,
    PartTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Property)]
struct Cents(u64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Skill {
    name: String,
    level: u8,
}

#[derive(Clone, Debug, PartialEq, Properties)]
struct Address {
    city: String,
    #[entity(rename = "Zip")]
    postal_code: Option<String>,
    #[entity(flatten = "Geo_")]
    place: Option<Place>,
}

#[derive(Clone, Debug, PartialEq, Properties)]
#[entity(rename_all = "camelCase")]
struct Place {
    north_south: f64,
    east_west: f64,
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(entity_type = "Employee")]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    number: u64,
    #[entity(timestamp)]
    written_at: Option<Timestamp>,
    #[entity(etag)]
    etag: Option<ETag>,
    last_name: String,
    #[entity(rename = "given_name")]
    first_name: Option<String>,
    r#type: i32,
    hired_at: Timestamp,
    salary: Cents,
    rating: Option<f32>,
    badge: Guid,
    photo: Vec<u8>,
    is_manager: bool,
    status: Status,
    contract: Option<Contract>,
    #[entity(string)]
    machine: Ipv4Addr,
    #[entity(string)]
    second_machine: Option<Ipv4Addr>,
    #[entity(json)]
    skills: Vec<Skill>,
    #[entity(json)]
    best_skill: Option<Skill>,
    #[entity(default)]
    vacation_days: i32,
    #[entity(default = "none".to_owned())]
    parking: String,
    #[entity(string, default = Ipv4Addr::LOCALHOST)]
    printer: Ipv4Addr,
    #[entity(skip)]
    cache: u8,
    #[entity(encrypt, hashed = "EmailHash")]
    email: String,
    #[entity(encrypt)]
    iban: Option<String>,
    #[entity(encrypt, json)]
    notes: Vec<String>,
    // The rest stands before what is flattened: the order of fields does not matter.
    #[entity(flatten)]
    rest: BTreeMap<String, Value>,
    #[entity(flatten = "Home_")]
    home: Address,
    #[entity(flatten = "Work_")]
    work: Option<Address>,
}

fn don() -> Employee {
    Employee {
        department: "Sales".to_owned(),
        number: 123,
        written_at: Some("2024-01-01T00:00:00Z".parse().expect("a time")),
        etag: Some(ETag::new("W/\"1\"")),
        last_name: "Hall".to_owned(),
        first_name: None,
        r#type: 7,
        hired_at: "2012-08-31T00:00:00Z".parse().expect("a time"),
        salary: Cents(250_000),
        rating: Some(0.5),
        badge: Guid::from_bytes([7; 16]),
        photo: vec![1, 2],
        is_manager: true,
        status: Status::OnLeave,
        contract: Some(Contract::PartTime),
        machine: Ipv4Addr::new(10, 0, 0, 1),
        second_machine: None,
        skills: vec![Skill { name: "Rust".to_owned(), level: 3 }],
        best_skill: None,
        vacation_days: 30,
        parking: "P1".to_owned(),
        printer: Ipv4Addr::BROADCAST,
        cache: 0,
        email: "don@example.com".to_owned(),
        iban: None,
        notes: vec![],
        rest: BTreeMap::from([("Other".to_owned(), Value::Int32(1))]),
        home: Address {
            city: "Oslo".to_owned(),
            postal_code: Some("0150".to_owned()),
            place: Some(Place { north_south: 59.9, east_west: 10.7 }),
        },
        work: None,
    }
}

fn dynamic<T: Entity>(value: &T) -> DynamicEntity {
    value.to_dynamic().expect("an entity").into_owned()
}

#[test]
fn c1_every_field_has_its_property() {
    let entity = dynamic(&don());
    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("Sales", "123"));
    assert_eq!(entity.timestamp, don().written_at);
    assert_eq!(entity.etag, don().etag);
    let expected: BTreeMap<&str, Value> = BTreeMap::from([
        ("Badge", Value::Guid(Guid::from_bytes([7; 16]))),
        ("Contract", "part-time".into()),
        ("Email", "don@example.com".into()),
        ("EntityType", "Employee".into()),
        ("HiredAt", Value::DateTime(don().hired_at)),
        ("Home_City", "Oslo".into()),
        ("Home_Geo_eastWest", 10.7.into()),
        ("Home_Geo_northSouth", 59.9.into()),
        ("Home_Zip", "0150".into()),
        ("IsManager", true.into()),
        ("LastName", "Hall".into()),
        ("Machine", "10.0.0.1".into()),
        ("Notes", "[]".into()),
        ("Other", 1.into()),
        ("Parking", "P1".into()),
        ("Photo", vec![1, 2].into()),
        ("Printer", "255.255.255.255".into()),
        ("Rating", 0.5.into()),
        ("Salary", 250_000i64.into()),
        ("Skills", r#"[{"name":"Rust","level":3}]"#.into()),
        ("Status", "on leave".into()),
        ("Type", 7.into()),
        ("VacationDays", 30.into()),
    ]);
    assert_eq!(entity.properties().map(|(name, value)| (name, value.clone())).collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn absent_properties_are_none_or_default_or_an_error_that_names_them() {
    let mut entity = dynamic(&don());
    for name in ["VacationDays", "Parking", "Printer", "Rating", "Home_Zip", "Home_Geo_eastWest", "Home_Geo_northSouth"]
    {
        entity.remove(name).expect(name);
    }
    let read = Employee::from_dynamic(entity.clone()).expect("an employee");
    assert_eq!((read.vacation_days, read.parking.as_str(), read.printer), (0, "none", Ipv4Addr::LOCALHOST));
    assert_eq!((read.rating, read.home.postal_code, read.home.place), (None, None, None));

    entity.remove("Home_City");
    let error = Employee::from_dynamic(entity).expect_err("a city is missing");
    assert_eq!(error.to_string(), "property 'Home_City': expected a value, found none");
}

#[test]
fn what_does_not_fit_is_an_error_that_names_the_property() {
    let cases: [(&str, Value, &str); 8] = [
        ("Status", "retired".into(), "expected 'Active' or 'on leave' or 'Left', found 'retired'"),
        ("Status", 1.into(), "expected Edm.String, found Edm.Int32"),
        ("EntityType", "Department".into(), "expected 'Employee', found 'Department'"),
        ("Machine", "here".into(), "invalid IPv4 address syntax"),
        ("Skills", "[".into(), "EOF while parsing a list at line 1 column 1"),
        ("VacationDays", "many".into(), "expected Edm.Int32, found Edm.String"),
        ("Salary", Value::Int64(-1), "out of range integral type conversion attempted"),
        ("Home_Geo_eastWest", true.into(), "expected Edm.Double, found Edm.Boolean"),
    ];
    for (name, value, reason) in cases {
        let error = Employee::from_dynamic(dynamic(&don()).with(name, value)).expect_err(name);
        assert_eq!(error.to_string(), format!("property '{name}': {reason}"));
    }
    let mut entity = dynamic(&don());
    entity.row_key = "x".to_owned();
    let error = Employee::from_dynamic(entity).expect_err("a key that is not a number");
    assert_eq!(error.to_string(), "property 'RowKey': invalid digit found in string");
}

#[test]
fn a_map_does_not_overwrite_fields_nor_keys() {
    let mut employee = don();
    employee.rest.insert("LastName".to_owned(), "Smith".into());
    assert_eq!(dynamic(&employee).get::<String>("LastName").expect("a name"), "Hall");
    employee.rest.insert("RowKey".to_owned(), "1".into());
    assert_eq!(employee.to_dynamic().expect_err("a key").property(), "RowKey");
}

#[test]
fn encrypted_properties_are_listed() {
    let expected = [
        EncryptedProperty::new("Email", Some("EmailHash")),
        EncryptedProperty::new("Iban", None),
        EncryptedProperty::new("Notes", None),
    ];
    assert_eq!(Employee::ENCRYPTED, expected);
    assert_eq!(Employee::email_hash().name(), "EmailHash");
}

#[test]
fn c2_columns_have_the_names_and_types_of_their_fields() {
    for (filter, expected) in [
        (Employee::department().eq("Sales"), "PartitionKey eq 'Sales'"),
        (Employee::number().ge("1"), "RowKey ge '1'"),
        (Employee::written_at().gt(Timestamp::MIN), "Timestamp gt datetime'1601-01-01T00:00:00Z'"),
        (Employee::last_name().eq("O'Hara"), "LastName eq 'O''Hara'"),
        (Employee::first_name().starts_with("D"), "given_name ge 'D' and given_name lt 'E'"),
        (Employee::r#type().eq(7), "Type eq 7"),
        (Employee::salary().lt(Cents(5)), "Salary lt 5L"),
        (Employee::salary().lt(5), "Salary lt 5L"),
        (Employee::rating().le(0.5), "Rating le 0.5"),
        (Employee::status().eq(Status::OnLeave), "Status eq 'on leave'"),
        (Employee::contract().ne(Contract::FullTime), "Contract ne 'full-time'"),
        (Employee::machine().eq("10.0.0.1"), "Machine eq '10.0.0.1'"),
        (Employee::email_hash().eq([1, 2]), "EmailHash eq X'0102'"),
        (Address::city().prefixed("Home_").eq("Oslo"), "Home_City eq 'Oslo'"),
    ] {
        assert_eq!(filter.as_str(), expected);
    }
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(rename_all = "snake_case", no_columns)]
#[entity(partition_key = self.department.to_lowercase(), row_key = format!("{:06}", self.id))]
struct Badge {
    department: String,
    id: u32,
    größe: f64,
}

impl Badge {
    fn id(&self) -> u32 {
        self.id
    }
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(partition_key = "config", row_key = CONFIG_VERSION, rename_all = "none")]
struct Config {
    #[entity(no_column)]
    colour: String,
    größe: f64,
}

const CONFIG_VERSION: u8 = 1;

impl Config {
    fn colour(&self) -> &str {
        &self.colour
    }
}

#[test]
fn keys_come_from_expressions() {
    let badge = Badge { department: "Sales".to_owned(), id: 42, größe: 1.0 };
    assert_eq!(badge.id(), 42);
    let entity = dynamic(&badge);
    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("sales", "000042"));
    assert_eq!(entity.get::<String>("department").expect("a property"), "Sales");
    assert_eq!(Badge::from_dynamic(entity).expect("a badge"), badge);
    let config = Config { colour: "red".to_owned(), größe: 2.0 };
    let entity = dynamic(&config);
    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("config", "1"));
    assert_eq!(config.colour(), "red");
    assert_eq!(Config::größe().lt(1.0).as_str(), "größe lt 1.0");
}

#[test]
fn c4_a_type_lists_what_it_reads() {
    assert_eq!(Badge::columns(), Some(vec!["department".into(), "id".into(), "größe".into()]));
    assert_eq!(Config::columns(), Some(vec!["colour".into(), "größe".into()]));
    assert_eq!(Employee::columns(), None, "it takes the rest");
    #[derive(Entity)]
    #[allow(dead_code)]
    struct Part {
        #[entity(partition_key)]
        department: String,
        #[entity(row_key)]
        id: String,
        #[entity(timestamp)]
        at: Option<std::time::SystemTime>,
        #[entity(skip)]
        skipped: u8,
        #[entity(flatten = "Home_")]
        home: Option<Address>,
    }
    let expected =
        ["PartitionKey", "RowKey", "Timestamp", "Home_City", "Home_Zip", "Home_Geo_northSouth", "Home_Geo_eastWest"];
    assert_eq!(Part::columns(), Some(expected.map(Into::into).to_vec()));
}

#[derive(Debug, PartialEq, Entity)]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    key: String,
    employees: i32,
    #[entity(encrypt)]
    email: Option<String>,
    #[entity(encrypt)]
    phone: Option<String>,
}

#[derive(Debug, PartialEq, Entity)]
struct Review {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    key: String,
    score: i32,
}

#[derive(Debug, PartialEq, EntityEnum)]
enum Record {
    Employee(Box<Employee>),
    #[entity(type = "Dept")]
    Department(Department),
    #[entity(row_key_prefix = "review_")]
    Review(Review),
    Note(DynamicEntity),
    #[entity(other)]
    Other(DynamicEntity),
}

#[derive(Debug, PartialEq, EntityEnum)]
#[entity(tag = "Kind")]
enum Strict {
    Department(Department),
    #[entity(row_key_prefix = "review_")]
    Review(Review),
}

fn department() -> Department {
    Department { name: "Sales".to_owned(), key: "dept".to_owned(), employees: 3, email: None, phone: None }
}

fn review(key: &str) -> Review {
    Review { department: "Sales".to_owned(), key: key.to_owned(), score: 5 }
}

#[test]
fn c6_d4_variants_are_told_by_their_type_or_their_keys() {
    let records = [
        (Record::Employee(Box::new(don())), Some("Employee")),
        (Record::Department(department()), Some("Dept")),
        (Record::Review(review("review_1")), None),
        (Record::Note(DynamicEntity::new("Sales", "n").with("Text", "hi")), Some("Note")),
        (Record::Other(DynamicEntity::new("Sales", "o").with("EntityType", "Alien")), Some("Alien")),
        (Record::Other(DynamicEntity::new("Sales", "o")), None),
    ];
    for (record, type_) in records {
        let entity = dynamic(&record);
        assert_eq!(entity.get::<Option<String>>("EntityType").expect("a text").as_deref(), type_);
        assert_eq!(Record::from_dynamic(entity).expect("a record"), record);
    }
}

#[test]
fn c6_an_entity_of_no_variant_is_an_error_that_names_its_type() {
    for (entity, message) in [
        (
            DynamicEntity::new("p", "r").with("Kind", "Alien"),
            "property 'Kind': expected one of Department, RowKey review_..., found 'Alien'",
        ),
        (
            DynamicEntity::new("p", "r"),
            "property 'Kind': expected one of Department, RowKey review_..., found none; RowKey 'r'",
        ),
        (DynamicEntity::new("p", "r").with("Kind", 1), "property 'Kind': expected Edm.String, found Edm.Int32"),
        (DynamicEntity::new("p", "review_1"), "property 'Score': expected a value, found none"),
    ] {
        assert_eq!(Strict::from_dynamic(entity).expect_err(message).to_string(), message);
    }
    let error = Strict::Review(review("1")).to_dynamic().expect_err("it could not be read back");
    assert_eq!(error.to_string(), "property 'RowKey': expected a key that starts with 'review_', found '1'");
}

#[test]
fn c6_an_enum_reads_and_encrypts_what_its_variants_do() {
    assert_eq!(Record::columns(), None);
    let expected = ["Email", "Employees", "Kind", "PartitionKey", "Phone", "RowKey", "Score"];
    assert_eq!(Strict::columns(), Some(expected.map(Into::into).to_vec()));
    let names: Vec<_> = Record::ENCRYPTED.iter().map(|property| (property.name, property.hashed_as)).collect();
    assert_eq!(names, [("Email", Some("EmailHash")), ("Iban", None), ("Notes", None), ("Phone", None)]);
    assert_eq!(Strict::ENCRYPTED.len(), 2);
}

mod elsewhere {
    pub(crate) mod prelude {
        pub(crate) use larimar_client as tables;
    }
}

/// The client may be found under another name, and types may have parameters.
#[derive(Debug, PartialEq, Entity)]
#[entity(crate = elsewhere::prelude::tables, partition_key = "p", row_key = "r")]
struct Envelope<T: Property> {
    content: T,
}

#[test]
fn types_have_parameters() {
    let envelope = Envelope { content: 5i64 };
    assert_eq!(Envelope::from_dynamic(dynamic(&envelope)).expect("an envelope"), envelope);
    let column: Column<String> = Envelope::<Option<String>>::content();
    assert_eq!(column.name(), "Content");
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter)
}

fn time() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.ticks()..=Timestamp::MAX.ticks()).prop_map(Timestamp::from_ticks)
}

fn address() -> impl Strategy<Value = Address> {
    let place = (-90.0..90.0, -180.0..180.0).prop_map(|(north_south, east_west)| Place { north_south, east_west });
    (text(), prop::option::of(text()), prop::option::of(place)).prop_map(|(city, postal_code, place)| Address {
        city,
        postal_code,
        place,
    })
}

prop_compose! {
    fn skill()(name in text(), level: u8) -> Skill {
        Skill { name, level }
    }
}

prop_compose! {
    fn employee()(
        keys in (text(), any::<u64>()),
        system in (prop::option::of(time()), prop::option::of(text())),
        names in (text(), prop::option::of(text())),
        numbers in (any::<i32>(), 0..=i64::MAX as u64, prop::option::of(-1e30f32..1e30), any::<i32>()),
        hired_at in time(),
        bytes in any::<([u8; 16], Vec<u8>)>(),
        flags in (any::<bool>(), 0..3usize, prop::option::of(any::<bool>())),
        addresses in any::<(u32, Option<u32>, u32)>(),
        skills in (prop::collection::vec(skill(), 0..3), prop::option::of(skill())),
        texts in (text(), text(), prop::option::of(text()), prop::collection::vec(text(), 0..3)),
        rest in prop::collection::btree_map("Rest[a-z]{1,3}", any::<i32>().prop_map(Value::Int32), 0..3),
        places in (address(), prop::option::of(address())),
    ) -> Employee {
        Employee {
            department: keys.0,
            number: keys.1,
            written_at: system.0,
            etag: system.1.map(ETag::new),
            last_name: names.0,
            first_name: names.1,
            r#type: numbers.0,
            hired_at,
            salary: Cents(numbers.1),
            rating: numbers.2,
            badge: Guid::from_bytes(bytes.0),
            photo: bytes.1,
            is_manager: flags.0,
            status: [Status::Active, Status::OnLeave, Status::Left][flags.1],
            contract: flags.2.map(|full| if full { Contract::FullTime } else { Contract::PartTime }),
            machine: addresses.0.into(),
            second_machine: addresses.1.map(Into::into),
            skills: skills.0,
            best_skill: skills.1,
            vacation_days: numbers.3,
            parking: texts.0,
            printer: addresses.2.into(),
            cache: 0,
            email: texts.1,
            iban: texts.2,
            notes: texts.3,
            rest,
            home: places.0,
            work: places.1,
        }
    }
}

/// Any value under any name that an employee has, and others.
fn any_property() -> impl Strategy<Value = (String, Value)> {
    let mut names: Vec<String> = dynamic(&don()).properties().map(|(name, _)| name.to_owned()).collect();
    names.extend(["SecondMachine", "BestSkill", "Work_City", "Work_Geo_eastWest", "X"].map(str::to_owned));
    let texts = vec!["Active", "on leave", "part-time", "10.0.0.1", "[]", "null", "{}", "Employee", "7"];
    let value = prop_oneof![
        prop::sample::select(texts).prop_map(Value::from),
        text().prop_map(Value::String),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        prop::num::f64::ANY.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        any::<u64>().prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
        any::<Vec<u8>>().prop_map(Value::Binary),
    ];
    (prop::sample::select(names), value)
}

#[test]
fn a_struct_may_have_nothing_but_keys() {
    #[derive(Debug, PartialEq, Entity)]
    #[entity(partition_key = "p", row_key = "r")]
    struct Marker {}
    assert_eq!(Marker::from_dynamic(dynamic(&Marker {})).expect("a marker"), Marker {});
    assert_eq!(Marker::columns(), Some(vec![]));
}

#[test]
fn a_bag_has_no_keys_among_its_properties() {
    for name in ["PartitionKey", "RowKey", "Timestamp"] {
        let entity = DynamicEntity::new("p", "r").with(name, "x");
        assert_eq!(entity.to_dynamic().expect_err(name).property(), name);
    }
}

proptest! {
    #[test]
    fn whatever_is_stored_is_read_or_refused(
        properties in prop::collection::vec(any_property(), 0..3),
        removed in prop::collection::vec(any_property(), 0..2),
    ) {
        let mut entity = dynamic(&don());
        for (name, value) in properties {
            entity.set(name, value);
        }
        for (name, _) in removed {
            entity.remove(&name);
        }
        if let Ok(read) = Employee::from_dynamic(entity)
            && let Ok(written) = read.to_dynamic()
        {
            let again = Employee::from_dynamic(written.into_owned()).expect("what was read once is read again");
            prop_assert_eq!(format!("{again:?}"), format!("{read:?}"), "NaN equals nothing");
        }
    }

    #[test]
    fn writing_and_reading_is_identity(employee in employee()) {
        let read = Employee::from_dynamic(dynamic(&employee));
        prop_assert_eq!(read.map_err(|error: EntityError| error.to_string()), Ok(employee));
    }
}
