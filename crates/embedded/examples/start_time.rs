//! Prints how long a server takes to start, and to start and stop: `cargo run --release --example start_time`.

use larimar_embedded::{Larimar, StartError};
use std::time::{Duration, Instant};

const ROUNDS: usize = 100;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let mut starts = Vec::with_capacity(ROUNDS);
    let mut lives = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let server = Larimar::ephemeral().await?;
        starts.push(began.elapsed());
        server.stop().await;
        lives.push(began.elapsed());
    }
    report("start", starts);
    report("start and stop", lives);
    Ok(())
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{what}: {:?} in the middle, {:?} at most, of {ROUNDS}", times[ROUNDS / 2], times[ROUNDS - 1]);
}
