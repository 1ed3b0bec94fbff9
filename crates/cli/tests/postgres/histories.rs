//! Recorded histories of clients on three servers: without faults, and while servers are killed (M7, M9, B4).

use super::fleet::{Fleet, SERVERS, report, rounds, seed};
use larimar_testkit::Dice;
use larimar_testkit::postgres::Cluster;

/// Answered calls in a round.
const CALLS: u64 = 500;

#[test]
fn m7_three_servers_are_to_their_clients_as_one() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    let load = fleet.load(seed());
    load.wait_for(rounds() * CALLS);
    let totals = load.finish();
    report(&totals);
    assert_eq!(totals.unknown, 0, "nothing failed");
}

#[test]
fn b4_killed_servers_lose_nothing_and_tear_nothing() {
    let mut fleet = Fleet::start(&Cluster::shared().fresh_url());
    let seed = seed();
    let mut dice = Dice::new(seed);
    let load = fleet.load(seed);
    for _ in 0..rounds() + 1 {
        load.wait_for(1 + dice.below(CALLS / 2));
        fleet.kill(dice.below(SERVERS as u64) as usize);
    }
    load.wait_for(CALLS / 2);
    let totals = load.finish();
    report(&totals);
    assert!(totals.unknown > 0, "a kill left every client with an answer");
}
