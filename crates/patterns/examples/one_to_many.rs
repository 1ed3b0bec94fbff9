//! R1: a department has many employees, stored in three ways.

mod support;

use larimar_client::{Entity, EntityEnum, Table};
use serde::{Deserialize, Serialize};
use support::{Outcome, Stage};

/// The first way: both in one partition, under row keys of their own.
#[derive(Debug, EntityEnum)]
enum Member {
    Department(Department),
    Employee(Employee),
}

#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = "department")]
struct Department {
    #[entity(partition_key)]
    name: String,
    employees: i32,
}

#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = format!("empid_{}", self.id))]
struct Employee {
    #[entity(partition_key)]
    department: String,
    id: String,
    name: String,
}

/// The third way: all employees within the department, as long as they are few and small.
#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = "department")]
struct Team {
    #[entity(partition_key)]
    name: String,
    #[entity(json)]
    employees: Vec<TeamMember>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct TeamMember {
    id: String,
    name: String,
}

fn employee(department: &str, id: &str, name: &str) -> Employee {
    let [department, id, name] = [department, id, name].map(str::to_owned);
    Employee { department, id, name }
}

/// An employee joins, and the department counts one more, in one transaction.
async fn join_in_one_partition(table: &Table, mut department: Department, new: &Employee) -> Outcome {
    department.employees += 1;
    let mut transaction = table.transaction();
    transaction.insert(&Member::Employee(employee(&new.department, &new.id, &new.name)))?;
    transaction.insert_or_replace(&Member::Department(department))?;
    transaction.submit().await?;
    Ok(())
}

/// A department with all employees, by one query of one partition.
async fn read_one_partition(table: &Table, department: &str) -> Outcome<(Option<Department>, Vec<Employee>)> {
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
async fn read_two_tables(departments: &Table, employees: &Table, name: &str) -> Outcome<(Department, Vec<Employee>)> {
    let department = departments.get(name, "department");
    let employees = employees.query().partition(name).all();
    let (department, employees) = futures_util::future::try_join(department, employees).await?;
    Ok((department.ok_or("no such department")?, employees))
}

/// An employee joins a team: the one entity is read and replaced.
async fn join_in_one_entity(table: &Table, department: &str, new: TeamMember) -> Outcome {
    let mut team: Team = table.get(department, "department").await?.ok_or("no such department")?;
    team.employees.push(new);
    table.replace(&team, larimar_client::IfMatch::Any).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    println!("One partition for a department and its employees.");
    let table = stage.table("Company").await?;
    let department = |employees| Department { name: "Sales".to_owned(), employees };
    for (number, (id, name)) in (0..).zip([("000123", "Don"), ("000124", "Jun")]) {
        let joins = employee("Sales", id, name);
        let joins = join_in_one_partition(&table, department(number), &joins);
        stage.cost("an employee joins, and the department counts", joins).await?;
    }
    let (sales, employees) = stage.cost("both are read", read_one_partition(&table, "Sales")).await?;
    assert_eq!((sales, employees.len()), (Some(department(2)), 2));

    println!("A table of departments and a table of employees.");
    let (departments, people) = (stage.table("Departments").await?, stage.table("Employees").await?);
    departments.insert(&department(2)).await?;
    for (id, name) in [("000123", "Don"), ("000124", "Jun")] {
        people.insert(&employee("Sales", id, name)).await?;
    }
    let read = read_two_tables(&departments, &people, "Sales");
    let (sales, employees) = stage.cost("both are read, side by side", read).await?;
    assert_eq!((sales, employees.len()), (department(2), 2));

    println!("The employees within the department.");
    let teams = stage.table("Teams").await?;
    teams.insert(&Team { name: "Sales".to_owned(), employees: Vec::new() }).await?;
    for (id, name) in [("000123", "Don"), ("000124", "Jun")] {
        let [id, name] = [id, name].map(str::to_owned);
        join_in_one_entity(&teams, "Sales", TeamMember { id, name }).await?;
    }
    let team = stage.cost("all is read", teams.get::<Team>("Sales", "department")).await?.expect("it is there");
    println!("  {} people, in one entity of at most 64 KiB of text", team.employees.len());
    stage.end().await
}
