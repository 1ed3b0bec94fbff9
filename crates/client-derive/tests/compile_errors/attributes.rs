//! Attributes that are unknown, come twice, or contradict each other.

use larimar_client::Entity;

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r")]
struct Unknown {
    #[entity(renamed = "x")]
    last_name: String,
    #[entity(json, string)]
    skills: Vec<String>,
    #[entity(skip, rename = "Cache")]
    cache: u8,
    #[entity(hashed = "EmailHash")]
    email: String,
    #[entity(default, default)]
    age: i32,
}

#[derive(Entity)]
#[entity(partition_key = "p", row_key = "r", rename_all = "kebab-case")]
struct UnknownCase {
    last_name: String,
}

fn main() {}
