//! Requests of browsers: the rules are the account's, their meaning is in `wire`.

use crate::head::Head;
use crate::properties;
use crate::reply::Reply;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use larimar_engine::Engine;
use larimar_wire::cors::{CorsRule, Preflight, evaluate};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::sas::Service;

/// The rules to apply to a request; none for one that no browser sent.
pub(crate) async fn rules<E: Engine>(
    engine: &E,
    service: Service,
    account: &str,
    head: &Head<'_>,
) -> Result<Vec<CorsRule>, ErrorReply> {
    match head.header("origin") {
        Some(_) => Ok(Box::pin(properties::load(engine, service, account)).await?.cors),
        None => Ok(Vec::new()),
    }
}

/// Answers what a browser asks before it sends a request.
pub(crate) fn preflight(rules: &[CorsRule], head: &Head<'_>) -> Result<Reply, ErrorReply> {
    let asked = Preflight {
        origin: head.header("origin"),
        method: head.header("access-control-request-method"),
        headers: head.header("access-control-request-headers"),
    };
    let headers = asked.evaluate(rules)?;
    Ok(headers.into_iter().fold(Reply::empty(200), |reply, (name, value)| reply.with(name, value)))
}

/// Adds the headers that let a browser show an answer to its page.
pub(crate) fn add_headers(headers: &mut HeaderMap, rules: &[CorsRule], head: &Head<'_>) {
    if rules.is_empty() {
        return;
    }
    let answered: Vec<String> = headers.keys().map(|name| name.as_str().to_owned()).collect();
    for (name, value) in evaluate(rules, head.header("origin"), head.method, answered.iter().map(String::as_str)) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_bytes(name.as_bytes()).expect("CORS header names are header names"), value);
        }
    }
}
