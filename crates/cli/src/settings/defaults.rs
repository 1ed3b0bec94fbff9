//! The defaults of the settings.

use super::account::Account;
use super::engine::EngineChoice;
use super::value::{Durability, LogFormat};
use super::{ArchiveChoice, LogChoice, Observing, Settings};
use larimar_engine_postgres::Dialect;
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
            console: true,
            allow_reset: false,
            engine: EngineChoice::Local,
            data_dir: PathBuf::from("larimar-data"),
            durability: Durability::Sync,
            memory: None,
            reserve: 64 << 20,
            seed: None,
            archive: ArchiveChoice::default(),
            backup_key_file: None,
            backup_keep_time: None,
            backup_keep_count: None,
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
            observing: Observing { analytics_flush: Duration::from_secs(300), insights: true },
            logs: LogChoice::default(),
        }
    }
}

impl Default for LogChoice {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Human,
            access: None,
            slow_query_time: Duration::from_secs(1),
            slow_query_ratio: 1000,
        }
    }
}

impl Default for ArchiveChoice {
    fn default() -> Self {
        Self { place: None, spool_bytes_max: 1 << 30, backup_every: Duration::from_secs(86_400) }
    }
}
