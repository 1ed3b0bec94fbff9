//! Random clients of one server on the embedded engine, whose recorded history must be that of a single store:
//! linearizable entity by entity, transactions whole, nothing acknowledged lost, also over kills.
//!
//! `LARIMAR_TEST_SEED` repeats a run's choices, `LARIMAR_ROUNDS` makes it longer. The same runs over several servers on
//! PostgreSQL in `postgres/`.

use larimar_testkit::history::{Load, Targets, Totals, Versions};
use larimar_testkit::{Dice, Launch, TemporaryServer};

const CLIENTS: usize = 6;
/// Answered calls in a round.
const CALLS: u64 = 600;

fn rounds() -> u64 {
    std::env::var("LARIMAR_ROUNDS").ok().map_or(3, |text| text.parse().expect("LARIMAR_ROUNDS is a number"))
}

fn seed() -> u64 {
    let seed = Dice::seed("LARIMAR_TEST_SEED");
    println!("LARIMAR_TEST_SEED={seed}");
    seed
}

fn report(totals: &Totals) {
    println!("{totals:?}");
    assert!(totals.done > 0 && totals.refused > 0, "clients were served and met each other: {totals:?}");
}

#[test]
fn m7_the_history_of_many_clients_is_that_of_one_store() {
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &[]);
    server.client().create_table("history");
    let targets = Targets::new([server.table_address()]);
    let load = Load::start(&targets, "history", Versions::Rise, CLIENTS, seed());
    load.wait_for(rounds() * CALLS);
    let totals = load.finish();
    report(&totals);
    assert_eq!(totals.unknown, 0, "nothing failed");
}

#[test]
fn r2_the_history_goes_on_over_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data")).start();
    server.client().create_table("history");
    let targets = Targets::new([server.table_address()]);
    let seed = seed();
    let mut dice = Dice::new(seed);
    let load = Load::start(&targets, "history", Versions::Rise, CLIENTS, seed);
    for _ in 0..rounds() {
        load.wait_for(1 + dice.below(CALLS));
        server = server.kill().start();
        targets.set(0, server.table_address());
    }
    load.wait_for(CALLS);
    let totals = load.finish();
    report(&totals);
    assert!(totals.unknown > 0, "a kill left every client with an answer");
}
