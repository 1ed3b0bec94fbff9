//! The designer on the server: who may ask, and that its work is bounded.

use super::{launch, send};
use larimar_testkit::Server;
use larimar_testkit::http::{ACCOUNT, Response, Sas, exchange, read_response};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let token = Sas::account("sco", "rl").token();
    let target = format!("{path}?account={ACCOUNT}&{token}");
    exchange(server.admin_address(), &request(server, &target, headers, body)).expect("an answer")
}

fn request(server: &Server, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("POST {target} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        bytes.push_str(&format!("host: {}\r\n", server.admin_address()));
    }
    bytes.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    headers.iter().for_each(|(name, value)| bytes.push_str(&format!("{name}: {value}\r\n")));
    bytes.push_str("\r\n");
    [bytes.as_bytes(), body].concat()
}

fn ask(server: &Server, path: &str, body: &Value) -> Response {
    post(server, path, &[], body.to_string().as_bytes())
}

/// The largest description that is read: as many properties, queries and writes as may be.
fn largest() -> String {
    let property = |n| format!("[[property]]\nname = 'P{n}'\ntype = 'string'\ndistinct = {}\n", 10 + n * 7);
    let query = |n: usize| {
        let equals: Vec<_> = (0..8).map(|k| format!("'P{}'", (n * 5 + k * 3) % 128)).collect();
        format!("[[query]]\nname = 'q{n}'\nequals = [{}]\nrate = '9/s'\n", equals.join(", "))
    };
    let properties: String = (0..128).map(property).collect();
    let queries: String = (0..64).map(query).collect();
    format!("entity = 'E'\n[volume]\nentities = 1000000\n{properties}{queries}")
}

#[test]
fn a_described_entity_gets_designs_and_a_trial() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let list = ask(&server, "/design", &json!({ "examples": true }));
    assert!(list.status == 200 && list.json()["examples"][0]["name"] == "employees", "{list}");
    let example = ask(&server, "/design", &json!({ "example": "employees" })).json()["toml"].clone();
    let designs = ask(&server, "/design", &json!({ "toml": example }));
    designs.is_status(200);
    let designs = designs.json();
    let first = &designs["designs"][0];
    assert!(first["structures"][0]["partitionKey"].is_string() && first["queries"].is_array(), "{first}");
    let trial = ask(&server, "/design/trial", &json!({ "toml": example, "design": 1, "entities": 50 }));
    trial.is_status(200);
    let entity = &trial.json()["rows"][0]["entity"];
    assert!(entity["PartitionKey"].is_string() && entity["RowKey"].is_string(), "{entity}");
    let refused = ask(&server, "/design", &json!({ "toml": "entity = 'E'\n[volume]\nentity = 9\n" }));
    assert_eq!((refused.status, &refused.json()["line"]), (400, &3.into()), "{refused}");
    assert_eq!(ask(&server, "/design", &json!({})).status, 400);
    let largest = ask(&server, "/design", &json!({ "toml": largest() }));
    assert!(largest.status == 200 && !largest.json()["designs"].as_array().expect("designs").is_empty(), "{largest}");
}

#[test]
fn it_needs_credentials_and_an_origin_of_its_own() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    let (body, holds) = (br#"{"examples":true}"#, Sas::account("sco", "rl").token());
    let ask = |target: &str, headers: &[(&str, &str)]| {
        exchange(server.admin_address(), &request(&server, target, headers, body)).expect("an answer").status
    };
    let path = format!("/design?account={ACCOUNT}");
    assert_eq!(ask(&format!("{path}&{holds}"), &[]), 200);
    for (target, headers, status) in [
        (path.clone(), &[][..], 401),
        (format!("{path}&{}", Sas::table("people", "r").token()), &[], 401),
        (format!("{path}&{}", Sas::account("sco", "w").token()), &[], 401),
        (format!("/design?account=other&{holds}"), &[], 401),
        (format!("{path}&{holds}"), &[("origin", "http://evil.test")], 403),
        (format!("{path}&{holds}"), &[("host", "evil.test")], 403),
        (format!("/design/?account={ACCOUNT}&{holds}"), &[], 401),
    ] {
        assert_eq!(ask(&target, headers), status, "{target} {headers:?}");
    }
    let all = Sas::account("sco", "rwdlacup").token();
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(send(server.admin_address(), method, &format!("{path}&{all}"), &[]).status, 405, "{method}");
    }
    drop(server);
    let server = launch(&folder).argument("--console=false").start();
    let reply = exchange(server.admin_address(), &request(&server, &path, &[], body)).expect("an answer");
    assert_eq!(reply.status, 401, "{reply}");
}

#[test]
fn large_slow_and_many_requests_are_bounded() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--body-timeout=1s").start();
    let huge = format!("{{\"toml\":\"{}\"}}", "x".repeat(300 << 10));
    assert_eq!(post(&server, "/design", &[], huge.as_bytes()).status, 413);
    let (target, endless) =
        (format!("/design?account={ACCOUNT}&{}", Sas::account("sco", "rl").token()), vec![b' '; 1 << 20]);
    let chunked =
        format!("POST {target} HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n", server.admin_address());
    let chunked = [chunked.as_bytes(), format!("{:x}\r\n", endless.len()).as_bytes(), &endless].concat();
    assert_eq!(exchange(server.admin_address(), &chunked).expect("an answer").status, 413);
    let mut stream = TcpStream::connect(server.admin_address()).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let slow = request(&server, &target, &[], &[b' '; 1000]);
    stream.write_all(&slow[..slow.len() - 990]).expect("a part is sent");
    assert_eq!(read_response(&stream, true).expect("an answer").status, 408);
    // Many at a time: each is answered or told to come again, and the server goes on serving.
    let body = json!({ "toml": largest() });
    let statuses = thread::scope(|scope| {
        let threads: Vec<_> = (0..12).map(|_| scope.spawn(|| ask(&server, "/design", &body))).collect();
        let client = server.client();
        client.create_table("people");
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect::<Vec<_>>()
    });
    assert!(statuses.iter().any(|reply| reply.status == 200));
    for reply in statuses {
        assert!(reply.status == 200 || reply.status == 503 && reply.header("retry-after").is_some(), "{reply}");
    }
    let trial = ask(&server, "/design/trial", &json!({ "toml": largest(), "design": 1, "entities": 20_000 }));
    assert!(trial.status == 400 && trial.text().contains("32 MiB"), "{trial}");
}
