//! A large table dropped while others work: the drop is one quick request, the others go on, the space comes back.
//!
//! `LARIMAR_DROP_ROWS` sets how large (100,000 by default). Latencies before and during are printed, not judged:
//! the machine that runs the tests may have other work.

use super::EXE;
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{self, Batch, Client, entity, entity_path};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LOADERS: usize = 4;
const WORKERS: usize = 4;

#[test]
fn d7_a_large_table_is_dropped_under_load() {
    let rows = std::env::var("LARIMAR_DROP_ROWS").ok().map_or(100_000, |text| text.parse().expect("a number of rows"));
    let server = TemporaryServer::start(EXE, &[]);
    let client = server.client();
    client.create_table("large");
    client.create_table("busy");
    load(&client, rows);
    let bytes_before = metric(&server, "larimar_store_bytes");
    let next = AtomicUsize::new(0);
    let (before, during, took) = std::thread::scope(|scope| {
        let phase = |span: Duration| {
            let until = Instant::now() + span;
            let workers: Vec<_> = (0..WORKERS)
                .map(|_| {
                    scope.spawn({
                        let (client, next) = (server.client(), &next);
                        move || work(&client, next, until)
                    })
                })
                .collect();
            move || -> Vec<Duration> {
                let mut all: Vec<_> = workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect();
                all.sort_unstable();
                all
            }
        };
        let before = phase(Duration::from_secs(3))();
        let during = phase(Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        client.delete("/Tables('large')").send().is_status(204);
        let took = start.elapsed();
        client.get("/large()").send().is_error(404, "TableNotFound");
        client.create_table("large");
        assert_eq!(client.get("/large()").send().values().len(), 0, "the name is free and the new table empty");
        let during = during();
        (before, during, took)
    });
    println!("{rows} rows dropped in {took:?}");
    println!("others before: {}", summary(&before));
    println!("others during: {}", summary(&during));
    let until = Instant::now() + Duration::from_secs(300);
    while metric(&server, "larimar_dropped_tables") > 0.0 {
        assert!(Instant::now() < until, "the space of the dropped table is not reclaimed");
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("store: {bytes_before} bytes before, {} after", metric(&server, "larimar_store_bytes"));
    let written = next.load(SeqCst);
    let sample = (0..written).step_by(written / 50 + 1);
    sample.for_each(|row| client.get(&entity_path("busy", "p", &row.to_string())).send().is_status(200));
}

fn load(client: &Client, rows: usize) {
    let batches: Vec<usize> = (0..rows.div_ceil(100)).collect();
    std::thread::scope(|scope| {
        for share in batches.chunks(batches.len().div_ceil(LOADERS)) {
            let client = client.of_account(http::ACCOUNT, http::KEY);
            scope.spawn(move || {
                for number in share {
                    let batch = (0..100).fold(Batch::new(), |batch, row| {
                        let members = format!(r#""V":"{}""#, "x".repeat(100));
                        batch.insert(&client, "large", &format!("p{number}"), &format!("r{row}"), &members)
                    });
                    assert_eq!(batch.request(&client).send().status, 202);
                }
            });
        }
    });
}

/// Inserts and reads until the time is over; every answer must be right.
fn work(client: &Client, next: &AtomicUsize, until: Instant) -> Vec<Duration> {
    let mut spans = Vec::new();
    while Instant::now() < until {
        let row = next.fetch_add(1, SeqCst).to_string();
        let start = Instant::now();
        let insert = client.post("/busy", entity("p", &row, "")).header("Prefer", "return-no-content").send();
        spans.push(start.elapsed());
        insert.is_status(204);
        let start = Instant::now();
        let get = client.get(&entity_path("busy", "p", &row)).send();
        spans.push(start.elapsed());
        get.is_status(200);
    }
    spans
}

fn summary(spans: &[Duration]) -> String {
    let at = |share: f64| spans[((spans.len() - 1) as f64 * share) as usize];
    format!("{} requests, p50 {:?}, p99 {:?}, max {:?}", spans.len(), at(0.5), at(0.99), at(1.0))
}

fn metric(server: &TemporaryServer, name: &str) -> f64 {
    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let reply = http::exchange(server.admin_address(), request).expect("metrics");
    let line = reply.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    line.unwrap_or_else(|| panic!("no {name} in\n{}", reply.text()))
}
