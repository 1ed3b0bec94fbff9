//! Every setting of the server, written down once: its name, its meaning, how its text is read and shown.
//!
//! A setting `table_port` is the key `table_port` of the TOML file, the environment variable
//! `LARIMAR_TABLE_PORT` and the flag `--table-port`. [`resolve`] is a plain function of the three sources; flags
//! override the environment and the environment overrides the file. The list itself is in `list/`, the defaults are in
//! `defaults.rs`.

pub(crate) mod account;
mod defaults;
pub(crate) mod engine;
mod list;
mod show;
mod spelling;
pub(crate) mod value;

use account::Account;
use engine::{EngineChoice, Password};
use larimar_engine_local::budget::machine_bytes;
use larimar_engine_postgres::Dialect;
pub(crate) use list::{ADMIN_TOKEN, all_settings};
pub(crate) use spelling::similar_setting;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use value::{Durability, LogFormat, StoreUrl, Wrong};

/// The variables of a process.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// The effective settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) host: String,
    pub(crate) table: bool,
    pub(crate) table_port: u16,
    pub(crate) queue: bool,
    pub(crate) queue_port: u16,
    pub(crate) blob: bool,
    pub(crate) blob_port: u16,
    pub(crate) blob_store: Option<StoreUrl>,
    pub(crate) blob_grace: Duration,
    pub(crate) admin: bool,
    pub(crate) admin_host: String,
    pub(crate) admin_port: u16,
    pub(crate) admin_names: Vec<String>,
    pub(crate) admin_token: Option<Password>,
    pub(crate) admin_token_file: Option<PathBuf>,
    pub(crate) console: bool,
    pub(crate) allow_reset: bool,
    pub(crate) engine: EngineChoice,
    pub(crate) data_dir: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) memory: Option<u64>,
    pub(crate) reserve: u64,
    pub(crate) seed: Option<PathBuf>,
    pub(crate) archive: ArchiveChoice,
    pub(crate) backup_key_file: Option<PathBuf>,
    pub(crate) backup_keep_time: Option<Duration>,
    pub(crate) backup_keep_count: Option<usize>,
    pub(crate) dialect: Dialect,
    pub(crate) database_password: Option<Password>,
    pub(crate) database_password_file: Option<PathBuf>,
    pub(crate) database_connections: usize,
    pub(crate) database_timeout: Duration,
    pub(crate) accounts: Vec<Account>,
    pub(crate) allow_well_known_key: bool,
    pub(crate) host_suffixes: Vec<String>,
    pub(crate) tls_certificate: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) strict: bool,
    pub(crate) sas_version_min: Option<String>,
    pub(crate) connections_max: usize,
    pub(crate) header_bytes_max: u64,
    pub(crate) header_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) answer_timeout: Duration,
    pub(crate) client_rate_min: u64,
    pub(crate) shutdown_grace: Duration,
    pub(crate) body_bytes_max: u64,
    pub(crate) body_timeout: Duration,
    pub(crate) page_entities_max: usize,
    pub(crate) page_bytes_max: u64,
    pub(crate) page_time_max: Duration,
    pub(crate) rehydration_time: Duration,
    pub(crate) in_flight_bytes_max: Option<u64>,
    pub(crate) in_flight_wait: Duration,
    pub(crate) observing: Observing,
    pub(crate) logs: LogChoice,
}

/// What is logged, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogChoice {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
    /// The file of the access log.
    pub(crate) access: Option<PathBuf>,
    pub(crate) slow_query_time: Duration,
    pub(crate) slow_query_ratio: u64,
}

/// Where and how commits are archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchiveChoice {
    pub(crate) place: Option<String>,
    pub(crate) spool_bytes_max: u64,
    pub(crate) backup_every: Duration,
}

/// What is written down about requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observing {
    pub(crate) analytics_flush: Duration,
    pub(crate) insights: bool,
}

