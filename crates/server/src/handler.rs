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
}

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Whether the spelling of header names matters: names of metadata keep it.
    const KEEPS_SPELLING: bool = true;

    /// Answers one request. Every failure has an answer of its own.
    fn handle(&self, request: Request<Incoming>, peer: Peer) -> impl Future<Output = Response<ResponseBody>> + Send;
}
