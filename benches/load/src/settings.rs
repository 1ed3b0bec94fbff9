//! What a run measures and for how long: the command line, and what follows from it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum as _};

use crate::measure::Window;
use crate::storage::goals::BACKLOGS;
use crate::storage::task::Task;
use crate::target::{Paths, Service, Target};
use crate::workload::Workload;

/// Flags of a benchmark run.
#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// What Larimar runs on. `local` compares it with Azurite and a bare HTTP server, `postgres` with pgbench on
    /// the same cluster, which the run starts.
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    /// Measure what the Rust client costs: the same operations through it and as raw requests.
    #[arg(long, conflicts_with_all = ["engine", "service", "targets", "backlog"])]
    client: bool,
    /// Measure only these services [default: all; postgres: table]
    #[arg(long, value_enum, value_delimiter = ',')]
    service: Vec<Service>,
    /// A short run: 2-second measurements, fewer connections and entities.
    #[arg(long)]
    quick: bool,
    /// Seconds that each measurement counts [default: 5, postgres and client: 9, quick: 2]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Turns that servers take within a measurement, which share its seconds [default: 1, postgres and client: 3,
    /// quick: 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10))]
    rounds: Option<u64>,
    /// Measure only these workloads: point-get, range, scan, page, replace, merge, insert-hot, insert-spread, delete,
    /// mixed, transaction; queue-take-one, queue-take, queue-put; blob-list, blob-get-small, blob-get-medium,
    /// blob-get-large, blob-put-small, blob-put-medium, blob-put-large, blob-put-blocks.
    #[arg(long, value_parser = Only::parse, value_delimiter = ',')]
    only: Vec<Only>,
    /// Measure only these servers (not with postgres).
    #[arg(long, value_enum, value_delimiter = ',')]
    targets: Vec<Target>,
    /// Numbers of preloaded entities [default: 0,100000,1000000; quick: 0,100000; postgres: 1000000, quick: 100000;
    /// client: 100000]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    preload: Vec<u64>,
    /// Numbers of messages that stay in the queue while others are put and taken [default: 0,100000]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    backlog: Vec<u64>,
    /// Numbers of connections to the Table service [default: 16,64; quick: 16; postgres: 16,64, quick: 64; client: 1,16,64]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=10_000))]
    connections: Vec<u64>,
    /// The server's binary [default: the one built beside this program]
    #[arg(long)]
    larimar: Option<PathBuf>,
    /// Folder for data and programs, on the disk to be measured [default: the build folder]
    #[arg(long)]
    work_dir: Option<PathBuf>,
    /// Folder for the page of results [default: docs for a full run, the work folder otherwise]
    #[arg(long)]
    docs_dir: Option<PathBuf>,
    /// Seconds after which preloading Azurite stops, and it is measured with what it has [default: 600; quick: 60]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    azurite_preload_seconds: Option<u64>,
    /// Minutes after which no new measurement starts.
    #[arg(long, default_value_t = 60)]
    minutes_max: u64,
}

/// A workload that was asked for by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Only {
    Table(Workload),
    Storage(Task),
}

impl Only {
    fn parse(name: &str) -> Result<Self, String> {
        Workload::from_str(name, true).map(Self::Table).or_else(|_| Task::from_str(name, true).map(Self::Storage))
    }

    fn service(self) -> Service {
        match self {
            Self::Table(_) => Service::Table,
            Self::Storage(task) => task.service(),
        }
    }
}

/// What Larimar keeps its data in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    Local,
    Postgres,
}

/// A run, decided.
pub(crate) struct Settings {
    pub(crate) engine: Engine,
    /// Only the Rust client is measured.
    pub(crate) client: bool,
    pub(crate) services: Vec<Service>,
    /// Nothing was left out of the Table service.
    pub(crate) full: bool,
    /// Nothing was left out of the Queue and Blob services.
    pub(crate) storage_full: bool,
    pub(crate) window: Window,
    pub(crate) rounds: u64,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) targets: Vec<Target>,
    pub(crate) preloads: Vec<u64>,
    pub(crate) backlogs: Vec<u64>,
    pub(crate) connections: Vec<u64>,
    pub(crate) paths: Paths,
    /// Where the pages of results go: of the Table service, and of the others.
    pub(crate) docs: PathBuf,
    pub(crate) storage_docs: PathBuf,
    pub(crate) azurite_preload_max: Duration,
    pub(crate) run_max: Duration,
}

impl Settings {
    /// Azurite takes so long with more entities that it is left out beyond this number.
    pub(crate) const AZURITE_ROWS_MAX: u64 = 100_000;

