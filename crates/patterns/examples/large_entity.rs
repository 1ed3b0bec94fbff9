//! T11: employees with photos that no table takes: the photos are blobs, the entities have their addresses.

mod support;

use larimar_client::DynamicEntity;
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::large_entity::LargeEntities;
use std::time::Duration;
use support::{Outcome, Stage};

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Employees").await?;
    let (container, queue) = (stage.account.container(stage.name("photos")), stage.name("work"));
    let employees = EventualTable::builder(&stage.account, table.name(), &queue);
    let employees = LargeEntities::new(employees, &container, "Employees", ["Photo"]);
    employees.create_if_missing().await?;

    println!("Don joins, with a photo of 3 MB.");
    let don = DynamicEntity::new("Sales", "000123").with("FirstName", "Don");
    employees.put(&don, [("Photo", Some(vec![1; 3_000_000]))]).await?;
    let found = employees.get::<DynamicEntity>("Sales", "000123").await?.ok_or("he is there")?;
    println!("  the entity has the address {}", found.entity.get::<String>("Photo")?);
    println!("  the photo has {} bytes", found.values["Photo"].len());

    println!("His name is changed: the photo stays. Then he gets a new photo.");
    employees.put_entity(&don.clone().with("LastName", "Hall")).await?;
    employees.put(&don.with("LastName", "Hall"), [("Photo", Some(vec![2; 4_000_000]))]).await?;
    let found = employees.get::<DynamicEntity>("Sales", "000123").await?.ok_or("he is there")?;
    println!("  the photo has {} bytes", found.values["Photo"].len());
    println!("  {} blobs, of which one is old", blobs(&container).await?);
    employees.worker().drain().await?;
    println!("  {} blob after the worker ran", blobs(&container).await?);

    println!("A blob without a reference is found by a sweep.");
    container.blob("Employees/Sales/000999/orphan").upload(vec![3; 1000], Default::default()).await?;
    let swept = employees.sweep(Duration::ZERO).await?;
    println!("  {} looked at, {} removed", swept.places, swept.corrected);

    println!("Don leaves, and his photo with him.");
    employees.delete("Sales", "000123").await?;
    employees.worker().drain().await?;
    println!("  {} blobs", blobs(&container).await?);
    for name in [queue.clone(), format!("{queue}-poison")] {
        stage.account.queue(name).delete_queue_if_exists().await?;
    }
    container.delete_container_if_exists().await?;
    stage.end().await
}

async fn blobs(container: &larimar_client::Container) -> Outcome<usize> {
    use futures_util::TryStreamExt as _;
    let all: Vec<_> = container.list("").try_collect().await?;
    Ok(all.len())
}
