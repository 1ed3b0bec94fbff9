//! Requests of browsers: the rules are the account's, their meaning is in `wire`.

use crate::error::Result;
use crate::properties;
use crate::reply::Reply;
use crate::storage::Storage;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use larimar_engine::Engine;
use larimar_wire::cors::{CorsRule, Preflight, evaluate};
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rules that were read lately. A request of a browser reads them anew; the others, which only get headers for caches
/// between, do with these.
#[derive(Debug, Default)]
pub(crate) struct RuleCache(RwLock<HashMap<(Service, String), Known>>);

#[derive(Clone, Debug)]
struct Known {
    read: Instant,
    rules: Arc<[CorsRule]>,
}

impl RuleCache {
    fn get(&self, service: Service, account: &str) -> Option<Arc<[CorsRule]>> {
        let known = self.0.read();
        let known = known.get(&(service, account.to_owned()))?;
        (known.read.elapsed() < KNOWN_FOR).then(|| Arc::clone(&known.rules))
    }

    fn put(&self, service: Service, account: &str, rules: &Arc<[CorsRule]>) {
        // One entry for each service of each account: others are refused before.
        let known = Known { read: Instant::now(), rules: Arc::clone(rules) };
        self.0.write().insert((service, account.to_owned()), known);
    }

    /// Forgets the rules of a service, as they have changed.
    pub(crate) fn forget(&self, service: Service, account: &str) {
        self.0.write().remove(&(service, account.to_owned()));
    }
}

/// The rules to apply to a request. Only reads are answered with headers for those that no browser sent.
pub(crate) async fn rules<E: Engine>(
    storage: &Storage<E>,
    service: Service,
    account: &str,
    head: &RequestHead<'_>,
) -> Result<Arc<[CorsRule]>> {
    let is_of_browser = head.raw_header("origin").is_some();
    if !is_of_browser {
        if !matches!(head.method, "GET" | "HEAD") {
            return Ok(Arc::default());
        }
        if let Some(rules) = storage.cors.get(service, account) {
            return Ok(rules);
        }
    }
    match Box::pin(properties::load(&*storage.engine, service, account)).await {
        Ok(properties) => {
            let rules = properties.cors.into();
            storage.cors.put(service, account, &rules);
            Ok(rules)
        }
        // The request itself may still be served, or fails with an answer of its own.
        Err(_) if !is_of_browser => Ok(Arc::default()),
        Err(error) => Err(error),
    }
}

/// Answers what a browser asks before it sends a request.
pub(crate) fn preflight(rules: &[CorsRule], head: &RequestHead<'_>) -> Result<Reply> {
    let asked = Preflight {
        origin: head.raw_header("origin"),
        method: head.raw_header("access-control-request-method"),
        headers: head.raw_header("access-control-request-headers"),
    };
    let headers = asked.evaluate(rules)?;
    Ok(headers.into_iter().fold(Reply::empty(200), |reply, (name, value)| reply.with(name, value)))
}

/// Adds the headers that let a browser show an answer to its page.
pub(crate) fn add_headers(headers: &mut HeaderMap, rules: &[CorsRule], head: &RequestHead<'_>) {
    if rules.is_empty() {
        return;
    }
    let answered: Vec<String> = headers.keys().map(|name| name.as_str().to_owned()).collect();
    for (name, value) in evaluate(rules, head.raw_header("origin"), head.method, answered.iter().map(String::as_str)) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_bytes(name.as_bytes()).expect("CORS header names are header names"), value);
        }
    }
}

/// How old rules may be that requests without an origin are answered by: as old as any lookup.
const KNOWN_FOR: Duration = Duration::from_secs(1);
