//! Entities without a key, or with more than one.

use larimar_client::Entity;

#[derive(Entity)]
struct NoKeys {
    last_name: String,
}

#[derive(Entity)]
#[entity(row_key = "config")]
struct TwoPartitionKeys {
    #[entity(partition_key)]
    department: String,
    #[entity(partition_key)]
    team: String,
}

#[derive(Entity)]
#[entity(partition_key = "config")]
struct KeyGivenTwice {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: u64,
}

fn main() {}
