//! Clients that take their time on purpose, with and without credentials: each phase of a connection ends by itself, and
//! slow but honest clients are served.

use super::Victim;
use larimar_testkit::http::{Client, Request, exchange, read_response};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Sends the head of a request that declares a long body.
fn begin(client: &Client, request: &Request<'_>) -> TcpStream {
    let mut stream = connect(client.address());
    stream.write_all(&request.to_bytes()).expect("the head is sent");
    stream
}

/// Sends a byte now and then until the server no longer takes any.
fn drip(stream: &TcpStream) {
    let mut stream = stream.try_clone().expect("a second handle");
    thread::spawn(move || {
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Waits until the server has closed the connection, whatever it still sends.
#[track_caller]
fn ends(mut stream: &TcpStream) {
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                let is_open = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                return assert!(!is_open, "the connection stays open");
            }
        }
    }
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool, what: &str) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn page(victim: &Victim, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let reply = exchange(victim.server.admin_address(), request.as_bytes()).expect("an answer");
    reply.is_status(200);
    reply.text().to_owned()
}

/// A figure of the metrics page.
pub(super) fn figure(victim: &Victim, name: &str) -> u64 {
    let metrics = page(victim, "/metrics");
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{metrics}"))
}

/// A blob of this many bytes that is public.
fn public_blob(victim: &Victim, bytes: usize) -> Client {
    let blobs = victim.server.blobs();
    blobs.put("/open?restype=container", "").header("x-ms-blob-public-access", "blob").send().is_status(201);
    let put = blobs.put("/open/large", vec![b'x'; bytes]).header("x-ms-blob-type", "BlockBlob");
    put.send().is_status(201);
    blobs
}

#[test]
fn a_body_that_drips_is_given_up_with_and_without_credentials() {
    let victim = Victim::new(&["--body-timeout", "1s"]);
    let tables = &victim.client;
    let blobs = public_blob(&victim, 1);
    let insert = || tables.post("/tab", "").header("Content-Length", "100000");
    let put = || blobs.put("/open/b", "").header("x-ms-blob-type", "BlockBlob").header("Content-Length", "100000");
    for (client, request, status) in [
        (tables, insert(), 408),
        (&blobs, put(), 408),
        (tables, insert().unsigned(), 401),
        (&blobs, put().unsigned(), 401),
        // Refused for its length, which leaves a body that the server does not read.
        (tables, insert().header("Content-Length", "10000000"), 413),
    ] {
        let stream = begin(client, &request);
        drip(&stream);
        let reply = read_response(&stream, true).expect("an answer");
        assert_eq!(reply.status, status, "{reply}");
        assert_eq!(reply.header("connection"), Some("close"), "{reply}");
        ends(&stream);
    }
    victim.check_unharmed();
}

#[test]
fn a_body_in_chunks_that_drips_is_given_up() {
    let victim = Victim::new(&["--body-timeout", "1s"]);
    let request = victim.client.post("/tab", "").without("Content-Length").header("Transfer-Encoding", "chunked");
    for request in [request.unsigned(), victim.client.get("/tab()").header("Content-Length", "100000")] {
        let stream = begin(&victim.client, &request);
        let mut chunks = stream.try_clone().expect("a second handle");
        thread::spawn(move || {
            while chunks.write_all(b"1\r\nx\r\n").is_ok() {
                thread::sleep(Duration::from_millis(100));
            }
        });
        ends(&stream);
    }
    victim.check_unharmed();
}

#[test]
fn a_slow_upload_above_the_lowest_rate_is_stored() {
    let victim = Victim::new(&["--body-timeout", "4s"]);
    let blobs = public_blob(&victim, 1);
    let (pieces, piece) = (100, [b'y'; 1024]);
    let length = (pieces * piece.len()).to_string();
    let put =
        blobs.put("/open/slow", "").header("x-ms-blob-type", "BlockBlob").header("Content-Length", length.as_str());
    let mut stream = begin(&blobs, &put);
    // Longer than the timeout in sum, never silent for nearly as long.
    for _ in 0..pieces {
        stream.write_all(&piece).expect("the server takes the body");
        thread::sleep(Duration::from_millis(50));
    }
    read_response(&stream, true).expect("an answer").is_status(201);
    let read = blobs.get("/open/slow").send();
    assert_eq!(read.body.len(), pieces * piece.len());
}

#[test]
fn answers_that_nobody_reads_end_the_connection() {
    let victim = Victim::new(&["--answer-timeout", "1s"]);
    let blobs = public_blob(&victim, 1 << 20);
    until(|| figure(&victim, "larimar_open_connections") == 2, "the clients are connected");
    let get = blobs.get("/open/large").unsigned().to_bytes();
    let mut silent = connect(blobs.address());
    silent.write_all(&get.repeat(64)).expect("many requests at once");
    until(|| figure(&victim, "larimar_open_connections") == 3, "the silent one is connected");
    until(|| figure(&victim, "larimar_open_connections") == 2, "an answer that is not read pins the connection");
    drop(silent);
}

#[test]
fn a_slow_reader_above_the_lowest_rate_gets_its_blob() {
    let victim = Victim::new(&["--answer-timeout", "4s"]);
    let bytes = 8 << 20;
    let blobs = public_blob(&victim, bytes);
    let stream = begin(&blobs, &blobs.get("/open/large"));
    let mut reader = &stream;
    let (mut received, mut buffer) = (0, vec![0; 32 << 10]);
    while received < bytes {
        let read = reader.read(&mut buffer).expect("the server goes on sending");
        assert_ne!(read, 0, "the answer was cut after {received} bytes");
        received += read;
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_reader_below_the_lowest_rate_is_cut_off() {
    let victim = Victim::new(&["--answer-timeout", "1s", "--client-rate-min", "8MiB"]);
    let bytes = 32 << 20;
    let blobs = public_blob(&victim, bytes);
    let stream = begin(&blobs, &blobs.get("/open/large").unsigned());
    let mut reader = &stream;
    let (mut received, mut buffer) = (0, vec![0; 16 << 10]);
    while let Ok(1..) = reader.read(&mut buffer).inspect(|read| received += read) {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(received < bytes, "a slow reader got everything");
}

#[test]
fn slow_heads_keep_nobody_out() {
    // Only eviction can help here: a head has ten minutes.
    let victim = Victim::new(&["--connections-max", "50", "--header-timeout", "10m", "--idle-timeout", "10m"]);
    let slow = |address: SocketAddr| {
        let streams = (0..200).map(|number| {
            let mut stream = connect(address);
            if number % 2 == 0 {
                // A connection that was evicted meanwhile may refuse the bytes.
                let _ = stream.write_all(b"GET /health HTTP/1.1\r\nhost:");
            }
            stream
        });
        streams.collect::<Vec<_>>()
    };
    let at_admin = slow(victim.server.admin_address());
    let at_tables = slow(victim.server.table_address());
    let at_blobs = slow(victim.server.blob_address());
    for _ in 0..3 {
        assert_eq!(page(&victim, "/health"), "ok\n");
        assert_eq!(page(&victim, "/ready"), "ready\n");
        victim.server.client().get("/Tables").send().is_status(200);
        victim.server.blobs().get("/?comp=list").send().is_status(200);
    }
    drop((at_admin, at_tables, at_blobs));
    victim.check_unharmed();
}
