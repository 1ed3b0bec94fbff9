//! Filters that compare a column with what it does not hold.

use larimar_client::{Entity, Property};

#[derive(Property)]
enum Status {
    Active,
}

#[derive(Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    age: i32,
    status: Status,
    #[entity(encrypt)]
    email: String,
}

fn main() {
    Employee::age().eq("thirty");
    Employee::status().eq("Active");
    Employee::email().eq("don@example.com");
    Employee::age().starts_with("3");
}
