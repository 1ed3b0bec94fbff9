//! What the listener needs of a service: a function from a request to a response.

use crate::reply::ResponseBody;
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::future::Future;
use std::net::SocketAddr;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The address at the other end.
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// Which way the request took to the service.
    pub entrance: Entrance,
}

/// Which way a request took to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// The service's own port.
    Port,
    /// The origin of the web console (`admin/console/mount.rs`). Nothing is served there without credentials.
    Console {
        /// Whether signatures made with the well-known key prove something.
        counts_well_known_key: bool,
    },
}

impl Peer {
    /// A client at the service's own port.
    #[must_use]
    pub const fn new(address: SocketAddr, is_tls: bool) -> Self {
        Self { address, is_tls, entrance: Entrance::Port }
    }
}

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Whether the spelling of header names matters: names of metadata keep it.
    const KEEPS_SPELLING: bool = true;

    /// Answers one request. Every failure has an answer of its own.
    fn handle(&self, request: Request<Incoming>, peer: Peer) -> impl Future<Output = Response<ResponseBody>> + Send;
}
