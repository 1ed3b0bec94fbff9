//! T12: events of a day spread over partitions, read again in order, and how to see that they had to be.

mod support;

use futures_util::TryStreamExt as _;
use larimar_client::{DynamicEntity, Filter};
use larimar_patterns::spread_key::{Heat, SpreadKey};
use support::{Outcome, Stage};

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Events").await?;
    println!("Keys that begin with the date send all writes of a day to one partition.");
    let heat = Heat::new(100);
    for minute in 0..300 {
        heat.count(if minute < 280 { "2026-02-15" } else { "2026-02-14" });
    }
    let hottest = &heat.hottest(1)[0];
    println!("  {} takes {:.0} % of all requests", hottest.partition_key, 100.0 * hottest.share);

    println!("So a bucket is put before the date.");
    let spread = SpreadKey::new(4)?;
    let heat = Heat::new(100);
    for employee in 0..40 {
        let id = format!("{employee:06}");
        let event = DynamicEntity::new(spread.by_hash("2026-02-15", &id), id).with("What", "login");
        heat.count(&event.partition_key);
        table.insert(&event).await?;
    }
    for hot in heat.hottest(4) {
        println!("  {} takes {:.0} %", hot.partition_key, 100.0 * hot.share);
    }

    let found = spread.get::<DynamicEntity>(&table, "2026-02-15", "000007", "000007");
    assert!(stage.cost("one event by its id", found).await?.is_some());
    let all = spread.read::<DynamicEntity>(&table, "2026-02-15", Filter::everything());
    let all: Vec<_> = stage.cost("all of the day in order, one a bucket", all.try_collect()).await?;
    assert!(all.len() == 40 && all.is_sorted_by(|a, b| a.row_key < b.row_key));

    println!("Later there are more buckets. What was written before is still found.");
    let spread = SpreadKey::new(8)?.earlier(4)?;
    let mut requests = Vec::new();
    for event in &all {
        let before = stage.requests().unwrap_or(0);
        let found = spread.get::<DynamicEntity>(&table, "2026-02-15", &event.row_key, &event.row_key).await?;
        assert!(found.is_some(), "{}", event.row_key);
        requests.push(stage.requests().unwrap_or(0) - before);
    }
    if stage.requests().is_some() {
        println!("  at most {} requests each", requests.iter().max().expect("there are events"));
    }
    stage.end().await
}
