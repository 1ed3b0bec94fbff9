//! T6: an employee with the reviews of all years, or of some, by one range query.

mod support;

use larimar_client::Entity;
use larimar_patterns::compound_key::{CompoundKey, Digits, family};
use support::{Outcome, Stage};

type EmployeeKey = CompoundKey<(Digits<6>,)>;
type ReviewKey = CompoundKey<(Digits<6>, Digits<4>)>;

#[derive(Debug, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    key: EmployeeKey,
    name: String,
}

#[derive(Debug, Entity)]
struct Review {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    key: ReviewKey,
    rating: i32,
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Reviews").await?;
    println!("Three employees, and a review a year.");
    for (id, name) in [(122, "Ann"), (123, "Don"), (124, "Jun")] {
        let id = Digits::new(id)?;
        let (department, name) = ("Sales".to_owned(), name.to_owned());
        table.insert(&Employee { department, key: CompoundKey::new((id,)), name }).await?;
        for (year, rating) in (2008..=2012).zip([2, 3, 3, 4, 5]) {
            let key = CompoundKey::new((id, Digits::new(year)?));
            table.insert(&Review { department: "Sales".to_owned(), key, rating }).await?;
        }
    }

    let don: EmployeeKey = CompoundKey::new((Digits::new(123)?,));
    let whole = family::<Employee, Review>(&table, "Sales", &don);
    let whole = stage.cost("Don with all reviews", whole).await?;
    println!("  {}: {} reviews", whole.head.expect("he is there").name, whole.records.len());

    let [first, last] = [Digits::<4>::new(2010)?, Digits::<4>::new(2012)?];
    let recent = table.query::<Review>().partition("Sales").filter(don.descendants_between(&first, &last));
    let recent = stage.cost("Don's reviews from 2010 to 2012", recent.all()).await?;
    for Review { key, rating, .. } in &recent {
        let (_, year) = key.parts();
        println!("  {key} is of {}: {rating}", year.get());
    }
    assert_eq!(recent.len(), 3);
    stage.end().await
}
