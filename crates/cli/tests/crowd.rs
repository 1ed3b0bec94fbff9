//! Many slow clients at once: the server's memory stays within its budget, and others are served meanwhile.
//!
//! The large crowd takes a minute and some thousand connections, so it runs when asked for, best with a release build:
//!
//! ```text
//! ulimit -n 65536
//! cargo test --release -p larimar --test suite crowd:: -- --ignored --nocapture
//! ```
//!
//! It prints what the server process takes. `LARIMAR_CROWD` is the number of connections (10,000), and
//! `LARIMAR_CROWD_EXE` another executable to compare with.

#![cfg(unix)]

use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, BatchReply, Client, Request, Sas, entity, exchange};
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

struct Crowded {
    server: TemporaryServer,
    tables: Client,
    blobs: Client,
}

impl Crowded {
    /// A server with a large blob and a table whose pages are as large as pages get.
    fn new(exe: &str, arguments: &[&str]) -> Self {
        let all = ["--durability", "async", "--answer-timeout", "10m", "--body-timeout", "10m"];
        let server = TemporaryServer::start(exe, &[&all, arguments].concat());
        let (tables, blobs) = (server.client(), server.blobs());
        tables.create_table("wide");
        let text = format!("\"A\":\"{}\"", "x".repeat(4_000));
        for batch in 0..11 {
            let inserts = (0..100).fold(Batch::new(), |inserts, row| {
                inserts.insert(&tables, "wide", "p", &format!("{batch}-{row:02}"), &text)
            });
            assert_eq!(inserts.send(&tables).statuses(), [204; 100]);
        }
        blobs.put("/open?restype=container", "").header("x-ms-blob-public-access", "blob").send().is_status(201);
        let put = blobs.put("/open/large", vec![b'x'; 8 << 20]).header("x-ms-blob-type", "BlockBlob");
        put.send().is_status(201);
        Self { server, tables, blobs }
    }

    /// Clients that ask for a blob or a page and read nothing, or begin an upload and send little of it.
    fn slow(&self, blobs: usize, pages: usize, uploads: usize) -> Vec<TcpStream> {
        let get = self.blobs.get("/open/large").unsigned();
        let upload = |number: usize| {
            let put = self.blobs.put(&format!("/open/slow{number}"), "").header("x-ms-blob-type", "BlockBlob");
            put.header("Content-Length", "4000000")
        };
        let mut streams: Vec<TcpStream> = (0..blobs).map(|_| begin(&self.blobs, &get)).collect();
        streams.extend((0..uploads).map(|number| {
            let mut stream = begin(&self.blobs, &upload(number));
            stream.write_all(&[b'y'; 100_000]).expect("the start of a body");
            stream
        }));
        streams.extend((0..pages).map(|_| begin(&self.tables, &self.tables.get("/wide()"))));
        streams
    }

