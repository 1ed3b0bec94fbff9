//! Employees of a few departments: inserted, found, changed, and moved out in one transaction.
//!
//! `cargo run --example employees` starts a server of its own; with a connection string in `LARIMAR_CONNECTION_STRING`
//! it uses that account instead, and deletes the table that it made.

#![allow(clippy::disallowed_methods, reason = "an example may run against any account")]

use futures_util::TryStreamExt as _;
use larimar_client::{Account, Entity, Error, Guid, IfMatch, Table};
use larimar_embedded::Larimar;

#[derive(Clone, Debug, PartialEq, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
    age: i32,
    email: Option<String>,
}

fn employee(department: &str, id: &str, last_name: &str, age: i32) -> Employee {
    let [department, id, last_name] = [department, id, last_name].map(str::to_owned);
    Employee { department, id, last_name, age, email: None }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server ends with this value.
    let server = Larimar::ephemeral().await?;
    let connection_string = std::env::var("LARIMAR_CONNECTION_STRING").unwrap_or_else(|_| server.connection_string());
    let account = Account::connect(&connection_string)?;
    let suffix = Guid::random().to_string().replace('-', "");
    let table = account.table(format!("Employees{suffix}"));
    table.create().await?;
    let outcome = work_with(&table).await;
    table.delete_table().await?;
    Ok(outcome?)
}

async fn work_with(table: &Table) -> Result<(), Error> {
    for (department, id, last_name, age) in
        [("Sales", "000123", "Jones", 34), ("Sales", "000124", "Smith", 29), ("Marketing", "000201", "Jones", 51)]
    {
        table.insert(&employee(department, id, last_name, age)).await?;
    }
    let twice = table.insert(&employee("Sales", "000123", "Miller", 40)).await;
    println!("a second 000123 is refused: {}", twice.is_err_and(|error| error.is_conflict()));

    // One request for one entity.
    let found: Option<Employee> = table.get("Sales", "000123").await?;
    println!("000123 is {}", found.map_or_else(|| "gone".to_owned(), |employee| employee.last_name));

    // Reads, changes and writes; repeats if another writer was faster.
    let older = table.update_with_retry("Sales", "000123", |employee: &mut Employee| employee.age += 1).await?;
    println!("and now {}", older.map_or(0, |(employee, _etag)| employee.age));

    // The compiler knows the columns and their types.
    let over_thirty = Employee::last_name().eq("Jones").and(Employee::age().gt(30));
    let mut all = table.query::<Employee>().filter(over_thirty).stream();
    while let Some(employee) = all.try_next().await? {
        println!("{} of {} is {}", employee.last_name, employee.department, employee.age);
    }

    // All of it or nothing.
    let mut leaving = table.transaction();
    leaving.delete("Sales", "000123", IfMatch::Any)?.delete("Sales", "000124", IfMatch::Any)?;
    leaving.insert(&employee("Sales", "000125", "Brown", 44))?;
    leaving.submit().await?;
    let left = table.query::<Employee>().partition("Sales").all().await?;
    println!(
        "Sales has {} now",
        left.iter().map(|employee| employee.last_name.as_str()).collect::<Vec<_>>().join(", ")
    );
    Ok(())
}
