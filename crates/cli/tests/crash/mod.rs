//! Writers record what the server acknowledged; the server is killed at a random moment and started again; all
//! that was acknowledged is there, and every change is there whole or not at all.
//!
//! `LARIMAR_CRASH_ROUNDS` sets the number of rounds, `LARIMAR_CRASH_SEED` repeats a run's choices.

mod blobs;
mod pages;
mod queues;
mod tables;

use larimar_testkit::{Dice, Launch};

/// How many rounds to play; `cargo xtask test --full` plays more.
fn rounds() -> usize {
    std::env::var("LARIMAR_CRASH_ROUNDS").ok().map_or(8, |text| text.parse().expect("a number of rounds"))
}

/// Plays rounds on one data folder. A round takes how to start the server and returns how to go on, and how many
/// requests were acknowledged.
fn play_rounds(rounds: usize, mut play: impl FnMut(&Launch, usize, &mut Dice) -> (Launch, usize)) {
    let seed = Dice::seed("LARIMAR_CRASH_SEED");
    println!("{rounds} rounds, LARIMAR_CRASH_SEED={seed}");
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let mut launch = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data"));
    let mut acknowledged = 0;
    for round in 0..rounds {
        let (next, requests) = play(&launch, round, &mut dice);
        launch = next;
        acknowledged += requests;
    }
    assert!(acknowledged > rounds, "only {acknowledged} requests were acknowledged");
    println!("{acknowledged} acknowledged requests, none lost");
}