    /// A figure of the metrics page, if it is there.
    fn figure(&self, name: &str) -> Option<u64> {
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let reply = exchange(self.server.admin_address(), request).ok()?;
        reply.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    #[track_caller]
    fn until(&self, name: &str, is_so: impl Fn(u64) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let figure = self.figure(name);
            if figure.is_some_and(&is_so) {
                return;
            }
            assert!(Instant::now() < end, "{name} stays at {figure:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What an honest client does.
    #[track_caller]
    fn serves_others(&self, name: &str) {
        self.tables.get("/wide(PartitionKey='p',RowKey='0-00')").send().is_status(200);
        self.tables.get("/wide()?$top=1").send().is_status(200);
        self.tables.create_table(name);
        self.tables.insert(name, "p", "r", "");
        let put = self.blobs.put(&format!("/open/{name}"), "small").header("x-ms-blob-type", "BlockBlob");
        put.send().is_status(201);
        assert_eq!(self.blobs.get(&format!("/open/{name}")).send().text(), "small");
    }

    /// The lines of the process's status about its memory.
    fn memory(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap_or_default();
        let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
    }
}

fn begin(client: &Client, request: &Request<'_>) -> TcpStream {
    let mut stream = TcpStream::connect(client.address()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.write_all(&request.to_bytes()).expect("a request is sent");
    stream
}

#[test]
fn slow_clients_stay_within_the_budget_and_others_are_served() {
    let crowded = Crowded::new(env!("CARGO_BIN_EXE_larimar"), &["--in-flight-bytes-max", "32MiB"]);
    let limit = 32 << 20;
    assert_eq!(crowded.figure("larimar_in_flight_limit_bytes"), Some(limit));
    // Without a bound these would hold 1 MiB, 4 MiB and 2 MiB each.
    let slow = crowded.slow(200, 100, 20);
    crowded.until("larimar_open_connections", |open| open >= 320);
    crowded.until("larimar_in_flight_bytes", |bytes| bytes > limit / 2);
    crowded.serves_others("during");
    crowded.serves_others("still");
    let peak = crowded.figure("larimar_in_flight_peak_bytes").expect("a figure");
    assert!(peak <= limit, "{peak} of {limit}");
    drop(slow);
    // Whatever was held comes back.
    crowded.until("larimar_in_flight_bytes", |bytes| bytes == 0);
    crowded.until("larimar_in_flight_waiting", |waiting| waiting == 0);
    let page = crowded.tables.get("/wide()").send();
    page.is_status(200);
    assert!(page.body.len() > 4_000_000, "pages are whole again");
    assert_eq!(crowded.blobs.get("/open/large").send().body.len(), 8 << 20);
}

#[test]
fn beyond_the_budget_uploads_wait_and_are_then_refused_as_busy() {
    let arguments = ["--in-flight-bytes-max", "16MiB", "--in-flight-wait", "500ms"];
    let crowded = Crowded::new(env!("CARGO_BIN_EXE_larimar"), &arguments);
    let slow = crowded.unread_entities(30);
    let large = || crowded.blobs.put("/open/later", vec![b'z'; 3 << 20]).header("x-ms-blob-type", "BlockBlob");
    let refused = large().send();
    refused.is_error(503, "ServerBusy");
    assert_eq!(crowded.figure("larimar_in_flight_refused_total"), Some(1));
    crowded.serves_others("busy");
    assert!(crowded.figure("larimar_in_flight_peak_bytes").is_some_and(|peak| peak <= 16 << 20));
    drop(slow);
    crowded.until("larimar_in_flight_bytes", |bytes| bytes == 0);
    large().send().is_status(201);
}

/// The budget of these tests: seven eighths of it, 14,680,064 bytes, are for what is large.
const SMALL_BUDGET: [&str; 4] = ["--in-flight-bytes-max", "16MiB", "--in-flight-wait", "60s"];

impl Crowded {
    /// Begins batches that declare 4 MiB, and sends this much of each.
    fn slow_batches(&self, client: &Client, count: usize, sent_bytes: usize) -> Vec<TcpStream> {
        let content_type = "multipart/mixed; boundary=batch_slow";
        let request =
            client.post("/$batch", "").header("Content-Type", content_type).header("Content-Length", "4194304");
        let sent = "-".repeat(sent_bytes);
        let begun = (0..count).map(|_| {
            let mut stream = begin(client, &request);
            stream.write_all(sent.as_bytes()).expect("the start of a body");
            stream
        });
        begun.collect()
    }

    /// A batch of inserts with this many bytes in each entity.
    fn inserts(&self, table: &str, count: usize, bytes: usize) -> Batch {
        let members = members(bytes);
        (0..count)
            .fold(Batch::new(), |batch, row| batch.insert(&self.tables, table, "p", &format!("{row:02}"), &members))
    }

    /// Puts an entity of 480,000 bytes, and asks for it this often without reading the answers.
    fn unread_entities(&self, count: usize) -> Vec<TcpStream> {
        self.tables.create_table("large");
        assert_eq!(self.inserts("large", 1, 480_000).send(&self.tables).statuses(), [204]);
        let get = self.tables.get("/large(PartitionKey='p',RowKey='00')");
        let unread = (0..count).map(|_| begin(&self.tables, &get)).collect();
        self.until("larimar_in_flight_bytes", |bytes| bytes >= count as u64 * 480_000);
        unread
    }
}

#[test]
fn q9_slow_batches_hold_only_what_they_have_sent() {
    let crowded = Crowded::new(env!("CARGO_BIN_EXE_larimar"), &["--in-flight-bytes-max", "16MiB"]);
    crowded.tables.create_table("tab");
    // A caller that may only read can begin a batch.
    let reader = crowded.tables.with_sas(&Sas::table("tab", "r").token());
    let slow = crowded.slow_batches(&reader, 200, 10);
    crowded.until("larimar_open_connections", |open| open >= 200);
    for round in 0..3 {
        crowded.serves_others(&format!("during{round}"));
        let large = crowded.inserts(&format!("during{round}"), 7, 480_000);
        assert_eq!(large.send(&crowded.tables).statuses(), [204; 7]);
        let blob = vec![b'z'; 3 << 20];
        crowded.blobs.put("/open/during", blob).header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    }
    assert_eq!(crowded.figure("larimar_in_flight_refused_total"), Some(0));
    drop(slow);
}

#[test]
fn q9_bodies_that_stand_still_give_way() {
    let crowded = Crowded::new(env!("CARGO_BIN_EXE_larimar"), &SMALL_BUDGET);
    crowded.tables.create_table("tab");
    let batches = crowded.slow_batches(&crowded.tables, 3, 2_000_000);
    let uploads: Vec<TcpStream> = (0..30)
        .map(|number| {
            let put = crowded.blobs.put(&format!("/open/slow{number}"), "").header("x-ms-blob-type", "BlockBlob");
            let mut stream = begin(&crowded.blobs, &put.header("Content-Length", "4000000"));
            stream.write_all(&vec![b'y'; 700_000]).expect("the start of a body");
            stream
        })
        .collect();
    crowded.until("larimar_in_flight_bytes", |bytes| bytes > 10 << 20);
    // While the uploads still arrive, the youngest body gives way, and that may be this one: clients then try again.
    let inserts = || crowded.inserts("tab", 7, 480_000).request(&crowded.tables).send();
    let mut inserted = inserts();
    for _ in 0..300 {
        if inserted.status != 503 {
            break;
        }
        thread::sleep(Duration::from_millis(100));
        inserted = inserts();
    }
    assert_eq!(BatchReply::new(inserted).statuses(), [204; 7]);
    let blob = vec![b'z'; 3 << 20];
    crowded.blobs.put("/open/later", blob).header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    assert!(crowded.figure("larimar_in_flight_peak_bytes").is_some_and(|peak| peak <= 16 << 20));
    drop((batches, uploads));
    crowded.until("larimar_in_flight_bytes", |bytes| bytes == 0);
}

#[test]
fn q9_an_answer_waits_for_its_room() {
    let crowded = Crowded::new(env!("CARGO_BIN_EXE_larimar"), &SMALL_BUDGET);
    let mut unread = crowded.unread_entities(30);
    let address = crowded.tables.address();
    let waits = thread::spawn(move || Client::new(address).get("/large(PartitionKey='p',RowKey='00')").send());
    crowded.until("larimar_in_flight_waiting", |waiting| waiting == 1);
    crowded.serves_others("during");
    unread.pop();
    let reply = waits.join().expect("no panic");
    reply.is_status(200);
    assert!(reply.body.len() > 480_000);
}

#[test]
fn q9_claimed_messages_are_sent_even_if_they_find_no_room() {
    let crowded = Crowded::new(env!("CARGO_BIN_EXE_larimar"), &SMALL_BUDGET);
    let queues = crowded.server.queues();
    queues.put("/jobs", "").send().is_status(201);
    let text = format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", "x".repeat(60_000));
    for _ in 0..32 {
        queues.post("/jobs/messages", text.as_str()).send().is_status(201);
    }
    let _unread = crowded.unread_entities(29);
    let claimed = queues.get("/jobs/messages?numofmessages=32").send();
    claimed.is_status(200);
    assert_eq!(claimed.elements("MessageText").len(), 32);
}

#[test]
fn q9_a_transaction_has_the_room_for_its_answer_before_it_runs() {
    let crowded =
        Crowded::new(env!("CARGO_BIN_EXE_larimar"), &["--in-flight-bytes-max", "16MiB", "--in-flight-wait", "1s"]);
    crowded.tables.create_table("tab");
    let mut unread = crowded.unread_entities(28);
    // Keys come back three times in links, each of their bytes as three: the answer is ten times as long as the request.
    let key = |row: usize| format!("{row:03}{}", "\u{65e5}".repeat(509));
    let headers = ["Content-Type: application/json", "Accept: application/json;odata=fullmetadata"];
    let echoed = (0..100).fold(Batch::new(), |batch, row| {
        batch.operation(&crowded.tables, "POST", "/tab", &headers, &entity(&key(0), &key(row), ""))
    });
    echoed.request(&crowded.tables).send().is_error(503, "ServerBusy");
    assert_eq!(crowded.tables.get("/tab()").send().values().len(), 0, "nothing was done");
    unread.truncate(10);
    crowded.until("larimar_in_flight_bytes", |bytes| bytes < 6 << 20);
    let reply = echoed.send(&crowded.tables);
    assert_eq!(reply.statuses(), [201; 100]);
    assert!(crowded.figure("larimar_in_flight_peak_bytes").is_some_and(|peak| peak <= 16 << 20));
}

/// Properties with this many bytes of text.
fn members(bytes: usize) -> String {
    let text = "x".repeat(bytes / 20);
    (0..20).map(|at| format!("\"A{at}\":\"{text}\"")).collect::<Vec<_>>().join(",")
}

#[test]
#[ignore = "opens 10,000 connections"]
fn ten_thousand_slow_connections() {
    let count: usize = std::env::var("LARIMAR_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    raise_file_limit();
    let exe = std::env::var("LARIMAR_CROWD_EXE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_larimar").to_owned());
    let crowded = Crowded::new(&exe, &[]);
    println!("before: {}", crowded.memory());
    let idle: Vec<TcpStream> =
        (0..count).map(|_| TcpStream::connect(crowded.blobs.address()).expect("the server listens")).collect();
    crowded.until("larimar_open_connections", |open| open >= count as u64 / 10 * 9);
    println!("{count} connections that ask nothing: {}", crowded.memory());
    drop(idle);
    crowded.until("larimar_open_connections", |open| open < 10);
    let slow = crowded.slow(count / 10 * 6, count / 10 * 3, count / 10);
    crowded.until("larimar_open_connections", |open| open >= count as u64 / 10 * 9);
    for second in 0..20 {
        thread::sleep(Duration::from_secs(1));
        if second % 5 == 4 {
            let figures = ["bytes", "peak_bytes", "limit_bytes", "waiting", "refused_total"];
            let shown = figures.map(|name| (name, crowded.figure(&format!("larimar_in_flight_{name}"))));
            println!("{count} slow clients: {}; in flight: {shown:?}", crowded.memory());
        }
    }
    crowded.serves_others("during");
    drop(slow);
    crowded.until("larimar_open_connections", |open| open < 10);
    thread::sleep(Duration::from_secs(5));
    println!("after: {}", crowded.memory());
    let limit = crowded.figure("larimar_in_flight_limit_bytes");
    assert!(crowded.figure("larimar_in_flight_peak_bytes") <= limit);
}

/// The test holds the other ends of the connections.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum.or(Some(1 << 17)), maximum: limit.maximum };
    setrlimit(Resource::Nofile, wanted).expect("the limit of open files can be raised");
}
