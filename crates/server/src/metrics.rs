//! The counters of the server, and their page in the Prometheus text format.
//!
//! A request adds to a shard that belongs to its thread, so threads do not contend for a lock or a cache line;
//! the shards are summed up for each page (`metrics/page.rs`). Figures of the store come from the engine at the same time.

mod page;
mod process;
mod traffic;

use crate::in_flight::InFlight;
use larimar_engine::blob::bytes::ByteStatistics;
use larimar_engine::{Clock, DiskRoom, Histogram, HistogramSnapshot, Statistics, SystemClock};
use larimar_wire::sas::Service;
use page::Page;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use traffic::{Traffic, TrafficSum};

/// Counters of the whole server.
pub struct Metrics {
    shards: Box<[Shard]>,
    connections_open: AtomicU64,
    connections_total: AtomicU64,
    panics_total: AtomicU64,
    analytics_dropped_total: AtomicU64,
    access_lines_lost_total: AtomicU64,
    slow_queries_total: AtomicU64,
    wasteful_queries_total: AtomicU64,
    in_flight: OnceLock<Arc<InFlight>>,
    bytes: OnceLock<BytesFigures>,
    /// The names of accounts, by their places.
    accounts: RwLock<Vec<String>>,
    clock: Arc<dyn Clock>,
    started_unix_seconds: f64,
}

/// Reads the figures of a store of bytes.
pub(crate) type BytesFigures = Box<dyn Fn() -> ByteStatistics + Send + Sync>;

/// The counters of the threads that share a shard. Aligned, so that shards do not share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Counts>);

/// Each list is short: a linear search is faster than hashing.
#[derive(Debug, Default)]
struct Counts {
    operations: Vec<(&'static str, Operation)>,
    queries: Vec<(&'static str, Query)>,
    /// By account and service, see [`traffic::index`].
    traffic: Vec<Traffic>,
}

#[derive(Debug)]
struct Operation {
    statuses: Vec<(u16, u64)>,
    seconds: Histogram,
}

#[derive(Clone, Copy, Debug, Default)]
struct Query {
    count: u64,
    rows_read: u64,
    rows_returned: u64,
}

impl Metrics {
    /// Counters at zero, of a process that starts now.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let shards = (0..shard_count()).map(|_| Shard::default()).collect();
        Self {
            shards,
            connections_open: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            panics_total: AtomicU64::new(0),
            analytics_dropped_total: AtomicU64::new(0),
            access_lines_lost_total: AtomicU64::new(0),
            slow_queries_total: AtomicU64::new(0),
            wasteful_queries_total: AtomicU64::new(0),
            in_flight: OnceLock::new(),
            bytes: OnceLock::new(),
            accounts: RwLock::default(),
            started_unix_seconds: clock.now().to_unix().as_secs_f64(),
            clock,
        }
    }

    /// Counts a request that was answered.
    pub fn request(&self, operation: &'static str, status: u16, elapsed: Duration) {
        let mut counts = self.shard().lock();
        let operation = entry(&mut counts.operations, operation, Operation::new);
        *entry(&mut operation.statuses, status, || 0) += 1;
        operation.seconds.record(elapsed.as_secs_f64());
    }

    /// Counts a request for its service and account; `place` is the account's, if it is served here.
    pub(crate) fn traffic(&self, service: Service, place: Option<usize>, status: u16, received: u64, sent: u64) {
        let index = traffic::index(service, place);
        let mut counts = self.shard().lock();
        if counts.traffic.len() <= index {
            counts.traffic.resize(index + 1, Traffic::default());
        }
        counts.traffic[index].count(status, received, sent);
    }

    /// Names the account of a place.
    pub(crate) fn name_account(&self, place: usize, name: &str) {
        let mut accounts = self.accounts.write();
        if accounts.len() <= place {
            accounts.resize(place + 1, String::new());
        }
        name.clone_into(&mut accounts[place]);
    }

    /// Counts a query by the kind of its plan.
    pub fn query(&self, kind: &'static str, rows_read: u64, rows_returned: u64) {
        let mut counts = self.shard().lock();
        entry(&mut counts.queries, kind, Query::default).add(Query { count: 1, rows_read, rows_returned });
    }

    /// Counts a connection that was accepted.
    pub(crate) fn connection_opened(&self) {
        self.connections_open.fetch_add(1, Relaxed);
        self.connections_total.fetch_add(1, Relaxed);
    }

    /// Counts a connection that ended.
    pub(crate) fn connection_closed(&self) {
        self.connections_open.fetch_sub(1, Relaxed);
    }

    /// Counts a request whose handler panicked.
    pub(crate) fn handler_panicked(&self) {
        self.panics_total.fetch_add(1, Relaxed);
    }

    /// Counts requests that storage analytics had no room for.
    pub(crate) fn analytics_dropped(&self, requests: u64) {
        if requests > 0 {
            self.analytics_dropped_total.fetch_add(requests, Relaxed);
        }
    }

    /// Counts lines of the access log that were not written.
    pub(crate) fn access_lines_lost(&self, lines: u64) {
        self.access_lines_lost_total.fetch_add(lines, Relaxed);
    }

    /// Counts a query that took long, or read many rows for those it returned.
    pub(crate) fn slow_query(&self, is_slow: bool, is_wasteful: bool) {
        self.slow_queries_total.fetch_add(u64::from(is_slow), Relaxed);
        self.wasteful_queries_total.fetch_add(u64::from(is_wasteful), Relaxed);
    }

    /// Shows the figures of this budget. The first one counts.
    pub(crate) fn show_in_flight(&self, budget: &Arc<InFlight>) {
        let _ = self.in_flight.set(Arc::clone(budget));
    }

    /// Shows the figures of a store of bytes. The first one counts.
    pub(crate) fn show_bytes(&self, figures: BytesFigures) {
        let _ = self.bytes.set(figures);
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        self.connections_open.load(Relaxed)
    }

    /// Everything in the Prometheus text format, with the figures of the engine and whether it serves all requests.
    #[must_use]
    pub fn render(&self, engine: &Statistics, is_ready: bool) -> String {
        let (operations, queries, traffic) = self.summed();
        let mut page = Page::default();
        let help = "Whether all requests are served, as /ready says.";
        page.single("larimar_ready", "gauge", help, u8::from(is_ready));
        page.requests(&operations);
        traffic.render(&mut page);
        page.queries(&queries);
        self.render_store(&mut page, engine);
        self.render_server(&mut page);
        page.family("larimar_build_info", "gauge", "The version that runs; always 1.");
        page.line("larimar_build_info", &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), 1);
        let start = "Start of the process, in seconds since 1970.";
        page.single("process_start_time_seconds", "gauge", start, self.started_unix_seconds);
        process::render(&mut page);
        page.text
    }

