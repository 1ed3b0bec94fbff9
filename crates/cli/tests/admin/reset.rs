//! A reset: what it removes, while requests go on and across a crash.

use super::{RESET, launch, reset, send, token};
use larimar_testkit::Server;
use larimar_testkit::http::{Client, Response, entity, entity_path, read_response};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ACCOUNTS: &str = "one:a2V5IG9uZQ==;two:a2V5IHR3bw==";

/// A client of each service of an account.
fn clients(server: &Server, account: &str, key: &str) -> [Client; 3] {
    [server.client(), server.queues(), server.blobs()].map(|client| client.of_account(account, key))
}

fn fill([tables, queues, blobs]: &[Client; 3]) {
    tables.create_table("orders");
    tables.insert("orders", "p", "r", "");
    queues.request("PUT", "/jobs").send().is_status(201);
    let message = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    queues.post("/jobs/messages", message).send().is_status(201);
    blobs.request("PUT", "/box?restype=container").body("").send().is_status(201);
    let blob = blobs.request("PUT", "/box/file").header("x-ms-blob-type", "BlockBlob");
    blob.body("bytes").send().is_status(201);
    // A lease keeps requests from deleting the container.
    let lease = blobs.request("PUT", "/box?restype=container&comp=lease").header("x-ms-lease-action", "acquire");
    lease.header("x-ms-lease-duration", "-1").body("").send().is_status(201);
    let cors = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.test</AllowedOrigins>\
                <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>*\
                </ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";
    tables.put("/?restype=service&comp=properties", "").xml(cors).send().is_status(202);
}

/// Whether the resources of an account are all there (true) or all gone (false).
fn is_filled([tables, queues, blobs]: &[Client; 3]) -> bool {
    let answers = [
        tables.get(&entity_path("orders", "p", "r")).send().status == 200,
        tables.get("/Tables").send().values().len() == 1,
        queues.get("/jobs/messages?peekonly=true").send().status == 200,
        queues.get("/?comp=list").send().text().contains("<Name>jobs</Name>"),
        blobs.get("/box/file").send().status == 200,
        blobs.get("/?comp=list").send().text().contains("<Name>box</Name>"),
        tables.get("/?restype=service&comp=properties").accept("application/xml").send().text().contains("a.test"),
    ];
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    answers[0]
}

#[test]
fn a_reset_empties_its_accounts_and_no_other() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).environment("LARIMAR_ACCOUNTS", ACCOUNTS).argument("--allow-reset").start();
    let (one, two) = (clients(&server, "one", "a2V5IG9uZQ=="), clients(&server, "two", "a2V5IHR3bw=="));
    fill(&one);
    fill(&two);
    assert!(is_filled(&one) && is_filled(&two));
    let bearer = format!("Bearer {}", token(&server));
    let post = |target: &str| send(server.admin_address(), "POST", target, &[("authorization", &bearer)]);
    let reply = post("/reset?account=one");
    assert_eq!((reply.status, reply.text()), (200, "{\"tables\":1,\"queues\":1,\"containers\":1}\n"));
    assert!(!is_filled(&one) && is_filled(&two));
    // The names are free at once, and what comes under them is new.
    fill(&one);
    assert!(is_filled(&one));
    let reply = post("/reset?account=one&account=two");
    assert_eq!((reply.status, reply.text()), (200, "{\"tables\":2,\"queues\":2,\"containers\":2}\n"));
    assert!(!is_filled(&one) && !is_filled(&two));
    let server = server.kill().start();
    let (one, two) = (clients(&server, "one", "a2V5IG9uZQ=="), clients(&server, "two", "a2V5IHR3bw=="));
    assert!(!is_filled(&one) && !is_filled(&two));
}

