//! Names that meet: of fields and what is flattened, of variants and their entities. Nothing that is written is lost, and
//! what is written as one thing is read as that thing (C6, D4).
#![cfg(feature = "derive")]

use larimar_client::{DynamicEntity, Entity, EntityEnum, Properties, Value};
use std::collections::BTreeMap;

fn dynamic<T: Entity>(value: &T) -> DynamicEntity {
    value.to_dynamic().expect("an entity").into_owned()
}

#[derive(Debug, PartialEq, Properties)]
struct Address {
    city: String,
}

#[derive(Debug, PartialEq, Properties)]
struct Contact {
    phone: String,
    #[entity(flatten)]
    more: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct Customer {
    #[entity(flatten)]
    contact: Contact,
    name: String,
    city: Option<String>,
    #[entity(flatten)]
    home: Option<Address>,
}

fn customer() -> Customer {
    let contact = Contact { phone: "1".to_owned(), more: BTreeMap::from([("Fax".to_owned(), 2.into())]) };
    Customer { contact, name: "Don".to_owned(), city: None, home: None }
}

#[test]
fn a_map_within_a_part_takes_what_no_field_of_the_whole_reads() {
    let entity = dynamic(&customer());
    assert_eq!(entity.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["Fax", "Name", "Phone"]);
    assert_eq!(Customer::from_dynamic(entity).expect("a customer"), customer());
    let mut named_twice = customer();
    named_twice.contact.more.insert("Name".to_owned(), "Jun".into());
    assert_eq!(dynamic(&named_twice).get::<String>("Name").expect("a name"), "Don");
}

#[test]
fn no_value_is_lost_to_another_field_of_its_name() {
    let home = Address { city: "Oslo".to_owned() };
    let customer = Customer { city: Some("Bergen".to_owned()), home: Some(home), ..customer() };
    let error = customer.to_dynamic().expect_err("two cities");
    assert_eq!(error.property(), "City");
}

#[derive(Debug, PartialEq, EntityEnum)]
enum Nested {
    #[entity(row_key_prefix = "emp_")]
    Employee(DynamicEntity),
    #[entity(row_key_prefix = "emp_review_")]
    Review(DynamicEntity),
    Typed(DynamicEntity),
}

#[derive(Debug, PartialEq, EntityEnum)]
enum Outer {
    Nested(Nested),
    #[entity(other)]
    Other(Nested),
}

#[test]
fn d4_a_type_within_a_type_is_not_lost() {
    let typed = || Nested::Typed(DynamicEntity::new("p", "1"));
    let error = Outer::Nested(typed()).to_dynamic().expect_err("it could not be read back");
    assert_eq!(error.to_string(), "property 'EntityType': expected 'Nested', found 'Typed'");
    let entity = dynamic(&Outer::Other(typed()));
    assert_eq!(Outer::from_dynamic(entity).expect("a variant"), Outer::Other(typed()));
}

#[test]
fn c6_d4_what_is_written_as_a_variant_is_read_as_that_variant() {
    let typed = DynamicEntity::new("p", "emp_1");
    for (value, is_written) in [
        (Nested::Employee(DynamicEntity::new("p", "emp_1")), true),
        (Nested::Employee(DynamicEntity::new("p", "emp_review_1")), false),
        (Nested::Employee(DynamicEntity::new("p", "review_1")), false),
        (Nested::Review(DynamicEntity::new("p", "emp_review_1")), true),
        (Nested::Review(DynamicEntity::new("p", "emp_1")), false),
        (Nested::Typed(typed), true),
    ] {
        match value.to_dynamic() {
            Ok(entity) => {
                assert!(is_written, "{value:?}");
                assert_eq!(Nested::from_dynamic(entity.into_owned()).expect("a variant"), value);
            }
            Err(error) => assert!(!is_written && error.property() == "RowKey", "{value:?}: {error}"),
        }
    }
}
