//! Many clients at once: no update is lost, one insert wins, transactions do not interleave (M7, M9).

use super::serve_table;
use larimar_testkit::http::{Batch, Client, entity, entity_path};
use std::collections::BTreeSet;

const CLIENTS: usize = 8;

/// Runs work for each of several clients at once and returns their results.
fn together<R: Send>(client: &Client, work: impl Fn(&Client, usize) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (client, work) = (Client::new(client.address()), &work);
                scope.spawn(move || work(&client, number))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn m7_concurrent_writers_with_etags_lose_no_update() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""N":0"#);
    let path = entity_path("tab", "p", "r");
    let won: usize = together(&client, |client, _| {
        let mut won = 0;
        for _ in 0..30 {
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
    })
    .iter()
    .sum();
    assert_eq!(client.get(&path).send().json()["N"], won);
}

#[test]
fn m3_concurrent_merges_of_different_properties_all_stay() {
    let server = serve_table();
    let client = server.client();
    let path = entity_path("tab", "p", "r");
    let etags = together(&client, |client, number| {
        let merge = |round: usize| client.merge(&path, format!(r#"{{"P{number}x{round}":{round}}}"#)).send();
        let replies = (0..20).map(merge).inspect(|reply| reply.is_status(204));
        replies.map(|reply| reply.header("ETag").expect("an etag").to_owned()).collect::<Vec<_>>()
    });
    let members = client.get(&path).accept("application/json;odata=nometadata").send().json();
    assert_eq!(members.as_object().map(|members| members.len()), Some(3 + CLIENTS * 20));
    let distinct: BTreeSet<_> = etags.concat().into_iter().collect();
    assert_eq!(distinct.len(), CLIENTS * 20, "an etag came twice");
}

#[test]
fn m1_of_many_concurrent_inserts_one_wins() {
    let server = serve_table();
    let client = server.client();
    for round in 0..10 {
        let row = format!("r{round}");
        let statuses = together(&client, |client, number| {
            client.post("/tab", entity("p", &row, &format!(r#""N":{number}"#))).send().status
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 409).count(), CLIENTS - 1, "{statuses:?}");
        let winner = statuses.iter().position(|status| *status == 201);
        assert_eq!(client.get(&entity_path("tab", "p", &row)).send().json()["N"].as_u64().map(|n| n as usize), winner);
    }
}

#[test]
fn m9_transactions_over_the_same_entities_never_interleave() {
    let server = serve_table();
    let client = server.client();
    together(&client, |client, number| {
        for round in 0..15 {
            let members = format!(r#""By":"{number}-{round}""#);
            let rows = (0..10).map(|row| if number % 2 == 0 { row } else { 9 - row });
            let batch =
                rows.fold(Batch::new(), |batch, row| batch.upsert(client, "tab", "p", &format!("r{row}"), &members));
            assert_eq!(batch.send(client).statuses(), [204; 10]);
            let seen = client.get("/tab()").send().column("By");
            assert_eq!(seen.len(), 10);
            assert!(seen.iter().all(|by| *by == seen[0]), "{seen:?}");
        }
    });
}

#[test]
fn d7_of_many_concurrent_creations_one_wins() {
    let server = serve_table();
    let client = server.client();
    for round in 0..5 {
        let create = |client: &Client, number: usize| {
            let name = format!("race{round}");
            let name = if number.is_multiple_of(2) { name } else { name.to_uppercase() };
            client.post("/Tables", format!(r#"{{"TableName":"{name}"}}"#)).send().status
        };
        let statuses = together(&client, create);
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        let dropped = together(&client, |client, _| client.delete(&format!("/Tables('race{round}')")).send().status);
        assert_eq!(dropped.iter().filter(|status| **status == 204).count(), 1, "{dropped:?}");
    }
}
