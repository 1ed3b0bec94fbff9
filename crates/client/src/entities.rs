//! Guide: how types become entities, and entities types.
//!
//! An entity is up to 252 properties of eight types ([`Value`]), two of which are its key: `PartitionKey` and
//! `RowKey`. There are four ways to speak of one:
//!
//! | way | for |
//! | --- | --- |
//! | a struct that derives [`Entity`](derive@crate::Entity) | tables whose shape the program knows |
//! | an enum that derives [`EntityEnum`](derive@crate::EntityEnum) | entities of several types in one table |
//! | [`DynamicEntity`] | tables whose shape it does not know |
//! | [`Entity`](trait@crate::Entity), implemented by hand | everything else |
//!
//! ```
//! use larimar_client::{ETag, Entity, Property, Timestamp};
//!
//! #[derive(Debug, PartialEq, Property)]
//! enum Status {
//!     Active,
//!     OnLeave,
//! }
//!
//! #[derive(Debug, PartialEq, Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: u64,
//!     last_name: String,
//!     email: Option<String>,
//!     status: Status,
//!     #[entity(timestamp)]
//!     written_at: Option<Timestamp>,
//!     #[entity(etag)]
//!     etag: Option<ETag>,
//! }
//!
//! let don = Employee {
//!     department: "Sales".to_owned(),
//!     id: 123,
//!     last_name: "Hall".to_owned(),
//!     email: None,
//!     status: Status::OnLeave,
//!     written_at: None,
//!     etag: None,
//! };
//! let entity = don.to_dynamic()?.into_owned();
//! assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("Sales", "123"));
//! let properties: Vec<_> = entity.properties().map(|(name, _)| name).collect();
//! assert_eq!(properties, ["LastName", "Status"], "None is an absent property");
//! assert_eq!(Employee::from_dynamic(entity)?, don);
//!
//! // Names and types of properties are checked when the program is built.
//! let filter = Employee::department().eq("Sales") & Employee::status().ne(Status::Active);
//! assert_eq!(filter.as_str(), "PartitionKey eq 'Sales' and Status ne 'Active'");
//! # Ok::<(), larimar_client::EntityError>(())
//! ```
//!
//! # Attributes of a struct
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `partition_key = expression`, `row_key = expression` | [the key](#keys), from `self` or a constant |
//! | `rename_all = "..."` | [names of properties](#names): `PascalCase` (the default), `camelCase`, `snake_case`, `none` |
//! | `entity_type = "..."` | [the property `EntityType`](#several-types-in-one-table), written and expected |
//! | `no_columns` | no [functions for filters](#filters) |
//! | `crate = path` | where `larimar_client` is found, if a library re-exports it |
//!
//! # Attributes of a field
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `partition_key`, `row_key` | [the key](#keys) |
//! | `timestamp`, `etag` | [what the service adds](#time-and-version): when it was written, and its version |
//! | `rename = "..."` | [the property's name](#names) |
//! | `skip` | [no property](#absent-properties), `Default` when read |
//! | `default`, `default = expression` | [the value of an absent property](#absent-properties) |
//! | `string` | [text](#types-of-properties) by `Display` and `FromStr` |
//! | `json` | [JSON text](#types-of-properties) by serde |
//! | `flatten`, `flatten = "Prefix_"` | [the properties of a struct, or all others](#flattening) |
//! | `encrypt`, `hashed = "..."` | [encrypted](#encryption), with a hash for look-ups |
//! | `no_column` | no [function for filters](#filters) |
//!
//! # Keys
//!
//! A key is a field of any type with `Display` and `FromStr`, or an expression on the struct. A field is not stored
//! a second time; an expression is written and not read. Keys sort as text, so numbers want leading zeros:
//!
//! ```
//! # use larimar_client::Entity;
//! #[derive(Entity)]
//! #[entity(partition_key = self.department.to_lowercase(), row_key = format!("{:06}", self.id))]
//! struct Badge {
//!     department: String,
//!     id: u32,
//! }
//!
//! #[derive(Entity)]
//! #[entity(partition_key = "config", row_key = "current")]
//! struct Config {
//!     colour: String,
//! }
//!
//! let badge = Badge { department: "Sales".to_owned(), id: 42 };
//! let entity = badge.to_dynamic()?;
//! assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("sales", "000042"));
//! # Ok::<(), larimar_client::EntityError>(())
//! ```
//!
//! # Names
//!
//! A property is named after its field, in `PascalCase` unless `rename_all` or `rename` say otherwise:
//!
//! ```
//! # use larimar_client::Entity;
//! #[derive(Entity)]
//! #[entity(partition_key = "p", row_key = "r", rename_all = "camelCase")]
//! struct Employee {
//!     last_name: String,
//!     #[entity(rename = "Vorname")]
//!     first_name: String,
//! }
//! assert_eq!(Employee::columns(), Some(vec!["lastName".into(), "Vorname".into()]));
//! ```
//!
//! # Types of properties
//!
//! Any type that implements [`Property`](trait@crate::Property):
//!
//! | type | stored as |
//! | --- | --- |
//! | `String` | String |
//! | `i32`, and `i8`, `i16`, `u8`, `u16` | Int32 |
//! | `i64`, and `u32`, `u64`, `usize` | Int64; more than it holds is an error when written |
//! | `f64`, `f32` | Double |
//! | `bool` | Boolean |
//! | [`Timestamp`], `SystemTime`, `chrono::DateTime<Utc>`, `time::OffsetDateTime` | DateTime, in steps of 100 ns |
//! | [`Guid`], `uuid::Uuid` | Guid |
//! | `Vec<u8>` | Binary |
//! | an enum that derives `Property` | String: the variant's name |
//! | a struct around one value that derives `Property` | as that value |
//! | `Option` of these | absent if `None` |
//!
//! The types of `chrono`, `time` and `uuid` need the features of those names. Other types become text:
//!
//! ```
//! use larimar_client::{Entity, Property};
//! # use serde::{Serialize, Deserialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Skill {
//!     name: String,
//!     level: u8,
//! }
//!
//! #[derive(Property)]
//! #[entity(rename_all = "kebab-case")]
//! enum Contract {
//!     FullTime,
//!     #[entity(rename = "part")]
//!     PartTime,
//! }
//!
//! #[derive(Property)]
//! struct Cents(i64);
//!
//! #[derive(Entity)]
//! #[entity(partition_key = "p", row_key = "r")]
//! struct Employee {
//!     #[entity(json)]
//!     skills: Vec<Skill>,
//!     #[entity(string)]
//!     machine: Option<std::net::IpAddr>,
//!     contract: Contract,
//!     salary: Cents,
//! }
//!
//! let don = Employee {
//!     skills: vec![Skill { name: "Rust".to_owned(), level: 3 }],
//!     machine: "10.0.0.1".parse().ok(),
//!     contract: Contract::FullTime,
//!     salary: Cents(100),
//! };
//! let entity = don.to_dynamic()?;
//! assert_eq!(entity.get::<String>("Skills")?, r#"[{"name":"Rust","level":3}]"#);
//! assert_eq!(entity.get::<String>("Machine")?, "10.0.0.1");
//! assert_eq!(entity.get::<String>("Contract")?, "full-time");
//! assert_eq!(entity.get::<i64>("Salary")?, 100);
//! # Ok::<(), larimar_client::EntityError>(())
//! ```
//!
//! # Absent properties
//!
//! The service has no null: `None` is a property that does not exist. A replace therefore removes it, and a merge
//! leaves the stored one as it is. A field that is no `Option` needs its property unless it has a default:
//!
//! ```
//! # use larimar_client::{DynamicEntity, Entity};
//! #[derive(Debug, PartialEq, Entity)]
//! #[entity(partition_key = "p", row_key = "r")]
//! struct Employee {
//!     email: Option<String>,
//!     #[entity(default)]
//!     vacation_days: i32,
//!     #[entity(default = "none".to_owned())]
//!     parking: String,
//!     #[entity(skip)]
//!     is_selected: bool,
//! }
//! let read = Employee::from_dynamic(DynamicEntity::new("p", "r"))?;
//! let expected = Employee { email: None, vacation_days: 0, parking: "none".to_owned(), is_selected: false };
//! assert_eq!(read, expected);
//! # Ok::<(), larimar_client::EntityError>(())
//! ```
//!
//! # Time and version
//!
//! `timestamp` marks an `Option` of a time ([`Timestamp`], or what converts from and to it) and `etag` an
//! `Option<`[`ETag`](crate::ETag)`>`. Both are read back from the service and never stored as properties.
//!
//! # Flattening
//!
//! A struct that derives [`Properties`](derive@crate::Properties) lends its properties to entities, with a prefix
//! where names would clash: two fields of one name are an error when the entity is written. A map takes all properties
//! that no other field reads, and gives them back:
//!
//! ```
//! use larimar_client::{DynamicEntity, Entity, Properties, Value};
//! # use std::collections::BTreeMap;
//!
//! #[derive(Properties)]
//! struct Address {
//!     city: String,
//!     street: Option<String>,
//! }
//!
//! #[derive(Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     #[entity(flatten = "Home_")]
//!     home: Address,
//!     #[entity(flatten = "Work_")]
//!     work: Option<Address>,
//!     #[entity(flatten)]
//!     rest: BTreeMap<String, Value>,
//! }
//!
//! let stored = DynamicEntity::new("Sales", "1").with("Home_City", "Oslo").with("Age", 34);
//! let don = Employee::from_dynamic(stored)?;
//! assert_eq!(don.home.city, "Oslo");
//! assert!(don.work.is_none());
//! assert_eq!(don.rest["Age"], Value::Int32(34));
//! assert_eq!(Address::city().prefixed("Home_").eq("Oslo").as_str(), "Home_City eq 'Oslo'");
//! # Ok::<(), larimar_client::EntityError>(())
//! ```
//!
//! # Encryption
//!
//! `encrypt` marks a property that a table with keys for it (feature `encryption`) encrypts before it leaves the
//! machine. It is stored as text: a `String`, an enum, or a field with `string` or `json`. `hashed` names a second
//! property that holds a keyed hash of it, by which one can look for equal values:
//!
//! ```
//! # use larimar_client::Entity;
//! #[derive(Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     #[entity(encrypt, hashed = "EmailHash")]
//!     email: String,
//!     #[entity(encrypt)]
//!     iban: Option<String>,
//! }
//! assert_eq!(Employee::ENCRYPTED.len(), 2);
//! assert_eq!(Employee::email_hash().name(), "EmailHash");
//! ```
//!
//! # Filters
//!
//! Each field that a filter can speak of has a function that gives its [`Column`](crate::Column): all but those that
//! are skipped, flattened, encrypted or JSON. The function of a key gives `PartitionKey` or `RowKey`, which are text
//! regardless of the field. It has the field's name, so `no_column` on the field, or `no_columns` on the struct, makes
//! room for a method of your own.
//!
//! # Several types in one table
//!
//! Entities of several types live in one partition so that one transaction or one query covers them. An enum over
//! them distinguishes them by the property `EntityType`, or by the start of their `RowKey`:
//!
//! ```
//! use larimar_client::{DynamicEntity, Entity, EntityEnum};
//!
//! #[derive(Debug, PartialEq, Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     last_name: String,
//! }
//!
//! #[derive(Debug, PartialEq, Entity)]
//! struct Review {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     score: i32,
//! }
//!
//! #[derive(Debug, PartialEq, EntityEnum)]
//! enum Record {
//!     Employee(Employee),
//!     #[entity(row_key_prefix = "review_")]
//!     Review(Review),
//!     #[entity(type = "Dept")]
//!     Department(DynamicEntity),
//!     #[entity(other)]
//!     Other(DynamicEntity),
//! }
//!
//! let stored = DynamicEntity::new("Sales", "000123").with("EntityType", "Employee").with("LastName", "Hall");
//! let Record::Employee(don) = Record::from_dynamic(stored)? else { panic!("expected an employee") };
//! assert_eq!(don.last_name, "Hall");
//!
//! let stored = DynamicEntity::new("Sales", "review_7").with("Score", 5);
//! assert!(matches!(Record::from_dynamic(stored)?, Record::Review(Review { score: 5, .. })));
//!
//! let written = Record::Employee(don);
//! assert_eq!(written.to_dynamic()?.get::<String>("EntityType")?, "Employee");
//! # Ok::<(), larimar_client::EntityError>(())
//! ```
//!
//! | attribute of a variant | meaning |
//! | --- | --- |
//! | none | `EntityType` is the `entity_type` of what the variant holds, or else the variant's name |
//! | `type = "..."` | `EntityType` is this |
//! | `row_key_prefix = "..."` | the `RowKey` starts like this; `EntityType` is neither written nor read |
//! | `other` | none of the others; without such a variant it is an error |
//!
//! `EntityType` is looked at first, and of several prefixes the longest counts. A variant with a prefix is not written
//! under a key without it, nor under one that has the longer prefix of another variant.
//!
//! On the enum, `tag = "..."` names another property than `EntityType`, and `crate = path` is as above. Large
//! variants may hold a `Box`. A struct with `entity_type = "..."` writes and expects the property by itself.

#[cfg(doc)]
use crate::{DynamicEntity, Guid, Timestamp, Value};
