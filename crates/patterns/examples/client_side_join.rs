//! R3: employees joined with their departments in the client, from look-up data that is kept for a while.

mod support;

use larimar_client::{Entity, Table};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Outcome, Stage};

#[derive(Debug, PartialEq, Entity)]
#[entity(partition_key = "departments")]
pub(crate) struct Department {
    #[entity(row_key)]
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) floor: i32,
}

#[derive(Debug, PartialEq, Entity)]
pub(crate) struct Employee {
    #[entity(partition_key)]
    pub(crate) office: String,
    #[entity(row_key)]
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) department_id: String,
}

/// Data that changes rarely and is asked for often: read whole by one query, and again when it is old.
pub(crate) struct Departments {
    table: Table,
    kept_for: Duration,
    read: Option<(Instant, Arc<HashMap<String, Department>>)>,
}

impl Departments {
    pub(crate) const fn new(table: Table, kept_for: Duration) -> Self {
        Self { table, kept_for, read: None }
    }

    pub(crate) async fn get(&mut self) -> Outcome<Arc<HashMap<String, Department>>> {
        if let Some((at, departments)) = &self.read
            && at.elapsed() < self.kept_for
        {
            return Ok(Arc::clone(departments));
        }
        let all = self.table.query::<Department>().partition("departments").all().await?;
        let departments = Arc::new(all.into_iter().map(|found| (found.id.clone(), found)).collect());
        self.read = Some((Instant::now(), Arc::clone(&departments)));
        Ok(departments)
    }
}

/// Who sits where: employees of one table, with the name and the floor of the other.
pub(crate) async fn directory(employees: &Table, departments: &mut Departments, office: &str) -> Outcome<Vec<String>> {
    let departments = departments.get().await?;
    let employees = employees.query::<Employee>().partition(office).all().await?;
    let line = |employee: &Employee| match departments.get(&employee.department_id) {
        Some(department) => format!("{}, {}, floor {}", employee.name, department.name, department.floor),
        None => format!("{}, no department", employee.name),
    };
    Ok(employees.iter().map(line).collect())
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let (employees, departments) = (stage.table("Employees").await?, stage.table("Departments").await?);
    for (id, name, floor) in [("1", "Sales", 2), ("2", "Marketing", 3)] {
        departments.insert(&Department { id: id.to_owned(), name: name.to_owned(), floor }).await?;
    }
    for (id, name, department_id) in [("000123", "Don", "1"), ("000124", "Jun", "2"), ("000125", "Ann", "9")] {
        let [office, id, name, department_id] = ["Oslo", id, name, department_id].map(str::to_owned);
        employees.insert(&Employee { office, id, name, department_id }).await?;
    }
    let mut lookup = Departments::new(departments, Duration::from_secs(300));
    for what in ["first, the departments are read too", "then they are known"] {
        let lines = stage.cost(what, directory(&employees, &mut lookup, "Oslo")).await?;
        assert_eq!(lines, ["Don, Sales, floor 2", "Jun, Marketing, floor 3", "Ann, no department"]);
        println!("    {}", lines.join("; "));
    }
    stage.end().await
}
