//! Fields whose types the service does not store.

use larimar_client::Entity;

struct Skill;

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct NotStored {
    skill: Skill,
}

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct NotFlat {
    #[entity(flatten)]
    skill: Skill,
}

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct NotText {
    #[entity(encrypt)]
    salary: i64,
}

fn main() {}
