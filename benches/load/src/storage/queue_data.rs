//! The messages of one server: those that stay, and those that turns take.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::contestant::{Access, Data, LOADERS, until_done};
use super::queue::{Action, QueueStore, QueueWorker};
use super::task::Task;
use crate::measure::{Measurement, Window};

/// Messages that are put to be taken at once. How long a queue is decides how fast some servers are, so it is the same
/// for all, however fast they take them.
const BATCH: u64 = 1_000;
/// Longest time to put a batch.
const BATCH_MAX: Duration = Duration::from_secs(60);

/// One queue.
#[derive(Default)]
pub(super) struct Messages {
    store: Rc<QueueStore>,
    /// How many stay.
    kept: u64,
}

impl Messages {
    /// Creates the queue and puts the messages that stay, for so long at most; returns how many there are then.
    pub(super) async fn fill(&mut self, access: &Access, messages: u64, longest: Duration) -> anyhow::Result<u64> {
        self.worker(access).await?.create().await.context("creating the queue")?;
        self.feed(access, messages, longest).await?;
        self.kept = self.store.there();
        self.verify(access).await?;
        Ok(self.kept)
    }

    async fn feed(&self, access: &Access, messages: u64, longest: Duration) -> anyhow::Result<()> {
        if messages == 0 {
            return Ok(());
        }
        self.store.allow(messages);
        let fed = self.measure(access, Action::Put, LOADERS, until_done(longest)).await?;
        ensure!(fed.errors == 0, "putting messages: {}", fed.first_error.unwrap_or_default());
        Ok(())
    }

    async fn measure(
        &self,
        access: &Access,
        action: Action,
        connections: u64,
        window: Window,
    ) -> anyhow::Result<Measurement> {
        let store = Rc::clone(&self.store);
        let start = move |_, connection, requests| QueueWorker::new(action, connection, requests, Rc::clone(&store));
        access.measure(connections, window, start).await
    }

    async fn worker(&self, access: &Access) -> anyhow::Result<QueueWorker> {
        let (connection, requests) = access.open().await?;
        Ok(QueueWorker::new(Action::Put, connection, requests, Rc::clone(&self.store)))
    }

    /// Takes batch after batch, each put before it is taken, until the time spent taking is up.
    async fn take(&self, access: &Access, connections: u64, window: Window) -> anyhow::Result<Measurement> {
        let mut all = Measurement::default();
        let deadline = Instant::now() + window.longest;
        loop {
            let spare = self.store.there().saturating_sub(self.kept);
            self.feed(access, BATCH.saturating_sub(spare), BATCH_MAX).await?;
            let spare = self.store.there().saturating_sub(self.kept);
            ensure!(spare > 0, "no messages to take could be put");
            self.store.allow(spare.min(BATCH));
            let rest = window.counted.saturating_sub(all.elapsed);
            let batch = Window { warm_up: Duration::ZERO, counted: rest, whole: true, ..window };
            all.merge(self.measure(access, Action::Take, connections, batch).await?);
            if all.elapsed >= window.counted || all.errors > 0 || Instant::now() > deadline {
                return Ok(all);
            }
        }
    }
}

impl Data for Messages {
    async fn run(&self, access: &Access, task: Task, window: Window) -> anyhow::Result<Measurement> {
        if task != Task::QueuePut {
            return self.take(access, task.connections(), window).await;
        }
        self.store.allow(u64::MAX);
        self.measure(access, Action::Put, task.connections(), window).await
    }

    async fn verify(&self, access: &Access) -> anyhow::Result<()> {
        self.worker(access).await?.verify().await
    }
}
