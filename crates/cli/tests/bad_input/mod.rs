//! Malformed and hostile input: the protocol's error each time, never a panic, never a 500, nothing stored, and
//! a server that still answers afterwards. This is for tables; `storage.rs` is for queues and blobs.

mod addresses;
mod limits;
mod slow;
mod storage;

use larimar_testkit::Dice;
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, Client, Request, Response, entity, exchange, read_response};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A server that must come through unharmed.
struct Victim {
    server: TemporaryServer,
    client: Client,
}

impl Victim {
    fn new(arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["--durability", "async"].iter().chain(arguments).copied().collect();
        let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &all);
        let client = server.client();
        client.create_table("tab");
        Self { server, client }
    }

    /// Sends what must be refused as the caller's mistake.
    #[track_caller]
    fn refuses(&self, request: &Request<'_>, what: &str) -> Response {
        let reply = request.send();
        self.is_refusal(&reply, what);
        reply
    }

    #[track_caller]
    fn is_refusal(&self, reply: &Response, what: &str) {
        assert!((400..500).contains(&reply.status) || reply.status == 501, "{what}: {reply}");
    }

    /// Asks whether all is well: nothing stored, nothing panicked, everything still works.
    #[track_caller]
    fn check_unharmed(self) {
        assert_eq!(self.client.get("/tab()").send().values().len(), 0, "something was stored");
        self.client.insert("tab", "p", "r", "");
        self.client.get("/tab(PartitionKey='p',RowKey='r')").send().is_status(200);
        let said = self.server.output();
        assert!(!said.contains("panicked"), "{said}");
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.table_address()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
        stream
    }
}

#[test]
fn malformed_json() {
    let victim = Victim::new(&[]);
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"}".to_vec(),
        b"null".to_vec(),
        b"5".to_vec(),
        b"\"x\"".to_vec(),
        b"[]".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\"".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\"} x".to_vec(),
        b"{'PartitionKey':'p','RowKey':'r'}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",}".to_vec(),
        b"{\"PartitionKey\":\"p\" \"RowKey\":\"r\"}".to_vec(),
        b"{\"PartitionKey\":\"\\ud800\",\"RowKey\":\"r\"}".to_vec(),
        b"{\"PartitionKey\":\"\xff\",\"RowKey\":\"r\"}".to_vec(),
        b"\xff\xfe{\0}\0".to_vec(),
        vec![0; 1000],
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":01}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":NaN}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":1e400}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":[1]}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":{\"a\":1}}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":\"a\nb\"}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V@odata.type\":5,\"V\":1}".to_vec(),
        b"{\"PartitionKey\":\"p\",\"PartitionKey\":\"q\",\"RowKey\":\"r\"}".to_vec(),
        deep("[", "]").into_bytes(),
        deep("{\"a\":", "}").into_bytes(),
        entity("p", "r", &format!("\"V\":{}", deep("[", "]"))).into_bytes(),
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"V\":{}}}", "9".repeat(100_000)).into_bytes(),
    ];
    for body in &bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let reply = victim.refuses(&victim.client.post("/tab", body.clone()), &shown);
        assert!(!reply.code().is_empty(), "{shown}: {reply}");
    }
    for body in
        bodies.iter().filter(|body| !body.starts_with(b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}") && !body.is_empty())
    {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        victim.refuses(&victim.client.merge("/tab(PartitionKey='p',RowKey='r')", body.clone()), &shown);
    }
    for body in ["", "{", "[1", "{\"TableName\":[]}", "{\"TableName\":\"a\u{0}b\"}", &deep("[", "]")] {
        victim.refuses(&victim.client.post("/Tables", body), body.get(..20).unwrap_or(body));
    }
    victim.check_unharmed();
}

#[test]
fn malformed_xml() {
    let victim = Victim::new(&[]);
    let deep = format!("{}{}", "<a>".repeat(50_000), "</a>".repeat(50_000));
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><SignedIdentifiers>&b;</SignedIdentifiers>";
    for body in [
        "<",
        "x",
        "<a></b>",
        "<SignedIdentifiers><SignedIdentifier>",
        "\u{0}",
        &deep,
        bomb,
        "<SignedIdentifiers>&nope;</SignedIdentifiers>",
    ] {
        let shown = &body[..body.len().min(40)];
        victim.refuses(&victim.client.request("PUT", "/tab?comp=acl").xml(body), shown);
        victim.refuses(&victim.client.request("PUT", "/?restype=service&comp=properties").xml(body), shown);
    }
    victim.check_unharmed();
}

