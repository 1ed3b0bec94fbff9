//! Names that no property can have, or that another one has.

use larimar_client::Entity;

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct Twice {
    last_name: String,
    #[entity(rename = "LastName")]
    surname: String,
}

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct NoNames {
    #[entity(rename = "last-name")]
    last_name: String,
    partition_key: String,
    timestamp: String,
}

fn main() {}
