//! Larimar over PostgreSQL, measured in turns with pgbench on the same cluster: the course of a run.
//!
//! The cluster is made for the run (`cluster`). pgbench (`pgbench`) does at the database what a workload does through
//! Larimar, as plainly as the database allows: that is the ceiling which `goals` compares with. It is compared with twice:
//! with the server over HTTP, and with the engine alone (`engine`), called in this process. `report` writes it down.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::dataset::{Dataset, TRANSACTION_ROWS};
use crate::http::Connection;
use crate::measure::{Load, load, measure};
use crate::request::Requests;
use crate::settings::Settings;
use crate::sign::Signer;
use crate::target::{Paths, Server, Target};
use crate::workload::{Store, Worker, Workload};

mod cluster;
mod engine;
mod goals;
mod pgbench;
pub(crate) mod report;
mod results;
mod usage;

use cluster::Cluster;
use engine::{Alone, Numbers};
use pgbench::Ceiling;
use results::{Cell, Contestant, Results, Stage, Turn};
use usage::{Commits, Cpu};

/// Longest wait for background work that a load or a turn left over.
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// Longest load of rows to delete.
const DELETABLE_MAX: Duration = Duration::from_secs(60);
/// Rows to delete in a second, unless replaces tell better.
const DELETES_A_SECOND: f64 = 10_000.0;

/// Runs everything that the settings ask for, each number of entities on a cluster of its own.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Results> {
    let mut results = Results::default();
    let begun = Instant::now();
    for &preload in &settings.preloads {
        println!("\n== {preload} preloaded entities");
        let mut bench = Bench::prepare(settings, preload).await.with_context(|| format!("with {preload} entities"))?;
        results.facts.clone_from(&bench.cluster.facts()?);
        for &workload in &settings.workloads {
            for connections in goals::connections(workload, &settings.connections) {
                if begun.elapsed() > settings.run_max {
                    let remark = format!("out of time: {} at {preload}/{connections} was left out", workload.title());
                    results.remarks.push(remark);
                    continue;
                }
                bench.take_turns(workload, connections).await?;
            }
        }
        results.stages.push(bench.close().await?);
    }
    Ok(results)
}

/// One cluster, one Larimar on it.
struct Bench<'a> {
    settings: &'a Settings,
    signer: Rc<Signer>,
    cluster: Cluster,
    server: Server,
    store: Rc<Store>,
    stage: Stage,
    /// pgbench runs so far: each inserts under keys of its own.
    ceilings: u64,
    /// Keys that the engine alone has not used.
    numbers: Arc<Numbers>,
}

impl<'a> Bench<'a> {
    /// Starts the cluster and Larimar, loads both tables, proves that every row is there.
    async fn prepare(settings: &'a Settings, preload: u64) -> anyhow::Result<Self> {
        let cluster = Cluster::start()?;
        let signer = Rc::new(Signer::development()?);
        let paths = Paths { database: Some(cluster.url().to_owned()), ..settings.paths.clone() };
        let server = Server::start(Target::Larimar, &paths, &signer, 0).await?;
        let mut requests = Requests::new(Rc::clone(&signer), server.port);
        let mut connection = Connection::open(server.port).await?;
        let answer = connection.exchange(requests.create_table()).await?;
        ensure!(answer.status == 204, "creating the table gave {}", answer.status);

        let dataset = Dataset::new(preload);
        let store = Rc::new(Store::new(dataset));
        let start = Instant::now();
        let loaded =
            load(server.port, &signer, &store, Load::Dataset, dataset.transactions(), settings.run_max).await?;
        let elapsed = start.elapsed();
        ensure!(loaded == dataset.transactions(), "not all entities were loaded in the time there is");
        let rate = dataset.rows() as f64 / elapsed.as_secs_f64();
        println!("loaded {} entities in {:.1} s ({rate:.0}/s)", dataset.rows(), elapsed.as_secs_f64());
        let connection = Connection::open(server.port).await?;
        let walked = Worker::new(connection, requests, Rc::clone(&store), 0).walk().await;
        walked.context("walking over what was loaded")?;

        let size = cluster.entity_size(dataset.rows())?;
        let bodies = cluster.make_ceiling_table()?;
        println!("a row takes {:.0} bytes on disk, {:.0} of them in the index", size.row_bytes, size.index_bytes);
        let stage = Stage { preload, load_rate: rate, size, body_bytes: bodies, ..Stage::default() };
        Ok(Self { settings, signer, cluster, server, store, stage, ceilings: 0, numbers: Arc::default() })
    }

