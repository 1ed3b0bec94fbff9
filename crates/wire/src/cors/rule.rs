//! One CORS rule: what it matches, what it must look like, and its XML.

use crate::xml::{self, Element, XmlError};

/// A rule of the service's CORS settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRule {
    /// Origins, compared exactly; `*` stands for all, `https://*.example.com` for the names below.
    pub allowed_origins: Vec<String>,
    /// Methods.
    pub allowed_methods: Vec<String>,
    /// Names of request headers; one with `*` at its end is a prefix.
    pub allowed_headers: Vec<String>,
    /// Names of response headers; one with `*` at its end is a prefix.
    pub exposed_headers: Vec<String>,
    /// How long a browser may remember the answer to a preflight.
    pub max_age_seconds: u32,
}

/// Origins or whole header names in one rule (service: CORS support).
const LITERALS_MAX: usize = 64;
/// Prefixes of header names in one rule (service: CORS support).
const PREFIXES_MAX: usize = 2;
/// Characters of one origin or header name (service: CORS support).
const NAME_CHARS_MAX: usize = 256;
const METHODS: [&str; 10] = ["CONNECT", "DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// Why a rule is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorsRuleError {
    /// Elements that do not belong into a rule.
    #[error("expected the elements of a CORS rule")]
    Xml(#[from] XmlError),
    /// A value that the service's reference does not allow.
    #[error("expected CORS rules with known methods, and origins and headers of at most 256 characters")]
    Value,
    /// More origins or headers than a rule may have.
    #[error("expected at most 64 origins, and at most 64 headers and 2 prefixes of headers")]
    TooMany,
}

impl CorsRule {
    pub(super) fn allows_origin(&self, origin: &str) -> bool {
        self.names_origin(origin) || self.allows_any_origin()
    }

    pub(super) fn allows_any_origin(&self) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == "*")
    }

    /// Whether an origin is allowed by more than `*`.
    pub(super) fn names_origin(&self, origin: &str) -> bool {
        self.allowed_origins.iter().any(|allowed| match allowed.split_once("://*.") {
            Some((scheme, domain)) => origin
                .strip_prefix(scheme)
                .and_then(|rest| rest.strip_prefix("://"))
                .and_then(|host| host.strip_suffix(domain))
                .and_then(|sub| sub.strip_suffix('.'))
                .is_some_and(is_host_name),
            None => allowed == origin,
        })
    }

    pub(super) fn allows_method(&self, method: &str) -> bool {
        self.allowed_methods.iter().any(|allowed| allowed == method)
    }

    pub(super) fn allows_header(&self, name: &str) -> bool {
        self.allowed_headers.iter().any(|allowed| matches_name(allowed, name))
    }

    /// The exposed headers, prefixes replaced by the names they match among those `answered`.
    pub(super) fn exposed<'a>(&'a self, answered: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for exposed in &self.exposed_headers {
            if exposed.ends_with('*') {
                names.extend(answered.clone().filter(|name| matches_name(exposed, name)));
            } else {
                names.push(exposed);
            }
        }
        names
    }

    /// Reads a `CorsRule`.
    ///
    /// # Errors
    /// A rule that the service's reference does not allow.
    pub(crate) fn parse(element: &Element) -> Result<Self, CorsRuleError> {
        element.expect_only(&[ORIGINS, METHODS_NAME, HEADERS, EXPOSED, MAX_AGE])?;
        let list = |name| -> Result<Vec<String>, XmlError> {
            let text = element.child_text(name)?.unwrap_or_default();
            Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
        };
        let max_age = element.child_text(MAX_AGE)?.unwrap_or("0").parse::<u32>();
        let rule = Self {
            allowed_origins: list(ORIGINS)?,
            allowed_methods: list(METHODS_NAME)?,
            allowed_headers: literals_first(list(HEADERS)?),
            exposed_headers: literals_first(list(EXPOSED)?),
            max_age_seconds: max_age.as_ref().copied().unwrap_or_default(),
        };
        if rule.has_too_many() {
            return Err(CorsRuleError::TooMany);
        }
        match max_age {
            Ok(seconds) if i32::try_from(seconds).is_ok() && rule.is_valid() => Ok(rule),
            _ => Err(CorsRuleError::Value),
        }
    }

    /// Appends the `CorsRule`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        xml::write_element(out, "CorsRule", |out| {
            xml::write_text(out, METHODS_NAME, &self.allowed_methods.join(","));
            xml::write_text(out, ORIGINS, &self.allowed_origins.join(","));
            xml::write_text(out, HEADERS, &self.allowed_headers.join(","));
            xml::write_text(out, EXPOSED, &self.exposed_headers.join(","));
            xml::write_text(out, MAX_AGE, &self.max_age_seconds.to_string());
        });
    }

    /// Characters of the rule's settings, for the bound on all rules together.
    pub(crate) fn size(&self) -> usize {
        let lists = [&self.allowed_origins, &self.allowed_methods, &self.allowed_headers, &self.exposed_headers];
        lists.into_iter().flatten().map(|item| item.chars().count()).sum()
    }

    fn has_too_many(&self) -> bool {
        let too_many = |names: &[String]| {
            let prefixes = names.iter().filter(|name| name.ends_with('*')).count();
            prefixes > PREFIXES_MAX || names.len() - prefixes > LITERALS_MAX
        };
        self.allowed_origins.len() > LITERALS_MAX || too_many(&self.allowed_headers) || too_many(&self.exposed_headers)
    }

    fn is_valid(&self) -> bool {
        let origin =
            |text: &String| text.chars().count() <= NAME_CHARS_MAX && text.chars().all(|c| c.is_ascii_graphic());
        !self.allowed_origins.is_empty()
            && self.allowed_origins.iter().all(origin)
            && !self.allowed_methods.is_empty()
            && self.allowed_methods.iter().all(|method| METHODS.contains(&method.as_str()))
            && are_header_names(&self.allowed_headers)
            && are_header_names(&self.exposed_headers)
    }
}

