//! Recorded histories while the database itself goes away: restarted, crashed, failed over.

use super::fleet::{Fleet, report, rounds, seed};
use larimar_testkit::Dice;
use larimar_testkit::postgres::{Cluster, Stop};

/// Answered calls in a round.
const CALLS: u64 = 300;

#[test]
fn b4_a_database_that_restarts_or_crashes_loses_nothing() {
    let cluster = Cluster::start();
    let fleet = Fleet::start(&cluster.fresh_url());
    let seed = seed();
    let mut dice = Dice::new(seed);
    let load = fleet.load(seed);
    for round in 0..rounds().max(2) {
        load.wait_for(CALLS / 2 + dice.below(CALLS));
        cluster.stop(if round % 2 == 0 { Stop::Immediate } else { Stop::Fast });
        cluster.start_again();
    }
    load.wait_for(CALLS);
    report(&load.finish());
}

#[test]
fn b4_a_failover_to_the_synchronous_standby_loses_nothing() {
    let primary = Cluster::start();
    let standby = primary.standby();
    let fleet = Fleet::start(&Cluster::fresh_urls(&[&primary, &standby]));
    let seed = seed();
    let mut dice = Dice::new(seed);
    let load = fleet.load(seed);
    load.wait_for(CALLS + dice.below(rounds() * CALLS));
    primary.stop(Stop::Immediate);
    standby.promote();
    load.wait_for(CALLS);
    report(&load.finish());
}
