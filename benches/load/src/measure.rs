//! Runs one workload over many connections for a while and counts what came of it.
//!
//! Everything runs on one thread: the server under test needs the other cores more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::task::LocalSet;

use crate::histogram::Histogram;
use crate::http::{Connection, broke};
use crate::request::Requests;
use crate::sign::Signer;
use crate::workload::{Store, Worker, Workload};

/// A worker gives up after this many failures in a row.
const FAILURES_MAX: u32 = 20;
/// Loading uses as many connections as the smaller of the two measured numbers.
const LOADERS: u64 = 16;

/// One connection at work.
pub(crate) trait Work: 'static {
    /// One operation: asked, answered, checked.
    async fn operate(&mut self) -> anyhow::Result<Outcome>;

    /// Replaces a broken connection.
    fn reconnect(&mut self, connection: Connection);
}

/// What came of one operation.
pub(crate) enum Outcome {
    Done,
    /// There is nothing left to do, such as no row left to delete.
    Exhausted,
}

/// How long a measurement takes.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// Nothing is counted so early.
    pub(crate) warm_up: Duration,
    /// What is counted.
    pub(crate) counted: Duration,
    /// A server too slow for one operation per connection is given up to this long.
    pub(crate) longest: Duration,
    /// What is under way when the time is up is waited for and counted, with the time it takes: for operations so
    /// long that few fit in.
    pub(crate) whole: bool,
}

/// The counts of one workload on one server.
#[derive(Clone, Default)]
pub(crate) struct Measurement {
    pub(crate) latencies: Histogram,
    pub(crate) elapsed: Duration,
    /// Processor time that the server used meanwhile.
    pub(crate) server_cpu: Duration,
    /// Connections that the server broke; what was asked on them is not counted.
    pub(crate) resets: u64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
}

impl Measurement {
    /// Operations in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.total() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Adds another measurement of the same thing.
    pub(crate) fn merge(&mut self, other: Self) {
        self.latencies.merge(&other.latencies);
        self.elapsed += other.elapsed;
        self.server_cpu += other.server_cpu;
        self.resets += other.resets;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}

/// What the workers of one measurement share.
struct Run {
    port: u16,
    window: Window,
    from: Instant,
    until: Instant,
    longest: Instant,
    connections: u64,
    stopped: Cell<Option<Instant>>,
    result: RefCell<Measurement>,
}

/// Measures a workload of the Table service at a number of connections.
pub(crate) async fn measure(
    port: u16,
    signer: &Rc<Signer>,
    store: &Rc<Store>,
    workload: Workload,
    connections: u64,
    window: Window,
) -> Measurement {
    let (signer, store) = (Rc::clone(signer), Rc::clone(store));
    measure_work(port, connections, window, move |index, connection| {
        let requests = Requests::new(Rc::clone(&signer), port);
        let worker = Worker::new(connection, requests, Rc::clone(&store), index << 32 | u64::from(port));
        TableWork { worker, workload }
    })
    .await
}

/// A worker of the Table service with what it is to do.
struct TableWork {
    worker: Worker,
    workload: Workload,
}

impl Work for TableWork {
    async fn operate(&mut self) -> anyhow::Result<Outcome> {
        self.worker.operate(self.workload).await
    }

