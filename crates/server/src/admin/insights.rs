//! `/insights`: what the traffic of an account's tables looks like (GET), and its removal (DELETE). `/advice`: what the
//! advisor finds in it (GET).
//!
//! The answers have keys that other clients wrote, so they need the admin token, the account's key, or a shared access
//! signature for the whole account; one for a table or a range of keys is refused.

use super::access::AdminCaller;
use super::{JSON, Page, dismissals, not_allowed, page, text};
use crate::insights::{Insights, ReportQuery, report};
use crate::storage::Storage;
use hyper::{Method, StatusCode};
use larimar_advisor::{Options, advise};
use larimar_engine::{Engine, Fault};
use larimar_model::Timestamp;
use larimar_wire::uri::query_pairs;

/// Answers with the insights of an account, or removes them.
pub(super) async fn insights<E: Engine>(
    storage: &Storage<E>,
    caller: &AdminCaller,
    method: &Method,
    query: &str,
) -> Page {
    let asked = match read_query(query) {
        Ok(asked) => asked,
        Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
    };
    let insights = match observed(storage, caller, &asked) {
        Ok(insights) => insights,
        Err(refusal) => return *refusal,
    };
    let (engine, now) = (&*storage.engine, storage.clock.now());
    let done = match *method {
        Method::GET => report(insights, engine, &asked, now).await.map(|report| json(&report)),
        Method::DELETE if asked.table.is_some() || asked.since.is_some() => {
            return text(StatusCode::BAD_REQUEST, "insights are removed for a whole account: expected account=NAME\n");
        }
        Method::DELETE => insights.erase(engine, &asked.account, now).await.map(|()| "{}\n".to_owned()),
        _ => return not_allowed("GET, DELETE"),
    };
    answer(done)
}

/// Answers with the findings of the advisor.
pub(super) async fn advice<E: Engine>(
    storage: &Storage<E>,
    caller: &AdminCaller,
    method: &Method,
    query: &str,
) -> Page {
    if *method != Method::GET {
        return not_allowed("GET");
    }
    let (asked, options) = match read_advice_query(query) {
        Ok(asked) => asked,
        Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
    };
    let insights = match observed(storage, caller, &asked) {
        Ok(insights) => insights,
        Err(refusal) => return *refusal,
    };
    let advice = async {
        let dismissals = dismissals::load(&*storage.engine, &asked.account).await?;
        let report = report(insights, &*storage.engine, &asked, storage.clock.now()).await?;
        Ok(json(&advise(&report, options, &dismissals)))
    };
    answer(advice.await)
}

/// The insights that a caller may see.
fn observed<'a, E: Engine>(
    storage: &'a Storage<E>,
    caller: &AdminCaller,
    asked: &ReportQuery,
) -> Result<&'a Insights, Box<Page>> {
    let not_found = |reason: &'static str| Box::new(text(StatusCode::NOT_FOUND, reason));
    if !caller.sees(storage, &asked.account) {
        return Err(not_found("there is no such account on this server, or the key is another's\n"));
    }
    storage.insights.as_ref().ok_or_else(|| not_found("insights are off: the setting insights is false\n"))
}

fn json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string(value).expect("strings and numbers can be written");
    text.push('\n');
    text
}

fn answer(done: Result<String, Fault>) -> Page {
    match done {
        Ok(json) => page(StatusCode::OK, JSON, json),
        Err(fault) => {
            tracing::warn!(%fault, "insights could not be read or removed");
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n"))
        }
    }
}

/// The query of `/advice` is that of `/insights`, and perhaps `scans=every`.
fn read_advice_query(query: &str) -> Result<(ReportQuery, Options), &'static str> {
    let (scans, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("scans="));
    let every_scan = match *scans {
        [] => false,
        ["scans=every"] => true,
        _ => return Err(EXPECTED_SCANS),
    };
    Ok((read_query(&others.join("&"))?, Options { every_scan, ..Options::default() }))
}

fn read_query(query: &str) -> Result<ReportQuery, &'static str> {
    let (mut account, mut table, mut since) = (None, None, None);
    // A signature has been checked before; its fields are not ours.
    let is_signed = query_pairs(query).any(|pair| pair.is_ok_and(|pair| pair.name == "sig"));
    for pair in query_pairs(query) {
        let pair = pair.map_err(|_| MALFORMED)?;
        let place = match &*pair.name {
            "account" => &mut account,
            "table" => &mut table,
            "since" => &mut since,
            _ if is_signed => continue,
            _ => return Err(EXPECTED),
        };
        if place.replace(pair.value().map_err(|_| MALFORMED)?.into_owned()).is_some() {
            return Err(EXPECTED);
        }
    }
    let since = since.map(|text| Timestamp::parse(&text).map_err(|_| EXPECTED_TIME)).transpose()?;
    Ok(ReportQuery { account: account.ok_or(EXPECTED)?, table, since })
}

const EXPECTED: &str = "expected an account, and perhaps a table and a time, each once: \
                        /insights?account=NAME&table=NAME&since=2026-11-16T06:00:00Z";
const EXPECTED_TIME: &str = "since: expected a time such as 2026-11-16T06:00:00Z";
const EXPECTED_SCANS: &str = "scans: expected every, or none";
const MALFORMED: &str = "expected percent-encoded UTF-8 in the query";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_may_be_about_every_scan() {
        let read = |query: &str| read_advice_query(query).map(|(asked, options)| (asked.account, options.every_scan));
        let one = || "one".to_owned();
        assert_eq!(read("account=one"), Ok((one(), false)));
        assert_eq!(read("account=one&scans=every"), Ok((one(), true)));
        assert_eq!(read("scans=every&account=one&table=T"), Ok((one(), true)));
        assert_eq!(read("account=one&scans=some"), Err(EXPECTED_SCANS));
        assert_eq!(read("scans=every&scans=every&account=one"), Err(EXPECTED_SCANS));
        assert_eq!(read("scans=every"), Err(EXPECTED));
        assert!(read_query("account=one&scans=every").is_err(), "only of /advice");
    }

    #[test]
    fn an_account_is_named_once_with_perhaps_a_table_and_a_time() {
        let query = |account: &str, table: Option<&str>, since: Option<&str>| ReportQuery {
            account: account.to_owned(),
            table: table.map(str::to_owned),
            since: since.map(|text| Timestamp::parse(text).expect("a time")),
        };
        let noon = "2026-11-16T12:00:00Z";
        for (text, expected) in [
            ("account=one", Ok(query("one", None, None))),
            ("account=o%6Ee&table=T", Ok(query("one", Some("T"), None))),
            ("since=2026-11-16T12%3A00:00Z&account=one", Ok(query("one", None, Some(noon)))),
            ("account=one&sv=2020-12-06&ss=t&srt=o&sp=r&se=x&sig=y", Ok(query("one", None, None))),
            ("", Err(EXPECTED)),
            ("table=T", Err(EXPECTED)),
            ("account=one&account=two", Err(EXPECTED)),
            ("account=one&tables=T", Err(EXPECTED)),
            ("account=one&since=yesterday", Err(EXPECTED_TIME)),
            ("account=%ff", Err(MALFORMED)),
        ] {
            assert_eq!(read_query(text), expected, "{text}");
        }
    }
}
