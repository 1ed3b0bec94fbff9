//! Removes discarded payloads after the grace period, in its own task.

use super::Shared;
use crate::discarded::DiscardedCount;
use futures_util::{StreamExt, stream};
use larimar_engine::blob::bytes::{Extent, PayloadHold, PayloadHolds};
use object_store::Error;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Payloads that wait for removal, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Remover {
    /// When they were discarded, and when their grace period is over.
    discarded: Mutex<VecDeque<(std::time::Instant, Instant, Vec<Extent>)>>,
    wake: Notify,
    waiting: DiscardedCount,
    holds: PayloadHolds,
}

impl Remover {
    /// Removes payloads after `grace`.
    pub(super) fn discard(&self, extents: Vec<Extent>, grace: Duration) {
        let extents = self.waiting.add(extents);
        if !extents.is_empty() {
            let entry = (std::time::Instant::now(), Instant::now() + grace, extents);
            self.discarded.lock().push_back(entry);
            self.wake.notify_one();
        }
    }

    /// Keeps what is discarded from now on.
    pub(super) fn hold(&self) -> PayloadHold {
        self.holds.hold()
    }

    /// Payloads that wait to be removed.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    /// Their bytes.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    /// The next payloads whose grace period is over, and when they were discarded.
    async fn take(&self) -> (std::time::Instant, Vec<Extent>) {
        loop {
            let due = {
                let mut discarded = self.discarded.lock();
                match discarded.front_mut() {
                    Some((at, ..)) if self.holds.keeps(*at) => Some(Instant::now() + HELD_POLL),
                    Some((at, due, extents)) if *due <= Instant::now() => {
                        let taken = (*at, std::mem::take(extents));
                        discarded.pop_front();
                        return taken;
                    }
                    front => front.map(|(_, due, _)| *due),
                }
            };
            match due {
                Some(due) => drop(tokio::time::timeout_at(due, self.wake.notified()).await),
                None => self.wake.notified().await,
            }
        }
    }
}

/// The remover's task; ends with the store.
pub(super) async fn run(shared: Arc<Shared>) {
    // A backup that begins later does not need what was discarded before.
    let mut cleared = None;
    loop {
        let (discarded, extents) = shared.remover.take().await;
        while cleared.is_none_or(|cleared| cleared < discarded) {
            let asked = std::time::Instant::now();
            match shared.removal.ask().await {
                Ok(true) => cleared = Some(asked),
                Ok(false) => tokio::time::sleep(HELD_POLL).await,
                Err(fault) => {
                    tracing::debug!(%fault, "it is not known whether a backup needs discarded payloads; they are kept");
                    tokio::time::sleep(HELD_POLL).await;
                }
            }
        }
        // Some stores reject a request that names an object twice.
        let paths: BTreeSet<_> = extents.iter().map(|extent| shared.location.path(&extent.file)).collect();
        let mut removed = shared.location.store.delete_stream(stream::iter(paths).map(Ok).boxed());
        while let Some(removed) = removed.next().await {
            match removed {
                Ok(_) => {
                    shared.figures.payloads_removed.fetch_add(1, Ordering::Relaxed);
                }
                Err(Error::NotFound { .. }) => {}
                // The next `reclaim` finds it again.
                Err(error) => tracing::warn!(%error, "a blob object could not be removed"),
            }
        }
        shared.remover.waiting.remove(&extents);
    }
}

/// How soon after the end of a hold its payloads are removed.
const HELD_POLL: Duration = Duration::from_secs(1);
