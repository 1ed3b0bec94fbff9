//! Hot and large partitions in real traffic, on both engines, with a clock that the test turns: a peak of a minute is found
//! hours later, and the same traffic over many minutes is not.
//!
//! The targets of the service, 2,000 entities a second and a million rows, are values that the advisor is handed; here they
//! are lower. Throttling is tested with the real target.

use super::send;
use larimar_advisor::{Advice, Dismissals, FindingKind, Options, Report, advise};
use larimar_engine::{Clock, Engine, SystemClock};
use larimar_engine_local::LocalEngine;
use larimar_server::{
    Account, AccountKey, AdminService, AdminSettings, AdminToken, Handler, InsightsWriter, Listener, ListenerSettings,
    Metrics, Settings, Storage, TableService,
};
use larimar_testkit::ManualClock;
use larimar_testkit::http::{ACCOUNT, Batch, Client, KEY};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const MINUTE: Duration = Duration::from_secs(60);
const TOKEN: &str = "a-token-of-this-test-0123456789";

/// A server in this process.
struct Fixture<E> {
    runtime: Runtime,
    clock: Arc<ManualClock>,
    writer: InsightsWriter<E>,
    client: Client,
    admin: SocketAddr,
}

impl<E: Engine> Fixture<E> {
    fn new(runtime: Runtime, engine: E, strict: bool) -> Self {
        // Signatures have a date, so the clock begins near the real one, with a minute.
        let now = SystemClock.now();
        let into_minute = Duration::from_secs(now.to_unix().as_secs() % 60);
        let clock = Arc::new(ManualClock::new(now.before(into_minute)));
        let keys = vec![AccountKey::from_base64(KEY).expect("the well-known key")];
        let accounts = vec![Account { name: ACCOUNT.to_owned(), keys }];
        let settings = Settings { accounts, strict, ..Settings::default() };
        let storage = Storage::new(Arc::new(engine), Arc::clone(&clock) as Arc<dyn Clock>, settings, Arc::default());
        let writer = InsightsWriter::new(Arc::clone(&storage));
        runtime.block_on(writer.prepare());
        let client = Client::new(serve(&runtime, |_| TableService::new(Arc::clone(&storage))));
        let admin = serve(&runtime, |bound| {
            let token = Some(AdminToken::new(TOKEN).expect("a token"));
            AdminService::new(storage, AdminSettings { token, ..AdminSettings::new(bound) })
        });
        Self { runtime, clock, writer, client, admin }
    }

    /// The clock moves on, and what was observed is stored.
    fn pass(&mut self, time: Duration) {
        self.clock.advance(time);
        self.runtime.block_on(self.writer.tick());
    }

    /// Writes rows, a hundred in a transaction, and lets time pass after each.
    fn write(&mut self, table: &str, rows: std::ops::Range<u32>, after_each: Duration) {
        for hundred in rows.step_by(100) {
            let upsert = |batch: Batch, row: u32| batch.upsert(&self.client, table, "p", &format!("r{row:06}"), "");
            let sent = (hundred..hundred + 100).fold(Batch::new(), upsert).send(&self.client);
            assert!(sent.statuses().iter().all(|status| *status == 204), "{:?}", sent.statuses());
            if !after_each.is_zero() {
                self.pass(after_each);
            }
        }
    }

    fn get(&self, path: &str) -> Value {
        let target = format!("{path}?account={ACCOUNT}");
        let reply = send(self.admin, "GET", &target, &[("authorization", &format!("Bearer {TOKEN}"))]);
        assert_eq!(reply.status, 200, "{reply}");
        reply.json()
    }
}

/// A listener for a handler that knows its address.
fn serve<H: Handler>(runtime: &Runtime, handler: impl FnOnce(SocketAddr) -> H) -> SocketAddr {
    let socket = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = socket.local_addr().expect("a bound socket");
    let settings = ListenerSettings { shutdown_grace: Duration::ZERO, ..ListenerSettings::default() };
    let listener = Listener::new(Arc::new(handler(address)), Arc::new(Metrics::default()), settings);
    runtime.spawn(listener.serve(socket, std::future::pending()));
    address
}

/// Tables and kinds of findings about partitions.
fn found(advice: &Advice) -> Vec<(&str, FindingKind)> {
    let is_of_partition = |kind: FindingKind| matches!(kind, FindingKind::HotPartition | FindingKind::LargePartition);
    let all = advice.findings.iter().filter(|finding| is_of_partition(finding.id));
    let mut all: Vec<_> = all.map(|finding| (finding.table.as_str(), finding.id)).collect();
    all.sort_unstable();
    all
}

