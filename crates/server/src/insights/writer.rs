//! The task that stores what was observed, once a minute, and removes what is too old.
//!
//! What cannot be stored is kept for the next time, within bounds. A server that is killed loses what it observed since the
//! last minute began.

use super::Insights;
use super::account::AccountFigures;
use super::rows::{self, Resolution, Slot};
use crate::fault_log;
use crate::storage::Storage;
use larimar_engine::{Engine, Fault};
use larimar_model::Timestamp;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Figures that are not stored yet.
#[derive(Default)]
pub(super) struct Pending {
    /// By slot and account, in the form in which they are stored, which is bounded.
    rows: BTreeMap<(Slot, String), Vec<u8>>,
    /// How often figures may have moved to the store.
    pub(super) moves: u64,
}

impl Pending {
    /// Adds what was observed of an account, as of `time`.
    pub(super) fn add(&mut self, account: &str, mut figures: AccountFigures, time: Timestamp) {
        figures.stamp(Resolution::Minute.slot(time).start);
        let figures = figures.encode(rows::ROW_BYTES_MAX);
        for resolution in Resolution::ALL {
            let sum = self.rows.entry((resolution.slot(time), account.to_owned())).or_default();
            *sum = rows::added(sum, &figures);
        }
        while self.rows.len() > PENDING_MAX {
            self.rows.pop_first();
        }
    }

    /// The rows of an account in slots of this length, from the first one on.
    pub(super) fn of<'a>(&'a self, account: &'a str, first: Slot) -> impl Iterator<Item = (Slot, &'a [u8])> {
        let rows = self
            .rows
            .iter()
            .filter(move |((slot, of), _)| of == account && slot.resolution == first.resolution && *slot >= first);
        rows.map(|((slot, _), figures)| (*slot, &**figures))
    }
}

/// Stores the insights of a storage.
pub struct InsightsWriter<E> {
    storage: Arc<Storage<E>>,
    /// The minute of the last tick.
    minute: Slot,
    ticks: u64,
}

impl<E: Engine> InsightsWriter<E> {
    /// A writer that has stored nothing yet.
    #[must_use]
    pub fn new(storage: Arc<Storage<E>>) -> Self {
        let minute = Resolution::Minute.slot(storage.clock.now());
        Self { storage, minute, ticks: 0 }
    }

    /// Finds out which key the hashes have, so that requests are observed from now on. If the store cannot be reached, it
    /// is tried again with each tick.
    pub async fn prepare(&self) {
        if let Some(insights) = &self.storage.insights {
            insights.prepare(&*self.storage.engine, self.storage.clock.now()).await;
        }
    }

    /// Works until `stop`, then stores what is left.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        let mut stop = pin!(stop);
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = ticks.tick() => self.tick().await,
            }
        }
        let Some(insights) = &self.storage.insights else { return };
        let now = self.storage.clock.now();
        if tokio::time::timeout(LAST_STORE_MAX, insights.store(&*self.storage.engine, now, now)).await.is_err() {
            tracing::warn!("the last insights could not be stored in time");
        }
    }

    /// Does what is due by now: a minute that is over is stored.
    pub async fn tick(&mut self) {
        let Some(insights) = &self.storage.insights else { return };
        let now = self.storage.clock.now();
        insights.prepare(&*self.storage.engine, now).await;
        let minute = Resolution::Minute.slot(now);
        if std::mem::replace(&mut self.minute, minute) == minute {
            return;
        }
        let engine = &*self.storage.engine;
        // The minute that is over, also if its end was a moment ago.
        insights.store(engine, now.before(Duration::from_secs(Resolution::Minute.seconds())), now).await;
        if self.ticks.is_multiple_of(MINUTES_BETWEEN_REMOVALS)
            && let Err(fault) = rows::remove_old(engine, now).await
        {
            log(&fault, "old insights could not be removed");
        }
        self.ticks += 1;
    }
}

impl Insights {
    /// Reads the key of the hashes, once. A store without one gets the key that this server proposes.
    pub(super) async fn prepare(&self, engine: &impl Engine, now: Timestamp) {
        if self.shards[0].0.lock().key.is_some() {
            return;
        }
        match rows::settle_key(engine, self.proposed_key, now).await {
            Ok(key) => self.set_key(key),
            Err(fault) => log(&fault, "requests are not observed for insights until the store has a key for hashes"),
        }
    }

    /// Stores what was observed, as of `time`. Without anything observed nothing is written.
    pub(super) async fn store(&self, engine: &impl Engine, time: Timestamp, now: Timestamp) {
        let mut pending = self.pending.lock().await;
        for (account, figures) in self.take() {
            pending.add(&account, figures, time);
        }
        let Pending { rows, moves } = &mut *pending;
        while let Some(entry) = rows.first_entry() {
            *moves += 1;
            let (slot, account) = entry.key();
            match rows::add(engine, (account, *slot, self.number), entry.get(), now).await {
                Ok(()) => drop(entry.remove()),
                Err(fault @ Fault::Ambiguous(_)) => {
                    // Twice would be wrong as well, and is harder to notice.
                    log(&fault, "insights of a minute may be missing");
                    entry.remove();
                }
                Err(fault) => {
                    log(&fault, "insights could not be stored; they are kept for the next time");
                    return;
                }
            }
        }
    }

    /// Removes everything that is stored or observed of an account. What other servers have observed and not stored yet
    /// stays.
    pub(crate) async fn erase(&self, engine: &impl Engine, account: &str, now: Timestamp) -> Result<(), Fault> {
        let mut pending = self.pending.lock().await;
        drop(self.take_of(account));
        pending.rows.retain(|(_, of), _| of != account);
        pending.moves += 1;
        rows::erase(engine, account, now).await
    }
}

/// Logs a fault, unless the same was logged within the last minute.
fn log(fault: &Fault, what: &'static str) {
    if let Some(left_out) = fault_log::admit(what) {
        tracing::warn!(%fault, left_out, "{what}");
    }
}

impl<E> std::fmt::Debug for InsightsWriter<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InsightsWriter").field("minute", &self.minute).finish_non_exhaustive()
    }
}

const TICK: Duration = Duration::from_secs(1);
const MINUTES_BETWEEN_REMOVALS: u64 = 10;
/// Rows of accounts and slots that are kept when they cannot be stored, at most: 16 MiB.
const PENDING_MAX: usize = 256;
/// How long the end of the server may wait for the last rows.
const LAST_STORE_MAX: Duration = Duration::from_secs(10);
