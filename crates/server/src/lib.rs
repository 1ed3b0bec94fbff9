//! HTTP in, typed operation across, HTTP out.

mod access_log;
mod acl;
mod address;
mod admin;
mod analytics;
mod auth;
mod blob;
mod body;
mod call;
mod cors;
mod error;
mod fault_log;
mod handler;
mod head;
mod http;
mod ids;
mod in_flight;
mod insights;
mod listener;
mod live_requests;
mod metrics;
mod part;
mod properties;
mod queue;
mod reply;
mod settings;
mod shared_port;
mod spelling;
mod storage;
mod strict;
mod table;
mod tls;
mod yielding;

pub use access_log::{AccessLog, AccessLogError};
pub use admin::{
    AdminService, AdminSettings, AdminToken, AdminTokenError, Backups, Compact, Console, NotStarted, Refill,
    RestoreRequest, Restores, Starting,
};
pub use analytics::AnalyticsWriter;
pub use blob::BlobService;
pub use handler::{Entrance, Handler, Peer};
pub use insights::InsightsWriter;
pub use larimar_wire::signature::{AccountKey, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
pub use listener::{Listener, ListenerSettings, Stopped};
pub use metrics::Metrics;
pub use queue::QueueService;
pub use reply::ResponseBody;
pub use settings::{Account, Settings};
pub use shared_port::SharedPort;
pub use storage::Storage;
pub use table::TableService;
pub use tls::{TlsCertificate, TlsConfig, TlsError};