#[test]
fn malformed_batches() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let good = Batch::new().insert(client, "tab", "p", "a", "").insert(client, "tab", "q", "b", "").body();
    let mut dice = Dice::new(7);
    for round in 0..300 {
        let mut body = good.clone().into_bytes();
        for _ in 0..=dice.below(3) {
            let at = dice.below(body.len() as u64) as usize;
            match dice.below(5) {
                0 => body.truncate(at),
                1 => body[at] = dice.next() as u8,
                2 => drop(body.drain(at..(at + dice.below(60) as usize).min(body.len()))),
                3 => body.insert(at, b'\n'),
                _ => body.splice(at..at, *b"--changeset_b7e2d0c1-0002-4b5c-8d7e-abcdef012345\r\n").for_each(drop),
            }
            if body.is_empty() {
                break;
            }
        }
        // Two partitions: even where the damage leaves a well-formed batch of both it is refused.
        let reply = Batch::raw(client, body.clone()).send();
        let is_refused = (400..500).contains(&reply.status) || reply.status == 501;
        let is_refused_inside = reply.status == 202 && !reply.text().contains("HTTP/1.1 5");
        assert!(is_refused || is_refused_inside, "round {round}:\n{}\n{reply}", String::from_utf8_lossy(&body));
    }
    for content_type in [
        "",
        "multipart/mixed",
        "multipart/mixed; boundary=",
        "multipart/mixed; boundary=\"",
        "text/plain; boundary=x",
        "multipart/mixed; boundary=\u{e9}",
    ] {
        let request = client.request("POST", "/$batch").header("Content-Type", content_type).body(good.clone());
        victim.refuses(&request, content_type);
    }
    let huge = format!("--{}\r\n", "x".repeat(1_000_000));
    victim.refuses(&Batch::raw(client, huge), "a boundary that never comes");
    let boundaries = "--batch_a8f3c1d2-0001-4a5b-9c6d-1234567890ab\r\n".repeat(50_000);
    victim.refuses(&Batch::raw(client, boundaries), "nothing but boundaries");
    // What the damaged batches may have written with one partition left.
    for entity in client.get("/tab()").send().values() {
        let (partition, row) = (entity["PartitionKey"].as_str().unwrap_or(""), entity["RowKey"].as_str().unwrap_or(""));
        client.delete(&larimar_testkit::http::entity_path("tab", partition, row)).send().is_status(204);
    }
    victim.check_unharmed();
}

const BAD_FILTERS: &str = "( | ) | ' | A eq ' | A eq 1 or | A eq datetime'x' | A eq guid'x' | A eq X'0' | A eq X'zz' | A eq 1LL \
    | A eq 99999999999999999999 | A eq 99999999999999999999L | A eq 1e999 | A eq - | A eq . | \u{0} | A\u{0} eq 1 \
    | A eq 1 \u{1F600} | A eq datetime'9999-99-99' | A eq datetime'0000-00-00T00:00:00Z' | not | not not | () \
    | A eq 1 and and B eq 2 | eq eq eq | A/B eq 1 | A.B eq 1 | A eq B/C | A in (1,2) | true eq true";

#[test]
fn malformed_filters() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    for filter in BAD_FILTERS.split(" | ") {
        victim.refuses(&client.get("/tab()").query("$filter", filter), filter);
    }
    let deep = |open: &str, close: &str, count: usize| format!("{}A eq 1{}", open.repeat(count), close.repeat(count));
    for (open, close) in [("(", ")"), ("not (", ")"), ("not ", "")] {
        let reply = client.get("/tab()").query("$filter", &deep(open, close, 1000)).send();
        victim.is_refusal(&reply, "a deeply nested filter");
        let request = client.get("/tab()").query("$filter", &deep(open, close, 8000));
        let reply = exchange(client.address(), &request.to_bytes()).expect("an answer");
        victim.is_refusal(&reply, "a very deeply nested filter");
    }
    let long = (0..500).map(|i| format!("A eq {i}")).collect::<Vec<_>>().join(" or ");
    client.get("/tab()").query("$filter", &long).send().is_status(200);
    victim.check_unharmed();
}

#[test]
fn malformed_options() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    for query in [
        "$filter=%",
        "$filter=%zz",
        "$filter=%ff%fe",
        "$top=-1",
        "$top=1e3",
        "NextPartitionKey=x",
        "NextPartitionKey=1!8!&NextRowKey=1!8!",
        "$filter=A%20eq%201&$filter=B%20eq%202&$top=x",
    ] {
        victim.refuses(&client.get(&format!("/tab()?{query}")), query);
    }
    let names = (0..256).map(|i| format!("P{i}")).collect::<Vec<_>>().join(",");
    victim.refuses(&client.get("/tab()").query("$select", &names), "256 names in $select");
    victim.check_unharmed();
}

