//! The task that writes what was observed: sums to tables, entries to blobs. It also removes what is too old.
//!
//! It does everything in [`AnalyticsWriter::tick`], which looks at the clock of the storage to find out what is due, so
//! that tests can set that clock. What cannot be written is kept, within bounds, for the next time.

use super::log_buffer::{BufferedEntry, DUE_BYTES};
use super::metrics_rows::{self, ByOperation};
use super::{AnalyticsSettings, Meter, logs, retention};
use crate::properties;
use crate::storage::Storage;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Blobs, ListFrom};
use larimar_engine::{Engine, EngineError, Fault};
use larimar_model::Timestamp;
use larimar_wire::analytics::{LogOf, Period, Totals};
use larimar_wire::service_properties::Metrics;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Writes down what a storage's analytics gather.
pub struct AnalyticsWriter<E, B> {
    storage: Arc<Storage<E>>,
    /// Where logs go; without, none are kept.
    blobs: Option<Arc<Blobs<E, B>>>,
    /// The hour of a meter's last log, and the number that its next log may have.
    counters: HashMap<usize, (Timestamp, Option<u32>)>,
    /// Sums that are not in their tables yet.
    pending: BTreeMap<MeterPeriod, ByOperation>,
    /// The last period for which a meter has a row, idle or not.
    noted: HashMap<(usize, Period), Timestamp>,
    refreshed: Option<Timestamp>,
    flushed: Timestamp,
    /// The hour of the last tick: logs of another one are written at once.
    hour: Timestamp,
    cleared: Option<Timestamp>,
    /// Where the removal of a meter's old logs goes on.
    clearing: HashMap<usize, Option<ListFrom>>,
}

/// One period of one meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MeterPeriod {
    start: Timestamp,
    period: Period,
    meter: usize,
}

impl<E: Engine, B: ByteStore> AnalyticsWriter<E, B> {
    /// A writer that has written nothing yet. Requests are observed from [`AnalyticsWriter::load`] on.
    #[must_use]
    pub fn new(storage: Arc<Storage<E>>, blobs: Option<Arc<Blobs<E, B>>>) -> Self {
        let flushed = storage.clock.now();
        Self {
            storage,
            blobs,
            counters: HashMap::new(),
            pending: BTreeMap::new(),
            noted: HashMap::new(),
            refreshed: None,
            flushed,
            hour: Period::Hour.start(flushed),
            cleared: None,
            clearing: HashMap::new(),
        }
    }

