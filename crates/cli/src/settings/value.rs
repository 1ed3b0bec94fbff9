//! How the text of a setting becomes its value, and back.

use super::account;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a text is refused as the value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is not what the setting expects, which the message says.
    Unexpected,
    /// It is refused for this reason.
    Because(String),
}

/// The URL of a store of blobs' bytes. It may hold credentials, which no text made of it shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreUrl(String);

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Sync,
    Async,
    Memory,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Human,
    Json,
}

impl Durability {
    pub(super) fn from_text(text: &str) -> Option<Self> {
        [Self::Sync, Self::Async, Self::Memory].into_iter().find(|mode| mode.as_text() == text)
    }

    pub(crate) fn as_text(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Memory => "memory",
        }
    }
}

impl LogFormat {
    pub(super) fn from_text(text: &str) -> Option<Self> {
        [Self::Human, Self::Json].into_iter().find(|format| format.as_text() == text)
    }

    pub(super) fn as_text(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

/// A number of bytes: `1048576`, `512MiB`, `1GiB`, `2 GB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Bytes in the largest unit that shows them whole.
pub(crate) fn show_bytes(bytes: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// A span of time: `30s`, `500ms`, `5m`, `1h`, or a number of seconds.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(milliseconds)?))
}

/// A span of time that may be given in days.
pub(crate) fn days(text: &str) -> Option<Duration> {
    match number_and_unit(text)? {
        (number, "d") => Some(Duration::from_secs(number.checked_mul(86_400)?)),
        _ => span(text),
    }
}

/// A span in the largest unit that shows it whole.
pub(crate) fn show_span(span: Duration) -> String {
    let milliseconds = span.as_millis();
    for (unit, factor) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if milliseconds > 0 && milliseconds.is_multiple_of(factor) {
            return format!("{}{unit}", milliseconds / factor);
        }
    }
    format!("{milliseconds}ms")
}

impl StoreUrl {
    /// Reads a URL; what schemes there are, the store knows.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_scheme =
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let authority = rest.split('/').next().unwrap_or_default();
        // Credentials come from the store's own variables.
        let has_password = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
        let is_url = is_scheme && !rest.is_empty() && !text.contains(char::is_whitespace);
        (is_url && !has_password).then(|| Self(text.to_owned()))
    }

    /// The URL with all it holds.
    pub(crate) fn with_secrets(&self) -> &str {
        &self.0
    }

    /// The directory of a `file://` URL.
    pub(crate) fn as_directory(&self) -> Option<PathBuf> {
        Some(self.without_secrets().strip_prefix("file://")?.into())
    }

    /// The URL without its user and its query, which may hold keys and signatures.
    pub(crate) fn without_secrets(&self) -> String {
        let (url, _) = self.0.split_once(['?', '#']).unwrap_or((&self.0, ""));
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        format!("{scheme}://{host}{path}")
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_secrets())
    }
}

/// An address or a name to listen on.
pub(crate) fn host(text: &str) -> Option<String> {
    (text.parse::<std::net::IpAddr>().is_ok() || is_domain(text)).then(|| text.to_owned())
}

/// Domains separated by commas; none is allowed.
pub(crate) fn domains(text: &str) -> Option<Vec<String>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| is_domain(part).then(|| part.to_ascii_lowercase())).collect()
}

/// A version of the service: a date such as 2018-11-09.
pub(crate) fn version(text: &str) -> Option<String> {
    let is_version = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    is_version.then(|| text.to_owned())
}

fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // Four numbers that are no address are a mistyped address, not a domain.
    text.len() <= 253
        && text.split('.').all(is_label)
        && !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Yes or no.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A level, or levels by module: `info`, `info,larimar_server=debug`.
pub(crate) fn log_level(text: &str) -> Option<String> {
    let is_level = |level: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&level);
    let is_part = |part: &str| match part.split_once('=') {
        Some((module, level)) => !module.is_empty() && is_level(level),
        None => is_level(part),
    };
    let is_sound = text.split(',').all(is_part) && tracing_subscriber::EnvFilter::try_new(text).is_ok();
    is_sound.then(|| text.to_owned())
}

/// The text of a value of the file, so that it is read like any other source. A list is refused where one value is meant.
pub(crate) fn text_of(value: &toml::Value, takes_list: bool) -> Result<String, Wrong> {
    match value {
        toml::Value::Array(_) if !takes_list => Err(Wrong::Unexpected),
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(value) => Ok(value.to_string()),
        toml::Value::Array(items) if items.iter().all(toml::Value::is_table) && !items.is_empty() => {
            account::text_of_tables(items).map_err(Wrong::Because)
        }
        toml::Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            Ok(texts.ok_or(Wrong::Unexpected)?.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => Err(Wrong::Unexpected),
    }
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

/// A path setting that is switched off.
pub(crate) const OFF: &str = "off";
