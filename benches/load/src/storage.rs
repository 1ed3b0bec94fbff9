//! The Queue and Blob services, measured in turns with Azurite and a bare file server: the course of a run.
//!
//! Each service runs in servers of its own (`contestant`), filled with messages (`queue`) or blobs (`blob`); what is
//! measured is in `task`, what it has to reach in `goals`, and `report` writes it down.

use std::rc::Rc;
use std::time::Instant;

use anyhow::Context as _;

use crate::azurite;
use crate::measure::Measurement;
use crate::results::Footprint;
use crate::settings::Settings;
use crate::sign::Signer;
use crate::target::{Server, Service, Target};

mod blob;
mod blob_data;
mod contestant;
pub(crate) mod files;
pub(crate) mod goals;
mod queue;
mod queue_data;
pub(crate) mod report;
pub(crate) mod request;
mod results;
pub(crate) mod task;

use blob_data::Blobs;
use contestant::{Contestant, Data};
use queue_data::Messages;
use results::{Cell, Filled, Results};
use task::{Size, Task};

/// Runs everything that the settings ask for of these two services.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Results> {
    if settings.targets.contains(&Target::Azurite) {
        azurite::install(&settings.paths.azurite)?;
    }
    let signer = Rc::new(Signer::development()?);
    let mut bench = Bench { settings, signer, results: Results::default(), begun: Instant::now() };
    if settings.services.contains(&Service::Queue) {
        for &backlog in &settings.backlogs {
            bench.queues(backlog).await.with_context(|| format!("queues with {backlog} messages"))?;
        }
    }
    if settings.services.contains(&Service::Blob) {
        bench.blobs().await.context("blobs")?;
    }
    Ok(bench.results)
}

struct Bench<'a> {
    settings: &'a Settings,
    signer: Rc<Signer>,
    results: Results,
    begun: Instant,
}

impl Bench<'_> {
    /// Everything about queues in which so many messages stay.
    async fn queues(&mut self, backlog: u64) -> anyhow::Result<()> {
        println!("\n== queues in which {backlog} messages stay");
        let mut contestants = Vec::new();
        for target in self.targets(Service::Queue) {
            let mut contestant = self.start(target, Service::Queue, Messages::default()).await?;
            let longest = match target {
                Target::Azurite => self.settings.azurite_preload_max,
                _ => self.settings.run_max,
            };
            let start = Instant::now();
            let messages = contestant.data.fill(&contestant.access, backlog, longest).await?;
            let filled = Filled { target, backlog, messages, elapsed: start.elapsed() };
            if backlog > 0 {
                self.record_filled(filled);
            }
            contestant.server.pause()?;
            contestants.push(contestant);
        }
        self.measure(&contestants, Service::Queue, backlog).await?;
        self.close(contestants, Service::Queue, backlog).await
    }

    /// Everything about blobs.
    async fn blobs(&mut self) -> anyhow::Result<()> {
        println!("\n== blobs");
        let reads = |task: &&Task| task.service() == Service::Blob && !task.writes();
        let read: Vec<Size> =
            self.settings.tasks.iter().filter(reads).map(|task| task.size().unwrap_or(Size::Small)).collect();
        let sizes: Vec<Size> = Size::ALL.into_iter().filter(|size| read.contains(size)).collect();
        let pattern = blob::pattern();
        let mut contestants = Vec::new();
        for target in self.targets(Service::Blob) {
            let contestant = self.start(target, Service::Blob, Blobs::new(Rc::clone(&pattern))).await?;
            let filled = contestant.data.fill(&contestant.access, &sizes).await;
            filled.with_context(|| format!("filling {}", target.title()))?;
            contestant.server.pause()?;
            contestants.push(contestant);
        }
        self.measure(&contestants, Service::Blob, 0).await?;
        self.close(contestants, Service::Blob, 0).await
    }

    /// The servers that take part in something of a service.
    fn targets(&self, service: Service) -> Vec<Target> {
        let mut targets = self.settings.targets.clone();
        targets.retain(|&target| {
            self.settings.tasks.iter().any(|task| task.service() == service && task.concerns(target))
        });
        targets
    }

    async fn start<D: Data>(&self, target: Target, service: Service, data: D) -> anyhow::Result<Contestant<D>> {
        let server = Server::start_service(target, service, &self.settings.paths, &self.signer, 0).await?;
        Ok(Contestant::new(server, Rc::clone(&self.signer), data))
    }

    fn record_filled(&mut self, filled: Filled) {
        let (title, seconds) = (filled.target.title(), filled.elapsed.as_secs_f64());
        println!("{title:<16} was filled with {} messages in {seconds:.1} s", filled.messages);
        if filled.messages < filled.backlog {
            self.results.remarks.push(format!(
                "{title} took {} of {} messages in the {seconds:.0} s it was given, and was measured with those",
                filled.messages, filled.backlog
            ));
        }
        self.results.filled.push(filled);
    }

    /// Every task of a service.
    async fn measure<D: Data>(
        &mut self,
        contestants: &[Contestant<D>],
        service: Service,
        backlog: u64,
    ) -> anyhow::Result<()> {
        let settings = self.settings;
        for &task in settings.tasks.iter().filter(|task| task.service() == service) {
            if self.begun.elapsed() > settings.run_max {
                self.results.remarks.push(format!("out of time: {} was left out", task.title()));
                continue;
            }
            self.take_turns(contestants, task, backlog).await?;
        }
        Ok(())
    }

    /// One task on each server, in several alternating turns.
    async fn take_turns<D: Data>(
        &mut self,
        contestants: &[Contestant<D>],
        task: Task,
        backlog: u64,
    ) -> anyhow::Result<()> {
        let taking_part: Vec<_> =
            contestants.iter().filter(|contestant| task.concerns(contestant.server.target)).collect();
        let mut measured = vec![Measurement::default(); taking_part.len()];
        for round in 0..self.settings.rounds {
            for turn in 0..taking_part.len() {
                // Every other round goes backwards, so that a machine that slows down treats all alike.
                let index = if round % 2 == 0 { turn } else { taking_part.len() - 1 - turn };
                let contestant = taking_part[index];
                contestant.server.resume()?;
                let turn = contestant.take_turn(task, self.settings.window).await;
                contestant.server.pause()?;
                measured[index]
                    .merge(turn.with_context(|| format!("{} of {}", task.title(), contestant.server.target.title()))?);
            }
        }
        for (contestant, measured) in taking_part.into_iter().zip(measured) {
            let cell = Cell { target: contestant.server.target, task, backlog, measured };
            report::print_cell(&cell);
            self.results.cells.push(cell);
        }
        Ok(())
    }

    /// Takes the footprints of servers and ends them.
    async fn close<D: Data>(
        &mut self,
        contestants: Vec<Contestant<D>>,
        service: Service,
        backlog: u64,
    ) -> anyhow::Result<()> {
        for Contestant { mut server, .. } in contestants {
            server.resume()?;
            let (memory, memory_peak) = server.memory()?;
            if server.target == Target::Bare {
                server.kill()?;
            } else {
                server.stop().await?;
            }
            let disk = server.disk()?;
            let footprint = Footprint { target: server.target, preload: backlog, memory, memory_peak, disk };
            self.results.footprints.push((service, footprint));
        }
        Ok(())
    }
}
