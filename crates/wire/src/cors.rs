//! Cross-origin requests of browsers: which headers the stored rules add to an answer.
//!
//! Rules are tried in order and the first that matches wins. A preflight matches by origin, method and
//! headers, an actual request by origin and method. The rules come from the service's properties.

mod rule;

pub use rule::{CorsRule, CorsRuleError};

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;

/// A header to add to an answer.
pub type Header = (&'static str, String);

/// What a browser asks before it sends a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preflight<'a> {
    /// `Origin`.
    pub origin: Option<&'a str>,
    /// `Access-Control-Request-Method`.
    pub method: Option<&'a str>,
    /// `Access-Control-Request-Headers`.
    pub headers: Option<&'a str>,
}

/// Why a preflight is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorsError {
    /// `Origin` or `Access-Control-Request-Method` is missing.
    #[error("expected the headers Origin and Access-Control-Request-Method")]
    HeaderMissing,
    /// No rule allows the request.
    #[error("expected a request that a CORS rule allows")]
    NoRule,
}

impl From<CorsError> for ErrorReply {
    fn from(error: CorsError) -> Self {
        match error {
            CorsError::HeaderMissing => {
                Self::with_message(ErrorCode::InvalidHeaderValue, "A required CORS header is not present.")
            }
            CorsError::NoRule => Self::new(ErrorCode::CorsPreflightFailure),
        }
    }
}

impl Preflight<'_> {
    /// The headers of the answer.
    ///
    /// # Errors
    /// A request that is not a preflight, or that no rule allows.
    pub fn evaluate(&self, rules: &[CorsRule]) -> Result<Vec<Header>, CorsError> {
        let (Some(origin), Some(method)) = (non_empty(self.origin), non_empty(self.method)) else {
            return Err(CorsError::HeaderMissing);
        };
        let requested = self.headers.unwrap_or("");
        let allowed = |rule: &CorsRule| names(requested).all(|name| rule.allows_header(name));
        let (rule, origin) = find(rules, origin, method, allowed).ok_or(CorsError::NoRule)?;
        let mut headers = vec![(ALLOW_METHODS, method.to_owned())];
        if !requested.is_empty() {
            headers.push((ALLOW_HEADERS, requested.to_owned()));
        }
        headers.push((MAX_AGE, rule.max_age_seconds.to_string()));
        push_origin(&mut headers, origin);
        Ok(headers)
    }
}

/// The headers to add to the answer of an actual request, whose own headers are `answered`.
#[must_use]
pub fn evaluate<'a>(
    rules: &'a [CorsRule],
    origin: Option<&str>,
    method: &str,
    answered: impl Iterator<Item = &'a str> + Clone,
) -> Vec<Header> {
    let mut headers = Vec::new();
    if rules.is_empty() {
        return headers;
    }
    let Some(origin) = non_empty(origin) else { return without_origin(rules, method, answered) };
    let Some((rule, origin)) = find(rules, origin, method, |_| true) else {
        // A cache must not give this answer to an origin that a rule allows.
        if matches!(method, "GET" | "HEAD") {
            headers.push((VARY, "Origin".to_owned()));
        }
        return headers;
    };
    let exposed = rule.exposed(answered);
    if !exposed.is_empty() {
        headers.push((EXPOSE_HEADERS, exposed.join(",")));
    }
    if origin != Matched::Any {
        headers.push((VARY, "Origin".to_owned()));
    }
    push_origin(&mut headers, origin);
    headers
}

/// The headers of an answer to a request that names no origin: a cache may give the answer to a browser later.
fn without_origin<'a>(
    rules: &'a [CorsRule],
    method: &str,
    answered: impl Iterator<Item = &'a str> + Clone,
) -> Vec<Header> {
    let mut headers = Vec::new();
    if !matches!(method, "GET" | "HEAD") {
        return headers;
    }
    match rules.iter().find(|rule| rule.allows_any_origin() && rule.allows_method(method)) {
        Some(rule) => {
            let exposed = rule.exposed(answered);
            if !exposed.is_empty() {
                headers.push((EXPOSE_HEADERS, exposed.join(",")));
            }
            push_origin(&mut headers, Matched::Any);
        }
        None => headers.push((VARY, "Origin".to_owned())),
    }
    headers
}

/// How a rule matches an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matched<'a> {
    /// By its name.
    Named(&'a str),
    /// As any other.
    Any,
}

fn find<'r, 'o>(
    rules: &'r [CorsRule],
    origin: &'o str,
    method: &str,
    allowed: impl Fn(&CorsRule) -> bool,
) -> Option<(&'r CorsRule, Matched<'o>)> {
    let rule = rules.iter().find(|rule| rule.allows_origin(origin) && rule.allows_method(method) && allowed(rule))?;
    Some((rule, if rule.names_origin(origin) { Matched::Named(origin) } else { Matched::Any }))
}

fn push_origin(headers: &mut Vec<Header>, origin: Matched<'_>) {
    match origin {
        Matched::Named(origin) => {
            headers.push((ALLOW_ORIGIN, origin.to_owned()));
            headers.push((ALLOW_CREDENTIALS, "true".to_owned()));
        }
        Matched::Any => headers.push((ALLOW_ORIGIN, "*".to_owned())),
    }
}

/// The names of a list of header names.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn non_empty(header: Option<&str>) -> Option<&str> {
    header.map(str::trim).filter(|value| !value.is_empty())
}

