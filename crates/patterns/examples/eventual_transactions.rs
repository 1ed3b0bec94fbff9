//! T3: an employee moves from the current ones to the archive, though the first worker dies on the way.

mod support;

use larimar_client::{DynamicEntity, Entity};
use larimar_patterns::Error;
use larimar_patterns::eventual::{Event, Observer, Place, Work as _, Worker};
use larimar_patterns::mover::Mover;
use std::sync::Arc;
use std::time::Duration;
use support::{Outcome, Stage};

#[derive(Debug, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    first_name: String,
}

/// Prints what a worker does.
struct Printer;

impl Observer for Printer {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Received { deliveries, .. } => println!("  received, delivery {deliveries}"),
            Event::StepDone { step, .. } => println!("  step {step} done"),
            Event::Done { .. } => println!("  done, message deleted"),
            _ => {}
        }
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let (current, archive) = (stage.table("Current").await?, stage.table("Archive").await?);
    let mover = Mover::new(&stage.account, &stage.name("moves"));
    mover.create_if_missing().await?;

    println!("Don works in Sales, and leaves.");
    let don = Employee { department: "Sales".into(), id: "000123".into(), first_name: "Don".into() };
    current.insert(&don).await?;
    let here = Place::new(current.name(), "Sales", "000123");
    let there = Place::new(archive.name(), "Sales", "000123");
    let submitted = mover.submit(&here, &there).await?;
    println!("  intent {} is durable: he will be moved", submitted.id());
    assert!(matches!(mover.submit(&here, &there).await, Err(Error::Exists | Error::Changed)));

    println!("A worker takes the intent, copies him, and dies before it buries the original.");
    let messages = stage.account.queue(mover.queue().name()).receive(1, Duration::from_secs(1)).await?;
    let mut message: serde_json::Value = serde_json::from_str(&messages[0].text)?;
    let intent = serde_json::from_value(message["intent"].take())?;
    for step in 0..2 {
        mover.perform(&intent, step).await?;
    }
    println!("  he is seen at both places: {:?}", everywhere(&mover, &[&here, &there]).await?);

    println!("The message comes back when its time is over, and another worker begins anew.");
    let worker = Worker::new(mover.queue().clone(), mover.clone());
    let worker = worker.visibility(Duration::from_secs(30)).concurrency(4).observer(Arc::new(Printer));
    while worker.stats().done == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        worker.drain().await?;
    }
    println!("  he is at one place: {:?}", everywhere(&mover, &[&here, &there]).await?);

    println!("Don comes back. The old intent, delivered once more, does not send him away again.");
    mover.submit(&there, &here).await?;
    worker.drain().await?;
    for step in 0..mover.steps(&intent) {
        mover.perform(&intent, step).await?;
    }
    println!("  he is at one place: {:?}", everywhere(&mover, &[&here, &there]).await?);
    let stats = worker.stats();
    println!(
        "The worker: {} received, {} done, {} failed, {} poisoned.",
        stats.received, stats.done, stats.failed, stats.poisoned
    );
    for queue in ["", "-poison"] {
        stage.account.queue(format!("{}{queue}", mover.queue().name())).delete_queue_if_exists().await?;
    }
    stage.end().await
}

/// The tables in which an employee is.
async fn everywhere(mover: &Mover, places: &[&Place]) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for place in places {
        if mover.get::<DynamicEntity>(place).await?.is_some() {
            found.push(place.table.clone());
        }
    }
    Ok(found)
}