impl Settings {
    /// Bytes in flight at most: as given, or a part of the memory that is given to the store or that the machine has.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        let memory = self.memory.map_or_else(|| machine_bytes() / 8, |memory| memory / 2);
        let suitable = memory.clamp(64 << 20, 512 << 20).max(IN_FLIGHT_BODIES * self.body_bytes_max);
        self.in_flight_bytes_max.unwrap_or(suitable)
    }

    /// Whether the data is in a directory of this server, and not in memory or a database.
    pub(crate) fn has_data_dir(&self) -> bool {
        self.engine == EngineChoice::Local && self.durability != Durability::Memory
    }

    /// Whether accounts can be emptied: where that was allowed, and where nothing outlives the process anyway.
    pub(crate) fn allows_reset(&self) -> bool {
        self.allow_reset || self.engine == EngineChoice::Local && self.durability == Durability::Memory
    }

    /// Whether blobs are served: they need a place for their bytes, which a database is not.
    pub(crate) fn serves_blobs(&self) -> bool {
        self.blob && (self.engine == EngineChoice::Local || self.blob_store.is_some())
    }
}

/// One setting: what the file, the environment, the command line and the help need to know of it.
pub(crate) struct Setting {
    /// Its key in the file; the variable and the flag are spelled after it.
    pub(crate) name: &'static str,
    /// The heading that the help lists it under.
    pub(crate) group: Group,
    /// What it does, in a phrase.
    pub(crate) help: &'static str,
    /// What its value has to be, as a phrase after "expected".
    pub(crate) expected: &'static str,
    /// How its value may be given.
    pub(crate) kind: Kind,
    /// Reads its text.
    read: fn(&mut Settings, &str) -> Result<(), Wrong>,
    /// Its value without secrets, as the file would have it; nothing if it is not set.
    show: fn(&Settings) -> Option<toml::Value>,
}

/// How the value of a setting may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A flag with a value.
    Value,
    /// A flag with a value that may hold a password: shown without it, and not at all if it is refused.
    Private,
    /// A flag with a path; in the file it is relative to the file's directory.
    Path,
    /// A flag that may stand alone for "true".
    Switch,
    /// No flag, since every user of the machine can read the command lines of processes; never shown.
    Secret,
}

/// What a setting is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Services,
    Data,
    Database,
    Accounts,
    Limits,
    Diagnostics,
}

impl Group {
    /// The heading of the help.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Services => "Services and addresses",
            Self::Data => "Data",
            Self::Database => "PostgreSQL",
            Self::Accounts => "Accounts, hosts and TLS",
            Self::Limits => "Limits",
            Self::Diagnostics => "Behaviour and diagnostics",
        }
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(String),
}

/// A configuration file that was read.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The effective settings, and where each came from.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) settings: Settings,
    sources: BTreeMap<&'static str, Source>,
    /// Variables that begin like ours and are none of ours.
    pub(crate) unknown_variables: Vec<String>,
}

