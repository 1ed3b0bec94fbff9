//! R2: an employee has one passport record and one photo; what is read together is stored together.

mod support;

use larimar_client::{Entity, Properties, Table};
use support::{Outcome, Stage};

/// Wanted whenever the employee is: properties of the same entity.
#[derive(Debug, PartialEq, Properties)]
pub(crate) struct Passport {
    pub(crate) number: String,
    pub(crate) country: String,
}

#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = format!("empid_{}", self.id))]
pub(crate) struct Employee {
    #[entity(partition_key)]
    pub(crate) department: String,
    pub(crate) id: String,
    pub(crate) name: String,
    #[entity(flatten = "Passport_")]
    pub(crate) passport: Option<Passport>,
}

/// Large and rarely wanted: an entity of its own beside the employee, under the same id.
#[derive(Debug, PartialEq, Entity)]
#[entity(row_key = format!("photo_{}", self.id))]
pub(crate) struct Photo {
    #[entity(partition_key)]
    pub(crate) department: String,
    pub(crate) id: String,
    pub(crate) jpeg: Vec<u8>,
}

/// Both come or neither does.
pub(crate) async fn hire(table: &Table, employee: &Employee, photo: &Photo) -> Outcome {
    let mut transaction = table.transaction();
    transaction.insert(employee)?;
    transaction.insert(photo)?;
    transaction.submit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Employees").await?;
    let [department, id, name] = ["Sales", "000123", "Don Hall"].map(str::to_owned);
    let [number, country] = ["C01X00T47", "Norway"].map(str::to_owned);
    let photo = Photo { department: department.clone(), id: id.clone(), jpeg: vec![0xff; 30_000] };
    let don = Employee { department, id, name, passport: Some(Passport { number, country }) };
    stage.cost("hire Don, with passport and photo", hire(&table, &don, &photo)).await?;

    let read = stage.cost("Don with his passport", table.get::<Employee>("Sales", "empid_000123")).await?;
    println!("  {:?}", read.as_ref().and_then(|don| don.passport.as_ref()));
    assert_eq!(read.as_ref(), Some(&don));
    let read = stage.cost("his photo, when it is shown", table.get::<Photo>("Sales", "photo_000123")).await?;
    assert_eq!(read.map(|photo| photo.jpeg.len()), Some(30_000));
    stage.end().await
}
