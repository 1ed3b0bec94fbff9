//! Tables that one server drops and makes again, and what the others say of it at once (D5, D7).

use super::fleet::Fleet;
use larimar_testkit::http::{Batch, Client, entity, entity_path};
use larimar_testkit::postgres::Cluster;

const ROUNDS: usize = 8;

/// Three clients, the first of another server each round.
fn clients(fleet: &Fleet, round: usize) -> [Client; 3] {
    [fleet.client(round), fleet.client(round + 1), fleet.client(round + 2)]
}

#[test]
fn a_table_made_again_on_one_server_is_new_on_all_at_once() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    fleet.client(0).create_table("again");
    for round in 0..ROUNDS {
        let [one, two, three] = clients(&fleet, round);
        // All of them know the table, with a row that is to go with it.
        for (number, client) in [&one, &two, &three].into_iter().enumerate() {
            client.insert("again", "p", &format!("old{number}"), "");
        }
        one.delete("/Tables('again')").send().is_status(204);
        one.create_table("again");
        two.insert("again", "p", "new", &format!(r#""Round":{round}"#));
        for client in [&three, &one, &two] {
            let found = client.get(&entity_path("again", "p", "new")).send();
            found.is_status(200);
            assert_eq!(found.json()["Round"].as_u64(), Some(round as u64));
            assert_eq!(client.get("/again()").send().column("RowKey"), ["new"]);
            let old = client.get(&entity_path("again", "p", "old1")).send();
            old.is_error(404, "ResourceNotFound");
        }
        three.merge(&entity_path("again", "p", "new"), r#"{"More":1}"#).send().is_status(204);
        three.delete(&entity_path("again", "p", "new")).send().is_status(204);
    }
}

#[test]
fn a_read_right_after_the_table_was_made_again_finds_it_empty() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    fleet.client(0).create_table("again");
    for round in 0..ROUNDS {
        let [one, two, three] = clients(&fleet, round);
        for client in [&one, &two, &three] {
            client.insert("again", "p", &format!("{}", client.address()), "");
        }
        one.delete("/Tables('again')").send().is_status(204);
        one.create_table("again");
        // Only reads: no write makes these servers notice that what they remember is outdated.
        assert_eq!(two.get("/again()").send().column("RowKey"), [""; 0]);
        three.get(&entity_path("again", "p", &three.address().to_string())).send().is_error(404, "ResourceNotFound");
        assert_eq!(three.get("/again()").send().column("RowKey"), [""; 0]);
    }
}

#[test]
fn a_dropped_table_is_refused_on_all_servers_at_once() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    for round in 0..ROUNDS {
        let [one, two, three] = clients(&fleet, round);
        one.create_table("gone");
        for client in [&one, &two, &three] {
            client.insert("gone", "p", &format!("{}", client.address()), "");
        }
        one.delete("/Tables('gone')").send().is_status(204);
        for client in [&two, &three, &one] {
            let row = format!("{}", client.address());
            let path = entity_path("gone", "p", &row);
            client.post("/gone", entity("p", "fresh", "")).send().is_error(404, "TableNotFound");
            client.put(&path, r#"{"A":1}"#).send().is_error(404, "TableNotFound");
            client.merge(&path, r#"{"A":1}"#).if_match("*").send().is_error(404, "TableNotFound");
            client.delete(&path).send().is_error(404, "TableNotFound");
            let batch = Batch::new().upsert(client, "gone", "p", "a", "").insert(client, "gone", "p", "b", "");
            batch.send(client).parts[0].response.is_error(404, "TableNotFound");
            client.get(&path).send().is_error(404, "TableNotFound");
            client.get("/gone()").send().is_error(404, "TableNotFound");
            client.delete("/Tables('gone')").send().is_error(404, "ResourceNotFound");
        }
    }
}

#[test]
fn a_table_made_on_one_server_is_there_on_all_at_once() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    for round in 0..ROUNDS {
        let [one, two, three] = clients(&fleet, round);
        let table = format!("made{round}");
        // They were asked before, and must not remember that it was not there.
        for client in [&one, &two, &three] {
            client.get(&format!("/{table}()")).send().is_error(404, "TableNotFound");
        }
        one.create_table(&table);
        two.insert(&table, "p", "r", "");
        assert_eq!(three.get(&format!("/{table}()")).send().column("RowKey"), ["r"]);
        for client in fleet.clients() {
            assert!(client.get("/Tables").send().column("TableName").contains(&table));
        }
    }
}
