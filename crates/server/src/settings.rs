//! The settings of the services. `cli` resolves files, environment and flags into this.

use larimar_model::limits;
use larimar_wire::signature::AccountKey;
use std::time::Duration;

/// Settings of the Table service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The accounts that are served.
    pub accounts: Vec<Account>,
    /// Domains below which an account is the first label of the host, such as `table.example.com`.
    pub host_suffixes: Vec<String>,
    /// Whether to be as unforgiving as the original: unknown versions, busy names, published targets.
    pub strict: bool,
    /// The oldest version (`sv`) of shared access signatures that are accepted; all if there is none.
    pub sas_version_min: Option<String>,
    /// Bytes of a request body at most.
    pub body_bytes_max: usize,
    /// How long a client may send nothing of a request body, and how long in sum before `client_rate_min` counts.
    pub body_timeout: Duration,
    /// Bytes per second of a request body that a client has to send on average.
    pub client_rate_min: u64,
    /// Entities of a page at most.
    pub page_entities_max: usize,
    /// How long a page may be worked on.
    pub page_time_max: Duration,
    /// Bytes of a page's answer, after which it ends.
    pub page_bytes_max: usize,
    /// Bytes in flight at most: bodies that are received, answers that are built, pieces of blobs that are read.
    pub in_flight_bytes_max: u64,
    /// How long a request may wait for its part of them before it is refused as `ServerBusy`.
    pub in_flight_wait: Duration,
    /// How often storage analytics write logs and metrics.
    pub analytics_flush: Duration,
    /// Whether the traffic of tables is observed for insights.
    pub insights: bool,
    /// Queries that take at least this long are logged; zero: none.
    pub slow_query_time: Duration,
    /// Queries that read at least this many rows for each row returned are logged; zero: none.
    pub slow_query_ratio: u64,
}

/// An account and its keys.
#[derive(Clone, Debug)]
pub struct Account {
    /// The account's name.
    pub name: String,
    /// Its keys: two for rotation.
    pub keys: Vec<AccountKey>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            accounts: Vec::new(),
            host_suffixes: Vec::new(),
            strict: false,
            sas_version_min: None,
            body_bytes_max: limits::BODY_BYTES_MAX,
            body_timeout: Duration::from_secs(30),
            client_rate_min: 1024,
            page_entities_max: limits::PAGE_ENTITIES_MAX,
            page_time_max: Duration::from_secs(limits::PAGE_SECONDS_MAX),
            page_bytes_max: limits::PAGE_BYTES_MAX,
            in_flight_bytes_max: 256 << 20,
            in_flight_wait: Duration::from_secs(5),
            analytics_flush: Duration::from_secs(300),
            insights: true,
            slow_query_time: Duration::from_secs(1),
            slow_query_ratio: 1000,
        }
    }
}
