//! The accounts over an engine, set up from the settings, for the services to serve.

use crate::settings::{Settings, account};
use anyhow::Context;
use larimar_engine::{Engine, SystemClock};
use larimar_server::{AccessLog, Account, AccountKey, Metrics, Storage};
use std::sync::Arc;

/// The configured accounts over an engine.
pub(crate) fn storage<E: Engine>(
    settings: &Settings,
    engine: Arc<E>,
    metrics: Arc<Metrics>,
    access_log: Option<Arc<AccessLog>>,
) -> anyhow::Result<Arc<Storage<E>>> {
    let settings = larimar_server::Settings {
        accounts: accounts(settings)?,
        host_suffixes: settings.host_suffixes.clone(),
        strict: settings.strict,
        sas_version_min: settings.sas_version_min.clone(),
        body_bytes_max: usize::try_from(settings.body_bytes_max)?,
        body_timeout: settings.body_timeout,
        client_rate_min: settings.client_rate_min,
        page_entities_max: settings.page_entities_max,
        page_time_max: settings.page_time_max,
        page_bytes_max: usize::try_from(settings.page_bytes_max)?,
        in_flight_bytes_max: settings.in_flight_bytes(),
        in_flight_wait: settings.in_flight_wait,
        analytics_flush: settings.observing.analytics_flush,
        insights: settings.observing.insights,
        slow_query_time: settings.logs.slow_query_time,
        slow_query_ratio: settings.logs.slow_query_ratio,
    };
    Ok(Storage::with_access_log(engine, Arc::new(SystemClock), settings, metrics, access_log))
}

/// The accounts of the settings, with their keys ready for use.
pub(crate) fn accounts(settings: &Settings) -> anyhow::Result<Vec<Account>> {
    settings.accounts.iter().map(served).collect()
}

fn served(account: &account::Account) -> anyhow::Result<Account> {
    let keys = [Some(&account.key), account.key2.as_ref()].into_iter().flatten();
    let keys: Result<_, _> = keys.map(|key| AccountKey::from_base64(key)).collect();
    Ok(Account {
        name: account.name.clone(),
        keys: keys.with_context(|| format!("setting accounts: a key of {} is not Base64", account.name))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the service's documentation live in `model`; the defaults here must not drift from them.
    #[test]
    fn defaults_of_the_binary_are_those_of_the_service() {
        let (ours, theirs) = (Settings::default(), larimar_server::Settings::default());
        assert_eq!(usize::try_from(ours.body_bytes_max), Ok(theirs.body_bytes_max));
        assert_eq!(ours.body_timeout, theirs.body_timeout);
        assert_eq!(ours.client_rate_min, theirs.client_rate_min);
        assert_eq!(ours.page_entities_max, theirs.page_entities_max);
        assert_eq!(ours.page_time_max, theirs.page_time_max);
        assert_eq!(usize::try_from(ours.page_bytes_max), Ok(theirs.page_bytes_max));
        assert_eq!(ours.in_flight_wait, theirs.in_flight_wait);
        assert_eq!(ours.observing.analytics_flush, theirs.analytics_flush);
        assert_eq!(ours.observing.insights, theirs.insights);
        assert_eq!(ours.logs.slow_query_time, theirs.slow_query_time);
        assert_eq!(ours.logs.slow_query_ratio, theirs.slow_query_ratio);
    }

    #[test]
    fn both_keys_of_an_account_are_served() {
        let with = |key2: Option<&str>| account::Account {
            name: "one".to_owned(),
            key: "a2V5".to_owned(),
            key2: key2.map(str::to_owned),
        };
        assert_eq!(served(&with(None)).expect("an account").keys.len(), 1);
        assert_eq!(served(&with(Some("b3RoZXI="))).expect("an account").keys.len(), 2);
    }
}
