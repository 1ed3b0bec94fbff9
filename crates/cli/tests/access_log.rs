//! The access log: a line for each request, whole and without secrets whatever clients send, rotated at SIGHUP.

use larimar_testkit::http::{Client, Sas, entity, entity_path, exchange};
use larimar_testkit::{Launch, Server};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const SECRET: &str = "s3cret";
const ACCOUNT: &str = "/devstoreaccount1";

fn launch(folder: &Path) -> Launch {
    let log = folder.join("access");
    Launch::new(EXE, folder.join("data")).argument("--access-log").argument(log.to_str().expect("text"))
}

/// The lines of the log, once the server has ended. Each is JSON and bounded.
fn lines(server: Server, folder: &Path) -> Vec<Value> {
    assert_eq!(server.stop().1.code(), Some(0));
    read(&folder.join("access"))
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("text");
    assert!(text.is_empty() || text.ends_with('\n'));
    let parse = |line: &str| {
        assert!(line.len() < 16 << 10, "{} bytes", line.len());
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    text.lines().map(parse).collect()
}

#[test]
fn each_request_has_a_line_with_what_it_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = launch(folder.path()).start();
    let (tables, queues, blobs) = (server.client(), server.queues(), server.blobs());
    tables.create_table("people");
    let inserted = tables.post("/people", entity(SECRET, "r", "")).header("x-ms-client-request-id", "mine").send();
    inserted.is_status(201);
    tables.get(&entity_path("people", SECRET, "none")).header("User-Agent", "test/1").send().is_status(404);
    tables.delete("/Tables('people')").send().is_status(204);
    queues.put("/jobs", "").send().is_status(201);
    blobs.put("/box?restype=container", "").send().is_status(201);
    let large = vec![7; 3 << 20];
    blobs.put("/box/a%20b", large.clone()).header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    assert_eq!(blobs.get("/box/a%20b").send().body.len(), large.len());
    blobs.anonymous().get("/box/a%20b").send().is_status(401);
    let lines = lines(server, folder.path());
    let columns = ["service", "operation", "method", "resource", "status", "code", "auth"];
    let shown: Vec<String> = lines
        .iter()
        .map(|line| columns.map(|name| line[name].to_string().trim_matches('"').to_owned()).join(" "))
        .collect();
    assert_eq!(
        shown,
        [
            "table CreateTable POST /Tables 201 null authenticated",
            "table InsertEntity POST /people 201 null authenticated",
            "table QueryEntity GET /people 404 ResourceNotFound authenticated",
            "table DeleteTable DELETE /Tables('people') 204 null authenticated",
            "queue CreateQueue PUT /jobs 201 null authenticated",
            "blob CreateContainer PUT /box 201 null authenticated",
            "blob PutBlob PUT /box/a b 201 null authenticated",
            "blob GetBlob GET /box/a b 200 null authenticated",
            "blob GetBlob GET /box/a b 401 NoAuthenticationInformation anonymous",
        ]
    );
    for line in &lines {
        assert_eq!((&line["account"], &line["client"]), (&"devstoreaccount1".into(), &"127.0.0.1".into()), "{line}");
        assert_eq!(line["complete"], true, "{line}");
        assert!(line["ms"].is_f64() && line["client_port"].is_u64() && line["time"].is_string(), "{line}");
        assert!(line["bytes_in"].is_u64() && line["bytes_out"].is_u64(), "{line}");
    }
    assert_eq!(lines[1]["request_id"].as_str(), inserted.header("x-ms-request-id"));
    assert_eq!((&lines[1]["client_request_id"], &lines[2]["user_agent"]), (&"mine".into(), &"test/1".into()));
    assert_eq!(lines[1]["bytes_in"], entity(SECRET, "r", "").len());
    assert_eq!((&lines[6]["bytes_in"], &lines[7]["bytes_out"]), (&large.len().into(), &large.len().into()));
    assert!(!fs::read_to_string(folder.path().join("access")).expect("text").contains(SECRET));
}

/// Targets with keys, signatures, control characters and long names.
fn hostile_targets(token: &str) -> Vec<String> {
    let long = "%22%0A".repeat(1400);
    vec![
        format!("{ACCOUNT}/people(PartitionKey='{SECRET}',RowKey='x')"),
        format!("{ACCOUNT}/people%28PartitionKey=%27{SECRET}%27%29"),
        format!("{ACCOUNT}/people%FF%28PartitionKey=%27{SECRET}%27%29"),
        format!("{ACCOUNT}/people%3Fsv=2020&sig={SECRET}"),
        format!("{ACCOUNT}/people%253Fsig%253D{SECRET}"),
        format!("{ACCOUNT}/people?{token}&sig={SECRET}&%73ig={SECRET}"),
        format!("{ACCOUNT}/{long}"),
        format!("{ACCOUNT}/%00%01%1F%7F%E2%80%A8%F0%9F"),
        format!("/nobody/{long}?sig={SECRET}"),
        format!("http://user:{SECRET}@x{ACCOUNT}/people"),
        format!("{ACCOUNT}/$batch/../%2e%2e/people"),
        "*".to_owned(),
    ]
}

