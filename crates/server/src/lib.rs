//! HTTP in, typed operation across, HTTP out.

mod address;
mod admin;
mod auth;
mod body;
mod cors;
mod error;
mod handler;
mod head;
mod http;
mod ids;
mod listener;
mod metrics;
mod reply;
mod service;
mod settings;
mod strict;
mod table;
mod tls;

pub use admin::AdminService;
pub use handler::{Handler, Peer};
pub use larimar_wire::signature::AccountKey;
pub use listener::{Listener, ListenerSettings, Stopped};
pub use metrics::Metrics;
pub use service::TableService;
pub use settings::{Account, Settings};
pub use tls::{TlsConfig, TlsError, load_tls};
