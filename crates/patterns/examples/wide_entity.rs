//! T10: an employee with a thousand answers of a questionnaire, far more than an entity holds.

mod support;

use larimar_client::DynamicEntity;
use larimar_patterns::wide_entity::WideTable;
use support::{Outcome, Stage};

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Answers").await?;
    let answers = WideTable::new(table.clone());
    println!("Don answers a thousand questions.");
    let mut don = DynamicEntity::new("Sales", "000123").with("Name", "Don Hall");
    for question in 0..1000 {
        don.set(format!("Answer{question:04}"), question % 5);
    }
    let version = stage.cost("insert all of them", answers.insert(&don)).await?;
    println!("  {} entities were written by one transaction", version.parts());

    let read = answers.get::<DynamicEntity>("Sales", "000123");
    let read = stage.cost("read all of them", read).await?.expect("it is there");
    println!("  {} properties", read.entity.properties().len());
    assert_eq!(read.entity.get::<i32>("Answer0999")?, 4);

    println!("He takes most of them back. What is no longer needed goes in the same transaction.");
    let mut fewer = DynamicEntity::new("Sales", "000123").with("Name", "Don Hall");
    fewer.set("Answer0000", 3);
    let version = stage.cost("replace the version that was read", answers.replace(&fewer, &read.version)).await?;
    assert_eq!((version.parts(), table.query::<DynamicEntity>().all().await?.len()), (1, 1));

    println!("Who still has the old version cannot write over the new one.");
    println!("  {}", answers.replace(&don, &read.version).await.expect_err("an old version"));
    stage.end().await
}
