//! Counts the requests of a service, in front of it.

use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_server::{Handler, Peer, ResponseBody};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// How many requests each service has received since it started.
///
/// A request counts when it arrives, regardless of the answer: refused ones and each attempt of a client that tries
/// again count too. A transaction is one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requests {
    /// Requests to the Table service.
    pub table: u64,
    /// Requests to the Queue service.
    pub queue: u64,
    /// Requests to the Blob service.
    pub blob: u64,
}

impl Requests {
    /// The requests to all services.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.table + self.queue + self.blob
    }
}

/// What the services have counted so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) table: Arc<AtomicU64>,
    pub(crate) queue: Arc<AtomicU64>,
    pub(crate) blob: Arc<AtomicU64>,
}

impl Counters {
    pub(crate) fn requests(&self) -> Requests {
        let [table, queue, blob] = [&self.table, &self.queue, &self.blob].map(|count| count.load(SeqCst));
        Requests { table, queue, blob }
    }
}

/// A service whose requests are counted.
pub(crate) struct Counting<H> {
    service: H,
    count: Arc<AtomicU64>,
}

impl<H> Counting<H> {
    pub(crate) fn new(service: H, count: &Arc<AtomicU64>) -> Self {
        Self { service, count: Arc::clone(count) }
    }
}

impl<H: Handler> Handler for Counting<H> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        self.count.fetch_add(1, SeqCst);
        self.service.handle(request, peer).await
    }
}
