//! Accepts connections and serves a [`Handler`] on them, from the first byte to a clean end.
//!
//! One loop owns the list of connections; each connection is a task of its own (`connection.rs`) that hyper
//! drives and that knows what it is waiting for (`activity.rs`). At the cap a new connection evicts another one: first
//! those that have not sent a complete request, since slow heads need no credentials and must not lock clients out;
//! then the one that has been idle longest, as clients keep pools of idle connections and closing one of those costs
//! little; last a client that takes nothing of its answer. If all connections are at work, the new one waits, and
//! those behind it wait in the kernel's queue.

mod activity;
mod connection;

use crate::handler::{Handler, Peer};
use crate::metrics::Metrics;
use activity::{Activity, Eviction};
use larimar_model::limits;
use rustls::ServerConfig;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{self, JoinSet};
use tokio::time;
use tokio_rustls::TlsAcceptor;

/// How a listener treats its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Connections that may be open at a time.
    pub connections_max: usize,
    /// Bytes that the head of a request may take; more is answered with 400, and with 431 beyond twice as many.
    pub header_bytes_max: usize,
    /// How long a client may take over the head of a request, and over a TLS handshake. The time of a body is
    /// for the handler to bound, which can answer in the terms of its protocol.
    pub header_timeout: Duration,
    /// How long a connection may be idle between requests.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of an answer at a time, and how long in sum before `client_rate_min` counts.
    pub answer_timeout: Duration,
    /// Bytes per second of an answer that a client has to take on average.
    pub client_rate_min: u64,
    /// How long requests may go on after the signal to stop.
    pub shutdown_grace: Duration,
}

/// Serves a handler on a socket.
#[derive(Debug)]
pub struct Listener<H> {
    handler: Arc<H>,
    metrics: Arc<Metrics>,
    settings: ListenerSettings,
    tls: Option<Arc<ServerConfig>>,
}

/// How a listener ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that were still busy when the grace period was over, and were cut.
    pub connections_cut: usize,
}

impl<H: Handler> Listener<H> {
    /// A listener for plain connections.
    pub fn new(handler: Arc<H>, metrics: Arc<Metrics>, settings: ListenerSettings) -> Self {
        Self { handler, metrics, settings, tls: None }
    }

    /// The same for encrypted connections.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<ServerConfig>>) -> Self {
        Self { tls, ..self }
    }

    /// Accepts and serves connections until `stop` is ready; then accepts no more, closes idle connections at
    /// once and waits for the busy ones, within the grace period.
    pub async fn serve(self, socket: TcpListener, stop: impl Future<Output = ()>) -> Stopped {
        let grace = self.settings.shutdown_grace;
        let mut pool = Pool::new(self);
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(ended) = pool.tasks.join_next_with_id() => pool.ended(ended),
                accepted = socket.accept(), if pool.waiting.is_none() => match accepted {
                    Ok((stream, address)) => pool.admit(stream, address),
                    Err(error) => pool.accept_failed(&error).await,
                },
                () = time::sleep(EVICTION_RETRY), if pool.waiting.is_some() => pool.evict(),
            }
        }
        // Closes the socket, so that clients are refused instead of left waiting.
        drop(socket);
        pool.finish(grace).await
    }
}

/// The connections of a listener.
struct Pool<H> {
    listener: Arc<Listener<H>>,
    acceptor: Option<TlsAcceptor>,
    http: hyper::server::conn::http1::Builder,
    tasks: JoinSet<()>,
    connections: HashMap<task::Id, ConnectionHandle>,
    /// A connection accepted at the cap, waiting for another one to end.
    waiting: Option<(TcpStream, SocketAddr)>,
}

/// The listener's end of a connection.
struct ConnectionHandle {
    activity: Arc<Activity>,
    /// Dropped to ask the connection to end after the request it is busy with, if any; a message evicts it.
    close: Option<oneshot::Sender<()>>,
}

impl<H: Handler> Pool<H> {
    fn new(listener: Listener<H>) -> Self {
        Self {
            acceptor: listener.tls.clone().map(TlsAcceptor::from),
            http: connection::http(&listener.settings, H::KEEPS_SPELLING),
            listener: Arc::new(listener),
            tasks: JoinSet::new(),
            connections: HashMap::new(),
            waiting: None,
        }
    }

