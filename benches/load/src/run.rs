//! The course of a run: for each number of entities, start the servers, load them, measure them in turns,
//! and time how they start again.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::azurite;
use crate::dataset::{Dataset, TRANSACTION_ROWS};
use crate::http::Connection;
use crate::measure::{Load, Measurement, Window, load, measure};
use crate::request::Requests;
use crate::results::{Cell, Footprint, Loaded, Results, Starts, Stop};
use crate::settings::Settings;
use crate::sign::Signer;
use crate::target::{Server, Target};
use crate::workload::{Store, Worker, Workload, probe};

/// Longest wait for background work that a pause or a load left over.
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// Starts that are timed after each kind of stop.
const STARTS: usize = 3;
/// Longest load of rows to delete.
const DELETABLE_MAX: Duration = Duration::from_secs(60);

/// Runs everything that the settings ask for.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Results> {
    if settings.targets.contains(&Target::Azurite) {
        azurite::install(&settings.paths.azurite)?;
    }
    let signer = Rc::new(Signer::development()?);
    let mut bench = Bench { settings, signer, results: Results::default(), begun: Instant::now() };
    for &preload in &settings.preloads {
        bench.stage(preload).await.with_context(|| format!("with {preload} entities"))?;
    }
    Ok(bench.results)
}

struct Bench<'a> {
    settings: &'a Settings,
    signer: Rc<Signer>,
    results: Results,
    begun: Instant,
}

/// A server with what is known of its data.
struct Contestant {
    server: Server,
    store: Rc<Store>,
}

