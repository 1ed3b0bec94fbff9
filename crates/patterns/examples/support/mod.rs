//! What the examples share: a server of their own, or the account that `LARIMAR_CONNECTION_STRING` names, and tables
//! that go when the example ends.

#![allow(clippy::disallowed_methods, reason = "an example may run against any account")]
#![allow(dead_code, unreachable_pub, reason = "every example takes what it needs of it")]

use larimar_client::{Account, Guid, Table};
use larimar_embedded::Larimar;
use std::sync::Mutex;

/// What an example can fail with.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Where an example takes place.
pub struct Stage {
    pub account: Account,
    server: Option<Larimar>,
    suffix: String,
    tables: Mutex<Vec<Table>>,
}

impl Stage {
    /// Starts a server, unless the environment names another.
    pub async fn start() -> Outcome<Self> {
        let (connection_string, server) = match std::env::var("LARIMAR_CONNECTION_STRING") {
            Ok(connection_string) => (connection_string, None),
            Err(_) => {
                let server = Larimar::ephemeral().await?;
                (server.connection_string(), Some(server))
            }
        };
        let account = Account::connect(&connection_string)?;
        // Letters only: some patterns put digits behind a name.
        let suffix = Guid::random().as_bytes().iter().take(8).map(|byte| char::from(b'a' + byte % 26)).collect();
        Ok(Self { account, server, suffix, tables: Mutex::default() })
    }

    /// A unique name.
    pub fn name(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// A new table.
    pub async fn table(&self, name: &str) -> Outcome<Table> {
        let table = self.account.table(self.name(name));
        table.create().await?;
        self.tables.lock().expect("no panic before").push(table.clone());
        Ok(table)
    }

    /// Runs something and prints what it cost.
    pub async fn cost<T>(&self, what: &str, call: impl Future<Output = T>) -> T {
        let before = self.requests();
        let answer = call.await;
        match (before, self.requests()) {
            (Some(before), Some(after)) if after == before + 1 => println!("  {what}: 1 request"),
            (Some(before), Some(after)) => println!("  {what}: {} requests", after - before),
            _ => println!("  {what}"),
        }
        answer
    }

    /// How many requests the example's own server has had.
    pub fn requests(&self) -> Option<u64> {
        self.server.as_ref().map(|server| server.requests().table)
    }

    /// Deletes the tables.
    pub async fn end(self) -> Outcome {
        for table in self.tables.into_inner()? {
            table.delete_table_if_exists().await?;
        }
        Ok(())
    }
}