#[test]
fn a_server_with_data_to_lose_refuses_unless_it_is_allowed() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    server.client().create_table("kept");
    let reply = reset(&server);
    assert_eq!(reply.status, 403);
    assert!(reply.text().contains("--allow-reset"), "{}", reply.text());
    assert_eq!(server.client().get("/Tables").send().values().len(), 1);
    if launch(&folder).database().is_none() {
        let memory = launch(&folder).argument("--durability=memory").start();
        assert_eq!(reset(&memory).status, 200);
    }
}

#[test]
fn requests_go_on_during_resets_and_each_table_is_there_or_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--allow-reset").argument("--log-level=warn").start();
    let is_over = AtomicBool::new(false);
    let bearer = format!("Bearer {}", token(&server));
    let address = server.admin_address();
    let statuses: BTreeSet<u16> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || work(server, worker, is_over))
            })
            .collect();
        let until = Instant::now() + Duration::from_secs(3);
        let mut resets = 0;
        while Instant::now() < until {
            assert_eq!(send(address, "POST", RESET, &[("authorization", &bearer)]).status, 200);
            resets += 1;
        }
        is_over.store(true, Relaxed);
        assert!(resets > 2, "{resets}");
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(statuses.contains(&404), "a reset met a request: {statuses:?}");
    assert_eq!(send(address, "POST", RESET, &[("authorization", &bearer)]).status, 200);
    assert_eq!(server.client().get("/Tables").send().values().len(), 0);
    assert!(!server.queues().get("/?comp=list").send().text().contains("<Name>"));
    assert!(!server.blobs().get("/?comp=list").send().text().contains("<Name>"));
}

/// Created, found, there already, or gone; nothing else. A body that was on its way when its container went may have to be
/// sent again.
fn expected(reply: &Response) -> u16 {
    let is_repeated = reply.status == 503 && reply.code() == "ServerBusy";
    assert!(is_repeated || [200, 201, 204, 404, 409].contains(&reply.status), "{} {}", reply.status, reply.text());
    reply.status
}

/// Creates and uses resources until it is over. Returns the statuses that it saw.
fn work(server: &Server, worker: usize, is_over: &AtomicBool) -> BTreeSet<u16> {
    let (tables, queues, blobs) = (server.client(), server.queues(), server.blobs());
    let mut statuses = BTreeSet::new();
    let (table, name) = (format!("table{worker}"), format!("name{worker}"));
    let mut row = 0;
    while !is_over.load(Relaxed) {
        statuses.insert(expected(&tables.post("/Tables", format!("{{\"TableName\":\"{table}\"}}")).send()));
        for _ in 0..5 {
            row += 1;
            let key = row.to_string();
            statuses.insert(expected(&tables.post(&format!("/{table}"), entity("p", &key, "")).send()));
            let found = tables.get(&format!("/{table}()")).send();
            statuses.insert(expected(&found));
            // What was written before a reset is never seen after it.
            if found.status == 200 {
                let rows = found.column("RowKey");
                let newest = rows.iter().filter_map(|row| row.parse::<i32>().ok()).max().unwrap_or(row);
                assert_eq!(rows.len(), rows.iter().collect::<BTreeSet<_>>().len());
                assert!(newest <= row, "{rows:?}");
            }
        }
        statuses.insert(expected(&queues.request("PUT", &format!("/{name}")).body("").send()));
        let message = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
        statuses.insert(expected(&queues.post(&format!("/{name}/messages"), message).send()));
        statuses.insert(expected(&blobs.request("PUT", &format!("/{name}?restype=container")).body("").send()));
        let blob = blobs.request("PUT", &format!("/{name}/file")).header("x-ms-blob-type", "BlockBlob");
        statuses.insert(expected(&blob.body("bytes").send()));
        statuses.insert(expected(&blobs.get(&format!("/{name}/file")).send()));
    }
    statuses
}

