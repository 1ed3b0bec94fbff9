//! What the three services share: an engine, the accounts, the clock, the counters.

use crate::analytics::Analytics;
use crate::cors::RuleCache;
use crate::ids::Ids;
use crate::in_flight::InFlight;
use crate::metrics::Metrics;
use crate::settings::{Account, Settings};
use crate::strict::Strict;
use larimar_engine::{Clock, Engine};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Accounts over an engine, for the services to serve.
pub struct Storage<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ids: Ids,
    pub(crate) strict: Option<Strict>,
    pub(crate) analytics: Arc<Analytics>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) cors: RuleCache,
    accounts: HashMap<String, Served>,
}

/// An account that is served.
pub(crate) struct Served {
    pub(crate) account: Account,
    /// Its place among all accounts.
    pub(crate) place: usize,
}

impl<E: Engine> Storage<E> {
    /// The accounts of these settings over this engine.
    #[must_use]
    pub fn new(engine: Arc<E>, clock: Arc<dyn Clock>, settings: Settings, metrics: Arc<Metrics>) -> Arc<Self> {
        let served = settings.accounts.iter().cloned().enumerate();
        let accounts = served.map(|(place, account)| (account.name.clone(), Served { account, place })).collect();
        let names = settings.accounts.iter().map(|account| account.name.as_str());
        let analytics = Analytics::new(names, Arc::clone(&metrics));
        let in_flight = InFlight::new(settings.in_flight_bytes_max, settings.accounts.len(), settings.in_flight_wait);
        metrics.show_in_flight(&in_flight);
        let strict = settings.strict.then(Strict::default);
        let (ids, cors) = (Ids::new(), RuleCache::default());
        Arc::new(Self { engine, clock, settings, metrics, ids, strict, analytics, in_flight, cors, accounts })
    }

    pub(crate) fn account(&self, name: &str) -> Option<&Account> {
        self.served(name).map(|served| &served.account)
    }

    pub(crate) fn served(&self, name: &str) -> Option<&Served> {
        self.accounts.get(name)
    }
}

impl<E> fmt::Debug for Storage<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("settings", &self.settings).finish_non_exhaustive()
    }
}
