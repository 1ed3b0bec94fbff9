//! How a future shares its thread with others.
//!
//! Tests count polls, which do not depend on how fast the machine is. The longest poll is for people who look for work
//! that should be cut into pieces: `cargo test --release -p larimar-server --test suite polls:: -- --ignored --nocapture`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

/// How a future was polled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polls {
    /// How often.
    pub count: u64,
    /// How long the longest poll took.
    pub longest: Duration,
    /// How long all of them took.
    pub total: Duration,
}

impl Polls {
    /// Runs a future and watches its polls.
    pub async fn watch<F: Future>(future: F) -> (F::Output, Self) {
        let mut future = pin!(future);
        let mut polls = Self::default();
        let output = poll_fn(|context| {
            let began = Instant::now();
            let poll = future.as_mut().poll(context);
            let took = began.elapsed();
            polls.count += 1;
            polls.longest = polls.longest.max(took);
            polls.total += took;
            poll
        })
        .await;
        (output, polls)
    }
}