    fn render_store(&self, page: &mut Page, engine: &Statistics) {
        page.family("larimar_commit_writes", "histogram", "Writes per commit of the store.");
        page.histogram("larimar_commit_writes", "", &engine.commit_writes);
        page.family("larimar_sync_seconds", "histogram", "Time of a sync to disk.");
        page.histogram("larimar_sync_seconds", "", &engine.sync_seconds);
        page.single("larimar_store_bytes", "gauge", "Bytes that the store takes, about.", engine.store_bytes);
        let backlog = "Dropped tables whose storage is not reclaimed yet.";
        page.single("larimar_dropped_tables", "gauge", backlog, engine.dropped_spaces);
        let help = "Bytes that wait to be reclaimed: of deleted rows, and of payloads of blobs that nothing points to.";
        page.family("larimar_reclaimable_bytes", "gauge", help);
        page.line("larimar_reclaimable_bytes", "of=\"rows\"", engine.reclaimable_bytes);
        let bytes = self.bytes.get().map(|figures| figures());
        if let Some(bytes) = bytes {
            page.line("larimar_reclaimable_bytes", "of=\"payloads\"", bytes.discarded_bytes);
        }
        if let Some(stored) = bytes.and_then(|bytes| bytes.stored_bytes) {
            let help = "Bytes that the files of blobs take on disk, counted every few minutes.";
            page.single("larimar_blob_bytes", "gauge", help, stored);
        }
        if let Some(DiskRoom { free, needed }) = engine.disk {
            page.single("larimar_disk_free_bytes", "gauge", "Bytes that are free on the disk of the store.", free);
            let help = "Bytes that must stay free there: with fewer, only deletes, drops and reads are served.";
            page.single("larimar_disk_needed_bytes", "gauge", help, needed);
        }
        page.block_reads(&engine.block_reads);
        let ahead = engine.last_version.map_or(0, |last| last.ticks().saturating_sub(self.clock.now().ticks()));
        page.single(
            "larimar_versions_ahead_seconds",
            "gauge",
            "How far Timestamps of new entities run ahead of the clock, as after a wrong reading of it.",
            (ahead / 10_000) as f64 / 1000.0,
        );
    }