/// Whether a text can be the name of a host, or the beginning of one: an origin has no user, path, query or fragment.
fn is_host_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

fn are_header_names(names: &[String]) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte);
    let is_name = |name: &str| name.strip_suffix('*').unwrap_or(name).bytes().all(is_token);
    names.iter().all(|name| name.len() <= NAME_CHARS_MAX && is_name(name))
}

/// Names before prefixes, each in their order, as the service keeps and answers them (recorded).
fn literals_first(mut names: Vec<String>) -> Vec<String> {
    names.sort_by_key(|name| name.ends_with('*'));
    names
}

/// Whether a header name is, or begins with, what a rule says. Header names have no case.
fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => name.eq_ignore_ascii_case(pattern),
    }
}

const ORIGINS: &str = "AllowedOrigins";
const METHODS_NAME: &str = "AllowedMethods";
const HEADERS: &str = "AllowedHeaders";
const EXPOSED: &str = "ExposedHeaders";
const MAX_AGE: &str = "MaxAgeInSeconds";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(origins: &str, methods: &str, headers: &str, max_age: &str) -> Result<CorsRule, CorsRuleError> {
        let document = format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders/><MaxAgeInSeconds>{max_age}</MaxAgeInSeconds></CorsRule>"
        );
        CorsRule::parse(&Element::parse(document.as_bytes()).expect("XML"))
    }

    #[test]
    fn rules_at_and_past_their_limits() {
        let list =
            |count: usize, suffix: &str| (0..count).map(|i| format!("h{i}{suffix}")).collect::<Vec<_>>().join(",");
        for (origins, methods, headers, max_age, valid) in [
            ("*", "GET", "", "0", Ok(())),
            ("http://*.contoso.com", "TRACE,CONNECT", "", "0", Ok(())),
            ("http://a, http://b", "GET, PUT,MERGE", "x-ms-meta-*,accept", "500", Ok(())),
            (&list(64, ""), "GET", &list(64, ""), "1", Ok(())),
            (&"o".repeat(256), "GET", &format!("{},*", list(64, "")), "2147483647", Ok(())),
            ("*", "GET", &list(2, "*"), "0", Ok(())),
            ("", "GET", "", "0", Err(CorsRuleError::Value)),
            ("*", "", "", "0", Err(CorsRuleError::Value)),
            ("*", "FETCH", "", "0", Err(CorsRuleError::Value)),
            ("*", "get", "", "0", Err(CorsRuleError::Value)),
            ("*", "GET", &list(3, "*"), "0", Err(CorsRuleError::TooMany)),
            ("*", "GET", &list(65, ""), "0", Err(CorsRuleError::TooMany)),
            ("*", "GET", "a b", "0", Err(CorsRuleError::Value)),
            ("*", "GET", "a*b", "0", Err(CorsRuleError::Value)),
            ("*", "GET", "\u{e9}", "0", Err(CorsRuleError::Value)),
            (&list(65, ""), "GET", "", "0", Err(CorsRuleError::TooMany)),
            (&"o".repeat(257), "GET", "", "0", Err(CorsRuleError::Value)),
            ("http://\u{e9}", "GET", "", "0", Err(CorsRuleError::Value)),
            ("*", "GET", "", "-1", Err(CorsRuleError::Value)),
            ("*", "GET", "", "2147483648", Err(CorsRuleError::Value)),
            ("*", "GET", "", "soon", Err(CorsRuleError::Value)),
        ] {
            let rule = parse(origins, methods, headers, max_age);
            assert_eq!(rule.map(|_| ()), valid, "{origins:.40} {methods} {headers:.40} {max_age}");
        }
    }

    #[test]
    fn other_elements_are_refused() {
        let element = Element::parse(b"<CorsRule><Other/></CorsRule>").expect("XML");
        assert_eq!(CorsRule::parse(&element), Err(XmlError::Element.into()));
    }
}
