//! Live requests: who may watch which, that nothing secret is in them, and that watchers that are many, slow or gone do no harm.

use super::{launch, send};
use larimar_testkit::Server;
use larimar_testkit::http::{ACCOUNT, KEY, Sas, entity, entity_path};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SECRET: &str = "s3cret";
const OTHER_KEY: &str = "YSBrZXkgb2Ygb3RoZXJz";

/// A reader of the stream: the lines that are objects.
struct Watcher(BufReader<TcpStream>);

impl Watcher {
    /// Begins to watch, with a signature in the query.
    fn start(server: &Server, token: &str) -> Self {
        let mut stream = TcpStream::connect(server.admin_address()).expect("the server accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let (address, target) = (server.admin_address(), format!("/requests?account={ACCOUNT}&{token}"));
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).expect("a request");
        let mut watcher = Self(BufReader::new(stream));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(watcher.0.read_line(&mut head).expect("a line of the head") > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("application/x-ndjson"), "{head}");
        assert!(head.contains("transfer-encoding: chunked") && head.contains("no-store"), "{head}");
        // The first line, which is empty, says that the watch has begun.
        assert_eq!(watcher.line(), "");
        watcher
    }

    /// The next line of the answer, without the sizes of its chunks.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).expect("a line");
            assert!(read > 0, "the stream ended");
            let is_size = line.ends_with("\r\n");
            if !is_size {
                return line.trim_end().to_owned();
            }
        }
    }

    /// The next request.
    fn next(&mut self) -> Value {
        loop {
            let line = self.line();
            if !line.is_empty() {
                return serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            }
        }
    }
}

fn token(services: &str) -> String {
    Sas::account("sco", "rl").with("ss", services).token()
}

#[test]
fn each_request_of_the_account_is_seen_without_secrets() {
    let folder = tempfile::tempdir().expect("a directory");
    let accounts = format!("{ACCOUNT}:{KEY};other:{OTHER_KEY}");
    let launch = launch(&folder).argument("--shutdown-grace=10m").environment("LARIMAR_ACCOUNTS", &accounts);
    let server = launch.start();
    let (tables, blobs) = (server.client(), server.blobs());
    tables.create_table("people");
    let mut all = Watcher::start(&server, &token("bqt"));
    let mut of_blobs = Watcher::start(&server, &token("b"));
    server.client().of_account("other", OTHER_KEY).create_table("unseen");
    tables.insert("people", SECRET, "r", "");
    let sas = Sas::table("people", "r").token();
    tables
        .with_sas(&sas)
        .get(&entity_path("people", SECRET, "none"))
        .header("User-Agent", "mine")
        .send()
        .is_status(404);
    blobs.put("/box?restype=container", "").send().is_status(201);
    blobs.request("PUT", "/box/a").body(vec![7; 3 << 20]).header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    assert_eq!(blobs.get("/box/a").send().body.len(), 3 << 20);
    let seen: Vec<Value> = (0..5).map(|_| all.next()).collect();
    let shown =
        |line: &Value| format!("{} {} {} {}", line["service"], line["operation"], line["resource"], line["status"]);
    let shown: Vec<_> = seen.iter().map(|line| shown(line).replace('"', "")).collect();
    assert_eq!(
        shown,
        [
            "table InsertEntity /people 201",
            "table QueryEntity /people 404",
            "blob CreateContainer /box 201",
            "blob PutBlob /box/a 201",
            "blob GetBlob /box/a 200"
        ]
    );
    assert_eq!(
        (&seen[1]["user_agent"], &seen[1]["auth"], &seen[1]["client"]),
        (&"mine".into(), &"sas".into(), &"127.0.0.1".into())
    );
    assert_eq!((&seen[3]["bytes_in"], &seen[4]["bytes_out"]), (&(3 << 20).into(), &(3 << 20).into()));
    assert!(seen.iter().all(|line| line["ms"].is_f64() && line["time"].is_string()), "{seen:?}");
    let signature = sas.split("sig=").nth(1).expect("a signature");
    let text = format!("{seen:?}");
    assert!(!text.contains(SECRET) && !text.contains(signature) && !text.contains("sig="), "{text}");
    assert_eq!(of_blobs.next()["operation"], "CreateContainer", "a signature shows the services that it is for");
    // The server does not wait for those who watch: it ends long before the grace period does.
    assert_eq!(server.stop().1.code(), Some(0));
    let mut rest = String::new();
    all.0.read_to_string(&mut rest).expect("an orderly end");
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
}