const ALLOW_ORIGIN: &str = "Access-Control-Allow-Origin";
const ALLOW_METHODS: &str = "Access-Control-Allow-Methods";
const ALLOW_HEADERS: &str = "Access-Control-Allow-Headers";
const ALLOW_CREDENTIALS: &str = "Access-Control-Allow-Credentials";
const EXPOSE_HEADERS: &str = "Access-Control-Expose-Headers";
const MAX_AGE: &str = "Access-Control-Max-Age";
const VARY: &str = "Vary";

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str], exposed: &[&str]) -> CorsRule {
        let owned = |list: &[&str]| list.iter().map(|&item| item.to_owned()).collect();
        CorsRule {
            allowed_origins: owned(origins),
            allowed_methods: owned(methods),
            allowed_headers: owned(headers),
            exposed_headers: owned(exposed),
            max_age_seconds: 60,
        }
    }

    fn rules() -> Vec<CorsRule> {
        vec![
            rule(&["http://a.example"], &["GET", "PUT"], &["x-ms-meta-*", "Accept"], &["x-ms-request-id", "x-ms-c*"]),
            rule(&["https://*.b.example"], &["PATCH"], &["*"], &["*"]),
            rule(&["*"], &["GET"], &[], &[]),
        ]
    }

    fn texts(headers: Vec<Header>) -> String {
        let mut lines: Vec<String> = headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        lines.sort();
        lines.join("\n")
    }

    #[test]
    fn preflights_are_answered_by_the_first_rule_that_matches() {
        for (origin, method, headers, expected) in [
            (
                "http://a.example",
                "PUT",
                Some("X-MS-Meta-Color, accept"),
                "Access-Control-Allow-Credentials: true\nAccess-Control-Allow-Headers: X-MS-Meta-Color, accept\nAccess-Control-Allow-Methods: PUT\nAccess-Control-Allow-Origin: http://a.example\nAccess-Control-Max-Age: 60",
            ),
            (
                "https://c.b.example",
                "PATCH",
                Some("anything"),
                "Access-Control-Allow-Credentials: true\nAccess-Control-Allow-Headers: anything\nAccess-Control-Allow-Methods: PATCH\nAccess-Control-Allow-Origin: https://c.b.example\nAccess-Control-Max-Age: 60",
            ),
            (
                "http://other.example",
                "GET",
                None,
                "Access-Control-Allow-Methods: GET\nAccess-Control-Allow-Origin: *\nAccess-Control-Max-Age: 60",
            ),
        ] {
            let preflight = Preflight { origin: Some(origin), method: Some(method), headers };
            assert_eq!(preflight.evaluate(&rules()).map(texts).as_deref(), Ok(expected), "{preflight:?}");
        }
    }

    #[test]
    fn other_preflights_are_refused() {
        for (origin, method, headers, expected) in [
            (None, Some("GET"), None, CorsError::HeaderMissing),
            (Some("http://a.example"), None, None, CorsError::HeaderMissing),
            (Some(""), Some("GET"), None, CorsError::HeaderMissing),
            (Some("http://a.example"), Some("DELETE"), None, CorsError::NoRule),
            (Some("http://A.example"), Some("PUT"), None, CorsError::NoRule),
            (Some("http://a.example"), Some("PUT"), Some("x-other"), CorsError::NoRule),
            (Some("http://c.b.example"), Some("PATCH"), None, CorsError::NoRule),
            (Some("https://.b.example"), Some("PATCH"), None, CorsError::NoRule),
            (Some("https://evil/.b.example"), Some("PATCH"), None, CorsError::NoRule),
            (Some("http://other.example"), Some("GET"), Some("x-ms-date"), CorsError::NoRule),
        ] {
            let preflight = Preflight { origin, method, headers };
            assert_eq!(preflight.evaluate(&rules()), Err(expected), "{preflight:?}");
        }
        let preflight = Preflight { origin: Some("http://a.example"), method: Some("GET"), headers: None };
        assert_eq!(preflight.evaluate(&[]), Err(CorsError::NoRule));
    }

    #[test]
    fn actual_requests_get_the_headers_of_their_rule() {
        let answered = ["x-ms-request-id", "x-ms-continuation-NextRowKey", "Date"];
        for (origin, method, expected) in [
            (
                Some("http://a.example"),
                "GET",
                "Access-Control-Allow-Credentials: true\nAccess-Control-Allow-Origin: http://a.example\nAccess-Control-Expose-Headers: x-ms-request-id,x-ms-continuation-NextRowKey\nVary: Origin",
            ),
            (
                Some("https://x.b.example"),
                "PATCH",
                "Access-Control-Allow-Credentials: true\nAccess-Control-Allow-Origin: https://x.b.example\nAccess-Control-Expose-Headers: x-ms-request-id,x-ms-continuation-NextRowKey,Date\nVary: Origin",
            ),
            (Some("http://other.example"), "GET", "Access-Control-Allow-Origin: *"),
            (Some("http://other.example"), "HEAD", "Vary: Origin"),
            (Some("http://other.example"), "POST", ""),
            (None, "GET", "Access-Control-Allow-Origin: *"),
            (None, "HEAD", "Vary: Origin"),
            (None, "POST", ""),
        ] {
            let headers = evaluate(&rules(), origin, method, answered.into_iter());
            assert_eq!(texts(headers), expected, "{origin:?} {method}");
        }
        assert_eq!(evaluate(&[], Some("http://a.example"), "GET", answered.into_iter()), []);
    }

    #[test]
    fn refusals_have_the_codes_of_the_service() {
        let reply = ErrorReply::from(CorsError::NoRule);
        assert_eq!((reply.code, reply.status), (ErrorCode::CorsPreflightFailure, 403));
        let reply = ErrorReply::from(CorsError::HeaderMissing);
        assert_eq!(
            (reply.code, &*reply.message),
            (ErrorCode::InvalidHeaderValue, "A required CORS header is not present.")
        );
    }
}
