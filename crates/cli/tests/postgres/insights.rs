//! Insights of servers over one database: each stores its own figures, and any of them reports the sum.

use larimar_testkit::http::{entity_path, exchange};
use larimar_testkit::postgres::Cluster;
use larimar_testkit::{Launch, Server};
use larimar_tool::admin::find_token;
use serde_json::Value;

fn launch(folder: &tempfile::TempDir, number: usize, url: &str) -> Server {
    Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join(format!("data{number}"))).engine(url).start()
}

/// Sends a request for the insights of the development account.
fn insights(server: &Server, method: &str) -> Value {
    let (runtime, address) = (server.runtime_directory(), server.admin_address());
    let token = find_token(Some(&runtime.join("larimar")), &server.data(), address.port());
    let token = token.expect("readable files").expect("a token");
    let request = format!(
        "{method} /insights?account=devstoreaccount1 HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\n\r\n"
    );
    let reply = exchange(address, request.as_bytes()).expect("an answer");
    reply.is_status(200);
    reply.json()
}

/// Requests of an operation of the one table: how many, and how many of them were done.
fn requests(report: &Value, operation: &str) -> (u64, u64) {
    let operations = report["tables"][0]["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = operations.iter().find(|figures| figures["operation"] == operation);
    let number = |name: &str| found.and_then(|figures| figures[name].as_u64()).unwrap_or_default();
    (number("requests"), number("done"))
}

#[test]
fn figures_of_all_servers_are_summed_and_removed() {
    let folder = tempfile::tempdir().expect("a directory");
    let url = Cluster::shared().fresh_url();
    let (one, other) = (launch(&folder, 0, &url), launch(&folder, 1, &url));
    one.client().create_table("tab");
    one.client().insert("tab", "p", "r", "");
    for (server, gets) in [(&one, 4), (&other, 7)] {
        for _ in 0..gets {
            server.client().get(&entity_path("tab", "p", "r")).send().is_status(200);
        }
    }
    assert_eq!(requests(&insights(&other, "GET"), "get"), (7, 7), "the figures of the other server are not stored yet");
    one.stop();
    let report = insights(&other, "GET");
    assert_eq!((requests(&report, "get"), requests(&report, "insert")), ((11, 11), (1, 1)));
    assert_eq!(report["tables"][0]["partitions"][0]["rowsSeen"], 1, "the same row on both servers");
    let (launch, _) = other.stop();
    let third = launch.start();
    assert_eq!(requests(&insights(&third, "GET"), "get"), (11, 11));
    insights(&third, "DELETE");
    assert_eq!(requests(&insights(&third, "GET"), "get"), (0, 0));
}

/// A server that still knows the table of before runs the request twice.
#[test]
fn a_request_that_is_run_again_counts_once() {
    let folder = tempfile::tempdir().expect("a directory");
    let url = Cluster::shared().fresh_url();
    let (one, other) = (launch(&folder, 0, &url), launch(&folder, 1, &url));
    one.client().create_table("tab");
    for round in 1..=5_u64 {
        one.client().get("/tab()").send().is_status(200);
        other.client().delete("/Tables('tab')").send().is_status(204);
        other.client().create_table("tab");
        one.client().insert("tab", "p", "r", "");
        assert_eq!(requests(&insights(&one, "GET"), "insert"), (round, round));
    }
}

/// More servers than there are numbers of rows need to be: at least two of five write the same rows.
#[test]
fn servers_that_store_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let url = Cluster::shared().fresh_url();
    let servers: Vec<_> = (0..5).map(|number| launch(&folder, number, &url)).collect();
    servers[0].client().create_table("tab");
    servers[0].client().insert("tab", "p", "r", "");
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| {
                (0..20).for_each(|_| server.client().get(&entity_path("tab", "p", "r")).send().is_status(200))
            });
        }
    });
    let launch = std::thread::scope(|scope| {
        let stops: Vec<_> = servers.into_iter().map(|server| scope.spawn(|| server.stop().0)).collect();
        stops.into_iter().map(|stop| stop.join().expect("it stops")).next().expect("a server")
    });
    let report = insights(&launch.start(), "GET");
    assert_eq!(requests(&report, "get"), (100, 100));
    assert_eq!(report["tables"][0]["partitions"][0]["reads"], 100);
}
