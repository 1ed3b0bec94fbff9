//! The servers under test: started as processes of their own, paused while another is measured, stopped.
//!
//! Pausing (SIGSTOP) keeps the background work of one server out of the measurement of another; each pays
//! for its own when it runs again, before its next turn.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::azurite;
use crate::http::Connection;
use crate::processes;
use crate::request::Requests;
use crate::sign::Signer;
use crate::storage::request::StorageRequests;
use crate::workload::probe;

/// How long a server may take to start or stop.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Target {
    /// Larimar, fully durable.
    Larimar,
    /// Azurite, as it is.
    Azurite,
    /// A bare HTTP server with an answer of the same size.
    Bare,
    /// A second Larimar with "0 preloaded", beside the full one.
    #[value(skip)]
    LarimarEmpty,
}

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Service {
    Table,
    Queue,
    Blob,
}

impl Service {
    /// As flags of servers and people name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Queue => "queue",
            Self::Blob => "blob",
        }
    }
}

impl Target {
    /// The name in reports.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Larimar => "Larimar",
            Self::Azurite => "Azurite",
            Self::Bare => "bare HTTP",
            Self::LarimarEmpty => "Larimar (empty)",
        }
    }
}

/// Where programs and temporary data are.
#[derive(Clone)]
pub(crate) struct Paths {
    pub(crate) larimar: PathBuf,
    /// The database that Larimar runs on; without one, its embedded engine.
    pub(crate) database: Option<String>,
    pub(crate) azurite: PathBuf,
    pub(crate) work: PathBuf,
}

/// A running server and its data folder.
pub(crate) struct Server {
    pub(crate) target: Target,
    service: Service,
    pub(crate) port: u16,
    /// The port of Larimar's metrics; other servers do not listen there.
    pub(crate) admin_port: u16,
    child: Child,
    data: TempDir,
}

impl Server {
    /// Starts a server on an empty data folder and waits until its Table service answers.
    pub(crate) async fn start(
        target: Target,
        paths: &Paths,
        signer: &Rc<Signer>,
        bare_bytes: usize,
    ) -> anyhow::Result<Self> {
        Self::start_service(target, Service::Table, paths, signer, bare_bytes).await
    }

    /// Starts a server on an empty data folder and waits until one of its services answers, which `port` then is of.
    pub(crate) async fn start_service(
        target: Target,
        service: Service,
        paths: &Paths,
        signer: &Rc<Signer>,
        bare_bytes: usize,
    ) -> anyhow::Result<Self> {
        let data = TempDir::with_prefix_in("data-", &paths.work).context("a data folder")?;
        let (child, [port, admin_port]) = spawn(target, service, paths, data.path(), bare_bytes)?;
        let mut server = Self { target, service, port, admin_port, child, data };
        server.wait_for(signer, Question::Names).await?;
        Ok(server)
    }

    /// Starts again on the same data; returns the time from the start of the process to the first
    /// point get that found its entity.
    pub(crate) async fn restart(&mut self, paths: &Paths, signer: &Rc<Signer>) -> anyhow::Result<Duration> {
        let start = Instant::now();
        (self.child, [self.port, self.admin_port]) = spawn(self.target, self.service, paths, self.data.path(), 0)?;
        self.wait_for(signer, Question::Entity).await?;
        Ok(start.elapsed())
    }

