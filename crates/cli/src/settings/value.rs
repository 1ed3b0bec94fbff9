//! How the text of a setting becomes its value, and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_server::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use std::time::Duration;

/// A storage account and its keys, in Base64.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) key2: Option<String>,
}

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

impl Account {
    /// The account of the development storage, whose key everybody knows.
    pub(crate) fn development() -> Self {
        Self { name: DEVELOPMENT_ACCOUNT.to_owned(), key: DEVELOPMENT_KEY.to_owned(), key2: None }
    }

    pub(crate) fn is_development(&self) -> bool {
        *self == Self::development()
    }

    fn new(name: &str, key: &str, key2: Option<&str>) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = (1..=63).contains(&name.len()) && name.chars().all(is_plain);
        let are_keys = is_key(key) && key2.is_none_or(is_key);
        (is_name && are_keys).then(|| Self {
            name: name.to_owned(),
            key: key.to_owned(),
            key2: key2.map(str::to_owned),
        })
    }
}

/// Keys are secrets, also in a log line that prints the settings.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.name)
    }
}

fn is_key(text: &str) -> bool {
    STANDARD.decode(text).is_ok_and(|bytes| !bytes.is_empty())
}

/// Accounts as Azurite's variable spells them: `name:key[:key2];…`. At least one, no name twice.
pub(crate) fn accounts(text: &str) -> Option<Vec<Account>> {
    let mut accounts: Vec<Account> = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let mut fields = part.split(':').map(str::trim);
        let (name, key) = (fields.next()?, fields.next()?);
        let account = Account::new(name, key, fields.next())?;
        let is_new = accounts.iter().all(|other| other.name != account.name);
        if !is_new || fields.next().is_some() {
            return None;
        }
        accounts.push(account);
    }
    (!accounts.is_empty()).then_some(accounts)
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

/// The URL of a store of bytes; what schemes there are, the store knows. A password in it would be shown with the
/// settings: credentials come from the store's own variables.
pub(crate) fn store_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let authority = rest.split('/').next().unwrap_or_default();
    let has_password = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    let is_url = is_scheme && !rest.is_empty() && !text.contains(char::is_whitespace);
    (is_url && !has_password).then(|| text.to_owned())
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

/// The text of a value of the file, so that it is read like any other source.
pub(crate) fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(value) => Some(value.to_string()),
        toml::Value::Array(items) if items.iter().all(toml::Value::is_table) && !items.is_empty() => {
            account_text(items)
        }
        toml::Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            Some(texts?.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// `[[accounts]]` tables in the spelling of the variable; nothing if a table has other keys.
fn account_text(items: &[toml::Value]) -> Option<String> {
    let mut parts = Vec::new();
    for table in items.iter().filter_map(toml::Value::as_table) {
        let is_known = |key: &String| ["name", "key", "key2"].contains(&key.as_str());
        let field = |key: &str| table.get(key).map(|value| value.as_str().filter(|text| !text.contains([':', ';'])));
        let (name, key) = (field("name")??, field("key")??);
        if !table.keys().all(is_known) {
            return None;
        }
        parts.push(match field("key2") {
            Some(key2) => format!("{name}:{key}:{}", key2?),
            None => format!("{name}:{key}"),
        });
    }
    Some(parts.join(";"))
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}
