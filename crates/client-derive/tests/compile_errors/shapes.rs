//! Types of a shape that the macro is not for.

use larimar_client::{Entity, EntityEnum, Property, Properties};

#[derive(Entity)]
struct Tuple(String, String);

#[derive(Entity)]
enum Kind {
    Employee,
}

#[derive(Property)]
enum Status {
    Active,
    Left { year: i32 },
}

#[derive(Property)]
enum SameTexts {
    Active,
    #[entity(rename = "Active")]
    Left,
}

#[derive(EntityEnum)]
enum Record {
    Employee,
}

#[derive(Properties)]
struct Address {
    #[entity(partition_key)]
    city: String,
}

fn main() {}