#[test]
fn malformed_paths() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    for path in [
        "/tab(",
        "/tab(')",
        "/tab(PartitionKey='",
        "/tab(PartitionKey='a',RowKey='b'",
        "/tab(PartitionKey='a''RowKey='b')",
        "/tab(=,=)",
        "/tab(,)",
        "/tab(PartitionKey='a' RowKey='b')",
        "/tab(PartitionKey='%00',RowKey='b')",
        "/tab(PartitionKey='%',RowKey='b')",
        "/tab(PartitionKey='%f0%28%8c%28',RowKey='b')",
        "/tab)(",
        "/('a')",
        "/()",
        "/-",
        "/tab/more",
        "/tab(PartitionKey='a',RowKey='b')/more",
        "/$nothing",
        "/$batch/x",
        "/%24batch%",
        "/Tables(",
        "/Tables('x",
        "/Tables('a''b')",
        "/Tables(x)",
        "/tab?comp=nothing",
        "/?comp=acl",
        "/?restype=service",
        "/?restype=x&comp=y",
        "/..",
        "/tab/..",
    ] {
        victim.refuses(&client.get(path), path);
    }
    let long = format!("/tab(PartitionKey='{}',RowKey='b')", "x".repeat(60_000));
    let reply = exchange(client.address(), &client.get(&long).to_bytes()).expect("an answer");
    victim.is_refusal(&reply, "a very long path");
    for target in [
        "*",
        "http://[",
        "tab",
        "//",
        "/",
        "?",
        "/\u{7f}",
        "/devstoreaccount1",
        "/unknown/tab",
        "http://x/devstoreaccount1/Tables",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        if let Ok(reply) = exchange(client.address(), request.as_bytes()) {
            victim.is_refusal(&reply, target);
        }
    }
    victim.check_unharmed();
}

#[test]
fn malformed_headers() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let get = || client.get("/tab()");
    for (name, value) in [
        ("x-ms-version", "x"),
        ("x-ms-version", "2019-13-45x"),
        ("x-ms-date", "x"),
        ("Accept", "application/nonsense"),
        ("DataServiceVersion", "9.9"),
        ("Authorization", "SharedKey"),
    ] {
        let request = if name == "Authorization" { get().unsigned() } else { get() };
        let reply = request.header(name, value).send();
        assert!(reply.status < 500 || reply.status == 501, "{name}: {value}: {reply}");
    }
    // Without its condition this would write.
    let conditional = client.put("/tab(PartitionKey='p',RowKey='r')", "{}").header("If-Match", "\u{fc}").send();
    victim.is_refusal(&conditional, "a condition that is not a text");
    let long = get().header("x-ms-client-request-id", "x".repeat(1025)).send();
    assert!(long.status < 500, "{long}");
    for body_type in ["", "text/plain", "application/json;odata", "application/xml", "multipart/mixed"] {
        let reply = client.post("/tab", "{").header("Content-Type", body_type).send();
        victim.is_refusal(&reply, body_type);
    }
    let many = (0..5000).fold(get(), |request, i| request.also(&format!("x-many-{i}"), "x"));
    let large = get().header("x-large", "x".repeat(500_000));
    for request in [many, large] {
        // Refused or cut off: either will do.
        if let Ok(reply) = exchange(client.address(), &request.to_bytes()) {
            victim.is_refusal(&reply, "too many headers or too large ones");
        }
    }
    let twice = get().also("Authorization", "SharedKey devstoreaccount1:AAAA").send();
    assert!(twice.status < 500, "{twice}");
    victim.check_unharmed();
}

#[test]
fn oversized_bodies_are_refused_before_they_are_read() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    for path in ["/tab", "/$batch", "/Tables"] {
        let head = client.post(path, "").header("Content-Length", "10000000000").to_bytes();
        let mut stream = victim.connect();
        stream.write_all(&head).expect("the head is sent");
        let reply = read_response(&stream, true).expect("an answer before the body");
        reply.is_error(413, "RequestBodyTooLarge");
    }
    let chunked = client.post("/tab", "").without("Content-Length").header("Transfer-Encoding", "chunked").to_bytes();
    let mut stream = victim.connect();
    stream.write_all(&chunked).expect("the head is sent");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..200 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    if let Ok(reply) = read_response(&stream, true) {
        reply.is_error(413, "RequestBodyTooLarge");
    }
    for length in ["-1", "x", "18446744073709551616", "1, 2", "0x10"] {
        let request = client.post("/tab", "{}").header("Content-Length", length).to_bytes();
        if let Ok(reply) = exchange(client.address(), &request) {
            victim.is_refusal(&reply, length);
        }
    }
    victim.check_unharmed();
}

