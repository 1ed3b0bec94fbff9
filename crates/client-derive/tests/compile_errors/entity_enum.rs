//! Enums of entities whose variants cannot be told apart.

use larimar_client::{DynamicEntity, Entity, EntityEnum};

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r", entity_type = "Employee")]
struct Employee {
    last_name: String,
}

#[derive(EntityEnum)]
enum OtherType {
    #[entity(type = "Person")]
    Employee(Employee),
}

#[derive(EntityEnum)]
enum TwoOthers {
    #[entity(other)]
    First(DynamicEntity),
    #[entity(other)]
    Second(DynamicEntity),
}

#[derive(EntityEnum)]
enum SameType {
    Employee(Employee),
    Boss(Box<Employee>),
}

#[derive(EntityEnum)]
enum NoEntity {
    Number(i32),
}

fn main() {}