/// The bytes that were received belong to the container that is gone. If there is a new one of its name, clients send them
/// again: that is what 503 means to them.
#[test]
fn an_upload_across_a_reset_is_repeated_or_finds_no_container() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--allow-reset").argument("--log-level=warn").start();
    let blobs = server.blobs();
    let create = || blobs.request("PUT", "/box?restype=container").body("").send().is_status(201);
    let names = || blobs.get("/box?restype=container&comp=list&include=uncommittedblobs").send().text().to_owned();
    for target in ["/box/file", "/box/file?comp=block&blockid=MDAw"] {
        for is_created_again in [false, true] {
            assert_eq!(reset(&server).status, 200);
            create();
            let upload = || blobs.request("PUT", target).header("x-ms-blob-type", "BlockBlob").body(vec![7; 1 << 20]);
            let bytes = upload().to_bytes();
            let (first, rest) = bytes.split_at(bytes.len() - (1 << 19));
            let mut stream = TcpStream::connect(blobs.address()).expect("the server accepts");
            stream.write_all(first).expect("half of a body");
            while metric(&server, "larimar_in_flight_bytes ") == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            assert_eq!(reset(&server).status, 200);
            if is_created_again {
                create();
            }
            stream.write_all(rest).expect("the other half");
            let answer = read_response(&stream, true).expect("an answer");
            if is_created_again {
                answer.is_error(503, "ServerBusy");
            } else {
                answer.is_error(404, "ContainerNotFound");
                create();
            }
            assert!(!names().contains("<Name>"), "nothing of it is left: {}", names());
            upload().send().is_status(201);
            assert!(names().contains("<Name>file</Name>"), "{}", names());
        }
    }
}

/// The value of a metric.
fn metric(server: &Server, name: &str) -> u64 {
    let page = send(server.admin_address(), "GET", "/metrics", &[]);
    let value = page.text().lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in {}", page.text()))
}

#[test]
fn a_crash_during_a_reset_leaves_each_table_whole_or_gone() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--allow-reset").start();
    let client = server.client();
    let names: Vec<_> = (0..80).map(|number| format!("t{number:02}")).collect();
    for name in &names {
        client.create_table(name);
        client.insert(name, "p", "r", "");
    }
    let mut stream = TcpStream::connect(server.admin_address()).expect("the server accepts");
    let (host, bearer) = (server.admin_address(), token(&server));
    let request = format!("POST {RESET} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {bearer}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    std::thread::sleep(Duration::from_millis(4));
    let server = server.kill().start();
    let client = server.client();
    let listed = client.get("/Tables").send().column("TableName");
    for name in &names {
        let found = client.get(&entity_path(name, "p", "r")).send();
        assert_eq!(found.status == 200, listed.contains(name), "{name}: {}", found.text());
    }
    assert_eq!(reset(&server).status, 200);
    assert_eq!(client.get("/Tables").send().values().len(), 0);
}

/// Prints the figures of `docs/admin.md`: `cargo test -p larimar --test suite admin::reset::figures -- --ignored --nocapture`.
#[test]
#[ignore = "measures, for a machine that does nothing else"]
fn figures() {
    for durability in ["memory", "sync"] {
        let folder = tempfile::tempdir().expect("a directory");
        let launch = launch(&folder).argument(format!("--durability={durability}")).argument("--allow-reset");
        let launch = launch.argument("--log-level=warn");
        let start = median(5, || drop(launch.start()));
        let server = launch.start();
        let bearer = format!("Bearer {}", token(&server));
        let reset = || send(server.admin_address(), "POST", RESET, &[("authorization", &bearer)]).is_status(200);
        let empty = median(51, reset);
        let mut small: Vec<_> = (0..21)
            .map(|_| {
                fill(&[server.client(), server.queues(), server.blobs()]);
                median(1, reset)
            })
            .collect();
        small.sort();
        println!("{durability}: start {start:?}, reset of an empty store {empty:?}, of a small one {:?}", small[10]);
    }
}

fn median(times: usize, mut run: impl FnMut()) -> Duration {
    let mut spans: Vec<_> = (0..times)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        })
        .collect();
    spans.sort();
    spans[times / 2]
}