#[test]
fn unknown_methods_and_protocols() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    for method in ["BREW", "TRACE", "CONNECT", "PROPFIND", "get", "MERGEX", "X"] {
        for path in ["/tab()", "/Tables", "/$batch", "/tab(PartitionKey='p',RowKey='r')"] {
            let bytes = client.request(method, path).header("Connection", "close").to_bytes();
            if let Ok(reply) = exchange(client.address(), &bytes) {
                victim.is_refusal(&reply, method);
            }
        }
    }
    let head = client.request("HEAD", "/tab()").send();
    assert!(head.status < 500 || head.status == 501, "{head}");
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for bytes in [
        &b"GET /\r\n\r\n"[..],
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n: empty\r\n\r\n",
        b"\0\0\0\0\0\0\0\0",
        &hello,
        b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ] {
        if let Ok(reply) = exchange(client.address(), bytes) {
            assert!(reply.status < 500 || [501, 505].contains(&reply.status), "{bytes:?}: {reply}");
        }
    }
    victim.check_unharmed();
}

#[test]
fn random_bytes_and_damaged_requests() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let seed = Dice::seed("LARIMAR_INPUT_SEED");
    println!("LARIMAR_INPUT_SEED={seed}");
    let mut dice = Dice::new(seed);
    for round in 0..300 {
        let mut bytes = match dice.below(3) {
            0 => (0..dice.below(2000)).map(|_| dice.next() as u8).collect(),
            1 => client.post("/tab", entity("p", "r", "")).unsigned().to_bytes(),
            _ => client.get("/tab()?$filter=PartitionKey%20eq%20'p'").unsigned().to_bytes(),
        };
        for _ in 0..dice.below(6) {
            if !bytes.is_empty() {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] = dice.next() as u8;
            }
        }
        if let Ok(reply) = exchange(client.address(), &bytes) {
            assert!(reply.status < 500 || [501, 505].contains(&reply.status), "round {round}: {reply}");
        }
    }
    victim.check_unharmed();
}

#[test]
fn half_closed_and_broken_connections() {
    let victim = Victim::new(&[]);
    let client = &victim.client;
    let whole = client.get("/tab()").to_bytes();
    exchange(client.address(), &whole).expect("a half-closed connection is answered").is_status(200);
    let insert = client.post("/tab", entity("p", "torn", "")).to_bytes();
    for length in [1, 10, insert.len() / 2, insert.len() - 1] {
        let mut stream = victim.connect();
        stream.write_all(&insert[..length]).expect("the start is sent");
        stream.shutdown(Shutdown::Write).expect("the connection is open");
        if let Ok(reply) = read_response(&stream, true) {
            victim.is_refusal(&reply, "a request that ends early");
        }
        let mut stream = victim.connect();
        stream.write_all(&insert[..length]).expect("the start is sent");
        drop(stream);
    }
    for _ in 0..50 {
        drop(victim.connect());
    }
    victim.check_unharmed();
}

#[test]
fn slow_connections_are_closed_and_do_not_keep_others_waiting() {
    let victim = Victim::new(&["--header-timeout", "1s", "--body-timeout", "1s", "--idle-timeout", "2s"]);
    let client = &victim.client;
    let insert = client.post("/tab", entity("p", "slow", "")).to_bytes();
    let head_only = insert.len() - entity("p", "slow", "").len();
    let slow: Vec<TcpStream> = [5, head_only - 3, head_only + 4, 0]
        .iter()
        .map(|length| {
            let mut stream = victim.connect();
            stream.write_all(&insert[..*length]).expect("the start is sent");
            stream
        })
        .collect();
    server_answers_others(client);
    for stream in &slow {
        // Closed with an answer or without one; waiting for ever would time out and fail here.
        match read_response(stream, true) {
            Ok(reply) => victim.is_refusal(&reply, "a slow request"),
            Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the connection stays open"),
        }
    }
    victim.check_unharmed();
}

fn server_answers_others(client: &Client) {
    for _ in 0..20 {
        client.get("/Tables").send().is_status(200);
    }
}

#[test]
fn many_idle_connections_leave_room_for_others() {
    let victim = Victim::new(&["--connections-max", "20", "--idle-timeout", "1s", "--header-timeout", "1s"]);
    let idle: Vec<TcpStream> = (0..60).filter_map(|_| TcpStream::connect(victim.server.table_address()).ok()).collect();
    // The cap holds new connections back until idle ones are closed; then this one has its turn.
    let reply = victim.client.get("/Tables").send();
    assert!(reply.status == 200 || reply.status == 503, "{reply}");
    drop(idle);
    assert_eq!(victim.client.get("/Tables").send().json()["value"].as_array().map(Vec::len), Some(1));
    victim.check_unharmed();
}
