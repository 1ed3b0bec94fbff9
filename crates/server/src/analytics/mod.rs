//! Storage analytics: every request is counted and, if the account has enabled it, logged.
//!
//! A request ends in `observe.rs`, which adds it to the counters (`counters.rs`) and the log (`log_buffer.rs`) of its
//! account and service, both in memory. `writer.rs` runs in the background and writes them to tables and blobs.
//! The formats of lines and rows are in `wire/src/analytics`.

mod counters;
mod log_buffer;
mod logs;
mod metrics_rows;
mod observe;
mod retention;
mod writer;

pub(crate) use observe::Exchange;
pub use writer::AnalyticsWriter;

use crate::metrics::Metrics as ServerMetrics;
use counters::Counters;
use larimar_wire::analytics::LOG_SERVICES;
use larimar_wire::operation::Kind;
use larimar_wire::sas::Service;
use larimar_wire::service_properties::{Logging, Metrics, ServiceProperties};
use log_buffer::LogBuffer;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use tokio::sync::Notify;

/// What is observed of all accounts and services.
pub(crate) struct Analytics {
    /// Three for each account, in the order of [`LOG_SERVICES`].
    meters: RwLock<Arc<Vec<Arc<Meter>>>>,
    log_bytes: Arc<AtomicUsize>,
    /// Whether meters have been added whose settings have not been loaded yet.
    has_new_meters: AtomicBool,
    /// Notified when a log is large enough to be written before its time.
    wake: Notify,
    metrics: Arc<ServerMetrics>,
}

/// What is observed of one service of one account.
struct Meter {
    account: String,
    service: Service,
    /// What is on, readable without a lock; the rest is in `settings`.
    switches: AtomicU8,
    settings: Mutex<AnalyticsSettings>,
    counters: Counters,
    log: LogBuffer,
}

/// Which requests of its service an account wants counted and logged.
#[derive(Clone, Copy, Debug, Default)]
struct AnalyticsSettings {
    logging: Logging,
    hour: Metrics,
    minute: Metrics,
}

const LOG_READ: u8 = 1;
const LOG_WRITE: u8 = 2;
const LOG_DELETE: u8 = 4;
const COUNT: u8 = 8;

impl Analytics {
    /// Meters that observe nothing until they are configured.
    pub(crate) fn new<'a>(accounts: impl Iterator<Item = &'a str>, metrics: Arc<ServerMetrics>) -> Arc<Self> {
        let analytics = Self {
            meters: RwLock::default(),
            log_bytes: Arc::default(),
            has_new_meters: AtomicBool::new(false),
            wake: Notify::new(),
            metrics,
        };
        analytics.add(accounts);
        Arc::new(analytics)
    }

    /// Adds meters of further accounts, whose places follow those of the others.
    pub(crate) fn add<'a>(&self, accounts: impl Iterator<Item = &'a str>) {
        let of_account = |account| LOG_SERVICES.map(|service| Arc::new(Meter::new(account, service, &self.log_bytes)));
        let mut meters = self.meters.write();
        *meters = Arc::new(meters.iter().cloned().chain(accounts.flat_map(of_account)).collect());
        self.has_new_meters.store(true, Relaxed);
    }

    /// The meters of all accounts, also of those that have been removed.
    fn meters(&self) -> Arc<Vec<Arc<Meter>>> {
        Arc::clone(&self.meters.read())
    }

    fn meter(&self, number: usize) -> Arc<Meter> {
        Arc::clone(&self.meters.read()[number])
    }

    /// The account that a meter observes.
    pub(crate) fn account(&self, number: usize) -> String {
        self.meter(number).account.clone()
    }

    /// The number of a meter; `account` is the account's place among those that this was made of.
    pub(crate) fn meter_number(account: usize, service: Service) -> usize {
        let place = LOG_SERVICES.iter().position(|known| *known == service).expect("all services are in the list");
        account * LOG_SERVICES.len() + place
    }

    /// The place of the account that a meter observes.
    pub(crate) const fn place(number: usize) -> usize {
        number / LOG_SERVICES.len()
    }

    /// Observes a service as its properties say, from now on.
    pub(crate) fn configure(&self, account: &str, service: Service, properties: &ServiceProperties) {
        let of_service = |meter: &&Meter| meter.account == account && meter.service == service;
        let meters = self.meters();
        if let Some(meter) = meters.iter().map(Arc::as_ref).find(of_service) {
            meter.configure(properties);
        }
    }
}

impl Meter {
    fn new(account: &str, service: Service, log_bytes: &Arc<AtomicUsize>) -> Self {
        Self {
            account: account.to_owned(),
            service,
            switches: AtomicU8::new(0),
            settings: Mutex::default(),
            counters: Counters::new(),
            log: LogBuffer::new(log_bytes),
        }
    }

    fn configure(&self, properties: &ServiceProperties) {
        let ServiceProperties { logging, hour_metrics: hour, minute_metrics: minute, .. } = *properties;
        *self.settings.lock() = AnalyticsSettings { logging, hour, minute };
        let switches = [
            (logging.read, LOG_READ),
            (logging.write, LOG_WRITE),
            (logging.delete, LOG_DELETE),
            (hour.enabled || minute.enabled, COUNT),
        ];
        let on = switches.iter().filter(|(is_on, _)| *is_on).fold(0, |all, (_, switch)| all | switch);
        self.switches.store(on, Relaxed);
    }

    fn settings(&self) -> AnalyticsSettings {
        *self.settings.lock()
    }
}

/// The switch that a request of this kind is logged by.
const fn log_switch(kind: Kind) -> u8 {
    match kind {
        Kind::Read => LOG_READ,
        Kind::Write => LOG_WRITE,
        Kind::Delete => LOG_DELETE,
    }
}
