//! The blobs of one server: those that are read, and new ones.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::blob::{Action, BlobStore, BlobWorker};
use super::contestant::{Access, Data, LOADERS, until_done};
use super::task::{MIB, Size, Task};
use crate::measure::{Measurement, Window};

/// Longest time to put the blobs of one size that are read.
const STORE_MAX: Duration = Duration::from_secs(300);
/// Attempts at that.
const STORES_MAX: usize = 3;
/// A turn of puts ends early after so many bytes: disks are not endless.
const PUT_BYTES_MAX: usize = 2048 * MIB;

/// The containers of one server.
pub(super) struct Blobs {
    store: Rc<BlobStore>,
}

impl Blobs {
    /// No blobs yet; all will be parts of the pattern.
    pub(super) fn new(pattern: Rc<[u8]>) -> Self {
        Self { store: Rc::new(BlobStore::new(pattern)) }
    }

    /// Creates the containers and puts the blobs of these sizes that are read.
    pub(super) async fn fill(&self, access: &Access, sizes: &[Size]) -> anyhow::Result<()> {
        self.worker(access).await?.create().await.context("creating the containers")?;
        for &size in sizes {
            self.store(access, size).await?;
        }
        Ok(())
    }

    /// Puts the blobs of one size, all of them again if the server breaks a connection: one may be missing then.
    async fn store(&self, access: &Access, size: Size) -> anyhow::Result<()> {
        let mut trouble = String::new();
        for _ in 0..STORES_MAX {
            self.store.allow(size.stored());
            let stored = self.measure(access, Action::Store(size), LOADERS, until_done(STORE_MAX)).await?;
            let count = stored.latencies.total();
            trouble = stored.first_error.unwrap_or_default();
            ensure!(stored.errors == 0, "putting blobs to read: {trouble}");
            if stored.resets == 0 {
                ensure!(count == size.stored(), "only {count} blobs to read were put in {} s", STORE_MAX.as_secs());
                return Ok(());
            }
        }
        anyhow::bail!("putting blobs to read: {trouble}")
    }

    async fn measure(
        &self,
        access: &Access,
        action: Action,
        connections: u64,
        window: Window,
    ) -> anyhow::Result<Measurement> {
        let store = Rc::clone(&self.store);
        let start = move |index, connection, requests| {
            BlobWorker::new(action, connection, requests, Rc::clone(&store), index << 32)
        };
        access.measure(connections, window, start).await
    }

    async fn worker(&self, access: &Access) -> anyhow::Result<BlobWorker> {
        let (connection, requests) = access.open().await?;
        Ok(BlobWorker::new(Action::List, connection, requests, Rc::clone(&self.store), 0))
    }
}

impl Data for Blobs {
    async fn run(&self, access: &Access, task: Task, window: Window) -> anyhow::Result<Measurement> {
        let operations = match task.size() {
            Some(size) if task.writes() => PUT_BYTES_MAX / size.bytes(),
            _ => usize::MAX,
        };
        self.store.allow(operations as u64);
        let action = match (task, task.size()) {
            (Task::BlobPutBlocks, _) => Action::PutBlocks,
            (_, Some(size)) if task.writes() => Action::Put(size),
            (_, Some(size)) => Action::Get(size),
            (_, None) => Action::List,
        };
        self.measure(access, action, task.connections(), window).await
    }

    async fn verify(&self, access: &Access) -> anyhow::Result<()> {
        self.worker(access).await?.verify().await
    }
}