    /// One workload through Larimar, through its engine alone and its ceiling, in several alternating turns.
    async fn take_turns(&mut self, workload: Workload, connections: u64) -> anyhow::Result<()> {
        let mut cells = vec![Cell::new(Contestant::Http, workload, connections)];
        let ceiling = Ceiling::of(workload);
        if ceiling.is_some() {
            cells.push(Cell::new(Contestant::Engine, workload, connections));
            cells.push(Cell::new(Contestant::Pgbench, workload, connections));
        }
        for round in 0..self.settings.rounds {
            for turn in 0..cells.len() {
                // Every other round goes backwards, so that a machine that slows down treats all alike.
                let index = if round % 2 == 0 { turn } else { cells.len() - 1 - turn };
                let turn = match (cells[index].contestant, ceiling) {
                    (Contestant::Engine, Some(ceiling)) => self.turn_of_engine(ceiling, connections).await?,
                    (Contestant::Pgbench, Some(ceiling)) => self.turn_of_pgbench(ceiling, connections).await?,
                    _ => self.turn_over_http(workload, connections).await?,
                };
                cells[index].turns.push(turn);
            }
        }
        let first = self.stage.cells.len();
        self.stage.cells.extend(cells);
        for cell in &self.stage.cells[first..] {
            report::print_cell(&self.stage, cell);
        }
        Ok(())
    }

    async fn turn_over_http(&self, workload: Workload, connections: u64) -> anyhow::Result<Turn> {
        let window = self.settings.window;
        if workload == Workload::Delete {
            self.load_deletable(connections).await?;
        }
        self.settle().await?;
        let (start, cpu) = (Instant::now(), self.cpu()?);
        let commits = Commits::read(self.server.admin_port).await?;
        let measured = measure(self.server.port, &self.signer, &self.store, workload, connections, window).await;
        // Everybody also worked during the warm-up; the counted part gets its share.
        let share = measured.elapsed.as_secs_f64() / start.elapsed().as_secs_f64();
        Ok(Turn {
            operations: measured.latencies.total(),
            elapsed: measured.elapsed,
            cpu: (self.cpu()? - cpu).share(share),
            commits: Commits::read(self.server.admin_port).await? - commits,
            latencies: measured.latencies,
            errors: measured.errors,
            resets: measured.resets,
            first_error: measured.first_error,
        })
    }

    /// The engine is opened before what is counted and closed after it: it has no connections in the turns of others.
    async fn turn_of_engine(&self, what: Ceiling, tasks: u64) -> anyhow::Result<Turn> {
        self.settle().await?;
        let alone = Alone::open(self.cluster.url(), self.store.dataset, &self.numbers).await?;
        let (start, cpu) = (Instant::now(), self.cpu()?);
        let counted = alone.measure(what, tasks, self.settings.window).await?;
        let share = counted.elapsed.as_secs_f64() / start.elapsed().as_secs_f64();
        let cpu = (self.cpu()? - cpu).share(share);
        alone.close().await?;
        Ok(Turn {
            operations: counted.latencies.total(),
            elapsed: counted.elapsed,
            cpu,
            commits: counted.commits,
            latencies: counted.latencies,
            errors: counted.errors,
            first_error: counted.first_error,
            ..Turn::default()
        })
    }

    async fn turn_of_pgbench(&mut self, ceiling: Ceiling, connections: u64) -> anyhow::Result<Turn> {
        self.settle().await?;
        self.ceilings += 1;
        let plan = pgbench::Plan {
            ceiling,
            clients: connections,
            // It has no warm-up of its own, counts whole seconds, and does not count the time to connect.
            seconds: self.settings.window.counted.as_secs().max(1),
            number: self.ceilings,
            rows: self.store.dataset.rows(),
            body_bytes: self.stage.body_bytes,
        };
        let cpu = self.cpu()?;
        let counted = plan.run(&self.cluster).await?;
        Ok(Turn {
            operations: counted.transactions,
            elapsed: Duration::from_secs_f64(counted.transactions as f64 / counted.rate.max(1e-9)),
            cpu: self.cpu()? - cpu,
            errors: counted.failed,
            ..Turn::default()
        })
    }

    /// Loads enough rows for a turn of deletes: half as many again as replaces were made in the time. A turn that runs
    /// out of rows ends early.
    async fn load_deletable(&self, connections: u64) -> anyhow::Result<()> {
        let window = self.settings.window;
        let replaces = self.stage.cell(Contestant::Http, Workload::Replace, connections);
        let rate = replaces.and_then(Cell::rate).unwrap_or(DELETES_A_SECOND);
        let rows = (rate * (window.warm_up + window.counted).as_secs_f64() * 1.5) as u64 + connections * 10;
        let transactions = rows.div_ceil(TRANSACTION_ROWS);
        let numbers = self.store.announce_deletable(transactions * TRANSACTION_ROWS);
        let what = Load::Deletable(numbers.start);
        let done = load(self.server.port, &self.signer, &self.store, what, transactions, DELETABLE_MAX).await?;
        ensure!(done == transactions, "it took too long to load rows to delete");
        Ok(())
    }

    /// Waits until neither Larimar nor the database works on what was before.
    async fn settle(&self) -> anyhow::Result<()> {
        self.server.settle(SETTLE_MAX).await?;
        self.cluster.settle(SETTLE_MAX).await
    }

    fn cpu(&self) -> anyhow::Result<Cpu> {
        Cpu::now(&self.server, &self.cluster)
    }

    async fn close(mut self) -> anyhow::Result<Stage> {
        let (memory, memory_peak) = self.server.memory()?;
        self.stage.memory = memory;
        self.stage.memory_peak = memory_peak;
        self.server.stop().await?;
        Ok(self.stage)
    }
}
