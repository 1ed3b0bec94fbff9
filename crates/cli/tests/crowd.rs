//! Many slow clients at once: the server's memory stays within its budget, and others are served meanwhile.
//!
//! The large crowd takes a minute and some thousand connections, so it runs when asked for, best with a release build:
//!
//! ```text
//! ulimit -n 65536
//! cargo test --release -p larimar --test crowd -- --ignored --nocapture
//! ```
//!
//! It prints what the server process takes. `LARIMAR_CROWD` is the number of connections (10,000), and
//! `LARIMAR_CROWD_EXE` another executable to compare with.

#![cfg(unix)]

use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, Client, Request, exchange, read_response};
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
            stream.write_all(&[b'y'; 1000]).expect("the start of a body");
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

    /// The lines of the process's status that tell of its memory.
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
    let slow = crowded.slow(0, 0, 60);
    crowded.until("larimar_in_flight_refused_total", |refused| refused > 0);
    let large = || crowded.blobs.put("/open/later", vec![b'z'; 3 << 20]).header("x-ms-blob-type", "BlockBlob");
    let refused = large().send();
    refused.is_error(503, "ServerBusy");
    crowded.serves_others("busy");
    assert!(crowded.figure("larimar_in_flight_peak_bytes").is_some_and(|peak| peak <= 16 << 20));
    let answered = slow.iter().filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(10))).expect("a timeout can be set");
        read_response(stream, true).is_ok_and(|reply| reply.status == 503)
    });
    assert!(answered.count() > 0, "some of the slow ones were refused");
    drop(slow);
    crowded.until("larimar_in_flight_bytes", |bytes| bytes == 0);
    large().send().is_status(201);
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
