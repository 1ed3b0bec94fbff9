//! What the tests share: a server with a table, and a transport that fails on purpose.

#![allow(dead_code, unreachable_pub, reason = "every test file takes what it needs of it")]

pub mod faults;

use larimar_client::{Account, Table};
use larimar_embedded::Larimar;

/// A server of its own, and an empty table on it.
pub async fn table() -> (Larimar, Table) {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = Account::connect(&server.connection_string()).expect("an account");
    let table = account.table("Employees");
    table.create().await.expect("created");
    (server, table)
}