impl Bench<'_> {
    /// Everything at one number of preloaded entities.
    async fn stage(&mut self, preload: u64) -> anyhow::Result<()> {
        println!("\n== {preload} preloaded entities");
        let mut contestants = Vec::new();
        for target in self.targets_of(preload) {
            contestants.push(self.prepare(target, preload).await?);
        }
        if self.settings.targets.contains(&Target::Bare) {
            contestants.push(self.prepare_bare(&contestants).await?);
        }
        let settings = self.settings;
        for &workload in &settings.workloads {
            for &connections in &settings.connections {
                if self.begun.elapsed() > settings.run_max {
                    let remark = format!("out of time: {} at {preload}/{connections} was left out", workload.title());
                    self.results.remarks.push(remark);
                    continue;
                }
                self.take_turns(&contestants, workload, preload, connections).await?;
            }
        }
        for contestant in contestants {
            self.close(contestant, preload).await?;
        }
        Ok(())
    }

    /// The servers with data that take part in a stage.
    fn targets_of(&mut self, preload: u64) -> Vec<Target> {
        let mut targets = self.settings.targets.clone();
        targets.retain(|&target| target != Target::Bare);
        if preload > Settings::AZURITE_ROWS_MAX {
            if targets.contains(&Target::Azurite) {
                self.results.remarks.push(format!("Azurite was not loaded with {preload} entities: it takes too long"));
            }
            targets.retain(|&target| target != Target::Azurite);
            if targets.contains(&Target::Larimar) {
                targets.push(Target::LarimarEmpty);
            }
        }
        targets
    }

    /// Starts a server, loads its data and pauses it.
    async fn prepare(&mut self, target: Target, preload: u64) -> anyhow::Result<Contestant> {
        let server = Server::start(target, &self.settings.paths, &self.signer, 0).await?;
        let mut requests = Requests::new(Rc::clone(&self.signer), server.port);
        let mut connection = Connection::open(server.port).await?;
        let answer = connection.exchange(requests.create_table()).await?;
        ensure!(answer.status == 204, "creating the table gave {}", answer.status);

        let wanted = Dataset::new(if target == Target::LarimarEmpty { 0 } else { preload });
        let longest = match target {
            Target::Azurite => self.settings.azurite_preload_max,
            _ => self.settings.run_max,
        };
        let start = Instant::now();
        let store = Rc::new(Store::new(wanted));
        let done = load(server.port, &self.signer, &store, Load::Dataset, wanted.transactions(), longest).await?;
        let elapsed = start.elapsed();
        let there = wanted.cut_after(done);
        println!(
            "{:<16} loaded {} entities in {:.1} s ({:.0}/s)",
            target.title(),
            done * TRANSACTION_ROWS,
            elapsed.as_secs_f64(),
            (done * TRANSACTION_ROWS) as f64 / elapsed.as_secs_f64()
        );
        ensure!(
            done * TRANSACTION_ROWS >= Dataset::new(0).rows(),
            "{} loaded too few entities in the time it has",
            target.title()
        );
        let rows = done * TRANSACTION_ROWS;
        self.results.loaded.push(Loaded { target, preload, rows_wanted: wanted.rows(), rows, elapsed });
        let store = Rc::new(Store::partial(there, rows));
        let connection = Connection::open(server.port).await?;
        let walked = Worker::new(connection, requests, Rc::clone(&store), 0).walk().await;
        walked.with_context(|| format!("walking over what {} loaded", target.title()))?;
        server.pause()?;
        Ok(Contestant { server, store })
    }

    /// Starts the bare server with an answer as long as that of the first server with data.
    async fn prepare_bare(&self, contestants: &[Contestant]) -> anyhow::Result<Contestant> {
        let bytes = match contestants.first() {
            None => 900,
            Some(first) => {
                first.server.resume()?;
                let mut connection = Connection::open(first.server.port).await?;
                let bytes =
                    probe(&mut connection, &mut Requests::new(Rc::clone(&self.signer), first.server.port)).await?;
                first.server.pause()?;
                bytes
            }
        };
        let server = Server::start(Target::Bare, &self.settings.paths, &self.signer, bytes).await?;
        server.pause()?;
        Ok(Contestant { server, store: Rc::new(Store::bare(Dataset::new(0), bytes)) })
    }

    /// One workload on each server, in several alternating turns.
    async fn take_turns(
        &mut self,
        contestants: &[Contestant],
        workload: Workload,
        preload: u64,
        connections: u64,
    ) -> anyhow::Result<()> {
        let taking_part: Vec<_> =
            contestants.iter().filter(|contestant| concerns(contestant.server.target, workload)).collect();
        let mut measured = vec![Measurement::default(); taking_part.len()];
        for round in 0..self.settings.rounds {
            for turn in 0..taking_part.len() {
                // Every other round goes backwards, so that a machine that slows down treats all alike.
                let index = if round % 2 == 0 { turn } else { taking_part.len() - 1 - turn };
                let contestant = taking_part[index];
                contestant.server.resume()?;
                let turn = self.take_turn(contestant, workload, preload, connections).await;
                contestant.server.pause()?;
                measured[index].merge(turn?);
            }
        }
        for (contestant, measured) in taking_part.into_iter().zip(measured) {
            let cell = Cell { target: contestant.server.target, workload, preload, connections, measured };
            print_cell(&cell);
            self.results.cells.push(cell);
        }
        Ok(())
    }

    async fn take_turn(
        &self,
        contestant: &Contestant,
        workload: Workload,
        preload: u64,
        connections: u64,
    ) -> anyhow::Result<Measurement> {
        let (port, store) = (contestant.server.port, &contestant.store);
        let mut window = self.settings.window;
        if contestant.server.target == Target::Azurite && workload.writes() {
            window.counted = window.counted.max(azurite::SAVE_PERIOD);
        }
        if workload == Workload::Delete {
            self.load_deletable(contestant, preload, connections, window).await?;
        }
        contestant.server.settle(SETTLE_MAX).await?;
        let (start, cpu) = (Instant::now(), contestant.server.processor_time()?);
        let mut measured = measure(port, &self.signer, store, workload, connections, window).await;
        // The server also worked during the warm-up; the counted part gets its share.
        let share = measured.elapsed.as_secs_f64() / start.elapsed().as_secs_f64();
        let used = contestant.server.processor_time()?.saturating_sub(cpu);
        measured.server_cpu = used.mul_f64(share.clamp(0.0, 1.0));
        Ok(measured)
    }

    /// Loads enough rows for a turn of deletes: half as many again as replaces were made in the time, or
    /// a fair number if none were. A turn that runs out of rows ends early.
    async fn load_deletable(
        &self,
        contestant: &Contestant,
        preload: u64,
        connections: u64,
        window: Window,
    ) -> anyhow::Result<()> {
        let target = contestant.server.target;
        let rate = self.results.rate(target, Workload::Replace, preload, connections).unwrap_or(match target {
            Target::Azurite => 1_000.0,
            _ => 10_000.0,
        });
        let rows = (rate * (window.warm_up + window.counted).as_secs_f64() * 1.5) as u64 + connections * 10;
        let transactions = rows.div_ceil(TRANSACTION_ROWS);
        let numbers = contestant.store.announce_deletable(transactions * TRANSACTION_ROWS);
        let what = Load::Deletable(numbers.start);
        let port = contestant.server.port;
        let done = load(port, &self.signer, &contestant.store, what, transactions, DELETABLE_MAX).await?;
        ensure!(done == transactions, "{} took too long to load rows to delete", target.title());
        Ok(())
    }

    /// Takes the footprint of a server, times its starts and ends it.
    async fn close(&mut self, contestant: Contestant, preload: u64) -> anyhow::Result<()> {
        let Contestant { mut server, store } = contestant;
        server.resume()?;
        let target = server.target;
        let (memory, memory_peak) = server.memory()?;
        if !matches!(target, Target::Larimar | Target::Azurite) {
            return server.kill();
        }
        server.stop().await?;
        let disk = server.disk()?;
        self.results.footprints.push(Footprint { target, preload, memory, memory_peak, disk });
        let mut clean = Starts { target, preload, stop: Stop::Clean, times: Vec::new() };
        for turn in 0..STARTS {
            if turn > 0 {
                server.stop().await?;
            }
            clean.times.push(server.restart(&self.settings.paths, &self.signer).await?);
        }
        self.record_starts(clean);
        if target == Target::Larimar {
            let mut killed = Starts { target, preload, stop: Stop::Killed, times: Vec::new() };
            for _ in 0..STARTS {
                self.write_then_kill(&mut server, &store).await?;
                killed.times.push(server.restart(&self.settings.paths, &self.signer).await?);
            }
            self.record_starts(killed);
        }
        server.kill()
    }

    /// Leaves a second of fresh inserts in the journal, then ends the process without warning.
    async fn write_then_kill(&self, server: &mut Server, store: &Rc<Store>) -> anyhow::Result<()> {
        let window = Window {
            warm_up: Duration::ZERO,
            counted: Duration::from_secs(1),
            longest: self.settings.window.longest,
            whole: false,
        };
        let written = measure(server.port, &self.signer, store, Workload::InsertSpread, 16, window).await;
        if let Some(error) = written.first_error {
            anyhow::bail!("inserts before the kill failed: {error}");
        }
        server.kill()
    }

    fn record_starts(&mut self, starts: Starts) {
        println!(
            "{:<16} start to first answer ({}): {:.0} ms",
            starts.target.title(),
            if starts.stop == Stop::Clean { "clean stop" } else { "kill -9" },
            starts.median().as_secs_f64() * 1e3
        );
        self.results.starts.push(starts);
    }
}

/// Which workloads a server is there for.
fn concerns(target: Target, workload: Workload) -> bool {
    match target {
        Target::Larimar | Target::Azurite => true,
        Target::Bare => workload == Workload::PointGet,
        Target::LarimarEmpty => {
            matches!(workload, Workload::PointGet | Workload::InsertHot | Workload::InsertSpread)
        }
    }
}

fn print_cell(cell: &Cell) {
    let measured = &cell.measured;
    println!(
        "{:<28} {:>3} conn  {:<16} {:>9.1}/s  p50 {:>9.2} ms  p99 {:>9.2} ms{}{}",
        cell.workload.title(),
        cell.connections,
        cell.target.title(),
        measured.rate(),
        measured.latencies.percentile(0.5).as_secs_f64() * 1e3,
        measured.latencies.percentile(0.99).as_secs_f64() * 1e3,
        if measured.resets + measured.errors == 0 {
            String::new()
        } else {
            format!("  {} resets, {} ERRORS: ", measured.resets, measured.errors)
        },
        measured.first_error.as_deref().unwrap_or_default()
    );
}
