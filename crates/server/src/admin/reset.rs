//! `POST /reset?account=NAME`: empties accounts, for test suites.

use super::access::AdminCaller;
use super::{Page, page, text};
use crate::storage::Storage;
use hyper::StatusCode;
use larimar_engine::{Engine, Removed, reset_account};
use larimar_wire::sas::Service;
use larimar_wire::service_properties::ServiceProperties;
use larimar_wire::uri::query_pairs;
use std::pin::Pin;

/// Fills these accounts, which are empty, with what the server starts with. The error says why it could not.
pub type Refill = dyn Fn(Vec<String>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

/// Removes everything that the accounts of the query have, and fills them again if the server was filled at its start.
/// Answers with counts of what was removed when it is done.
pub(super) async fn reset<E: Engine>(
    storage: &Storage<E>,
    is_allowed: bool,
    refill: Option<&Refill>,
    caller: &AdminCaller,
    query: &str,
) -> Page {
    if !is_allowed {
        return text(StatusCode::FORBIDDEN, "reset is off: start the server with --allow-reset, or in memory\n");
    }
    let accounts = match read_accounts(query) {
        Ok(accounts) => accounts,
        Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
    };
    for account in &accounts {
        if !caller.sees(storage, account) {
            return text(StatusCode::NOT_FOUND, "there is no such account on this server, or the key is another's\n");
        }
    }
    let mut sum = Removed::default();
    for account in &accounts {
        let now = storage.clock.now();
        let reset = async {
            if let Some(insights) = &storage.insights {
                insights.erase(&*storage.engine, account, now).await?;
            }
            reset_account(&*storage.engine, account, now).await
        };
        match reset.await {
            Ok(removed) => sum = add(sum, removed),
            Err(fault) => {
                tracing::warn!(account, %fault, "a reset could not be finished");
                let reason = format!("{account} is not reset: {fault}; send the request again\n");
                return text(StatusCode::SERVICE_UNAVAILABLE, reason);
            }
        }
        forget(storage, account);
    }
    tracing::info!(?accounts, ?sum, "reset");
    if let Some(refill) = refill
        && let Err(reason) = refill(accounts).await
    {
        tracing::warn!(reason, "accounts were reset and could not be filled again");
        let reason =
            format!("the accounts were emptied and could not be filled again: {reason}; send the request again\n");
        return text(StatusCode::SERVICE_UNAVAILABLE, reason);
    }
    let Removed { tables, queues, containers } = sum;
    let json = format!("{{\"tables\":{tables},\"queues\":{queues},\"containers\":{containers}}}\n");
    page(StatusCode::OK, JSON, json)
}

/// Forgets what this server keeps in memory about an account.
fn forget<E: Engine>(storage: &Storage<E>, account: &str) {
    for service in [Service::Blob, Service::Queue, Service::Table] {
        storage.cors.forget(service, account);
        storage.analytics.configure(account, service, &ServiceProperties::default());
    }
    if let Some(strict) = &storage.strict {
        strict.forget_deleted(account);
    }
}

/// The accounts of the query, each once.
fn read_accounts(query: &str) -> Result<Vec<String>, &'static str> {
    let mut accounts: Vec<String> = Vec::new();
    for pair in query_pairs(query) {
        let pair = pair.map_err(|_| MALFORMED)?;
        if pair.name != "account" {
            return Err(UNKNOWN);
        }
        let account = pair.value().map_err(|_| MALFORMED)?.into_owned();
        if !accounts.contains(&account) {
            accounts.push(account);
        }
        if accounts.len() > ACCOUNTS_MAX {
            return Err(TOO_MANY);
        }
    }
    if accounts.is_empty() { Err(MISSING) } else { Ok(accounts) }
}

const fn add(one: Removed, other: Removed) -> Removed {
    Removed {
        tables: one.tables + other.tables,
        queues: one.queues + other.queues,
        containers: one.containers + other.containers,
    }
}

const JSON: &str = "application/json";
const ACCOUNTS_MAX: usize = 100;
const MISSING: &str = "expected the accounts to reset: /reset?account=NAME, and &account=NAME for each other one";
const UNKNOWN: &str = "unknown parameter: expected account=NAME";
const MALFORMED: &str = "expected percent-encoded UTF-8 in the query";
const TOO_MANY: &str = "expected at most 100 accounts";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_named_each_once_and_nothing_else() {
        for (query, expected) in [
            ("account=one", Ok(vec!["one"])),
            ("account=one&account=t%77o&account=one", Ok(vec!["one", "two"])),
            ("", Err(MISSING)),
            ("&", Err(MISSING)),
            ("accounts=one", Err(UNKNOWN)),
            ("account=one&all", Err(UNKNOWN)),
            ("account=%ff", Err(MALFORMED)),
        ] {
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(read_accounts(query), expected, "{query}");
        }
        let many: Vec<_> = (0..101).map(|number| format!("account=a{number}")).collect();
        assert_eq!(read_accounts(&many.join("&")), Err(TOO_MANY));
    }
}
