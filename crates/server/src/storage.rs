//! What the three services share: an engine, the accounts, the clock, the counters.

use crate::access_log::AccessLog;
use crate::address::Address;
use crate::analytics::Analytics;
use crate::cors::RuleCache;
use crate::ids::{Ids, unguessable};
use crate::in_flight::InFlight;
use crate::insights::Insights;
use crate::live_requests::LiveRequests;
use crate::metrics::Metrics;
use crate::settings::{Account, Settings};
use crate::strict::Strict;
use larimar_engine::{Clock, Engine};
use larimar_wire::signature::{AccountKey, DEVELOPMENT_ACCOUNT};
use parking_lot::RwLock;
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
    /// `None` if they are switched off.
    pub(crate) insights: Option<Insights>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) cors: RuleCache,
    pub(crate) access_log: Option<Arc<AccessLog>>,
    pub(crate) live: Arc<LiveRequests>,
    accounts: RwLock<Accounts>,
}

/// The accounts of a server.
#[derive(Default)]
struct Accounts {
    served: HashMap<String, Arc<Served>>,
    /// The same accounts by their name in lower case, as host names have no case.
    by_host: HashMap<String, Arc<Served>>,
    /// The place of every account that was ever served: one that comes back has the same.
    places: HashMap<String, usize>,
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
        Self::with_access_log(engine, clock, settings, metrics, None)
    }

    /// The accounts of these settings over this engine, with an access log.
    #[must_use]
    pub fn with_access_log(
        engine: Arc<E>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        metrics: Arc<Metrics>,
        access_log: Option<Arc<AccessLog>>,
    ) -> Arc<Self> {
        let analytics = Analytics::new(std::iter::empty(), Arc::clone(&metrics));
        let in_flight = InFlight::new(settings.in_flight_bytes_max, settings.accounts.len(), settings.in_flight_wait);
        metrics.show_in_flight(&in_flight);
        let strict = settings.strict.then(Strict::default);
        let (ids, cors, accounts) = (Ids::new(), RuleCache::default(), RwLock::default());
        let random = unguessable().unwrap_or_else(|_| ids.next());
        let insights = settings.insights.then(|| Insights::new(random.0));
        let storage = Self {
            engine,
            clock,
            settings,
            metrics,
            ids,
            strict,
            analytics,
            insights,
            in_flight,
            cors,
            access_log,
            live: Arc::default(),
            accounts,
        };
        storage.set_accounts(storage.settings.accounts.clone());
        Arc::new(storage)
    }

    /// Serves these accounts from now on, and no others. Requests that have begun end with the keys they began with.
    pub fn set_accounts(&self, accounts: Vec<Account>) {
        let mut state = self.accounts.write();
        let (mut served, mut by_host) = (HashMap::new(), HashMap::new());
        for account in accounts {
            let next = state.places.len();
            let place = *state.places.entry(account.name.clone()).or_insert(next);
            if place == next {
                self.analytics.add(std::iter::once(account.name.as_str()));
                self.metrics.name_account(place, &account.name);
            }
            let name = account.name.clone();
            let account = Arc::new(Served { account, place });
            by_host.insert(name.to_ascii_lowercase(), Arc::clone(&account));
            served.insert(name, account);
        }
        self.in_flight.grow(state.places.len());
        if let Some(insights) = &self.insights {
            insights.set_accounts(served.len());
        }
        (state.served, state.by_host) = (served, by_host);
    }

    /// Ends the streams of those who watch requests, so that their connections can end.
    pub fn end_live_requests(&self) {
        self.live.close();
    }

    /// The names of the accounts that are served now, in order.
    #[must_use]
    pub fn account_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.accounts.read().served.keys().cloned().collect();
        names.sort();
        names
    }

    /// An account that has the well-known key, which is public.
    pub(crate) fn well_known_account(&self) -> Option<String> {
        let accounts = self.accounts.read();
        let has_key = |served: &&Arc<Served>| served.account.keys.iter().any(AccountKey::is_well_known);
        let usual = accounts.served.get(DEVELOPMENT_ACCOUNT).filter(has_key);
        let found = usual.or_else(|| accounts.served.values().filter(has_key).min_by_key(|one| &one.account.name));
        found.map(|served| served.account.name.clone())
    }

    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.accounts.read().served.contains_key(name)
    }

    /// The account of a name.
    pub(crate) fn account(&self, name: &str) -> Option<Arc<Served>> {
        self.accounts.read().served.get(name).cloned()
    }

    /// Whether a label of a host name is an account.
    pub(crate) fn is_known_host(&self, label: &str) -> bool {
        self.accounts.read().by_host.contains_key(&label.to_ascii_lowercase())
    }

    /// The account that an address names.
    pub(crate) fn served(&self, address: &Address<'_>) -> Option<Arc<Served>> {
        let accounts = self.accounts.read();
        match address.prefix {
            Some(_) => accounts.served.get(address.account).cloned(),
            None => accounts.by_host.get(&address.account.to_ascii_lowercase()).cloned(),
        }
    }
}

impl<E> fmt::Debug for Storage<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("settings", &self.settings).finish_non_exhaustive()
    }
}
