//! R4: employees, managers and contractors in one table, each read as what it is.

mod support;

use larimar_client::{Entity, EntityEnum, Properties, keys};
use support::{Outcome, Stage};

/// What all people have.
#[derive(Clone, Debug, PartialEq, Properties)]
pub(crate) struct Person {
    pub(crate) first_name: String,
    pub(crate) last_name: String,
}

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Employee {
    #[entity(partition_key)]
    pub(crate) department: String,
    #[entity(row_key)]
    pub(crate) id: String,
    #[entity(flatten)]
    pub(crate) person: Person,
    pub(crate) salary: i32,
}

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Manager {
    #[entity(partition_key)]
    pub(crate) department: String,
    #[entity(row_key)]
    pub(crate) id: String,
    #[entity(flatten)]
    pub(crate) person: Person,
    pub(crate) salary: i32,
    pub(crate) reports: i32,
}

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Contractor {
    #[entity(partition_key)]
    pub(crate) department: String,
    #[entity(row_key)]
    pub(crate) id: String,
    #[entity(flatten)]
    pub(crate) person: Person,
    pub(crate) company: String,
}

/// One of them, chosen by the property `EntityType`.
#[derive(Clone, Debug, PartialEq, EntityEnum)]
pub(crate) enum Staff {
    Employee(Employee),
    Manager(Manager),
    Contractor(Contractor),
}

impl Staff {
    pub(crate) const fn person(&self) -> &Person {
        match self {
            Self::Employee(Employee { person, .. })
            | Self::Manager(Manager { person, .. })
            | Self::Contractor(Contractor { person, .. }) => person,
        }
    }
}

pub(crate) fn staff() -> [Staff; 3] {
    let department = || "Sales".to_owned();
    let person = |first_name: &str, last_name: &str| Person {
        first_name: first_name.to_owned(),
        last_name: last_name.to_owned(),
    };
    let (id, company) = ("000123".to_owned(), "Fabrikam".to_owned());
    let don = Manager { department: department(), id, person: person("Don", "Hall"), salary: 5000, reports: 2 };
    let id = "000124".to_owned();
    let jun = Employee { department: department(), id, person: person("Jun", "Cao"), salary: 4000 };
    let id = "000125".to_owned();
    let ann = Contractor { department: department(), id, person: person("Ann", "Beebe"), company };
    [Staff::Manager(don), Staff::Employee(jun), Staff::Contractor(ann)]
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Staff").await?;
    for one in staff() {
        table.insert(&one).await?;
    }
    let all = stage.cost("everyone in Sales", table.query::<Staff>().partition("Sales").all()).await?;
    for one in &all {
        let Person { first_name, last_name } = one.person();
        match one {
            Staff::Manager(Manager { reports, .. }) => println!("  {first_name} {last_name} manages {reports}"),
            Staff::Employee(Employee { salary, .. }) => println!("  {first_name} {last_name} earns {salary}"),
            Staff::Contractor(Contractor { company, .. }) => println!("  {first_name} {last_name} is with {company}"),
        }
    }
    assert_eq!(all, staff());
    let others = table.query::<Staff>().partition("Sales").filter(keys::row_key().gt("000123"));
    let others = stage.cost("those after Don", others.all()).await?;
    assert_eq!(others.len(), 2);
    stage.end().await
}
