//! One server with what it holds: measured in turns, and checked after each.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::request::StorageRequests;
use super::task::{Size, Task};
use crate::azurite;
use crate::http::Connection;
use crate::measure::{Measurement, Window, Work, measure_work};
use crate::processes;
use crate::sign::Signer;
use crate::target::{Server, Target};

/// Connections that fill a server.
pub(super) const LOADERS: u64 = 16;
/// Longest wait for background work that a pause or a load left over.
const SETTLE_MAX: Duration = Duration::from_secs(15);

/// Azurite looks at every message of a queue for each it gives out, one request at a time: with 100,000 of them, 16
/// consumers wait for a minute.
const AZURITE_TURN_MAX: Duration = Duration::from_secs(120);

/// What a server holds of one service.
pub(super) trait Data {
    /// One turn.
    async fn run(&self, access: &Access, task: Task, window: Window) -> anyhow::Result<Measurement>;

    /// What the server holds is what was written.
    async fn verify(&self, access: &Access) -> anyhow::Result<()>;
}

/// How a server is reached.
pub(super) struct Access {
    port: u16,
    process: u32,
    signer: Rc<Signer>,
}

impl Access {
    /// One connection, and requests for it.
    pub(super) async fn open(&self) -> anyhow::Result<(Connection, StorageRequests)> {
        Ok((Connection::open(self.port).await?, StorageRequests::new(Rc::clone(&self.signer), self.port)))
    }

    /// Measures what workers do, each of which `start` makes from its number, its connection and its requests.
    pub(super) async fn measure<W: Work>(
        &self,
        connections: u64,
        window: Window,
        start: impl Fn(u64, Connection, StorageRequests) -> W + 'static,
    ) -> anyhow::Result<Measurement> {
        let (signer, port) = (Rc::clone(&self.signer), self.port);
        let (begun, cpu) = (Instant::now(), processes::own_time(self.process)?);
        let mut measured = measure_work(port, connections, window, move |index, connection| {
            start(index, connection, StorageRequests::new(Rc::clone(&signer), port))
        })
        .await;
        // The server also worked during the warm-up; the counted part gets its share.
        let share = measured.elapsed.as_secs_f64() / begun.elapsed().as_secs_f64();
        let used = processes::own_time(self.process)?.saturating_sub(cpu);
        measured.server_cpu = used.mul_f64(share.clamp(0.0, 1.0));
        Ok(measured)
    }
}

/// A server and its data.
pub(super) struct Contestant<D> {
    pub(super) server: Server,
    pub(super) access: Access,
    pub(super) data: D,
}

impl<D: Data> Contestant<D> {
    /// A server that holds this.
    pub(super) fn new(server: Server, signer: Rc<Signer>, data: D) -> Self {
        Self { access: Access { port: server.port, process: server.process(), signer }, server, data }
    }

    /// One turn of a task, and the check of what it left.
    pub(super) async fn take_turn(&self, task: Task, mut window: Window) -> anyhow::Result<Measurement> {
        if self.server.target == Target::Azurite && task.writes() {
            window.counted = window.counted.max(azurite::SAVE_PERIOD);
            window.longest = window.longest.max(AZURITE_TURN_MAX);
        }
        if task.size() == Some(Size::Large) {
            // So few fit into the time that the share of those under way would decide the figure.
            window.warm_up = Duration::ZERO;
            window.whole = true;
        }
        // What another server left to be written is not this one's to wait for.
        tokio::task::spawn_blocking(rustix::fs::sync).await?;
        self.server.settle(SETTLE_MAX).await?;
        let mut measured = self.data.run(&self.access, task, window).await?;
        if let Err(error) = self.data.verify(&self.access).await {
            measured.errors += 1;
            measured.first_error.get_or_insert_with(|| format!("{error:#}"));
        }
        Ok(measured)
    }
}

/// A window of no measurement: until there is nothing left to do, or so long.
pub(super) fn until_done(longest: Duration) -> Window {
    Window { warm_up: Duration::ZERO, counted: longest, longest, whole: true }
}