    /// Asks until there is an answer.
    async fn wait_for(&mut self, signer: &Rc<Signer>, question: Question) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut requests = Requests::new(Rc::clone(signer), self.port);
        loop {
            let failure = match self.ask(signer, &mut requests, question).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at its start ({status}): {}", self.target.title(), self.log_tail());
            }
            if Instant::now() > deadline {
                let log = self.log_tail();
                return Err(failure.context(format!("{} does not answer: {log}", self.target.title())));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn ask(&self, signer: &Rc<Signer>, requests: &mut Requests, question: Question) -> anyhow::Result<()> {
        let mut connection = Connection::open(self.port).await?;
        match question {
            Question::Names => {
                let mut storage = StorageRequests::new(Rc::clone(signer), self.port);
                let request = match self.service {
                    Service::Table => requests.list_tables(),
                    Service::Queue | Service::Blob => storage.list_names(),
                };
                let answer = connection.exchange(request).await?;
                ensure!(answer.status == 200, "status {}", answer.status);
            }
            Question::Entity => {
                probe(&mut connection, requests).await?;
            }
        }
        Ok(())
    }

    /// Stops the process for a while.
    pub(crate) fn pause(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it run again.
    pub(crate) fn resume(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Waits until it is idle: what was overdue after a pause (Azurite saves its data every 5 s of wall
    /// time) or left over from a load (compaction) is not what the next measurement is about.
    pub(crate) async fn settle(&self, longest: Duration) -> anyhow::Result<()> {
        processes::settle(longest, || self.processor_time()).await
    }

    /// Asks the process to end and waits until it has.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        self.resume()?;
        // Azurite saves its data on SIGINT, as Larimar does on either.
        self.signal(Signal::INT)?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.kill()?;
                bail!("{} did not stop", self.target.title());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Ends the process at once (SIGKILL).
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Resident memory now and at its highest, in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).map(|kib| kib * 1024)
        };
        Ok((field("VmRSS:").context("VmRSS")?, field("VmHWM:").context("VmHWM")?))
    }

    /// The process it runs in.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Processor time used since the start, by all threads.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        processes::own_time(self.child.id())
    }

    /// Disk space of the data folder, in bytes.
    pub(crate) fn disk(&self) -> anyhow::Result<u64> {
        disk_usage(self.data.path(), 0)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process id")?;
        kill_process(pid, signal).with_context(|| format!("signalling {}", self.target.title()))
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read(self.data.path().join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(2_000)..]).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killing also ends a paused process; one that has ended already makes this fail, rightly.
        let _ = self.kill();
    }
}

#[derive(Clone, Copy)]
enum Question {
    /// The names of tables, queues or containers.
    Names,
    Entity,
}

/// The output of a server, beside its data.
const LOG: &str = "output.log";

/// Starts the process; returns it with its port for the service and the one for figures.
fn spawn(
    target: Target,
    service: Service,
    paths: &Paths,
    data: &Path,
    bare_bytes: usize,
) -> anyhow::Result<(Child, [u16; 2])> {
    let [table, queue, blob, admin] = free_ports()?;
    let port = match service {
        Service::Table => table,
        Service::Queue => queue,
        Service::Blob => blob,
    };
    let store = data.join("store");
    let mut command = match target {
        Target::Larimar | Target::LarimarEmpty => {
            let mut command = Command::new(&paths.larimar);
            command.args(["serve", "--host", "127.0.0.1"]).arg("--data-dir").arg(&store);
            command.args(["--table-port", &table.to_string(), "--queue-port", &queue.to_string()]);
            command.args(["--blob-port", &blob.to_string(), "--admin-port", &admin.to_string()]);
            if let Some(database) = &paths.database {
                command.args(["--engine", database]);
            }
            command
        }
        Target::Azurite => {
            let mut command = Command::new("node");
            let name = service.name();
            command.arg(azurite::program(&paths.azurite, service)).arg("--location").arg(&store);
            command.args([&format!("--{name}Host"), "127.0.0.1", &format!("--{name}Port"), &port.to_string()]);
            command.args(["--skipApiVersionCheck", "--silent", "--disableTelemetry"]);
            command
        }
        Target::Bare if service == Service::Blob => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["files", "--port", &port.to_string(), "--folder"]).arg(&store);
            command
        }
        Target::Bare => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["bare", "--port", &port.to_string(), "--body-bytes", &bare_bytes.to_string()]);
            command
        }
    };
    let log = File::options().create(true).append(true).open(data.join(LOG))?;
    command.current_dir(data).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().with_context(|| format!("starting {}", target.title()))?;
    Ok((child, [port, admin]))
}

/// Ports that were free a moment ago.
fn free_ports() -> anyhow::Result<[u16; 4]> {
    let mut listeners = Vec::new();
    for _ in 0..4 {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    }
    let mut ports = [0; 4];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn disk_usage(folder: &Path, depth: u32) -> anyhow::Result<u64> {
    ensure!(depth < 32, "folders nest too deeply");
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Blocks are what is used; the length of a preallocated file is not.
        bytes += entry.metadata()?.blocks() * 512;
        if entry.file_type()?.is_dir() {
            bytes += disk_usage(&entry.path(), depth + 1)?;
        }
    }
    Ok(bytes)
}