    fn admit(&mut self, stream: TcpStream, address: SocketAddr) {
        if self.tasks.len() < self.listener.settings.connections_max {
            self.start(stream, address);
        } else {
            self.waiting = Some((stream, address));
            self.evict();
        }
    }

    fn start(&mut self, stream: TcpStream, address: SocketAddr) {
        // Answers are written whole; waiting for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "the client left before it was served");
            return;
        }
        limit_unsent(&stream);
        let activity = Arc::new(Activity::new());
        let (close, closed) = oneshot::channel();
        let connection = connection::Connection {
            listener: Arc::clone(&self.listener),
            peer: Peer::new(address, self.acceptor.is_some()),
            activity: Arc::clone(&activity),
        };
        let task = self.tasks.spawn(connection.run(stream, self.acceptor.clone(), self.http.clone(), closed));
        self.connections.insert(task.id(), ConnectionHandle { activity, close: Some(close) });
    }

    fn ended(&mut self, ended: Result<(task::Id, ()), task::JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a connection ended in a defect of the server");
                error.id()
            }
        };
        self.connections.remove(&id);
        if let Some((stream, address)) = self.waiting.take() {
            self.start(stream, address);
        }
    }

    /// Evicts the connection that is the best candidate. It ends by itself a moment later. Of slow heads some are evicted
    /// at a time: each new connection needs a look at all others, which a flood of them must not pay for.
    fn evict(&mut self) {
        let open = self.connections.iter().filter(|(_, handle)| handle.close.is_some());
        let candidates =
            open.filter_map(|(id, handle)| handle.activity.eviction().map(|(kind, since)| (kind, since, *id)));
        let mut candidates: Vec<_> = candidates.collect();
        let Some(&best) = candidates.iter().min_by_key(|(kind, since, _)| (*kind, *since)) else { return };
        if best.0 == Eviction::SlowHead {
            candidates.retain(|(kind, ..)| *kind == Eviction::SlowHead);
            candidates.sort_unstable_by_key(|(_, since, _)| *since);
            candidates.truncate(1 + self.listener.settings.connections_max / SLOW_HEADS_SHARE);
        } else {
            candidates = vec![best];
        }
        for (.., id) in candidates {
            if let Some(close) = self.connections.get_mut(&id).and_then(|handle| handle.close.take()) {
                // One that has just ended by itself makes room as well.
                let _ = close.send(());
            }
        }
    }

    /// A failed accept is either the end of a client that left early, or a lack of resources, which is best met
    /// by freeing some and waiting: a loop that tries again at once would burn a core.
    async fn accept_failed(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
            tracing::debug!(%error, "a client left before it was accepted");
            return;
        }
        tracing::warn!(%error, connections = self.tasks.len(), "cannot accept a connection; trying again soon");
        self.evict();
        time::sleep(ACCEPT_PAUSE).await;
    }

    async fn finish(mut self, grace: Duration) -> Stopped {
        self.waiting = None;
        self.connections.clear();
        let all_ended = async { while self.tasks.join_next().await.is_some() {} };
        if time::timeout(grace, all_ended).await.is_ok() {
            return Stopped { connections_cut: 0 };
        }
        let connections_cut = self.tasks.len();
        tracing::warn!(connections_cut, "requests were still running at the end of the grace period");
        self.tasks.shutdown().await;
        Stopped { connections_cut }
    }
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            header_bytes_max: limits::HEAD_BYTES_MAX,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            answer_timeout: Duration::from_secs(60),
            client_rate_min: 1024,
            shutdown_grace: Duration::from_secs(30),
        }
    }
}

/// Keeps the kernel from taking megabytes that a slow client has not asked for yet. It says sooner that a client takes
/// bytes, so a slow client can be distinguished from one that reads nothing. Bytes in transit are not limited by it.
fn limit_unsent(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the kernel does not limit unsent bytes");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// Bytes of an answer that the kernel takes before they can be sent. The kernel reports progress when half of them are
/// sent: with the default limits that happens in time for every client above the lowest rate.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 64 << 10;

/// One slow head and this part of all places are evicted at a time.
const SLOW_HEADS_SHARE: usize = 100;

/// How long to leave the socket alone after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often to look for a connection to evict while a new one waits.
const EVICTION_RETRY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
