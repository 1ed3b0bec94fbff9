//! T13: what happens in the departments is logged into blobs, and read by time.

mod support;

use larimar_client::Timestamp;
use larimar_patterns::blob_log::{BlobLogReader, BlobLogWriter};
use std::time::Duration;
use support::{Outcome, Stage};

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let container = stage.account.container(stage.name("logs"));
    container.create_if_missing().await?;

    println!("Two days of events, one a minute.");
    let log = BlobLogWriter::new(&container, "departments")?.flush_bytes(16 * 1024);
    let start: Timestamp = "2014-07-31T00:00:00Z".parse()?;
    for minute in 0..2 * 24 * 60 {
        let level = if minute % 100 == 7 { "error" } else { "info" };
        let text = format!("{level}: employee {:06} badges in", minute % 250);
        log.append_at(start.after(Duration::from_secs(60 * minute)), &text).await?;
    }
    println!("  {} bytes are in memory only, until", log.pending_bytes());
    log.flush().await?;
    println!("  they are flushed: {} bytes", log.pending_bytes());

    println!("The errors from 15:04 to 19:06 of the first day:");
    let reader = BlobLogReader::new(&container, "departments");
    let (from, to) = ("2014-07-31T15:04:00Z".parse()?, "2014-07-31T19:06:00Z".parse()?);
    for record in reader.all(from, to).await? {
        if record.text.starts_with("error") {
            println!("  {} {}", record.time, record.text);
        }
    }

    println!("A writer that runs along flushes by age, and at its end.");
    let log = BlobLogWriter::new(&container, "orders")?.flush_age(Duration::from_millis(100));
    let work = async {
        for number in 0..5 {
            log.append(&format!("order {number}")).await?;
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        Outcome::Ok(())
    };
    let (done, ended) = tokio::sync::oneshot::channel::<()>();
    let work = async {
        let outcome = work.await;
        drop(done);
        outcome
    };
    let (flushed, worked) = tokio::join!(log.run(async { drop(ended.await) }), work);
    flushed?;
    worked?;
    let (hour, orders) = (Duration::from_secs(3600), BlobLogReader::new(&container, "orders"));
    let orders = orders.all(Timestamp::now().before(hour), Timestamp::now().after(hour)).await?;
    println!("  {} orders are there", orders.len());
    container.delete_container_if_exists().await?;
    stage.end().await
}
