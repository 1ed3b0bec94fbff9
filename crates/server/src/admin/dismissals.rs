//! `/advice/dismissals`: findings that an account's users know and accept. `PUT` adds one, `DELETE` removes it, and
//! `/advice` marks what they cover.
//!
//! They are one setting of the account, so a reset removes them, and backups and migrations have them.

use super::access::AdminCaller;
use super::{Page, not_allowed, page, text};
use crate::storage::Storage;
use hyper::{Method, StatusCode};
use larimar_advisor::{DISMISSALS_MAX, Dismissal, Dismissals, FindingKind};
use larimar_engine::settings::{edit_setting, load_setting};
use larimar_engine::{Engine, Fault};
use larimar_wire::uri::query_pairs;

/// Adds or removes a dismissal.
pub(super) async fn dismissals<E: Engine>(
    storage: &Storage<E>,
    caller: &AdminCaller,
    method: &Method,
    query: &str,
) -> Page {
    if !matches!(*method, Method::PUT | Method::DELETE) {
        return not_allowed("PUT, DELETE");
    }
    let (account, dismissal) = match read_query(query) {
        Ok(asked) => asked,
        Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
    };
    if !caller.sees(storage, &account) {
        return text(StatusCode::NOT_FOUND, "there is no such account on this server, or the key is another's\n");
    }
    let now = storage.clock.now();
    let dismissal = Dismissal { time: Some(now.to_string()), ..dismissal };
    let edited = edit_setting(&*storage.engine, &account, SETTING, now, |stored| {
        let mut all = Dismissals::from_json(stored.unwrap_or_default());
        match *method {
            Method::PUT => all.put(dismissal.clone()).map_err(|_| (StatusCode::CONFLICT, FULL))?,
            _ if all.remove(&dismissal) => {}
            _ => return Err((StatusCode::NOT_FOUND, "there is no such dismissal\n")),
        }
        Ok(all.to_json())
    });
    match edited.await {
        Ok(Ok(())) => page(StatusCode::OK, "application/json", "{}\n"),
        Ok(Err((status, reason))) => text(status, reason),
        Err(fault) => {
            tracing::warn!(%fault, "dismissals could not be changed");
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n"))
        }
    }
}

/// The dismissals of an account.
pub(super) async fn load(engine: &impl Engine, account: &str) -> Result<Dismissals, Fault> {
    let stored = load_setting(engine, account, SETTING).await?;
    Ok(Dismissals::from_json(&stored.unwrap_or_default()))
}

fn read_query(query: &str) -> Result<(String, Dismissal), String> {
    let (mut account, mut finding, mut table, mut reason) = (None, None, None, None);
    // A signature has been checked before; its fields are not ours.
    let is_signed = query_pairs(query).any(|pair| pair.is_ok_and(|pair| pair.name == "sig"));
    for pair in query_pairs(query) {
        let pair = pair.map_err(|_| MALFORMED)?;
        let place = match &*pair.name {
            "account" => &mut account,
            "finding" => &mut finding,
            "table" => &mut table,
            "reason" => &mut reason,
            _ if is_signed => continue,
            _ => return Err(EXPECTED.to_owned()),
        };
        if place.replace(pair.value().map_err(|_| MALFORMED)?.into_owned()).is_some() {
            return Err(EXPECTED.to_owned());
        }
    }
    let (account, finding) = (account.ok_or(EXPECTED)?, finding.ok_or(EXPECTED)?);
    let finding = finding.parse::<FindingKind>().map_err(|error| format!("finding: {error}"))?;
    if table.as_deref().is_some_and(|table| !is_table(table)) {
        return Err("table: expected the name of a table".to_owned());
    }
    let reason = reason.filter(|reason| !reason.is_empty());
    let is_text = |reason: &str| reason.chars().count() <= REASON_CHARS_MAX && !reason.chars().any(char::is_control);
    if reason.as_deref().is_some_and(|reason| !is_text(reason)) {
        return Err(format!("reason: expected at most {REASON_CHARS_MAX} characters on one line"));
    }
    Ok((account, Dismissal { reason, ..Dismissal::new(finding, table) }))
}

/// Whether a table of the account, or of storage analytics, can have this name.
fn is_table(name: &str) -> bool {
    let letters = name.strip_prefix('$').unwrap_or(name);
    (3..=63).contains(&name.len()) && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

const SETTING: &str = "advice-dismissals";
/// With this, the setting has at most half a mebibyte.
const REASON_CHARS_MAX: usize = 200;
const EXPECTED: &str = "expected an account and a finding, and perhaps a table and a reason, each once: \
                        /advice/dismissals?account=NAME&finding=table-scan&table=NAME&reason=TEXT";
const MALFORMED: &str = "expected percent-encoded UTF-8 in the query";
const FULL: &str = "an account has at most 500 dismissals: remove one, or dismiss a finding for all tables\n";
const _: () = assert!(DISMISSALS_MAX == 500, "as the text above says");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dismissal_names_an_account_and_a_finding_and_perhaps_more() {
        let scan = |table: Option<&str>, reason: Option<&str>| {
            let dismissal = Dismissal::new(FindingKind::TableScan, table.map(str::to_owned));
            Ok(("one".to_owned(), Dismissal { reason: reason.map(str::to_owned), ..dismissal }))
        };
        for (query, expected) in [
            ("account=one&finding=table-scan", scan(None, None)),
            ("finding=table-scan&account=one&table=Orders&reason=a%20b", scan(Some("Orders"), Some("a b"))),
            ("account=one&finding=table-scan&table=$MetricsHourPrimaryTransactionsTable&reason=", {
                scan(Some("$MetricsHourPrimaryTransactionsTable"), None)
            }),
            ("account=one&finding=table-scan&sv=2020-12-06&sig=y", scan(None, None)),
        ] {
            assert_eq!(read_query(query), expected, "{query}");
        }
        let long = format!("account=one&finding=log-data&reason={}", "x".repeat(201));
        for (query, words) in [
            ("", "expected an account"),
            ("account=one", "expected an account"),
            ("finding=log-data", "expected an account"),
            ("account=one&finding=log-data&finding=log-data", "each once"),
            ("account=one&finding=log-data&tables=T", "expected an account"),
            ("account=one&finding=nonsense", "expected one of table-scan"),
            ("account=one&finding=log-data&table=", "name of a table"),
            ("account=one&finding=log-data&table=a/b", "name of a table"),
            ("account=one&finding=log-data&table=a%0ab", "name of a table"),
            ("account=one&finding=log-data&reason=a%0ab", "one line"),
            ("account=one&finding=log-data&reason=%ff", "UTF-8"),
            (&long, "at most 200"),
        ] {
            let error = read_query(query).expect_err(query);
            assert!(error.contains(words), "{query}: {error}");
        }
    }
}
