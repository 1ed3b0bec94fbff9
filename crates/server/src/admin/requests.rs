//! `/requests`: the requests of an account while they happen, as a stream of lines of JSON for the console.
//!
//! The lines are those of the access log: they have names of tables, queues and blobs and addresses of clients, so they need
//! the admin token, the account's key, or a shared access signature for the whole account, which shows the services that it is
//! for. `live_requests.rs` has the bounds.

use super::access::AdminCaller;
use super::{Page, not_allowed, page, text};
use crate::live_requests::WATCHERS_MAX;
use crate::reply::ResponseBody;
use crate::storage::Storage;
use hyper::{Method, StatusCode};
use larimar_engine::Engine;
use larimar_wire::sas::Service;
use larimar_wire::uri::query_pairs;

/// Answers with a stream of requests.
pub(super) fn requests<E: Engine>(storage: &Storage<E>, caller: &AdminCaller, method: &Method, query: &str) -> Page {
    if *method != Method::GET {
        return not_allowed("GET");
    }
    let Some(account) = read_query(query) else { return text(StatusCode::BAD_REQUEST, EXPECTED) };
    if !caller.sees(storage, &account) {
        return text(StatusCode::NOT_FOUND, "there is no such account on this server, or the key is another's\n");
    }
    let services = match caller {
        AdminCaller::Guest(_, services) => services.as_slice(),
        AdminCaller::Operator | AdminCaller::Owner(_) => &[Service::Table, Service::Queue, Service::Blob],
    };
    match storage.live.watch(&account, services) {
        Some(watch) => {
            let mut page = page(StatusCode::OK, LINES, "");
            *page.body_mut() = ResponseBody::endless(watch.into_lines());
            page
        }
        None => text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{WATCHERS_MAX} readers watch requests already, or the server is shutting down\n"),
        ),
    }
}

/// The account that a query names, once. What else it has belongs to its signature, if it has one.
fn read_query(query: &str) -> Option<String> {
    let is_signed = query_pairs(query).any(|pair| pair.is_ok_and(|pair| pair.name == "sig"));
    let mut account = None;
    for pair in query_pairs(query) {
        let pair = pair.ok()?;
        match &*pair.name {
            "account" if account.is_none() => account = Some(pair.value().ok()?.into_owned()),
            "account" => return None,
            _ if is_signed => {}
            _ => return None,
        }
    }
    account
}

const LINES: &str = "application/x-ndjson";
const EXPECTED: &str = "expected one account: /requests?account=NAME\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_one_account() {
        for (query, expected) in [
            ("account=one", Some("one")),
            ("account=o%6Ee", Some("one")),
            ("account=one&sv=2020-12-06&ss=t&sig=x", Some("one")),
            ("account=one&account=two", None),
            ("account=one&account=two&sig=x", None),
            ("account=one&table=T", None),
            ("account=%ff", None),
            ("", None),
        ] {
            assert_eq!(read_query(query).as_deref(), expected, "{query}");
        }
    }
}
