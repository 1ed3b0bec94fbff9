//! HTTP in, typed operation across, HTTP out.

mod admin;
mod handler;
mod listener;
mod metrics;
mod tls;

pub use admin::AdminService;
pub use handler::{Handler, Peer};
pub use listener::{Listener, ListenerSettings, Stopped};
pub use metrics::Metrics;
pub use tls::{TlsError, load_tls};