    /// Fills in what the flags leave open.
    pub(crate) fn new(flags: Flags) -> anyhow::Result<Self> {
        let quick = flags.quick;
        let services = services(&flags)?;
        let everything = !quick && flags.only.is_empty() && flags.targets.is_empty();
        let full = everything && flags.preload.is_empty() && flags.connections.is_empty();
        let storage_full = everything
            && flags.backlog.is_empty()
            && [Service::Queue, Service::Blob].iter().all(|service| services.contains(service));
        let defaults = if flags.client { Defaults::of_client(quick) } else { Defaults::of(flags.engine, quick) };
        let rounds = flags.rounds.unwrap_or(defaults.rounds);
        let counted = Duration::from_secs(flags.seconds.unwrap_or(defaults.seconds)) / u32::try_from(rounds)?;
        let build = build_folder()?;
        let work = flags.work_dir.unwrap_or_else(|| build.join("bench"));
        std::fs::create_dir_all(&work).context("the work folder")?;
        let work = work.canonicalize()?;
        let paths = Paths {
            larimar: flags.larimar.unwrap_or_else(|| build.join("release/larimar")),
            database: None,
            azurite: build.join("azurite"),
            work: work.clone(),
        };
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let docs = |full| match &flags.docs_dir {
            Some(folder) => folder.clone(),
            None if full => repository.clone(),
            None => work.clone(),
        };
        let asked_for = |only| flags.only.is_empty() || flags.only.contains(&only);
        let mut workloads = Workload::ALL.to_vec();
        workloads.retain(|&workload| asked_for(Only::Table(workload)));
        let mut tasks = Task::ALL.to_vec();
        tasks.retain(|&task| asked_for(Only::Storage(task)));
        let settings = Self {
            engine: flags.engine,
            client: flags.client,
            services,
            full,
            storage_full,
            window: Window::of(counted),
            rounds,
            workloads,
            tasks,
            targets: or_default(flags.targets, defaults.targets),
            preloads: or_default(flags.preload, defaults.preloads),
            connections: or_default(flags.connections, defaults.connections),
            backlogs: or_default(flags.backlog, &BACKLOGS),
            paths,
            docs: docs(full),
            storage_docs: docs(storage_full),
            azurite_preload_max: Duration::from_secs(flags.azurite_preload_seconds.unwrap_or(if quick {
                60
            } else {
                600
            })),
            run_max: Duration::from_secs(flags.minutes_max * 60),
        };
        settings.check()
    }

    fn check(mut self) -> anyhow::Result<Self> {
        if self.targets.contains(&Target::Larimar) {
            let larimar = &self.paths.larimar;
            ensure!(
                larimar.is_file(),
                "no server at {}: build it with `cargo build --release -p larimar`",
                larimar.display()
            );
            self.paths.larimar = larimar.canonicalize()?;
        }
        Ok(self)
    }
}

impl Window {
    /// Counts so long, after a warm-up.
    fn of(counted: Duration) -> Self {
        let warm_up = Duration::from_millis(500).min(counted);
        Self { warm_up, counted, longest: counted.max(Duration::from_secs(30)), whole: false }
    }
}

/// The services that flags ask for, or that their workloads belong to.
fn services(flags: &Flags) -> anyhow::Result<Vec<Service>> {
    const ALL: [Service; 3] = [Service::Table, Service::Queue, Service::Blob];
    let asked_for = |service: &Service| match (&flags.service[..], &flags.only[..]) {
        ([], []) => flags.engine == Engine::Local || *service == Service::Table,
        ([], only) => only.iter().any(|only| only.service() == *service),
        (given, _) => given.contains(service),
    };
    let services: Vec<Service> = ALL.into_iter().filter(asked_for).collect();
    let measured = flags.engine == Engine::Local || services == [Service::Table];
    ensure!(measured, "over PostgreSQL only the Table service is measured");
    Ok(services)
}

/// The defaults of a run.
struct Defaults {
    seconds: u64,
    rounds: u64,
    targets: &'static [Target],
    preloads: &'static [u64],
    connections: &'static [u64],
}

impl Defaults {
    fn of(engine: Engine, quick: bool) -> Self {
        let (targets, preloads, connections): (&[Target], &[u64], &[u64]) = match (engine, quick) {
            (Engine::Local, true) => (&[Target::Larimar, Target::Azurite, Target::Bare], &[0, 100_000], &[16]),
            (Engine::Local, false) => {
                (&[Target::Larimar, Target::Azurite, Target::Bare], &[0, 100_000, 1_000_000], &[16, 64])
            }
            (Engine::Postgres, true) => (&[Target::Larimar], &[100_000], &[64]),
            (Engine::Postgres, false) => (&[Target::Larimar], &[1_000_000], &[16, 64]),
        };
        let (seconds, rounds) = match (engine, quick) {
            (_, true) => (2, 1),
            (Engine::Local, false) => (5, 1),
            (Engine::Postgres, false) => (9, 3),
        };
        Self { seconds, rounds, targets, preloads, connections }
    }

    fn of_client(quick: bool) -> Self {
        let (seconds, rounds) = if quick { (2, 1) } else { (9, 3) };
        Self { seconds, rounds, targets: &[Target::Larimar], preloads: &[100_000], connections: &[1, 16, 64] }
    }
}

/// The folder that cargo builds into: two levels above this program.
fn build_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(Path::parent).context("the build folder")?;
    Ok(folder.to_owned())
}

fn or_default<T: Clone>(given: Vec<T>, default: &[T]) -> Vec<T> {
    if given.is_empty() { default.to_vec() } else { given }
}
