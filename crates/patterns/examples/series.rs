//! T9: messages of each hour in one entity a day, written one hour at a time.

mod support;

use larimar_client::Timestamp;
use larimar_patterns::series::{Resolution, Series};
use std::time::Duration;
use support::{Outcome, Stage};

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Statistics").await?;
    let messages = Series::<i64>::new(table, "Messages", Resolution::HoursOfDay)?;
    let start: Timestamp = "2026-02-09T00:00:00Z".parse()?;
    let hour = |number: u32| start.after(Duration::from_secs(3600) * number);

    println!("Sales counts its messages, hour by hour.");
    stage.cost("record one hour, without a read", messages.record("Sales", hour(0), &17)).await?;
    let counts: Vec<i64> = (1..72).map(|number| 20 + number % 24).collect();
    let week = counts.iter().zip(1..).map(|(count, number)| (hour(number), count));
    stage.cost("record 71 hours at once, one request a day", messages.record_all("Sales", week)).await?;
    messages.record("Sales", hour(0), &18).await?;

    let monday = stage.cost("read Monday", messages.read("Sales", hour(12))).await?.expect("it is there");
    println!("  {} values, at midnight {:?}, at noon {:?}", monday.values.len(), monday.values[0], monday.values[12]);
    let days = stage.cost("read three days", messages.range("Sales", hour(0)..hour(72)).all()).await?;
    for day in &days {
        let (busiest, count) = day.recorded().max_by_key(|(_, count)| **count).expect("each day has values");
        println!("  the busiest hour began at {busiest} with {count} messages");
    }
    assert_eq!(days.len(), 3);
    stage.end().await
}
