//! Recorded histories while the database itself goes away: restarted, crashed, failed over.

use super::fleet::{EVENTUALLY, Fleet, report, rounds, seed};
use larimar_testkit::Dice;
use larimar_testkit::http::Batch;
use larimar_testkit::postgres::{Cluster, Stop};
use std::time::Instant;

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

/// Clients repeat what its own status says to repeat; an answer 202 with a 503 inside they do not.
#[test]
fn b4_a_transaction_is_refused_as_a_whole_while_the_database_is_away() {
    let cluster = Cluster::start();
    let fleet = Fleet::start_each(&[cluster.fresh_url()], &[]);
    let client = fleet.client(0);
    client.create_table("orders");
    let batch = Batch::new().insert(&client, "orders", "p", "a", "").insert(&client, "orders", "p", "b", "");
    cluster.stop(Stop::Immediate);
    let refused = batch.request(&client).send();
    refused.is_error(503, "ServerBusy");
    assert!(refused.message().starts_with("The server"), "no operation is named: {}", refused.message());
    cluster.start_again();
    let until = Instant::now() + EVENTUALLY;
    let done = loop {
        let reply = batch.request(&client).send();
        if reply.status != 503 {
            break reply;
        }
        assert!(Instant::now() < until, "the server does not find its database again");
    };
    done.is_status(202);
    assert!(!done.text().contains("HTTP/1.1 4"), "nothing of the refused attempt is there: {}", done.text());
}
