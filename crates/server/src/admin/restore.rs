//! `/restore`: restores single tables, queues and containers from a backup (POST), shows how far that is (GET), cancels it
//! (DELETE).

use super::access::AdminCaller;
use super::backup::NotStarted;
use super::{Page, not_allowed, page, text};
use hyper::{Method, StatusCode};
use larimar_wire::uri::query_pairs;
use std::pin::Pin;

/// Restores parts of backups into a server's store, one restore at a time.
pub trait Restores: Send + Sync {
    /// Starts a restore, which goes on by itself.
    ///
    /// # Errors
    /// Parameters that are refused, or a restore that runs already.
    fn start(&self, request: &RestoreRequest) -> Result<(), NotStarted>;

    /// What the last one is doing, or did, as JSON.
    fn status(&self) -> String;

    /// Cancels the one that runs; `false` if there is none. It is over when this returns.
    fn cancel(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

/// What to restore, as a request has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreRequest {
    /// The place of the backups.
    pub from: String,
    /// The backup; the latest if there is none.
    pub generation: Option<String>,
    /// How fast.
    pub rate: Option<String>,
    /// The account in the backup.
    pub account: Option<String>,
    /// The account to restore into.
    pub to_account: Option<String>,
    /// Tables, each `NAME` or `NAME=NEW`.
    pub tables: Vec<String>,
    /// Queues.
    pub queues: Vec<String>,
    /// Containers.
    pub containers: Vec<String>,
}

pub(super) async fn restore(
    restores: Option<&dyn Restores>,
    caller: &AdminCaller,
    method: &Method,
    query: &str,
) -> Page {
    if *caller != AdminCaller::Operator {
        return text(StatusCode::FORBIDDEN, "a backup has all accounts: a restore needs the admin token\n");
    }
    let Some(restores) = restores else {
        return text(StatusCode::NOT_FOUND, "this server restores nothing\n");
    };
    match *method {
        Method::GET => page(StatusCode::OK, JSON, restores.status()),
        Method::POST => start(restores, query),
        Method::DELETE if restores.cancel().await => page(StatusCode::OK, JSON, restores.status()),
        Method::DELETE => text(StatusCode::NOT_FOUND, "no restore is running\n"),
        _ => not_allowed("GET, POST, DELETE"),
    }
}

fn start(restores: &dyn Restores, query: &str) -> Page {
    let request = match read_query(query) {
        Ok(read) => read,
        Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
    };
    match restores.start(&request) {
        Ok(()) => page(StatusCode::ACCEPTED, JSON, restores.status()),
        Err(NotStarted::Refused(reason)) => text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
        Err(NotStarted::Running(reason)) => text(StatusCode::CONFLICT, format!("{reason}\n")),
    }
}

fn read_query(query: &str) -> Result<RestoreRequest, &'static str> {
    let (mut request, mut from) = (RestoreRequest::default(), None);
    for pair in query_pairs(query) {
        let pair = pair.map_err(|_| MALFORMED)?;
        let value = pair.value().map_err(|_| MALFORMED)?.into_owned();
        let place = match &*pair.name {
            "from" => &mut from,
            "generation" => &mut request.generation,
            "rate" => &mut request.rate,
            "account" => &mut request.account,
            "to-account" => &mut request.to_account,
            several => {
                let several = match several {
                    "table" => &mut request.tables,
                    "queue" => &mut request.queues,
                    "container" => &mut request.containers,
                    _ => return Err(EXPECTED),
                };
                several.push(value);
                continue;
            }
        };
        if place.replace(value).is_some() {
            return Err(EXPECTED);
        }
    }
    request.from = from.filter(|from| !from.is_empty()).ok_or(EXPECTED)?;
    let count = request.tables.len() + request.queues.len() + request.containers.len();
    if (1..=SPACES_MAX).contains(&count) { Ok(request) } else { Err(EXPECTED) }
}

const JSON: &str = "application/json";
const SPACES_MAX: usize = 100;
const EXPECTED: &str = "expected the place of a backup and 1 to 100 tables, queues and containers: \
                        /restore?from=PLACE&table=NAME&queue=NAME&container=NAME=NEW, and perhaps generation, account, \
                        to-account and rate, each once";
const MALFORMED: &str = "expected percent-encoded UTF-8 in the query";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_has_one_place_and_some_spaces() {
        let read = read_query("from=%2Fa%20b&table=One%3DTwo&table=Three&queue=q&generation=g&to-account=x&rate=max");
        let expected = RestoreRequest {
            from: "/a b".to_owned(),
            generation: Some("g".to_owned()),
            rate: Some("max".to_owned()),
            to_account: Some("x".to_owned()),
            tables: vec!["One=Two".to_owned(), "Three".to_owned()],
            queues: vec!["q".to_owned()],
            ..RestoreRequest::default()
        };
        assert_eq!(read, Ok(expected));
        for wrong in ["", "from=", "from=a", "table=t", "from=a&from=b&table=t", "from=a&table=t&to=b"] {
            assert_eq!(read_query(wrong), Err(EXPECTED), "{wrong}");
        }
        assert_eq!(read_query("from=%ff"), Err(MALFORMED));
        let many = "&queue=q".repeat(SPACES_MAX);
        assert!(read_query(&format!("from=a{many}")).is_ok());
        assert_eq!(read_query(&format!("from=a{many}&table=t")), Err(EXPECTED));
    }
}