/// 3,000 entities in a minute, and 2,500 over many; many rows in a partition, and few.
fn peaks_and_sizes<E: Engine>(runtime: Runtime, engine: E) {
    let mut server = Fixture::new(runtime, engine, false);
    for table in ["peak", "even", "large", "small"] {
        server.client.create_table(table);
    }
    for _ in 0..6 {
        server.write("peak", 0..500, Duration::ZERO);
    }
    server.write("even", 0..100, MINUTE);
    // Numbers of rows are estimates with a standard error of 13 %, and the hashes differ from run to run.
    server.write("large", 0..3000, Duration::from_secs(5));
    server.write("small", 0..300, MINUTE);
    for _ in 0..8 {
        server.write("even", 0..300, Duration::from_secs(20));
    }
    for _ in 0..3 {
        server.pass(60 * MINUTE);
    }
    let report: Report = serde_json::from_value(server.get("/insights")).expect("a report");
    assert_eq!(report.resolution, "hour", "the report of a day has no minutes");
    let table = |name: &str| report.tables.iter().find(|table| table.table == name).expect(name);
    let peak = &table("peak").peaks[0];
    assert_eq!((peak.partition.as_str(), peak.entities), ("p", 3000));
    assert!(table("even").peaks.is_empty() && table("even").partitions[0].writes == 2500, "{:?}", table("even"));
    let options = Options { partition_rate_target: 100, partition_rows_max: 1200, ..Options::default() };
    let advice = advise(&report, options, &Dismissals::default());
    assert_eq!(found(&advice), [("large", FindingKind::LargePartition), ("peak", FindingKind::HotPartition)]);
    let hot = advice.findings.iter().find(|finding| finding.id == FindingKind::HotPartition).expect("a peak");
    assert!(hot.summary.contains(&format!("50 entities a second in the minute of {}", peak.time)), "{}", hot.summary);
    // The server goes by the targets of the service.
    let advice = serde_json::from_value(server.get("/advice")).expect("advice");
    assert_eq!(found(&advice), []);
}

/// A partition beyond the target of a second, where the server throttles as the service does, and one below it.
fn throttled<E: Engine>(runtime: Runtime, engine: E) {
    let mut server = Fixture::new(runtime, engine, true);
    for table in ["hot", "cold"] {
        server.client.create_table(table);
    }
    server.write("hot", 0..2000, Duration::ZERO);
    for _ in 0..12 {
        let batch = Batch::new().upsert(&server.client, "hot", "p", "r", "");
        assert_eq!(batch.request(&server.client).send().status, 503, "the clock stands still");
    }
    server.write("cold", 0..1500, Duration::from_secs(1));
    let advice = serde_json::from_value(server.get("/advice")).expect("advice");
    assert_eq!(found(&advice), [("hot", FindingKind::HotPartition)]);
}

fn on_disk(test: fn(Runtime, LocalEngine)) {
    let folder = tempfile::tempdir().expect("a directory");
    let settings = larimar_engine_local::Settings {
        folder: folder.path().into(),
        durability: larimar_engine_local::Durability::Async,
        memory_bytes: Some(64 << 20),
        reserve_bytes: 0,
    };
    let runtime = Runtime::new().expect("a runtime");
    let engine = runtime.block_on(async { LocalEngine::open(&settings).expect("the store opens") });
    test(runtime, engine);
}

#[test]
fn a_peak_of_a_minute_and_a_large_partition_are_found_hours_later() {
    on_disk(peaks_and_sizes);
}

#[test]
fn a_partition_that_is_throttled_is_hot() {
    on_disk(throttled);
}

#[cfg(feature = "test-postgres")]
mod in_a_database {
    use super::*;
    use larimar_engine_postgres::{PostgresEngine, Settings};

    fn in_database(test: fn(Runtime, PostgresEngine)) {
        let runtime = Runtime::new().expect("a runtime");
        let settings = Settings::new(larimar_testkit::postgres::Cluster::shared().fresh_url());
        let engine = runtime.block_on(PostgresEngine::open(&settings)).expect("the database");
        test(runtime, engine);
    }

    #[test]
    fn a_peak_of_a_minute_and_a_large_partition_are_found_hours_later() {
        in_database(peaks_and_sizes);
    }

    #[test]
    fn a_partition_that_is_throttled_is_hot() {
        in_database(throttled);
    }
}
