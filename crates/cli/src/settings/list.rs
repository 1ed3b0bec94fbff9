//! The list of settings, and their defaults.

use super::account::{Account, accounts};
use super::engine::{EngineChoice, Password};
use super::value::{self, Durability, LogFormat, StoreUrl, Wrong};
use super::{Group, Kind, Setting, Settings};
use larimar_engine_postgres::Dialect;
use larimar_server::AdminToken;
use std::path::PathBuf;
use std::time::Duration;

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            table: true,
            table_port: 10002,
            queue: true,
            queue_port: 10001,
            blob: true,
            blob_port: 10000,
            blob_store: None,
            blob_grace: Duration::from_secs(600),
            admin: true,
            admin_host: "127.0.0.1".to_owned(),
            admin_port: 10003,
            admin_names: Vec::new(),
            admin_token: None,
            admin_token_file: None,
            allow_reset: false,
            engine: EngineChoice::Local,
            data_dir: PathBuf::from("larimar-data"),
            durability: Durability::Sync,
            memory: None,
            reserve: 64 << 20,
            dialect: Dialect::Postgres,
            database_password: None,
            database_password_file: None,
            database_connections: 32,
            database_timeout: Duration::from_secs(15),
            accounts: vec![Account::development()],
            allow_well_known_key: false,
            host_suffixes: Vec::new(),
            tls_certificate: None,
            tls_key: None,
            strict: false,
            sas_version_min: None,
            connections_max: 10_000,
            header_bytes_max: 64 << 10,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            answer_timeout: Duration::from_secs(60),
            client_rate_min: 1024,
            shutdown_grace: Duration::from_secs(30),
            body_bytes_max: 4 << 20,
            body_timeout: Duration::from_secs(30),
            page_entities_max: 1000,
            page_bytes_max: 4 << 20,
            page_time_max: Duration::from_secs(5),
            rehydration_time: Duration::from_secs(5),
            in_flight_bytes_max: None,
            in_flight_wait: Duration::from_secs(5),
            analytics_flush: Duration::from_secs(300),
            log_level: "info".to_owned(),
            log_format: LogFormat::Human,
        }
    }
}

