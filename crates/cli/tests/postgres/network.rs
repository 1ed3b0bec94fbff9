//! Recorded histories while the network between the servers and the database misbehaves.

use super::fleet::{EVENTUALLY, Fleet, SERVERS, eventually, report, rounds, seed};
use larimar_testkit::Dice;
use larimar_testkit::postgres::Cluster;
use larimar_testkit::proxy::{Direction, Mode, Proxy};
use std::net::SocketAddr;
use std::time::Duration;

/// Answered calls in a round.
const CALLS: u64 = 300;

/// A proxy for each server, and the servers behind them.
fn behind_proxies(arguments: &[&str]) -> (Vec<Proxy>, Fleet) {
    let url = Cluster::shared().fresh_url();
    let (before, rest) = url.split_once('@').expect("the URL has a user");
    let (address, after) = rest.split_once('/').expect("the URL has a database");
    let upstream: SocketAddr = address.parse().expect("the URL has an address");
    let proxies: Vec<Proxy> = (0..SERVERS).map(|_| Proxy::start(upstream)).collect();
    let urls: Vec<String> = proxies.iter().map(|proxy| format!("{before}@{}/{after}", proxy.address())).collect();
    let fleet = Fleet::start_each(&urls, arguments);
    (proxies, fleet)
}

#[test]
fn a_slow_network_is_only_slow() {
    let (proxies, fleet) = behind_proxies(&[]);
    let load = fleet.load(seed());
    for (number, proxy) in proxies.iter().enumerate() {
        proxy.set(Mode::Delay(Duration::from_millis(1 + 2 * number as u64)));
    }
    load.wait_for(rounds() * CALLS / 2);
    let totals = load.finish();
    report(&totals);
    assert_eq!(totals.unknown, 0, "nothing failed");
}

#[test]
fn connections_cut_at_any_byte_lose_nothing_and_repeat_nothing() {
    let (proxies, fleet) = behind_proxies(&[]);
    let seed = seed();
    let mut dice = Dice::new(seed);
    let load = fleet.load(seed);
    for _ in 0..rounds() {
        for proxy in &proxies {
            // Sometimes before a session is set up, mostly in the midst of its work.
            let bytes_max = *dice.pick(&[2_000, 20_000, 100_000]);
            proxy.set(Mode::CutRandomly { percent: 80, bytes_max, seed: dice.next() });
        }
        load.wait_for(CALLS);
        proxies[dice.below(SERVERS as u64) as usize].cut_all();
    }
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    load.wait_for(CALLS);
    report(&load.finish());
    let cuts: u64 = proxies.iter().map(Proxy::cuts).sum();
    assert!(cuts > 0, "nothing was cut");
}

#[test]
fn a_silent_network_ends_in_answers_and_what_arrives_late_does_no_harm() {
    // The servers' patience, short of what it usually is: every answer takes a few times as long at most.
    let (proxies, fleet) = behind_proxies(&["--database-timeout", "2s"]);
    let load = fleet.load(seed());
    load.wait_for(CALLS);
    // One server hears nothing, so its writes arrive; the other is not heard either.
    proxies[0].set(Mode::HalfOpen(Direction::ToClient));
    proxies[1].set(Mode::HalfOpen(Direction::Both));
    // Clients choose their servers at random, so all of them soon wait for a silent one.
    eventually("a request of every client had no answer", EVENTUALLY, || load.unknown() >= 6);
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    load.wait_for(CALLS);
    report(&load.finish());
}