    fn render_server(&self, page: &mut Page) {
        page.single("larimar_open_connections", "gauge", "Connections that are open.", self.connections_open());
        let accepted = self.connections_total.load(Relaxed);
        page.single("larimar_connections_total", "counter", "Connections that were accepted.", accepted);
        let panics = self.panics_total.load(Relaxed);
        page.single(
            "larimar_handler_panics_total",
            "counter",
            "Requests that ended in a defect of the server.",
            panics,
        );
        let dropped = "Requests missing from storage analytics, as they could not be written in time.";
        let count = self.analytics_dropped_total.load(Relaxed);
        page.single("larimar_analytics_dropped_total", "counter", dropped, count);
        let help = "Lines of the access log that were not written, as the disk was full or slow.";
        let count = self.access_lines_lost_total.load(Relaxed);
        page.single("larimar_access_log_lost_total", "counter", help, count);
        page.family("larimar_slow_queries_total", "counter", "Queries over the thresholds of time or of rows read.");
        for (reason, count) in [("time", &self.slow_queries_total), ("rows", &self.wasteful_queries_total)] {
            page.line("larimar_slow_queries_total", &format!("reason=\"{reason}\""), count.load(Relaxed));
        }
        if let Some(budget) = self.in_flight.get() {
            page.in_flight(&budget.figures());
        }
    }

    fn shard(&self) -> &Mutex<Counts> {
        &self.shards[thread_number() & (self.shards.len() - 1)].0
    }

    /// The sum over the shards, by name, so that the page has one order.
    fn summed(&self) -> (BTreeMap<&'static str, OperationSum>, BTreeMap<&'static str, Query>, TrafficSum) {
        let mut operations: BTreeMap<&'static str, OperationSum> = BTreeMap::new();
        let mut queries: BTreeMap<&'static str, Query> = BTreeMap::new();
        let (mut traffic, names) = (TrafficSum::default(), self.accounts.read());
        for shard in &self.shards {
            let counts = shard.0.lock();
            for (name, operation) in &counts.operations {
                operations.entry(name).or_default().add(operation);
            }
            for (kind, query) in &counts.queries {
                queries.entry(kind).or_default().add(*query);
            }
            traffic.add(&counts.traffic, &names);
        }
        (operations, queries, traffic)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("connections_open", &self.connections_open()).finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl Operation {
    fn new() -> Self {
        Self { statuses: Vec::new(), seconds: Histogram::new(Histogram::SECONDS) }
    }
}

impl Query {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.rows_read += other.rows_read;
        self.rows_returned += other.rows_returned;
    }
}

/// An operation over all shards.
#[derive(Default)]
struct OperationSum {
    statuses: BTreeMap<u16, u64>,
    seconds: HistogramSnapshot,
}

impl OperationSum {
    fn add(&mut self, operation: &Operation) {
        for (status, count) in &operation.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        let seconds = operation.seconds.snapshot();
        if self.seconds.counts.is_empty() {
            self.seconds = seconds;
            return;
        }
        self.seconds.sum += seconds.sum;
        for (sum, count) in self.seconds.counts.iter_mut().zip(seconds.counts) {
            *sum += count;
        }
    }
}

/// The value of a name in a short list, added when it is new.
fn entry<K: PartialEq, V>(list: &mut Vec<(K, V)>, key: K, new: impl FnOnce() -> V) -> &mut V {
    let index = list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, new()));
        list.len() - 1
    });
    &mut list[index].1
}

/// How many shards counters have: a power of two, one for each thread that runs at a time.
pub(crate) fn shard_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).next_power_of_two().min(SHARDS_MAX)
}

/// The number of the calling thread, in the order in which threads first counted something.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Relaxed));
    NUMBER.with(|number| *number)
}

/// More threads than this share shards.
const SHARDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