/// Every setting, in the order in which they are shown.
pub(crate) static SETTINGS: &[Setting] = &[
    Setting {
        name: "host",
        group: Group::Services,
        help: "Address that the services listen on",
        expected: HOST,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.host, value::host(text)),
        show: |settings| Some(settings.host.as_str().into()),
    },
    Setting {
        name: "table",
        group: Group::Services,
        help: "Whether to serve tables",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.table, value::switch(text)),
        show: |settings| Some(settings.table.into()),
    },
    Setting {
        name: "table_port",
        group: Group::Services,
        help: "Port of the Table service; 0 picks a free one",
        expected: PORT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.table_port, text.parse().ok()),
        show: |settings| Some(i64::from(settings.table_port).into()),
    },
    Setting {
        name: "queue",
        group: Group::Services,
        help: "Whether to serve queues",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.queue, value::switch(text)),
        show: |settings| Some(settings.queue.into()),
    },
    Setting {
        name: "queue_port",
        group: Group::Services,
        help: "Port of the Queue service; 0 picks a free one",
        expected: PORT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.queue_port, text.parse().ok()),
        show: |settings| Some(i64::from(settings.queue_port).into()),
    },
    Setting {
        name: "blob",
        group: Group::Services,
        help: "Whether to serve blobs",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.blob, value::switch(text)),
        show: |settings| Some(settings.blob.into()),
    },
    Setting {
        name: "blob_port",
        group: Group::Services,
        help: "Port of the Blob service; 0 picks a free one",
        expected: PORT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.blob_port, text.parse().ok()),
        show: |settings| Some(i64::from(settings.blob_port).into()),
    },
    Setting {
        name: "blob_store",
        group: Group::Data,
        help: "Where the bytes of blobs are stored: a URL such as s3://BUCKET/FOLDER or file:///SHARED/FOLDER; default: the \
               data directory; blobs over PostgreSQL are served only with this setting",
        expected: "a URL without a password, such as s3://BUCKET/FOLDER or file:///FOLDER",
        kind: Kind::Private,
        read: |settings, text| put(&mut settings.blob_store, StoreUrl::parse(text).map(Some)),
        show: |settings| settings.blob_store.as_ref().map(|url| url.without_secrets().into()),
    },
    Setting {
        name: "blob_grace",
        group: Group::Data,
        help: "How long the bytes of deleted blobs are kept for readers that still use them",
        expected: "a span of time up to 24h, such as 10m",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.blob_grace, value::span(text).filter(|span| *span <= 24 * HOUR)),
        show: |settings| Some(value::show_span(settings.blob_grace).into()),
    },
    Setting {
        name: "admin",
        group: Group::Services,
        help: "Whether to serve the admin endpoint: /health, /ready, /metrics, /reset",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.admin, value::switch(text)),
        show: |settings| Some(settings.admin.into()),
    },
    Setting {
        name: "admin_host",
        group: Group::Services,
        help: "Address that the admin endpoint listens on; /health, /ready and /metrics need no credentials",
        expected: HOST,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.admin_host, value::host(text)),
        show: |settings| Some(settings.admin_host.as_str().into()),
    },
    Setting {
        name: "admin_port",
        group: Group::Services,
        help: "Port of the admin endpoint; 0 picks a free one",
        expected: PORT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.admin_port, text.parse().ok()),
        show: |settings| Some(i64::from(settings.admin_port).into()),
    },
    Setting {
        name: "admin_names",
        group: Group::Services,
        help: "Host names that admin requests may use, besides localhost, admin_host and addresses",
        expected: "host names separated by commas, such as larimar,admin.example.com",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.admin_names, value::domains(text)),
        show: |settings| Some(settings.admin_names.clone().into()),
    },
    Setting {
        name: "admin_token",
        group: Group::Services,
        help: "Token that admin requests need; default: the one in the file admin-token of the data directory, which \
               the server creates",
        expected: ADMIN_TOKEN,
        kind: Kind::Secret,
        read: |settings, text| put(&mut settings.admin_token, admin_token(text).map(Some)),
        show: |settings| settings.admin_token.as_ref().map(|_| "set and not shown".into()),
    },
    Setting {
        name: "admin_token_file",
        group: Group::Services,
        help: "File with the token that admin requests need; a newline at its end does not count",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.admin_token_file, path(text).map(Some)),
        show: |settings| settings.admin_token_file.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "allow_reset",
        group: Group::Services,
        help: "Allow POST /reset on the admin endpoint, which deletes everything that an account has; always allowed \
               with --durability=memory; for tests",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.allow_reset, value::switch(text)),
        show: |settings| Some(settings.allow_reset.into()),
    },
    Setting {
        name: "engine",
        group: Group::Data,
        help: "What stores the data: local (this machine's disk) or postgres://USER@HOST[,HOST]/DATABASE, which any \
               number of servers share; a password in the URL is better given by database_password_file or \
               LARIMAR_DATABASE_PASSWORD",
        expected: "local or postgres://USER@HOST[:PORT][,HOST…]/DATABASE[?sslmode=…&…], a password percent-encoded",
        kind: Kind::Private,
        read: |settings, text| put(&mut settings.engine, EngineChoice::from_text(text)),
        show: |settings| Some(settings.engine.without_secrets().into()),
    },
    Setting {
        name: "data_dir",
        group: Group::Data,
        help: "Data directory; created if it is missing; not used with PostgreSQL",
        expected: "the path of a directory",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.data_dir, path(text)),
        show: |settings| Some(settings.data_dir.display().to_string().into()),
    },
    Setting {
        name: "durability",
        group: Group::Data,
        help: "What an acknowledged write survives: sync (power loss), async (the end of the process), memory (nothing); \
               not used with PostgreSQL",
        expected: "sync, async or memory",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.durability, Durability::from_text(text)),
        show: |settings| Some(settings.durability.as_text().into()),
    },
    Setting {
        name: "memory",
        group: Group::Data,
        help: "Memory for the store's caches; default: chosen for the machine; not used with PostgreSQL",
        expected: "a number of bytes from 16MiB on, such as 512MiB or 2GiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.memory, size(text, 16 << 20, u64::MAX).map(Some)),
        show: |settings| settings.memory.map(|bytes| value::show_bytes(bytes).into()),
    },
    Setting {
        name: "reserve",
        group: Group::Data,
        help: "Disk space set aside in the data directory, at most an eighth of the disk, so that clients can delete and \
               drop when another program fills the disk; with 0 writes go on until the disk is full, and deletes then \
               fail too; not used with PostgreSQL",
        expected: "a number of bytes, such as 64MiB or 0",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.reserve, size(text, 0, 1 << 40)),
        show: |settings| Some(value::show_bytes(settings.reserve).into()),
    },
    Setting {
        name: "dialect",
        group: Group::Database,
        help: "Which database a postgres:// engine is: postgres, cockroach or yugabyte",
        expected: "postgres, cockroach or yugabyte",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.dialect, text.parse().ok()),
        show: |settings| Some(settings.dialect.to_string().into()),
    },
    Setting {
        name: "database_password",
        group: Group::Database,
        help: "Password of the database; overrides the file's and the URL's",
        expected: "a password",
        kind: Kind::Secret,
        read: |settings, text| put(&mut settings.database_password, password(text).map(Some)),
        show: super::show::database_password,
    },
    Setting {
        name: "database_password_file",
        group: Group::Database,
        help: "File with the password of the database, which overrides the URL's; read again for each new connection, so that it \
               can be changed while servers run; a newline at its end does not count",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.database_password_file, path(text).map(Some)),
        show: |settings| settings.database_password_file.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "database_connections",
        group: Group::Database,
        help: "Connections that this server opens to the database",
        expected: "a number from 8 to 1000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.database_connections, number(text, 8, 1000)),
        show: |settings| Some(show_count(settings.database_connections)),
    },
    Setting {
        name: "database_timeout",
        group: Group::Database,
        help: "How long the database may take for one statement",
        expected: "a span of time from 1s to 5m",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_secs(1)..=Duration::from_secs(300);
            put(&mut settings.database_timeout, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.database_timeout).into()),
    },
    Setting {
        name: "accounts",
        group: Group::Accounts,
        help: "Accounts with one or two keys in Base64, as name:key[:key2];…",
        expected: "name:key[:key2];… (in the file also [[accounts]] with name, key, key2), each name once and of \
                   letters, digits, - and _, keys in Base64",
        kind: Kind::Secret,
        read: |settings, text| accounts(text).map(|read| settings.accounts = read).map_err(Wrong::Because),
        show: super::show::accounts,
    },
    Setting {
        name: "allow_well_known_key",
        group: Group::Accounts,
        help: "Start with the public key of devstoreaccount1 also where other machines can reach the services; for tests",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.allow_well_known_key, value::switch(text)),
        show: |settings| Some(settings.allow_well_known_key.into()),
    },
    Setting {
        name: "host_suffixes",
        group: Group::Accounts,
        help: "Domains below which an account is a host: table.example.com serves ACCOUNT.table.example.com",
        expected: "domains separated by commas, such as table.example.com",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.host_suffixes, value::domains(text)),
        show: |settings| Some(settings.host_suffixes.clone().into()),
    },
    Setting {
        name: "tls_certificate",
        group: Group::Accounts,
        help: "File with the certificate chain in PEM; the services and the admin endpoint then speak TLS",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.tls_certificate, path(text).map(Some)),
        show: |settings| settings.tls_certificate.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "tls_key",
        group: Group::Accounts,
        help: "File with the private key in PEM",
        expected: "the path of a file",
        kind: Kind::Path,
        read: |settings, text| put(&mut settings.tls_key, path(text).map(Some)),
        show: |settings| settings.tls_key.as_ref().map(|path| path.display().to_string().into()),
    },
    Setting {
        name: "sas_version_min",
        group: Group::Accounts,
        help: "Refuse shared access signatures of an older version (sv); default: accept all, as the service does",
        expected: "the date of a version, such as 2018-11-09",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.sas_version_min, value::version(text).map(Some)),
        show: |settings| settings.sas_version_min.clone().map(Into::into),
    },
    Setting {
        name: "strict",
        group: Group::Diagnostics,
        help: "Refuse unknown versions, keep a deleted table's name busy for a while, throttle at the published targets",
        expected: SWITCH,
        kind: Kind::Switch,
        read: |settings, text| put(&mut settings.strict, value::switch(text)),
        show: |settings| Some(settings.strict.into()),
    },
    Setting {
        name: "connections_max",
        group: Group::Limits,
        help: "Connections that may be open; a new one evicts one that has sent no request or is idle, or waits",
        expected: "a number from 1 to 1000000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.connections_max, number(text, 1, 1_000_000)),
        show: |settings| Some(show_count(settings.connections_max)),
    },
    Setting {
        name: "header_bytes_max",
        group: Group::Limits,
        help: "Bytes that the head of a request may take",
        expected: "a number of bytes from 8KiB to 256KiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.header_bytes_max, size(text, 8 << 10, 256 << 10)),
        show: |settings| Some(value::show_bytes(settings.header_bytes_max).into()),
    },
    Setting {
        name: "header_timeout",
        group: Group::Limits,
        help: "How long a client may take for the head of a request or a TLS handshake",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.header_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.header_timeout).into()),
    },
    Setting {
        name: "idle_timeout",
        group: Group::Limits,
        help: "How long a connection may be idle between requests",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.idle_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.idle_timeout).into()),
    },
    Setting {
        name: "answer_timeout",
        group: Group::Limits,
        help: "How long a client may read nothing of an answer, and how long in total it may stay below client_rate_min",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.answer_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.answer_timeout).into()),
    },
    Setting {
        name: "client_rate_min",
        group: Group::Limits,
        help: "Bytes per second of a body or an answer that a client must send or read on average, once \
               body_timeout or answer_timeout is over",
        expected: "a number of bytes from 1 to 64MiB, such as 1KiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.client_rate_min, size(text, 1, 64 << 20)),
        show: |settings| Some(value::show_bytes(settings.client_rate_min).into()),
    },
    Setting {
        name: "shutdown_grace",
        group: Group::Limits,
        help: "How long requests may continue after the signal to stop",
        expected: "a span of time up to 1h, such as 30s or 5m",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.shutdown_grace, value::span(text).filter(|span| *span <= HOUR)),
        show: |settings| Some(value::show_span(settings.shutdown_grace).into()),
    },
    Setting {
        name: "body_bytes_max",
        group: Group::Limits,
        help: "Bytes that the body of a request may take",
        expected: "a number of bytes from 64KiB to 64MiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.body_bytes_max, size(text, 64 << 10, 64 << 20)),
        show: |settings| Some(value::show_bytes(settings.body_bytes_max).into()),
    },
    Setting {
        name: "body_timeout",
        group: Group::Limits,
        help: "How long a client may send nothing of a body, and how long in total it may stay below client_rate_min",
        expected: TIMEOUT,
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.body_timeout, timeout(text)),
        show: |settings| Some(value::show_span(settings.body_timeout).into()),
    },
    Setting {
        name: "page_entities_max",
        group: Group::Limits,
        help: "Entities in one answer to a query",
        expected: "a number from 1 to 1000",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.page_entities_max, number(text, 1, 1000)),
        show: |settings| Some(show_count(settings.page_entities_max)),
    },
    Setting {
        name: "page_bytes_max",
        group: Group::Limits,
        help: "Bytes after which one answer to a query ends",
        expected: "a number of bytes from 64KiB to 64MiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.page_bytes_max, size(text, 64 << 10, 64 << 20)),
        show: |settings| Some(value::show_bytes(settings.page_bytes_max).into()),
    },
    Setting {
        name: "page_time_max",
        group: Group::Limits,
        help: "Time that one answer to a query may take",
        expected: "a span of time from 100ms to 30s",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_millis(100)..=Duration::from_secs(30);
            put(&mut settings.page_time_max, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.page_time_max).into()),
    },
    Setting {
        name: "rehydration_time",
        group: Group::Data,
        help: "How long the rehydration of an archived blob takes",
        expected: "a span of time from 0s to 24h, such as 5s",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.rehydration_time, value::span(text).filter(|span| *span <= 24 * HOUR)),
        show: |settings| Some(value::show_span(settings.rehydration_time).into()),
    },
    Setting {
        name: "in_flight_bytes_max",
        group: Group::Limits,
        help: "Memory for bodies being received and answers being sent, of all clients together; default: half of \
               memory, or an eighth of the machine's, from 64MiB to 512MiB",
        expected: "a number of bytes from 16MiB on, such as 256MiB",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.in_flight_bytes_max, size(text, 16 << 20, 1 << 50).map(Some)),
        show: |settings| settings.in_flight_bytes_max.map(|bytes| value::show_bytes(bytes).into()),
    },
    Setting {
        name: "in_flight_wait",
        group: Group::Limits,
        help: "How long a request may wait for memory of in_flight_bytes_max before it gets 503",
        expected: "a span of time from 100ms to 5m",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_millis(100)..=Duration::from_secs(300);
            put(&mut settings.in_flight_wait, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.in_flight_wait).into()),
    },
    Setting {
        name: "analytics_flush",
        group: Group::Diagnostics,
        help: "How often storage analytics write request logs and hourly metrics, where an account has them on",
        expected: "a span of time from 1s to 1h, such as 5m",
        kind: Kind::Value,
        read: |settings, text| {
            let allowed = Duration::from_secs(1)..=HOUR;
            put(&mut settings.analytics_flush, value::span(text).filter(|span| allowed.contains(span)))
        },
        show: |settings| Some(value::show_span(settings.analytics_flush).into()),
    },
    Setting {
        name: "log_level",
        group: Group::Diagnostics,
        help: "What to log: off, error, warn, info, debug, trace, also by module as in info,larimar_server=debug",
        expected: "off, error, warn, info, debug or trace, or module=level parts separated by commas",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.log_level, value::log_level(text)),
        show: |settings| Some(settings.log_level.as_str().into()),
    },
    Setting {
        name: "log_format",
        group: Group::Diagnostics,
        help: "Format of log lines: human or json",
        expected: "human or json",
        kind: Kind::Value,
        read: |settings, text| put(&mut settings.log_format, LogFormat::from_text(text)),
        show: |settings| Some(settings.log_format.as_text().into()),
    },
];

fn put<T>(place: &mut T, value: Option<T>) -> Result<(), Wrong> {
    *place = value.ok_or(Wrong::Unexpected)?;
    Ok(())
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn password(text: &str) -> Option<Password> {
    (!text.is_empty()).then(|| Password(text.to_owned()))
}

fn admin_token(text: &str) -> Option<Password> {
    AdminToken::new(text).ok().map(|_| Password(text.to_owned()))
}

fn number(text: &str, least: usize, most: usize) -> Option<usize> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn size(text: &str, least: u64, most: u64) -> Option<u64> {
    value::bytes(text).filter(|bytes| (least..=most).contains(bytes))
}

fn timeout(text: &str) -> Option<Duration> {
    value::span(text).filter(|span| (Duration::from_millis(100)..=24 * HOUR).contains(span))
}

fn show_count(count: usize) -> toml::Value {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

const HOUR: Duration = Duration::from_secs(3600);
const HOST: &str = "an IP address or a host name";
const PORT: &str = "a port number from 0 to 65535";
pub(crate) const ADMIN_TOKEN: &str = "16 to 256 printable ASCII characters without spaces";
const SWITCH: &str = "true or false";
const TIMEOUT: &str = "a span of time from 100ms to 24h, such as 30s or 5m";
