//! The engine alone: what Larimar's engine does for a program that calls it directly, without HTTP, signatures and JSON.
//!
//! Where client, server and database share a few cores, the way over HTTP costs more than a statement does, and says
//! little of what the engine makes of the database. So the same reads and writes are also asked of `PostgresEngine` in
//! this process, by many tasks on threads of their own. It is opened for one turn and closed after it, and works on the
//! database of the running Larimar: it reads the table that was loaded and inserts into a space of its own.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use larimar_engine::{
    Act, Budget, Clock as _, Engine as _, Expect, Flow, Key as RowPlace, KeyRange, Op, Rows as _, SpaceId, SpaceKind,
    SpaceName, Spaces as _, SystemClock,
};
use larimar_engine_postgres::{PostgresEngine, Settings};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::pgbench::Ceiling;
use super::usage::Commits;
use crate::dataset::{Dataset, Key, NARROW_ROWS, Random, TABLE, TRANSACTION_ROWS};
use crate::histogram::Histogram;
use crate::measure::Window;
use crate::sign::ACCOUNT;
use crate::workload::SPREAD_PARTITIONS;

/// Threads of the engine: as many as pgbench has.
const THREADS: usize = 2;
/// A task gives up after this many failures in a row.
const FAILURES_MAX: u32 = 20;
/// Scans that one page may take: the engine may end a scan early, and the next one goes on.
const SCANS_MAX: usize = 100;
/// Longest scan.
const SCAN_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest end of the tasks after their time is up.
const END_MAX: Duration = Duration::from_secs(60);
/// Inserts go to a space that no client of Larimar sees.
const OWN_SPACE: SpaceName<'static> = SpaceName { account: "engine", kind: SpaceKind::Table, name: TABLE };
const LOADED_SPACE: SpaceName<'static> = SpaceName { account: ACCOUNT, kind: SpaceKind::Table, name: TABLE };

/// Given to the next inserted row and the next transaction, so that no key repeats on a cluster.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    row: AtomicU64,
    transaction: AtomicU64,
}

/// What came of a turn.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) latencies: Histogram,
    pub(super) elapsed: Duration,
    pub(super) commits: Commits,
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
}

/// An open engine and the threads it runs on.
pub(super) struct Alone {
    opened: Arc<Opened>,
    threads: Threads,
}

impl Alone {
    /// Opens the engine over a database that Larimar has loaded.
    pub(super) async fn open(url: &str, dataset: Dataset, numbers: &Arc<Numbers>) -> anyhow::Result<Self> {
        let threads = Threads::start()?;
        let opened = Opened::open(url.to_owned(), dataset, Arc::clone(numbers));
        let opened = threads.run(opened).await?.context("opening the engine alone")?;
        Ok(Self { opened: Arc::new(opened), threads })
    }

    /// Lets so many tasks do the same for a while.
    pub(super) async fn measure(&self, what: Ceiling, tasks: u64, window: Window) -> anyhow::Result<Counted> {
        self.threads.run(Arc::clone(&self.opened).measure(what, tasks, window)).await
    }

    /// Ends the engine's work and its connections.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        let opened = Arc::clone(&self.opened);
        self.threads.run(async move { opened.engine.close().await }).await
    }
}

/// A runtime that may be dropped inside another one.
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> anyhow::Result<Self> {
        Ok(Self(Some(Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?)))
    }

    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> anyhow::Result<T> {
        self.0.as_ref().context("the threads have ended")?.spawn(work).await.context("a task of the engine alone")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the tasks share.
struct Opened {
    engine: PostgresEngine,
    dataset: Dataset,
    numbers: Arc<Numbers>,
    loaded: SpaceId,
    own: SpaceId,
    /// Bodies of loaded rows, as they are stored: inserts store them again.
    bodies: Vec<Vec<u8>>,
}

impl Opened {
    async fn open(url: String, dataset: Dataset, numbers: Arc<Numbers>) -> anyhow::Result<Self> {
        let engine = PostgresEngine::open(&Settings::new(url)).await?;
        let loaded = engine.space(LOADED_SPACE).await?.context("the table that was loaded")?;
        let own = match engine.space(OWN_SPACE).await? {
            Some(space) => space.id,
            None => engine.create_space(OWN_SPACE, &loaded.meta).await?.context("a space of its own")?,
        };
        let mut opened = Self { engine, dataset, numbers, loaded: loaded.id, own, bodies: Vec::new() };
        let mut key = Key::default();
        key.set_narrow(0);
        let mut bodies = Vec::new();
        opened.scan(&key.partition, |body| bodies.push(body.to_vec())).await.context("the bodies of loaded rows")?;
        opened.bodies = bodies;
        Ok(opened)
    }

    async fn measure(self: Arc<Self>, what: Ceiling, tasks: u64, window: Window) -> Counted {
        let before = Commits::of(&self.engine.statistics());
        let from = Instant::now() + window.warm_up;
        let until = from + window.counted;
        let mut running = JoinSet::new();
        for index in 0..tasks {
            let task = Task { opened: Arc::clone(&self), random: Random::new(index << 32), key: Key::default() };
            running.spawn(task.work(what, from, until));
        }
        let mut counted = Counted { elapsed: window.counted, ..Counted::default() };
        let all = async {
            while let Some(done) = running.join_next().await {
                match done {
                    Ok(done) => counted.add(done),
                    Err(error) => counted.fail(&error.into()),
                }
            }
        };
        if tokio::time::timeout(window.warm_up + window.counted + END_MAX, all).await.is_err() {
            counted.fail(&anyhow::anyhow!("calls of the engine that do not end"));
        }
        counted.commits = Commits::of(&self.engine.statistics()) - before;
        counted
    }

    /// Visits the 1,000 rows of a narrow partition.
    async fn scan(&self, partition: &str, mut visit: impl FnMut(&[u8]) + Send) -> anyhow::Result<()> {
        let mut range = KeyRange::partition(partition);
        let mut rows = 0;
        for _ in 0..SCANS_MAX {
            let budget = Budget { rows_max: NARROW_ROWS as usize, deadline: Instant::now() + SCAN_TIME_MAX };
            let rest = self.engine.scan(self.loaded, &range, budget, |row| {
                rows += 1;
                visit(row.body);
                Flow::Continue
            });
            match rest.await? {
                Some(position) => range.start = position,
                None => {
                    ensure!(rows == NARROW_ROWS, "a page of {rows} rows instead of {NARROW_ROWS}");
                    return Ok(());
                }
            }
        }
        anyhow::bail!("a page that does not end")
    }

    /// The body of a row to insert.
    fn body(&self, number: u64) -> Act<'_> {
        Act::Put(&self.bodies[(number % self.bodies.len() as u64) as usize])
    }
}

