//! R1: a department has many employees, stored in three ways.

mod support;

use larimar_client::{ETag, Entity, EntityEnum, Table};
use serde::{Deserialize, Serialize};
use support::{Outcome, Stage};

/// The first way: both in one partition, under row keys of their own.
#[derive(Debug, EntityEnum)]
pub(crate) enum Member {
    Department(Department),
    Employee(Employee),
}

#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = "department")]
pub(crate) struct Department {
    #[entity(partition_key)]
    pub(crate) name: String,
    #[entity(etag)]
    pub(crate) etag: Option<ETag>,
    pub(crate) employees: i32,
}

#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = format!("empid_{}", self.id))]
pub(crate) struct Employee {
    #[entity(partition_key)]
    pub(crate) department: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

/// The third way: all employees within the department, as long as they are few and small.
#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = "department")]
pub(crate) struct Team {
    #[entity(partition_key)]
    pub(crate) name: String,
    #[entity(json)]
    pub(crate) employees: Vec<TeamMember>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TeamMember {
    pub(crate) id: String,
    pub(crate) name: String,
}

pub(crate) fn employee(department: &str, id: &str, name: &str) -> Employee {
    let [department, id, name] = [department, id, name].map(str::to_owned);
    Employee { department, id, name }
}

/// An employee joins, and the department counts one more, in one transaction. If another employee joins at the same
/// moment, the transaction is refused, and the caller tries again.
pub(crate) async fn join_in_one_partition(table: &Table, new: Employee) -> Outcome {
    let read = table.get::<Department>(&new.department, "department").await?;
    let mut department = read.ok_or("no such department")?;
    let etag = department.etag.take().ok_or("what is read has an ETag")?;
    department.employees += 1;
    let mut transaction = table.transaction();
    transaction.insert(&Member::Employee(new))?;
    transaction.replace(&Member::Department(department), &etag)?;
    transaction.submit().await?;
    Ok(())
}

/// A department with all employees, by one query of one partition.
pub(crate) async fn read_one_partition(
    table: &Table,
    department: &str,
) -> Outcome<(Option<Department>, Vec<Employee>)> {
    let (mut head, mut employees) = (None, Vec::new());
    for member in table.query::<Member>().partition(department).all().await? {
        match member {
            Member::Department(department) => head = Some(department),
            Member::Employee(employee) => employees.push(employee),
        }
    }
    Ok((head, employees))
}

/// The second way: tables of their own. Each grows and is shared by itself, and no transaction covers both.
pub(crate) async fn read_two_tables(
    departments: &Table,
    employees: &Table,
    name: &str,
) -> Outcome<(Department, Vec<Employee>)> {
    let department = departments.get(name, "department");
    let employees = employees.query().partition(name).all();
    let (department, employees) = futures_util::future::try_join(department, employees).await?;
    Ok((department.ok_or("no such department")?, employees))
}

/// An employee joins a team: the one entity is read and replaced.
pub(crate) async fn join_in_one_entity(table: &Table, department: &str, new: &TeamMember) -> Outcome {
    let join = |team: &mut Team| team.employees.push(new.clone());
    table.update_with_retry(department, "department", join).await?.ok_or("no such department")?;
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    println!("One partition for a department and its employees.");
    let table = stage.table("Company").await?;
    let department = || Department { name: "Sales".to_owned(), etag: None, employees: 0 };
    table.insert(&Member::Department(department())).await?;
    for (id, name) in [("000123", "Don"), ("000124", "Jun")] {
        let joins = join_in_one_partition(&table, employee("Sales", id, name));
        stage.cost("an employee joins, and the department counts", joins).await?;
    }
    let (sales, employees) = stage.cost("both are read", read_one_partition(&table, "Sales")).await?;
    assert_eq!((sales.map(|sales| sales.employees), employees.len()), (Some(2), 2));

    println!("A table of departments and a table of employees.");
    let (departments, people) = (stage.table("Departments").await?, stage.table("Employees").await?);
    departments.insert(&department()).await?;
    for (id, name) in [("000123", "Don"), ("000124", "Jun")] {
        people.insert(&employee("Sales", id, name)).await?;
    }
    let read = read_two_tables(&departments, &people, "Sales");
    let (sales, employees) = stage.cost("both are read, side by side", read).await?;
    assert_eq!((sales.name.as_str(), employees.len()), ("Sales", 2));

    println!("The employees within the department.");
    let teams = stage.table("Teams").await?;
    teams.insert(&Team { name: "Sales".to_owned(), employees: Vec::new() }).await?;
    for (id, name) in [("000123", "Don"), ("000124", "Jun")] {
        let [id, name] = [id, name].map(str::to_owned);
        join_in_one_entity(&teams, "Sales", &TeamMember { id, name }).await?;
    }
    let team = stage.cost("all is read", teams.get::<Team>("Sales", "department")).await?.expect("it is there");
    println!("  {} people, in one entity of at most 64 KiB of text", team.employees.len());
    stage.end().await
}
