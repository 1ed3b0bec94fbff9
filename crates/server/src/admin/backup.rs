//! `/backup`: starts a backup of the store (POST), shows how far it is (GET), cancels it (DELETE).

use super::access::AdminCaller;
use super::{Page, not_allowed, page, text};
use hyper::{Method, StatusCode};
use larimar_wire::uri::query_pairs;
use std::fmt;
use std::pin::Pin;

/// Runs backups of a server's store, one at a time.
pub trait Backups: fmt::Debug + Send + Sync {
    /// Starts a backup, which goes on by itself.
    ///
    /// # Errors
    /// Parameters that are refused, or a backup that runs already.
    fn start<'a>(&'a self, to: &'a str, rate: Option<&'a str>) -> Starting<'a>;

    /// What the last one is doing, or did, as JSON.
    fn status(&self) -> String;

    /// Cancels the one that runs; `false` if there is none. It is over when this returns.
    fn cancel(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;

    /// Lines for the page of metrics, which needs no credentials.
    fn metrics(&self) -> String;

    /// Lines for `/ready` that do not change its status. It needs no credentials, so they have no path, address or error.
    fn ready(&self) -> String;
}

/// A backup that is being started.
pub type Starting<'a> = Pin<Box<dyn Future<Output = Result<(), NotStarted>> + Send + 'a>>;

/// Why a backup was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// A parameter was refused.
    Refused(String),
    /// Another one runs.
    Running(String),
}

pub(super) async fn backup(backups: Option<&dyn Backups>, caller: &AdminCaller, method: &Method, query: &str) -> Page {
    if *caller != AdminCaller::Operator {
        return text(StatusCode::FORBIDDEN, "a backup concerns all accounts: it needs the admin token\n");
    }
    let Some(backups) = backups else {
        return text(StatusCode::NOT_FOUND, "this server takes no backups\n");
    };
    match *method {
        Method::GET => page(StatusCode::OK, JSON, backups.status()),
        Method::POST => start(backups, query).await,
        Method::DELETE if backups.cancel().await => page(StatusCode::OK, JSON, backups.status()),
        Method::DELETE => text(StatusCode::NOT_FOUND, "no backup is running\n"),
        _ => not_allowed("GET, POST, DELETE"),
    }
}

async fn start(backups: &dyn Backups, query: &str) -> Page {
    let (to, rate) = match read_query(query) {
        Ok(read) => read,
        Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
    };
    match backups.start(&to, rate.as_deref()).await {
        Ok(()) => page(StatusCode::ACCEPTED, JSON, backups.status()),
        Err(NotStarted::Refused(reason)) => text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
        Err(NotStarted::Running(reason)) => text(StatusCode::CONFLICT, format!("{reason}\n")),
    }
}

/// Where the backup goes, and its rate.
fn read_query(query: &str) -> Result<(String, Option<String>), &'static str> {
    let (mut to, mut rate) = (None, None);
    for pair in query_pairs(query) {
        let pair = pair.map_err(|_| MALFORMED)?;
        let value = pair.value().map_err(|_| MALFORMED)?.into_owned();
        let place = match &*pair.name {
            "to" => &mut to,
            "rate" => &mut rate,
            _ => return Err(EXPECTED),
        };
        if place.replace(value).is_some() {
            return Err(EXPECTED);
        }
    }
    Ok((to.filter(|to: &String| !to.is_empty()).ok_or(EXPECTED)?, rate))
}

const JSON: &str = "application/json";
const EXPECTED: &str = "expected where the backup goes, and perhaps its rate, each once: /backup?to=PLACE&rate=RATE";
const MALFORMED: &str = "expected percent-encoded UTF-8 in the query";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_has_one_place_and_at_most_one_rate() {
        let read = |query| read_query(query).map(|(to, rate)| (to, rate.unwrap_or_default()));
        assert_eq!(read("to=%2Fa%20b"), Ok(("/a b".to_owned(), String::new())));
        assert_eq!(read("rate=max&to=s3://b/p"), Ok(("s3://b/p".to_owned(), "max".to_owned())));
        for wrong in ["", "to=", "rate=max", "to=a&to=b", "to=a&rate=1&rate=2", "to=a&from=b"] {
            assert_eq!(read(wrong), Err(EXPECTED), "{wrong}");
        }
        assert_eq!(read("to=%ff"), Err(MALFORMED));
    }
}