/// Hostile requests: what reaches a service has a line, and no line has a literal, a key or a signature.
#[test]
fn hostile_requests_break_no_line_and_leak_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = launch(folder.path()).start();
    let client = server.client();
    client.create_table("people");
    let token = Sas::table("people", "r").token();
    let signature = token.split('&').find_map(|part| part.strip_prefix("sig=")).expect("a signature").to_owned();
    client.with_sas(&token).get("/people()").send().is_status(200);
    let mut requests = 2;
    for filter in [
        format!("Name eq '{SECRET}' and Age gt 5"),
        format!("{} eq '{SECRET}'", "N".repeat(8192)),
        format!("'{SECRET}\n\"{{}}' eq Name or X'00' eq B"),
        format!("Name eq '{SECRET}"),
    ] {
        let _ = client.get("/people()").query("$filter", &filter).query("$select", SECRET).send();
        requests += 1;
    }
    let raw = |target: &str, headers: &[u8]| {
        let mut bytes = format!("GET {target} HTTP/1.1\r\nhost: x\r\n").into_bytes();
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(b"connection: close\r\n\r\n");
        exchange(server.table_address(), &bytes).expect("an answer")
    };
    let before = requests;
    for target in hostile_targets(&token) {
        let _ = raw(&target, b"");
        requests += 1;
    }
    let agent = format!("user-agent: {}\"\\\t{{}} sig={SECRET}\r\n", "a".repeat(100));
    let id = format!("x-ms-client-request-id: \"\t{}\r\n", "b".repeat(8192));
    let key =
        format!("authorization: SharedKey devstoreaccount1:{SECRET}\r\nx-ms-copy-source: http://h/?sig={SECRET}\r\n");
    for header in
        [agent.as_bytes(), id.as_bytes(), key.as_bytes(), b"user-agent: \xff\xfe\x80\r\n", b"cookie: s3cret\r\n"]
    {
        let _ = raw(&format!("{ACCOUNT}/people"), header);
        requests += 1;
    }
    let lines = lines(server, folder.path());
    let text = fs::read_to_string(folder.path().join("access")).expect("text");
    assert!(!text.contains(SECRET), "{:#?}", text.lines().find(|line| line.contains(SECRET)));
    assert!(!text.contains(&signature));
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    // A target that is not one is refused before there is a request.
    assert!(requests - 1 <= lines.len() && lines.len() <= requests, "{} lines for {requests} requests", lines.len());
    let strangers = lines.iter().skip(before).filter(|line| line["account"].is_null()).count();
    assert!((1..=3).contains(&strangers), "{strangers} requests name no account that is served");
}

#[test]
fn a_request_that_is_cut_off_has_a_line_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = launch(folder.path()).argument("--shutdown-grace=100ms").start();
    let client = server.client();
    client.create_table("late");
    let request = client.post("/late", entity("p", "r", "")).header("Expect", "100-continue").to_bytes();
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let mut stream = TcpStream::connect(server.table_address()).expect("the server accepts");
    stream.write_all(&request[..end]).expect("the head is sent");
    // The server asks for the body: the request is in the handler.
    stream.read_exact(&mut [0; 25]).expect("an interim answer");
    stream.write_all(&request[end..end + 10]).expect("a part of the body is sent");
    let lines = lines(server, folder.path());
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert_eq!((&lines[1]["operation"], &lines[1]["complete"]), (&"InsertEntity".into(), &false.into()));
    assert_eq!(lines[1]["status"], 499);
}

#[cfg(unix)]
#[test]
fn the_file_is_opened_again_at_a_hangup_also_if_the_settings_are_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("larimar.toml");
    fs::write(&config, "").expect("a file");
    let launch = launch(folder.path()).argument("--config").argument(config.to_str().expect("text"));
    let server = launch.start();
    let client = server.client();
    client.get("/Tables").send().is_status(200);
    fs::write(&config, "strickt = true").expect("a file");
    let (log, old) = (folder.path().join("access"), folder.path().join("access.1"));
    fs::rename(&log, &old).expect("a rename");
    assert!(Command::new("kill").args(["-HUP", &server.pid().to_string()]).status().expect("kill runs").success());
    for _ in 0..2000 {
        if log.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    client.create_table("people");
    let new = lines(server, folder.path());
    assert_eq!(read(&old).len(), 1);
    assert_eq!((new.len(), &new[0]["operation"]), (1, &"CreateTable".into()));
}

#[test]
fn a_target_that_is_no_file_is_refused_in_plain_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for (target, expected) in [
        (folder.path().to_owned(), "is not a regular file"),
        (pipe, "is not a regular file"),
        (folder.path().join("none/access"), "cannot be opened: No such file or directory"),
        (folder.path().join("data/access"), "expected a file outside of the data directory"),
    ] {
        let output = Command::new(EXE)
            .args(["serve", "--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=0", "--data-dir"])
            .arg(folder.path().join("data"))
            .arg("--access-log")
            .arg(&target)
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("setting access_log (flag --access-log): ") && said.contains(expected), "{said}");
        assert!(!folder.path().join("data").exists(), "nothing has happened");
    }
}

#[test]
fn without_the_setting_or_with_off_there_is_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("larimar.toml");
    fs::write(&config, "access_log = 'off'").expect("a file");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--config");
    let server = launch.argument(config.to_str().expect("text")).start();
    let list = |client: &Client| client.get("/Tables").send().is_status(200);
    list(&server.client());
    let server = server.stop().0.argument("--access-log=off").start();
    list(&server.client());
    assert!(!folder.path().join("off").exists() && !Path::new("off").exists());
}
