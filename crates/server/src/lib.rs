//! HTTP in, typed operation across, HTTP out.

mod acl;
mod address;
mod admin;
mod analytics;
mod auth;
mod body;
mod call;
mod cors;
mod error;
mod handler;
mod head;
mod http;
mod ids;
mod listener;
mod metrics;
mod properties;
mod queue;
mod reply;
mod settings;
mod storage;
mod strict;
mod table;
mod tls;

pub use admin::AdminService;
pub use analytics::AnalyticsWriter;
pub use handler::{Handler, Peer};
pub use larimar_wire::signature::AccountKey;
pub use listener::{Listener, ListenerSettings, Stopped};
pub use metrics::Metrics;
pub use queue::QueueService;
pub use reply::ResponseBody;
pub use settings::{Account, Settings};
pub use storage::Storage;
pub use table::TableService;
pub use tls::{TlsConfig, TlsError, load_tls};