    /// Works until `stop`, then writes what is left.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        let mut stop = pin!(stop);
        let analytics = Arc::clone(&self.storage.analytics);
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = analytics.wake.notified() => self.write_logs().await,
                _ = ticks.tick() => self.tick().await,
            }
        }
        if tokio::time::timeout(LAST_FLUSH_MAX, self.flush()).await.is_err() {
            tracing::warn!("the last analytics could not be written in time");
        }
    }

    /// Loads the accounts' settings. Another server's changes are seen by the next call.
    pub async fn load(&mut self) {
        let now = self.storage.clock.now();
        let mut is_complete = true;
        self.storage.analytics.has_new_meters.store(false, Relaxed);
        for meter in self.storage.analytics.meters().iter() {
            // The failure has been logged; what was known stays.
            match properties::load(&*self.storage.engine, meter.service, &meter.account).await {
                Ok(properties) => meter.configure(&properties),
                Err(_) => is_complete = false,
            }
        }
        self.refreshed = Some(now).filter(|_| is_complete);
    }

    /// Does what is due by now.
    pub async fn tick(&mut self) {
        let now = self.storage.clock.now();
        let is_stale = match self.refreshed {
            None => true,
            Some(refreshed) => is_due(refreshed, REFRESH, now),
        } || self.storage.analytics.has_new_meters.load(Relaxed);
        if is_stale {
            self.load().await;
        }
        self.gather();
        self.note_idle(Period::Minute, now);
        self.write_metrics(|slot| slot.period == Period::Minute && slot.period.next(slot.start) <= now).await;
        let is_due_now = is_due(self.flushed, self.storage.settings.analytics_flush, now);
        let hour = Period::Hour.start(now);
        if is_due_now || std::mem::replace(&mut self.hour, hour) != hour {
            self.write_logs().await;
        }
        if is_due_now {
            self.flushed = now;
            self.note_idle(Period::Hour, now);
            self.write_metrics(|slot| slot.period == Period::Hour).await;
        }
        if self.cleared.is_none_or(|cleared| is_due(cleared, CLEAR, now)) {
            let is_done = self.clear(now).await;
            self.cleared = Some(now).filter(|_| is_done);
        }
    }

    /// Writes everything that was observed so far.
    pub async fn flush(&mut self) {
        self.gather();
        self.write_metrics(|_| true).await;
        self.write_logs().await;
    }

    /// Fetches sums from the counters.
    fn gather(&mut self) {
        for (number, meter) in self.storage.analytics.meters().iter().enumerate() {
            let taken = meter.counters.take();
            if taken.is_empty() {
                continue;
            }
            let settings = meter.settings();
            for bucket in taken {
                for period in Period::ALL.into_iter().filter(|period| settings.metrics(*period).enabled) {
                    let slot = MeterPeriod { start: period.start(bucket.minute), period, meter: number };
                    let sums = self.pending.entry(slot).or_default();
                    sums.entry(bucket.operation).or_default().add(&bucket.totals);
                }
            }
        }
        while self.pending.len() > PENDING_MAX {
            let Some((_, sums)) = self.pending.pop_first() else { break };
            self.storage.metrics.analytics_dropped(sums.values().map(Totals::requests).sum());
        }
    }

    /// Sees to it that also periods without a request get a row: minutes when they are over, hours when they begin.
    fn note_idle(&mut self, period: Period, now: Timestamp) {
        for (number, meter) in self.storage.analytics.meters().iter().enumerate() {
            if !meter.settings().metrics(period).enabled {
                self.noted.remove(&(number, period));
                continue;
            }
            let newest = match period {
                Period::Hour => period.start(now),
                Period::Minute => period.start(now.before(MINUTE)),
            };
            let noted = self.noted.insert((number, period), newest);
            // Of what was before the metrics were switched on, or before this server started, nothing is known.
            let first = match (noted, period) {
                (Some(noted), _) => period.next(noted),
                (None, Period::Hour) => newest,
                (None, Period::Minute) => continue,
            };
            let mut start = first.max(period.start(now.before(IDLE_MAX)));
            while start <= newest {
                self.pending.entry(MeterPeriod { start, period, meter: number }).or_default();
                start = period.next(start);
            }
        }
    }

    async fn write_metrics(&mut self, is_wanted: impl Fn(&MeterPeriod) -> bool) {
        let slots: Vec<MeterPeriod> = self.pending.keys().copied().filter(is_wanted).collect();
        for slot in slots {
            let meter = self.storage.analytics.meter(slot.meter);
            let sums = &self.pending[&slot];
            match self.write_slot(&meter, slot, sums).await {
                Ok(()) => drop(self.pending.remove(&slot)),
                Err(EngineError::Fault(fault @ Fault::Ambiguous(_))) => {
                    // Twice would be wrong as well, and is harder to notice.
                    tracing::warn!(%fault, "metrics may be missing");
                    self.pending.remove(&slot);
                }
                Err(error) => {
                    tracing::warn!(%error, "metrics could not be written; they are kept for the next time");
                    return;
                }
            }
        }
    }

    async fn write_slot(&self, meter: &Meter, slot: MeterPeriod, sums: &ByOperation) -> Result<(), EngineError> {
        let table = slot.period.table(meter.service);
        let partition = slot.period.partition(slot.start);
        let includes_operations = meter.settings().metrics(slot.period).include_apis;
        let now = self.storage.clock.now();
        let engine = &*self.storage.engine;
        metrics_rows::add(engine, &meter.account, &table, &partition, sums, includes_operations, now).await
    }

    async fn write_logs(&mut self) {
        let storage = Arc::clone(&self.storage);
        for (number, meter) in storage.analytics.meters().iter().enumerate() {
            let mut left = meter.log.take();
            while !left.is_empty() {
                match self.write_log(number, meter, &left).await {
                    Ok(written) => drop(left.drain(..written)),
                    Err(error) => {
                        tracing::warn!(%error, "a log could not be written; it is kept for the next time");
                        storage.metrics.analytics_dropped(meter.log.put_back(left) as u64);
                        return;
                    }
                }
            }
        }
    }

    /// Writes the entries at the front that ended in the same hour, not too many for a blob. Returns how many those are.
    async fn write_log(&mut self, number: usize, meter: &Meter, left: &[BufferedEntry]) -> Result<usize, EngineError> {
        let hour = Period::Hour.start(left[0].ended);
        let mut bytes = 0;
        let fits = |logged: &&BufferedEntry| {
            let is_first = bytes == 0;
            bytes += logged.bytes();
            is_first || bytes <= DUE_BYTES
        };
        let of_hour = left.iter().take_while(|logged| Period::Hour.start(logged.ended) == hour);
        let count = of_hour.take_while(fits).count();
        let Some(blobs) = &self.blobs else {
            self.storage.metrics.analytics_dropped(count as u64);
            return Ok(count);
        };
        let known = self.counters.entry(number).or_insert((hour, None));
        if known.0 != hour {
            *known = (hour, None);
        }
        let version = meter.settings().logging.version;
        let of = LogOf { version, account: &meter.account, service: meter.service };
        logs::write(blobs, &of, hour, &left[..count], &mut known.1, self.storage.clock.now()).await?;
        Ok(count)
    }

    /// Removes what is older than its retention period. Returns whether nothing is left to remove.
    async fn clear(&mut self, now: Timestamp) -> bool {
        let mut is_done = true;
        for (number, meter) in self.storage.analytics.meters().iter().enumerate() {
            let settings = meter.settings();
            if let (Some(days), Some(blobs)) = (settings.logging.retention_days, &self.blobs) {
                let of = (meter.account.as_str(), meter.service);
                let from = self.clearing.entry(number).or_default();
                match logs::clear(blobs, of, now.before(DAY * days), from, now).await {
                    Ok(has_more) => is_done &= !has_more,
                    Err(error) => tracing::warn!(%error, "old logs could not be removed"),
                }
            }
            for period in Period::ALL {
                let Some(days) = settings.metrics(period).retention_days else { continue };
                let (table, before) = (period.table(meter.service), period.partition(now.before(DAY * days)));
                let engine = &*self.storage.engine;
                match retention::clear_metrics(engine, &meter.account, &table, &before, now).await {
                    Ok(has_more) => is_done &= !has_more,
                    Err(error) => tracing::warn!(%error, "old metrics could not be removed"),
                }
            }
        }
        is_done
    }
}

impl AnalyticsSettings {
    const fn metrics(&self, period: Period) -> Metrics {
        match period {
            Period::Hour => self.hour,
            Period::Minute => self.minute,
        }
    }
}

/// Whether this much time has passed. A clock that was turned back counts as well.
fn is_due(last: Timestamp, every: Duration, now: Timestamp) -> bool {
    now < last || now >= last.after(every)
}

impl<E, B> std::fmt::Debug for AnalyticsWriter<E, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnalyticsWriter").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

const TICK: Duration = Duration::from_secs(1);
/// How old another server's changes of properties may be.
const REFRESH: Duration = Duration::from_secs(5);
const CLEAR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Periods that are kept when they cannot be written, at most.
const PENDING_MAX: usize = 4096;
/// How far back idle periods are filled in, after the machine slept or the clock was turned.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long the end of the server may wait for the last write.
const LAST_FLUSH_MAX: Duration = Duration::from_secs(10);