    fn reconnect(&mut self, connection: Connection) {
        self.worker.reconnect(connection);
    }
}

/// Measures what workers do, each of which `start` makes from its number and its connection.
pub(crate) async fn measure_work<W: Work>(
    port: u16,
    connections: u64,
    window: Window,
    start: impl Fn(u64, Connection) -> W + 'static,
) -> Measurement {
    let start = Rc::new(start);
    let from = Instant::now() + window.warm_up;
    let run = Rc::new(Run {
        port,
        window,
        from,
        until: from + window.counted,
        longest: from + window.longest,
        connections,
        stopped: Cell::new(None),
        result: RefCell::default(),
    });
    let workers = LocalSet::new();
    for index in 0..connections {
        let (run, start) = (Rc::clone(&run), Rc::clone(&start));
        workers.spawn_local(async move { run.work(index, &*start).await });
    }
    // An operation may be under way when the time is up; a server that never answers is cut off.
    let limit = window.warm_up + window.longest * 2;
    if tokio::time::timeout(limit, workers).await.is_err() {
        run.fail(&anyhow::anyhow!("unanswered requests after {} s", limit.as_secs()));
    }
    let mut result = run.result.take();
    result.elapsed = run.stopped.get().unwrap_or_else(Instant::now).saturating_duration_since(run.from);
    result
}

impl Run {
    async fn work<W: Work>(&self, index: u64, make: impl Fn(u64, Connection) -> W) {
        let mut worker = match self.connect().await {
            Ok(connection) => make(index, connection),
            Err(error) => return self.fail(&error),
        };
        let mut failures = 0;
        let mut start = Instant::now();
        while self.stopped.get().is_none() && failures < FAILURES_MAX {
            let outcome = worker.operate().await;
            let now = Instant::now();
            match outcome {
                Ok(Outcome::Done) => {
                    failures = 0;
                    self.succeed(start, now);
                }
                Ok(Outcome::Exhausted) => {
                    self.stop(now);
                    break;
                }
                Err(error) => {
                    failures += 1;
                    self.fail(&error);
                    match self.connect().await {
                        Ok(connection) => worker.reconnect(connection),
                        Err(error) => return self.fail(&error),
                    }
                }
            }
            start = now;
        }
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(self.port).await.context("connecting")
    }

    fn succeed(&self, start: Instant, now: Instant) {
        let stopped = self.stopped.get().is_some();
        if now < self.from || (stopped && !self.window.whole) {
            return;
        }
        let mut result = self.result.borrow_mut();
        result.latencies.record(now - start);
        if stopped {
            self.stopped.set(Some(now));
            return;
        }
        let enough = result.latencies.total() >= self.connections;
        if now >= self.until && (enough || now >= self.longest) {
            self.stop(now);
        }
    }

    fn stop(&self, now: Instant) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(now));
        }
    }

    fn fail(&self, error: &anyhow::Error) {
        let mut result = self.result.borrow_mut();
        if broke(error) {
            result.resets += 1;
        } else {
            result.errors += 1;
        }
        result.first_error.get_or_insert_with(|| format!("{error:#}"));
        if Instant::now() >= self.until {
            self.stop(Instant::now());
        }
    }
}

/// What a load of many transactions loads.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// The data set, from its beginning.
    Dataset,
    /// Rows that are there to be deleted, from this number on.
    Deletable(u64),
}

impl Load {
    /// One transaction, on a new connection if the server breaks the old one. It may have been carried out
    /// before the break; then the second attempt finds the rows there, which is as good.
    async fn transaction(self, worker: &mut Worker, port: u16, first: u64) -> anyhow::Result<()> {
        let mut broken = false;
        for _ in 0..FAILURES_MAX {
            let done = match self {
                Self::Dataset => worker.load(first).await,
                Self::Deletable(base) => worker.load_deletable(base + first).await,
            };
            match done {
                Err(error) if broke(&error) => {
                    broken = true;
                    worker.reconnect(Connection::open(port).await?);
                }
                Err(error) if broken && format!("{error:#}").contains("EntityAlreadyExists") => return Ok(()),
                done => return done,
            }
        }
        anyhow::bail!("the server breaks every connection")
    }
}

/// Loads by transactions of 100 until all are done or the time is up; returns how many were done.
pub(crate) async fn load(
    port: u16,
    signer: &Rc<Signer>,
    store: &Rc<Store>,
    what: Load,
    transactions: u64,
    longest: Duration,
) -> anyhow::Result<u64> {
    let deadline = Instant::now() + longest;
    let next = Rc::new(Cell::new(0_u64));
    let workers = LocalSet::new();
    let mut handles = Vec::new();
    for _ in 0..LOADERS {
        let (next, signer, store) = (Rc::clone(&next), Rc::clone(signer), Rc::clone(store));
        handles.push(workers.spawn_local(async move {
            let mut worker = Worker::new(Connection::open(port).await?, Requests::new(signer, port), store, 0);
            while next.get() < transactions && Instant::now() < deadline {
                let first = next.replace(next.get() + 1) * crate::dataset::TRANSACTION_ROWS;
                what.transaction(&mut worker, port, first).await?;
            }
            anyhow::Ok(())
        }));
    }
    workers.await;
    for handle in handles {
        handle.await.context("a loading task")?.context("loading")?;
    }
    Ok(next.get())
}
