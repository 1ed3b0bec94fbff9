//! Storage analytics of servers that share a database: all of them return the same logs and metrics.

use super::fleet::{EVENTUALLY, Fleet, SERVERS, eventually, together};
use larimar_testkit::http::Client;
use larimar_testkit::postgres::Cluster;
use std::collections::BTreeSet;

const TABLES: usize = 12;
const LOGGED: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read>\
                      <Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
                      </StorageServiceProperties>";

fn start() -> (Fleet, tempfile::TempDir) {
    let url = Cluster::shared().fresh_url();
    let store = tempfile::tempdir().expect("a folder");
    let store_url = format!("file://{}", store.path().display());
    let fleet = Fleet::start_each(
        &[(); SERVERS].map(|()| url.clone()),
        &["--analytics-flush", "1s", "--blob-store", &store_url],
    );
    (fleet, store)
}

/// How many tables were created, according to the metrics. The hour may change meanwhile.
fn created(client: &Client) -> u64 {
    let rows = client.get("/$MetricsHourPrimaryTransactionsTable()").send();
    if rows.status == 404 {
        return 0;
    }
    rows.is_status(200);
    let counts = rows.values().into_iter().filter(|row| row["RowKey"] == "user;CreateTable");
    counts.filter_map(|row| row["Success"].as_str()?.parse::<u64>().ok()).sum()
}

/// The texts of all logs.
fn logs(blobs: &Client) -> Vec<String> {
    let listed = blobs.get("/$logs?restype=container&comp=list").send();
    listed.is_status(200);
    let read = |name: &str| blobs.get(&format!("/$logs/{name}")).send().text().to_owned();
    listed.elements("Name").into_iter().map(read).collect()
}

#[test]
fn x3_metrics_of_all_servers_are_summed() {
    let (fleet, _store) = start();
    together(&fleet, TABLES, |client, number| client.create_table(&format!("counted{number}")));
    eventually("every table is counted", EVENTUALLY, || created(&fleet.client(0)) == TABLES as u64);
    assert_eq!(fleet.client(1).get("/Tables").send().column("TableName").len(), TABLES);
}

#[test]
fn x3_what_one_server_is_told_to_log_all_log_under_names_of_their_own() {
    let (fleet, _store) = start();
    fleet.client(0).put("/?restype=service&comp=properties", LOGGED).send().is_status(202);
    for (number, client) in fleet.clients().iter().enumerate() {
        // Each of them logs its own requests as soon as it knows that it should.
        let id = format!("server-{number}");
        let body = format!(r#"{{"TableName":"table{number}"}}"#);
        eventually("a server logs what it is asked", EVENTUALLY, || {
            let reply = client.post("/Tables", body.clone()).header("x-ms-client-request-id", &*id).send();
            assert!([201, 409].contains(&reply.status), "{reply}");
            logs(&fleet.blobs(0)).iter().any(|log| log.contains(&format!("\"{id}\"")))
        });
    }
    // No line is in two logs: no server overwrote a log, and nothing was written twice.
    let texts = logs(&fleet.blobs(1));
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len());
}