/// A setting that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("setting {name} ({origin}): expected {expected}, found {found}")]
    Value { name: &'static str, origin: Source, expected: String, found: String },
    #[error("setting {name} ({origin}): {reason}")]
    Because { name: &'static str, origin: Source, reason: String },
    #[error("{name}: {reason}")]
    Argument { name: &'static str, reason: String },
    #[error("setting {name} ({origin}): there is no such setting; {}", spelling::hint(name))]
    Unknown { name: String, origin: Source },
    #[error("environment {variable}: {reason}")]
    Variable { variable: String, reason: String },
    #[error("{}: expected TOML: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("cannot read the configuration file {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
}

/// Makes the effective settings of a file, an environment and flags. A flag is the name of a setting and its text.
pub(crate) fn resolve(
    file: Option<&ConfigFile>,
    environment: &Environment,
    flags: &[(&'static str, OsString)],
) -> Result<Resolved, SettingsError> {
    let mut resolved =
        Resolved { settings: Settings::default(), sources: BTreeMap::new(), unknown_variables: Vec::new() };
    if let Some(file) = file {
        resolved.take_file(file)?;
    }
    resolved.take_environment(environment)?;
    for (name, text) in flags {
        let setting = find(name).expect("flags are made from the list");
        resolved.take(setting, Source::Flag(setting.flag()), text)?;
    }
    resolved.check()?;
    Ok(resolved)
}

/// The setting of a name.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    all_settings().find(|setting| setting.name == name)
}

impl Setting {
    /// The flag's name, without the dashes before it.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("LARIMAR_{}", self.name.to_ascii_uppercase())
    }

    /// Whether the file may have it as a list.
    fn takes_list(&self) -> bool {
        ["accounts", "admin_names", "host_suffixes"].contains(&self.name)
    }

    /// Its value for display, with secrets hidden.
    pub(crate) fn shown(&self, settings: &Settings) -> Option<toml::Value> {
        (self.show)(settings)
    }
}

impl Resolved {
    /// Where the value of a setting came from.
    pub(crate) fn source(&self, name: &str) -> Source {
        self.sources.get(name).cloned().unwrap_or(Source::Default)
    }

    /// The refusal of a setting, in a sentence of its own.
    pub(crate) fn refused_because(&self, name: &str, reason: impl Into<String>) -> SettingsError {
        let name = find(name).expect("refusals name settings of the list").name;
        SettingsError::Because { name, origin: self.source(name), reason: reason.into() }
    }

    /// The refusal of a setting for something that only shows when it is used.
    pub(crate) fn refused(&self, name: &str, expected: &str, found: &str) -> SettingsError {
        let name = find(name).expect("refusals name settings of the list").name;
        SettingsError::Value { name, origin: self.source(name), expected: expected.to_owned(), found: found.to_owned() }
    }

    fn take_file(&mut self, file: &ConfigFile) -> Result<(), SettingsError> {
        let table: toml::Table = file.text.parse().map_err(|error: toml::de::Error| SettingsError::File {
            path: file.path.clone(),
            reason: reason(&file.text, &error),
        })?;
        for (name, value) in table {
            let origin = Source::File(file.path.clone());
            let Some(setting) = find(&name) else { return Err(SettingsError::Unknown { name, origin }) };
            let text = value::text_of(&value, setting.takes_list());
            let text = text.map_err(|wrong| refusal(setting, origin.clone(), wrong, value.type_str()))?;
            self.take(setting, origin, &from_directory(setting, &file.path, text))?;
        }
        Ok(())
    }

    fn take_environment(&mut self, environment: &Environment) -> Result<(), SettingsError> {
        self.unknown_variables = spelling::check_variables(environment)?;
        let accounts = find("accounts").expect("the list has accounts");
        let ours = all_settings().map(|setting| (setting, setting.variable()));
        for (setting, variable) in [(accounts, AZURITE_ACCOUNTS.to_owned())].into_iter().chain(ours) {
            // An empty variable is how many tools spell one that is not set. Kubernetes describes a service called
            // `larimar-table` by LARIMAR_TABLE_PORT=tcp://…, which is not a setting.
            let is_meant = |text: &&OsString| !text.is_empty() && !text.to_string_lossy().starts_with("tcp://");
            if let Some(text) = environment.get(OsStr::new(&variable)).filter(is_meant) {
                self.take(setting, Source::Environment(variable), text)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, setting: &'static Setting, origin: Source, text: &OsStr) -> Result<(), SettingsError> {
        let read = text.to_str().ok_or(Wrong::Unexpected);
        let read = read.and_then(|text| (setting.read)(&mut self.settings, text.trim()));
        read.map_err(|wrong| refusal(setting, origin.clone(), wrong, &format!("{:?}", text.to_string_lossy())))?;
        self.sources.insert(setting.name, origin);
        Ok(())
    }

    /// Each service has a port of its own, unless the host name selects the service.
    fn check_ports(&self) -> Result<(), SettingsError> {
        let settings = &self.settings;
        let ports = [
            (settings.table, "table_port", settings.table_port),
            (settings.queue, "queue_port", settings.queue_port),
            (settings.blob, "blob_port", settings.blob_port),
            (settings.admin, "admin_port", settings.admin_port),
        ];
        let ports: Vec<_> =
            ports.into_iter().filter(|(is_on, ..)| *is_on).map(|(_, name, port)| (name, port)).collect();
        for (index, (name, port)) in ports.iter().enumerate() {
            let is_shared = !settings.host_suffixes.is_empty() && *name != "admin_port";
            let earlier = ports[..index].iter().find(|(_, other)| other == port && *port != 0 && !is_shared);
            if let Some((other, _)) = earlier {
                // The one that was changed is the one to name.
                let (name, other) = if self.source(name) == Source::Default { (other, name) } else { (name, other) };
                let hint = if [*name, *other].contains(&"admin_port") { "" } else { ONE_PORT };
                return Err(self.refused(name, &format!("a port other than {other}'s{hint}"), &port.to_string()));
            }
        }
        Ok(())
    }

    /// What a server needs that the other commands do not: a service that is on.
    pub(crate) fn check_serves(&self) -> Result<(), SettingsError> {
        let settings = &self.settings;
        self.check_archive()?;
        if settings.table || settings.queue || settings.serves_blobs() {
            return Ok(());
        }
        let reason = match settings.blob {
            true => "nothing to serve: table and queue are off, and blobs over PostgreSQL need the setting blob_store",
            false => "nothing to serve: table, queue and blob are all off; turn at least one of them on",
        };
        Err(self.refused_because("table", reason))
    }

    /// Only the embedded engine archives its commits, and only on a disk.
    fn check_archive(&self) -> Result<(), SettingsError> {
        let settings = &self.settings;
        let reason = match (settings.engine == EngineChoice::Local, settings.durability) {
            _ if settings.archive.place.is_none() => return Ok(()),
            (false, _) => {
                "a server over PostgreSQL archives no commits: use the database's own archive (pg_basebackup and WAL \
                 archiving; docs/backup-postgresql.md)"
            }
            (true, Durability::Memory) => {
                "commits are archived by way of the data directory, and with durability memory there is none: use \
                 durability sync or async"
            }
            (true, Durability::Sync | Durability::Async) => return Ok(()),
        };
        Err(self.refused_because("archive", reason))
    }

    /// What only shows when all settings are known.
    fn check(&self) -> Result<(), SettingsError> {
        let settings = &self.settings;
        self.check_ports()?;
        // The largest body, what it is parsed into and its answer count, and another request should find room beside
        // it.
        let least = IN_FLIGHT_BODIES * settings.body_bytes_max;
        if settings.in_flight_bytes() < least {
            let found = value::show_bytes(settings.in_flight_bytes());
            let expected = format!("at least four times body_bytes_max, {}", value::show_bytes(least));
            return Err(self.refused("in_flight_bytes_max", &expected, &found));
        }
        match (&settings.tls_certificate, &settings.tls_key) {
            (Some(_), None) => Err(self.refused("tls_certificate", "tls_key to be set as well", "no tls_key")),
            (None, Some(_)) => Err(self.refused("tls_key", "tls_certificate to be set as well", "no tls_certificate")),
            _ => Ok(()),
        }
    }
}

fn refusal(setting: &Setting, origin: Source, wrong: Wrong, found: &str) -> SettingsError {
    let found = match setting.kind {
        Kind::Private | Kind::Secret => "something else (not shown)",
        Kind::Value | Kind::Path | Kind::Switch => found,
    };
    let name = setting.name;
    match wrong {
        Wrong::Because(reason) => SettingsError::Because { name, origin, reason },
        Wrong::Unexpected => {
            SettingsError::Value { name, origin, expected: setting.expected.to_owned(), found: found.to_owned() }
        }
    }
}

/// The text of a file's value; a path in it is meant from where the file is.
fn from_directory(setting: &Setting, file: &Path, text: String) -> OsString {
    match file.parent() {
        Some(directory) if setting.kind == Kind::Path && !["", value::OFF].contains(&text.as_str()) => {
            directory.join(text).into()
        }
        _ => text.into(),
    }
}

/// What is wrong with a file, and where. The line itself is not shown: it may hold a key or a password.
fn reason(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

fn names() -> String {
    all_settings().map(|setting| setting.name).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Flag(flag) => write!(f, "flag --{flag}"),
        }
    }
}

/// When services may share a port.
const ONE_PORT: &str = ", or host_suffixes, so that the host name selects the service";

/// How many of the largest bodies fit into the bytes in flight.
const IN_FLIGHT_BODIES: u64 = 4;

/// The variable of Azurite, so that a development set-up moves over without edits.
const AZURITE_ACCOUNTS: &str = "AZURITE_ACCOUNTS";

#[cfg(test)]
mod tests;
