//! T5: a department shows its manager's name and phone, and stays right when they change.

mod support;

use larimar_client::Entity;
use larimar_patterns::denormalised::{Denormalised, Embeds};
use support::{Outcome, Stage};

#[derive(Debug, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    name: String,
    phone: String,
}

#[derive(Debug, Entity)]
#[entity(row_key = "department")]
struct Department {
    #[entity(partition_key)]
    name: String,
    employees: i32,
    manager_id: Option<String>,
    manager_name: Option<String>,
    manager_phone: Option<String>,
}

impl Embeds<Employee> for Department {
    fn embeds(&self, manager: &Employee) -> bool {
        self.manager_id.as_ref() == Some(&manager.id)
    }

    fn embed(&mut self, manager: &Employee) {
        self.manager_id = Some(manager.id.clone());
        self.manager_name = Some(manager.name.clone());
        self.manager_phone = Some(manager.phone.clone());
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let company = stage.table("Company").await?;
    for (id, name, phone) in [("empid_000123", "Don Hall", "555-0100"), ("empid_000124", "Jun Cao", "555-0101")] {
        let [department, id, name, phone] = ["Sales", id, name, phone].map(str::to_owned);
        company.insert(&Employee { department, id, name, phone }).await?;
    }
    let (manager_id, manager_name, manager_phone) = (None, None, None);
    let name = "Sales".to_owned();
    company.insert(&Department { name, employees: 2, manager_id, manager_name, manager_phone }).await?;

    let managers = Denormalised::<Employee, Department>::new(company.clone());
    println!("Don becomes manager of Sales.");
    stage.cost("assign", managers.assign("Sales", "empid_000123", "department")).await?;
    let sales = company.get::<Department>("Sales", "department");
    let sales = stage.cost("read the department with its manager", sales).await?.expect("it is there");
    println!("  {:?}, {:?}", sales.manager_name, sales.manager_phone);

    println!("Don gets another phone: both entities change in one transaction.");
    let new_phone = |don: &mut Employee| don.phone = "555-0199".to_owned();
    stage.cost("update", managers.update("Sales", "empid_000123", &["department"], new_phone)).await?;
    let sales = company.get::<Department>("Sales", "department").await?.expect("it is there");
    assert_eq!(sales.manager_phone.as_deref(), Some("555-0199"));

    println!("Jun takes over. Don's further changes leave the department alone.");
    managers.assign("Sales", "empid_000124", "department").await?;
    managers.update("Sales", "empid_000123", &["department"], |don| don.phone = "555-0111".to_owned()).await?;
    let sales = company.get::<Department>("Sales", "department").await?.expect("it is there");
    println!("  {:?}, {:?}", sales.manager_name, sales.manager_phone);
    assert_eq!(sales.manager_phone.as_deref(), Some("555-0101"));
    stage.end().await
}
