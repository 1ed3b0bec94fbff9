//! Storage analytics of the built binary, switched on and read as any client does it.

use larimar_testkit::http::{Client, Response};
use larimar_testkit::{Launch, Server, TemporaryServer};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const ARGUMENTS: [&str; 6] = ["--durability", "async", "--log-level", "warn", "--analytics-flush", "1s"];
const ON: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read>\
                  <Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
                  </StorageServiceProperties>";

fn switch_on(client: &Client) {
    client.put("/?restype=service&comp=properties", ON).send().is_status(202);
}

/// The names of the logs that there are, with this beginning.
fn logs(blobs: &Client, prefix: &str) -> Vec<String> {
    let listed = blobs.get(&format!("/$logs?restype=container&comp=list&prefix={prefix}")).send();
    listed.is_status(200);
    listed.elements("Name").into_iter().map(str::to_owned).collect()
}

/// All lines of the logs with this beginning.
fn lines(blobs: &Client, prefix: &str) -> String {
    let texts = logs(blobs, prefix).into_iter().map(|name| {
        let read = blobs.get(&format!("/$logs/{name}")).send();
        read.is_status(200);
        read.text().to_owned()
    });
    texts.collect()
}

/// Waits until a question has an answer. How long that takes is not what is tested.
fn eventually<T>(what: &str, ask: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn put_blob(blobs: &Client, path: &str, body: &str) -> Response {
    blobs.put(path, body).header("x-ms-blob-type", "BlockBlob").send()
}

#[test]
fn t13_requests_of_all_services_are_logged_to_blobs() {
    let server = TemporaryServer::start(EXE, &ARGUMENTS);
    let (tables, queues, blobs) = (server.client(), server.queues(), server.blobs());
    for client in [&tables, &queues, &blobs] {
        switch_on(client);
    }
    tables.create_table("people");
    queues.put("/jobs", "").send().is_status(201);
    blobs.put("/stuff?restype=container", "").send().is_status(201);
    put_blob(&blobs, "/stuff/a%20b", "12345").is_status(201);
    blobs.get("/stuff/a%20b").send().is_status(200);
    blobs.get("/stuff/missing").send().is_status(404);
    for (prefix, expected) in [
        ("table/", &[";CreateTable;Success;201;"][..]),
        ("queue/", &[";CreateQueue;Success;201;"][..]),
        (
            "blob/",
            &[
                ";CreateContainer;Success;201;",
                ";PutBlob;Success;201;",
                ";GetBlob;Success;200;",
                ";GetBlob;BlobNotFound;404;",
                ";\"/devstoreaccount1/stuff/a b\";",
            ][..],
        ),
    ] {
        eventually(prefix, || {
            let text = lines(&blobs, prefix);
            expected.iter().all(|line| text.contains(line)).then_some(())
        });
    }
    let name = logs(&blobs, "table/").remove(0);
    let parts: Vec<&str> = name.split('/').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [5, 4, 2, 2, 4, 10], "{name}");
    assert!(parts[4].ends_with("00") && parts[5] == "000000.log", "{name}");
    let read = blobs.request("HEAD", &format!("/$logs/{name}")).send();
    for (header, length) in [("starttime", 20), ("endtime", 20)] {
        let value = read.header(&format!("x-ms-meta-{header}"));
        assert_eq!(value.map(str::len), Some(length), "{read}");
    }
    assert_eq!(read.header("x-ms-meta-logversion"), Some("1.0"));
    assert_eq!(read.header("x-ms-meta-logtype"), Some("write"));
}

#[test]
fn x3_logs_are_hidden_and_their_owner_may_only_read_and_delete_them() {
    let server = TemporaryServer::start(EXE, &ARGUMENTS);
    let (tables, blobs) = (server.client(), server.blobs());
    blobs.put("/$logs?restype=container", "").send().is_error(403, "AuthorizationFailure");
    switch_on(&tables);
    let name = eventually("a log", || logs(&blobs, "table/").pop());
    let listed = blobs.get("/?comp=list").send();
    assert!(listed.elements("Name").is_empty(), "{listed}");
    let path = format!("/$logs/{name}");
    blobs.request("DELETE", "/$logs?restype=container").send().is_error(403, "AuthorizationFailure");
    put_blob(&blobs, "/$logs/table/mine.log", "").is_error(403, "AuthorizationFailure");
    put_blob(&blobs, &path, "").is_error(403, "AuthorizationFailure");
    blobs.put(&format!("{path}?comp=metadata"), "").send().is_error(403, "AuthorizationFailure");
    blobs.request("DELETE", &path).send().is_status(202);
    assert!(!logs(&blobs, "table/").contains(&name));
}

#[test]
fn x3_what_was_observed_survives_a_polite_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--log-level").argument("warn");
    let server = launch.start();
    switch_on(&server.client());
    server.client().create_table("people");
    let (launch, status) = server.stop();
    assert!(status.success());
    let server: Server = launch.start();
    let text = lines(&server.blobs(), "table/");
    assert!(text.contains(";CreateTable;Success;201;"), "{text}");
    let hours = server.client().get("/%24MetricsHourPrimaryTransactionsTable()").send();
    assert!(hours.column("RowKey").contains(&"user;CreateTable".to_owned()), "{hours}");
    // The settings survive as well, and the next log takes the next name.
    server.client().delete("/Tables('people')").send().is_status(204);
    let server = server.stop().0.start();
    assert_eq!(logs(&server.blobs(), "table/").len(), 2);
}

#[test]
fn x3_hours_can_be_read_while_they_last() {
    let server = TemporaryServer::start(EXE, &ARGUMENTS);
    server.client().create_table("people");
    let rows = eventually("metrics", || {
        let rows = server.client().get("/$MetricsHourPrimaryTransactionsTable()").send();
        (rows.status == 200 && !rows.values().is_empty()).then_some(rows)
    });
    assert!(rows.column("RowKey").contains(&"user;All".to_owned()), "{rows}");
    assert_eq!(server.client().get("/Tables").send().column("TableName"), ["people"]);
}
