//! A server in the caller's runtime: three services over one engine in memory, from start to stop.
//!
//! `cli/src/serve.rs` puts the same services together for a process of its own.

use crate::builder::Builder;
use crate::counting::{Counters, Counting, Requests};
use crate::error::StartError;
use larimar_engine::blob::bytes::MemoryBytes;
use larimar_engine::blob::{Blobs, Reclaimer};
use larimar_engine::{MemoryEngine, SystemClock};
use larimar_server::{
    AnalyticsWriter, BlobService, Handler, Listener, ListenerSettings, Metrics, QueueService, Settings, Storage,
    TableService,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A running server with tables, queues and blobs of its own.
///
/// It listens on free ports of the loopback address, keeps everything in memory and runs in the Tokio runtime that
/// started it. Dropped, it ends at once: its tasks are aborted, its sockets closed and its data forgotten as soon as
/// the runtime gets to it. [`Larimar::stop`] waits for that and lets requests finish first.
///
/// # Examples
/// ```
/// use larimar_embedded::Larimar;
///
/// # #[tokio::main] async fn main() -> Result<(), larimar_embedded::StartError> {
/// let server = Larimar::ephemeral().await?;
/// assert!(server.table_endpoint().starts_with("http://127.0.0.1:"));
/// assert!(server.connection_string().contains(&server.table_endpoint()));
/// server.stop().await;
/// # Ok(()) }
/// ```
pub struct Larimar {
    account: String,
    key: String,
    table: SocketAddr,
    queue: SocketAddr,
    blob: SocketAddr,
    counters: Counters,
    /// Dropped to ask the tasks to end.
    stop: watch::Sender<()>,
    /// Aborts the tasks when it is dropped.
    tasks: JoinSet<()>,
}

impl Larimar {
    /// Starts a server with the development account on free ports.
    ///
    /// # Errors
    /// No free port on the loopback address.
    ///
    /// # Panics
    /// Outside of a Tokio runtime, or in one without input, output and time.
    pub async fn ephemeral() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Settings to start a server with.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A connection string for any Azure SDK: account, key and the endpoints of all services.
    #[must_use]
    pub fn connection_string(&self) -> String {
        format!(
            "DefaultEndpointsProtocol=http;AccountName={};AccountKey={};\
             BlobEndpoint={};QueueEndpoint={};TableEndpoint={};",
            self.account,
            self.key,
            self.blob_endpoint(),
            self.queue_endpoint(),
            self.table_endpoint()
        )
    }

    /// The address of the Table service, such as `http://127.0.0.1:40001/devstoreaccount1`.
    #[must_use]
    pub fn table_endpoint(&self) -> String {
        self.endpoint(self.table)
    }

    /// The address of the Queue service, such as `http://127.0.0.1:40002/devstoreaccount1`.
    #[must_use]
    pub fn queue_endpoint(&self) -> String {
        self.endpoint(self.queue)
    }

    /// The address of the Blob service, such as `http://127.0.0.1:40003/devstoreaccount1`.
    #[must_use]
    pub fn blob_endpoint(&self) -> String {
        self.endpoint(self.blob)
    }

    /// The name of the account.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The key of the account, in Base64.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How many requests the services have received so far.
    ///
    /// A client that has its answer finds its request counted, so tests can tell what an operation costs: take the
    /// figure before and after.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.counters.requests()
    }

    /// Stops the server and waits until it has: nothing listens any more, and all its memory is freed.
    ///
    /// Requests that are being answered may finish, for up to five seconds.
    pub async fn stop(self) {
        let Self { stop, mut tasks, .. } = self;
        drop(stop);
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                // They are not aborted while they are waited for.
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    /// Boxed, so that the server is compiled once, with this crate: an `async fn` is compiled again in every program that
    /// awaits it.
    pub(crate) fn start(builder: Builder) -> Pin<Box<dyn Future<Output = Result<Self, StartError>> + Send>> {
        Box::pin(Self::start_services(builder))
    }

    async fn start_services(builder: Builder) -> Result<Self, StartError> {
        let settings = Settings {
            accounts: vec![builder.served_account()?],
            strict: builder.strict,
            // They are read at an admin endpoint, which this server has not.
            insights: false,
            ..Settings::default()
        };
        let sockets = [bind().await?, bind().await?, bind().await?];
        let [table, queue, blob] = [address(&sockets[0])?, address(&sockets[1])?, address(&sockets[2])?];
        let [table_socket, queue_socket, blob_socket] = sockets;

        let metrics = Arc::new(Metrics::default());
        let engine = Arc::new(MemoryEngine::new());
        let blobs = Arc::new(Blobs::new(Arc::clone(&engine), Arc::new(MemoryBytes::new(GRACE))));
        let reclaimed = Arc::clone(&blobs);
        let storage = Storage::new(engine, Arc::new(SystemClock), settings, Arc::clone(&metrics));
        let mut analytics = AnalyticsWriter::new(Arc::clone(&storage), Some(Arc::clone(&blobs)));
        analytics.load().await;

        let counters = Counters::default();
        let (stop, stopped) = watch::channel(());
        let mut start = Start { metrics, stopped, tasks: JoinSet::new() };
        start.service(Counting::new(TableService::new(Arc::clone(&storage)), &counters.table), table_socket);
        start.service(Counting::new(QueueService::new(Arc::clone(&storage)), &counters.queue), queue_socket);
        start.service(Counting::new(BlobService::new(storage, blobs), &counters.blob), blob_socket);
        start.tasks.spawn(analytics.run(ended(start.stopped.clone())));
        start.tasks.spawn(reclaim(reclaimed, ended(start.stopped.clone())));
        let tasks = start.tasks;
        Ok(Self { account: builder.account, key: builder.key, table, queue, blob, counters, stop, tasks })
    }

    fn endpoint(&self, address: SocketAddr) -> String {
        format!("http://{address}/{}", self.account)
    }
}

/// Keys are secrets, also in a log line.
impl std::fmt::Debug for Larimar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { account, table, queue, blob, .. } = self;
        let mut text = f.debug_struct("Larimar");
        text.field("account", account).field("table", table).field("queue", queue).field("blob", blob);
        text.finish_non_exhaustive()
    }
}