/// One task at work.
struct Task {
    opened: Arc<Opened>,
    random: Random,
    key: Key,
}

impl Task {
    async fn work(mut self, what: Ceiling, from: Instant, until: Instant) -> Counted {
        let mut counted = Counted::default();
        let mut failures = 0;
        let mut start = Instant::now();
        while start < until && failures < FAILURES_MAX {
            let outcome = self.operate(what).await;
            let now = Instant::now();
            match outcome {
                Ok(()) => {
                    failures = 0;
                    if now >= from && now < until {
                        counted.latencies.record(now - start);
                    }
                }
                Err(error) => {
                    failures += 1;
                    counted.fail(&error);
                }
            }
            start = now;
        }
        counted
    }

    /// One operation, its answer checked. Keys and shapes are those of the workloads over HTTP.
    async fn operate(&mut self, what: Ceiling) -> anyhow::Result<()> {
        let numbers = &self.opened.numbers;
        match what {
            Ceiling::InsertHot => {
                let row = numbers.row.fetch_add(1, Ordering::Relaxed);
                self.key.set("hot", 0, row);
                self.insert(row).await
            }
            Ceiling::InsertSpread => {
                let row = numbers.row.fetch_add(1, Ordering::Relaxed);
                self.key.set("s", self.random.below(SPREAD_PARTITIONS), row);
                self.insert(row).await
            }
            Ceiling::Get => {
                self.key.set_narrow(self.random.below(self.opened.dataset.narrow_rows()));
                self.get().await
            }
            Ceiling::Bulk => {
                let first = numbers.transaction.fetch_add(1, Ordering::Relaxed) * TRANSACTION_ROWS;
                self.transaction(first).await
            }
            Ceiling::Page => {
                self.key.set("p", self.random.below(self.opened.dataset.narrow_partitions()), 0);
                self.opened.scan(&self.key.partition, touch).await
            }
        }
    }

    async fn get(&self) -> anyhow::Result<()> {
        let place = RowPlace { space: self.opened.loaded, partition: &self.key.partition, row: &self.key.row };
        let found = self.opened.engine.get(place, |row| row.map(|row| touch(row.body))).await?;
        found.with_context(|| format!("no row {} in {}", self.key.row, self.key.partition))
    }

    async fn insert(&self, number: u64) -> anyhow::Result<()> {
        let op = Op { row: &self.key.row, expect: Expect::Absent, act: self.opened.body(number) };
        self.apply(&self.key.partition, &[op]).await
    }

    async fn transaction(&mut self, first: u64) -> anyhow::Result<()> {
        let mut rows = Vec::with_capacity(TRANSACTION_ROWS as usize);
        for number in first..first + TRANSACTION_ROWS {
            self.key.set("t", number / NARROW_ROWS, number % NARROW_ROWS);
            rows.push((number, self.key.row.clone()));
        }
        let ops: Vec<Op<'_>> = rows
            .iter()
            .map(|(number, row)| Op { row, expect: Expect::Absent, act: self.opened.body(*number) })
            .collect();
        self.apply(&self.key.partition, &ops).await
    }

    async fn apply(&self, partition: &str, ops: &[Op<'_>]) -> anyhow::Result<()> {
        let versions = self.opened.engine.apply(self.opened.own, partition, ops, SystemClock.now()).await?;
        ensure!(versions.len() == ops.len(), "{} versions for {} rows", versions.len(), ops.len());
        Ok(())
    }
}

impl Counted {
    fn add(&mut self, other: Self) {
        self.latencies.merge(&other.latencies);
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    fn fail(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| format!("{error:#}"));
    }
}

/// Reads every byte, as a program that wants the row would.
fn touch(body: &[u8]) {
    black_box(body.iter().fold(0_u64, |sum, byte| sum.wrapping_add(u64::from(*byte))));
}