#[test]
fn only_the_token_the_key_and_an_account_signature_open_them() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let address = server.admin_address();
    let path = format!("/requests?account={ACCOUNT}");
    let ask = |target: &str, headers: &[(&str, &str)]| send(address, "GET", target, headers).status;
    assert_eq!(ask(&path, &[]), 401);
    assert_eq!(ask(&path, &[("authorization", "Bearer wrong")]), 401);
    for token in [
        Sas::table("people", "r").token(),
        Sas::account("sco", "w").token(),
        Sas::account("s", "rl").token(),
        Sas::account("sco", "rl").with("se", "2020-01-01T00:00:00Z").token(),
        Sas::account("sco", "rl").with("sip", "10.0.0.1").token(),
        Sas::account("sco", "rl").with("spr", "https").token(),
        Sas::account("sco", "rl").token_signed_with(OTHER_KEY),
    ] {
        assert_eq!(ask(&format!("{path}&{token}"), &[]), 401, "{token}");
    }
    let holds = token("bqt");
    assert_eq!(ask(&format!("/requests?account=other&{holds}"), &[]), 401);
    assert_eq!(ask(&format!("/requests?{holds}"), &[]), 401);
    assert_eq!(ask(&format!("{path}&account=two&{holds}"), &[]), 400);
    assert_eq!(ask(&format!("{path}&{holds}"), &[("host", "evil.test")]), 403);
    assert_eq!(ask(&format!("{path}&{holds}"), &[("origin", "http://evil.test")]), 403);
    assert_eq!(send(address, "POST", &format!("{path}&{holds}"), &[]).status, 405);
    drop(server);
    let server = launch(&folder).argument("--console=false").start();
    assert_eq!(send(server.admin_address(), "GET", &format!("{path}&{holds}"), &[]).status, 404);
}

#[test]
fn watchers_are_limited_and_those_that_read_nothing_do_no_harm() {
    let folder = tempfile::tempdir().expect("a directory");
    // On a busy machine it takes a while until the watchers read.
    let server = launch(&folder).argument("--answer-timeout=10m").start();
    let target = format!("/requests?account={ACCOUNT}&{}", token("bqt"));
    let watchers: Vec<_> = (0..16).map(|_| Watcher::start(&server, &token("bqt"))).collect();
    let refused = send(server.admin_address(), "GET", &target, &[]);
    assert!(refused.status == 503 && refused.text().contains("16"), "{refused}");
    // None of them reads while requests go on.
    let client = server.client();
    client.create_table("people");
    let long = "x".repeat(200);
    for number in 0..500 {
        let request = client.get("/people()").header("User-Agent", long.as_str());
        let request = request.header("x-ms-client-request-id", format!("{number}-{long}"));
        request.send().is_status(200);
    }
    client.post("/people", entity("p", "r", "")).send().is_status(201);
    // The lines that one gets, and those it is told it has lost, are all of them.
    let mut watchers = watchers.into_iter();
    let mut one = watchers.next().expect("a watcher");
    let mut count = 0;
    while count < 502 {
        let line = one.next();
        count += line["lost"].as_u64().unwrap_or(1);
    }
    assert_eq!(count, 502);
    drop((one, watchers));
    // Those who are gone make room, at the latest when the next lines cannot be sent to them.
    let until = Instant::now() + Duration::from_secs(300);
    while send_some(&server, &target) != 200 {
        client.get("/people()").send().is_status(200);
        assert!(Instant::now() < until, "the places of watchers that are gone are not given up");
    }
    assert_eq!(client.get(&entity_path("people", "p", "r")).send().status, 200);
}

/// The status of a watch, which ends at once.
fn send_some(server: &Server, target: &str) -> u16 {
    let mut stream = TcpStream::connect(server.admin_address()).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let head = format!("GET {target} HTTP/1.1\r\nhost: {}\r\n\r\n", server.admin_address());
    stream.write_all(head.as_bytes()).expect("a request");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("a status");
    String::from_utf8_lossy(&status[9..]).parse().expect("a number")
}
