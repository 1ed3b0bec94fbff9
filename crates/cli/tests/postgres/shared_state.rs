//! State that one server receives and the others must use: policies, service properties, continuations (D8, Q9, S4).

use super::fleet::{Fleet, eventually};
use larimar_testkit::http::{Batch, Client, Sas};
use larimar_testkit::postgres::Cluster;
use std::time::Duration;

/// It should take a second; a busy machine may take longer.
const SOON: Duration = Duration::from_secs(5);
const PROPERTIES: &str = "/?restype=service&comp=properties";

#[test]
fn d8_a_policy_set_on_one_server_counts_on_all() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    let first = fleet.client(0);
    first.create_table("tab");
    let holders: Vec<Client> =
        fleet.clients().iter().map(|client| client.with_sas(&Sas::policy("tab", "readers").token())).collect();
    let allowed = |holder: &Client| holder.get("/tab()").send().status == 200;
    for (client, holder) in fleet.clients().iter().zip(&holders) {
        client.get("/tab()").send().is_status(200);
        assert!(!allowed(holder), "the policy is not set yet");
    }
    let policy = "<AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy>";
    let identifiers =
        format!("<SignedIdentifiers><SignedIdentifier><Id>readers</Id>{policy}</SignedIdentifier></SignedIdentifiers>");
    first.request("PUT", "/tab?comp=acl").xml(identifiers).send().is_status(204);
    for (number, holder) in holders.iter().enumerate() {
        assert!(allowed(holder), "the policy counts on server {number} at once");
    }
    fleet.client(1).request("PUT", "/tab?comp=acl").xml("").send().is_status(204);
    for (number, holder) in holders.iter().enumerate() {
        eventually(&format!("the policy is void on server {number}"), SOON, || !allowed(holder));
    }
}

#[test]
fn service_properties_set_on_one_server_count_on_all() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    let rule = "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>http://one.test</AllowedOrigins>\
        <AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>7</MaxAgeInSeconds></CorsRule>";
    let shown =
        |client: &Client| client.get(PROPERTIES).accept("application/xml").send().text().contains("http://one.test");
    let enforced = |client: &Client| {
        let request = client.request("OPTIONS", "/tab").unsigned().header("Origin", "http://one.test");
        request.header("Access-Control-Request-Method", "GET").send().status == 200
    };
    for (inside, is_there) in [(rule, true), ("", false)] {
        let body = format!("<StorageServiceProperties><Cors>{inside}</Cors></StorageServiceProperties>");
        // All have asked before.
        for client in fleet.clients() {
            assert_eq!((shown(&client), enforced(&client)), (!is_there, !is_there));
        }
        fleet.client(1).request("PUT", PROPERTIES).xml(body).send().is_status(202);
        for (number, client) in fleet.clients().iter().enumerate() {
            assert_eq!((shown(client), enforced(client)), (is_there, is_there), "server {number}");
        }
    }
}

#[test]
fn q9_a_query_goes_on_at_another_server() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    let clients = fleet.clients();
    clients[0].create_table("tab");
    let mut expected = Vec::new();
    for partition in ["", "a", "a'b", "b c", "é", "日本"] {
        for part in 0..2 {
            let rows: Vec<String> = (0..40).map(|row| format!("{part}-{row:02}")).collect();
            let add = |batch: Batch, row: &String| batch.insert(&clients[1], "tab", partition, row, "");
            assert_eq!(rows.iter().fold(Batch::new(), add).send(&clients[1]).statuses(), [204; 40]);
            expected.extend(rows.into_iter().map(|row| (partition.to_owned(), row)));
        }
    }
    let mut found = Vec::new();
    let mut token = None::<(String, String)>;
    for page in 0..1000 {
        let mut request = clients[page % clients.len()].get("/tab()").query("$top", "7");
        if let Some((partition, row)) = &token {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let reply = request.send();
        reply.is_status(200);
        found.extend(reply.column("PartitionKey").into_iter().zip(reply.column("RowKey")));
        let part = |name: &str| reply.header(name).map(str::to_owned);
        token = part("x-ms-continuation-NextPartitionKey").zip(part("x-ms-continuation-NextRowKey"));
        if token.is_none() {
            break;
        }
    }
    assert_eq!(found, expected, "every row once, in order");
}

#[test]
fn d7_a_list_of_tables_goes_on_at_another_server() {
    let fleet = Fleet::start(&Cluster::shared().fresh_url());
    let clients = fleet.clients();
    let expected: Vec<String> = (0..20).map(|number| format!("table{number:02}")).collect();
    for (number, table) in expected.iter().enumerate() {
        clients[number % clients.len()].create_table(table);
    }
    let (mut found, mut next) = (Vec::new(), None::<String>);
    for page in 0..100 {
        let request = clients[page % clients.len()].get("/Tables").query("$top", "3");
        let reply = next.iter().fold(request, |request, next| request.query("NextTableName", next)).send();
        found.extend(reply.column("TableName"));
        next = reply.header("x-ms-continuation-NextTableName").map(str::to_owned);
        if next.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
}