/// What starting a service takes besides the service.
struct Start {
    metrics: Arc<Metrics>,
    stopped: watch::Receiver<()>,
    tasks: JoinSet<()>,
}

impl Start {
    fn service(&mut self, service: impl Handler, socket: TcpListener) {
        let settings = ListenerSettings { shutdown_grace: STOP_TIME_MAX, ..ListenerSettings::default() };
        let listener = Listener::new(Arc::new(service), Arc::clone(&self.metrics), settings);
        let stopped = ended(self.stopped.clone());
        self.tasks.spawn(async move {
            // The listener itself logs requests that were cut off.
            let _ = listener.serve(socket, stopped).await;
        });
    }
}

/// Frees the memory of deleted containers, until the server stops.
async fn reclaim(blobs: Arc<Blobs<MemoryEngine, MemoryBytes>>, stopped: impl Future<Output = ()>) {
    let mut reclaimer = Reclaimer::new(GRACE);
    let mut stopped = std::pin::pin!(stopped);
    loop {
        // The engine in memory has no faults.
        let is_busy = reclaimer.step(&blobs).await.unwrap_or(false);
        let pause = if is_busy { Duration::ZERO } else { RECLAIM_EVERY };
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Ready when all senders are gone.
async fn ended(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

async fn bind() -> Result<TcpListener, StartError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(StartError::Socket)
}

fn address(socket: &TcpListener) -> Result<SocketAddr, StartError> {
    socket.local_addr().map_err(StartError::Socket)
}

/// How long requests may go on after a stop.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);
/// How often deleted containers are looked for.
const RECLAIM_EVERY: Duration = Duration::from_secs(5);

/// How long the bytes of a blob stay after the blob went, for those who are reading it.
const GRACE: Duration = Duration::from_secs(60);
