//! Clients of different servers that meet: no update is lost, one insert wins, one creation wins (M1, M7, M9, D7).

use super::fleet::{Fleet, together};
use larimar_testkit::http::{Batch, Client, entity, entity_path};
use larimar_testkit::postgres::Cluster;
use std::collections::BTreeSet;

const CLIENTS: usize = 6;

fn fleet() -> Fleet {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    fleet.client(0).create_table("tab");
    fleet
}

#[test]
fn m7_a_counter_has_exactly_the_acknowledged_increments() {
    let fleet = fleet();
    fleet.client(0).insert("tab", "p", "r", r#""N":0"#);
    let path = entity_path("tab", "p", "r");
    let won: Vec<u64> = together(&fleet, CLIENTS, |client, _| {
        let mut won = 0;
        for _ in 0..25 {
            let found = client.get(&path).send();
            let next = found.json()["N"].as_u64().expect("a number") + 1;
            let etag = found.header("ETag").expect("an etag");
            let reply = client.put(&path, format!(r#"{{"N":{next}}}"#)).if_match(etag).send();
            match reply.status {
                204 => won += 1,
                _ => reply.is_error(412, "UpdateConditionNotSatisfied"),
            }
        }
        won
    });
    for client in fleet.clients() {
        assert_eq!(client.get(&path).send().json()["N"], won.iter().sum::<u64>(), "{won:?}");
    }
    assert!(won.iter().sum::<u64>() >= 25, "each round has a winner: {won:?}");
}

#[test]
fn m3_merges_of_different_properties_through_different_servers_all_stay() {
    let fleet = fleet();
    let path = entity_path("tab", "p", "r");
    let etags = together(&fleet, CLIENTS, |client, number| {
        let merge = |round: usize| client.merge(&path, format!(r#"{{"P{number}x{round}":{round}}}"#)).send();
        let replies = (0..15).map(merge).inspect(|reply| reply.is_status(204));
        replies.map(|reply| reply.header("ETag").expect("an etag").to_owned()).collect::<Vec<_>>()
    });
    let members = fleet.client(1).get(&path).accept("application/json;odata=nometadata").send().json();
    assert_eq!(members.as_object().map(|members| members.len()), Some(3 + CLIENTS * 15));
    let distinct: BTreeSet<_> = etags.concat().into_iter().collect();
    assert_eq!(distinct.len(), CLIENTS * 15, "an etag came twice");
}

#[test]
fn m1_of_many_inserts_through_different_servers_one_wins() {
    let fleet = fleet();
    for round in 0..10 {
        let row = format!("r{round}");
        let statuses = together(&fleet, CLIENTS, |client, number| {
            client.post("/tab", entity("p", &row, &format!(r#""N":{number}"#))).send().status
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 409).count(), CLIENTS - 1, "{statuses:?}");
        let winner = statuses.iter().position(|status| *status == 201);
        for client in fleet.clients() {
            let found = client.get(&entity_path("tab", "p", &row)).send().json()["N"].as_u64();
            assert_eq!(found.map(|number| number as usize), winner);
        }
    }
}

#[test]
fn m9_transactions_of_different_servers_never_interleave() {
    let fleet = fleet();
    together(&fleet, CLIENTS, |client, number| {
        for round in 0..10 {
            let members = format!(r#""By":"{number}-{round}""#);
            // Rows in opposite orders, which would wait for each other in a circle.
            let rows = (0..10).map(|row| if number % 2 == 0 { row } else { 9 - row });
            let add = |batch: Batch, row: usize| batch.upsert(client, "tab", "p", &format!("r{row}"), &members);
            assert_eq!(rows.fold(Batch::new(), add).send(client).statuses(), [204; 10]);
            let seen = client.get("/tab()").send().column("By");
            assert_eq!(seen.len(), 10);
            assert!(seen.iter().all(|by| *by == seen[0]), "{seen:?}");
        }
    });
}

#[test]
fn d7_of_many_creations_through_different_servers_one_wins() {
    let fleet = fleet();
    for round in 0..8 {
        let create = |client: &Client, number: usize| {
            let name = format!("race{round}");
            let name = if number.is_multiple_of(2) { name } else { name.to_uppercase() };
            client.post("/Tables", format!(r#"{{"TableName":"{name}"}}"#)).send().status
        };
        let statuses = together(&fleet, CLIENTS, create);
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 409).count(), CLIENTS - 1, "{statuses:?}");
        let drop = |client: &Client, _| client.delete(&format!("/Tables('race{round}')")).send().status;
        let dropped = together(&fleet, CLIENTS, drop);
        assert_eq!(dropped.iter().filter(|status| **status == 204).count(), 1, "{dropped:?}");
        assert_eq!(dropped.iter().filter(|status| **status == 404).count(), CLIENTS - 1, "{dropped:?}");
    }
}
