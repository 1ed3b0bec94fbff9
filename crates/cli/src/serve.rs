//! The life of a server: bind, open the engine, serve, and on a signal finish in order.
//!
//! Requests in flight end first, then the admin pages, then the engine, so that the operator can watch until
//! the end and nothing that was acknowledged is lost.

use crate::banner::banner;
use crate::settings::value::Durability;
use crate::settings::{Resolved, Settings};
use crate::{logging, table};
use anyhow::Context;
use larimar_engine::Engine;
use larimar_engine_local::LocalEngine;
use larimar_server::{AdminService, Handler, Listener, ListenerSettings, Metrics, TlsConfig, TlsError, load_tls};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Runs the services until a signal ends them.
pub(crate) fn run(resolved: &Resolved) -> anyhow::Result<()> {
    let settings = &resolved.settings;
    logging::start(settings)?;
    raise_file_limit();
    let tls = load_certificate(settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("larimar").build()?;
    runtime.block_on(async {
        let signals = Signals::new()?;
        let sockets = Sockets::bind(settings).await?;
        let engine = Arc::new(open_engine(settings)?);
        let outcome = serve(settings, Arc::clone(&engine), sockets, tls, signals).await;
        engine.close().context("the engine did not close cleanly; nothing that was acknowledged is lost")?;
        tracing::info!("ended");
        outcome
    })
}

/// The sockets of a server, bound before anything is opened: a port in use costs nothing.
struct Sockets {
    table: TcpListener,
    admin: Option<TcpListener>,
}

impl Sockets {
    async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let table = bind(&settings.host, settings.table_port, "host and table_port").await?;
        let admin = match settings.admin {
            true => Some(bind(&settings.admin_host, settings.admin_port, "admin_host and admin_port").await?),
            false => None,
        };
        Ok(Self { table, admin })
    }
}

fn load_certificate(settings: &Settings) -> Result<Option<Arc<TlsConfig>>, TlsError> {
    match (&settings.tls_certificate, &settings.tls_key) {
        (Some(certificate), Some(key)) => load_tls(certificate, key).map(Some),
        _ => Ok(None),
    }
}

async fn bind(host: &str, port: u16, names: &str) -> anyhow::Result<TcpListener> {
    let refused = || format!("cannot listen on {host} port {port}, as the settings {names} say");
    TcpListener::bind((host, port)).await.with_context(refused)
}

fn open_engine(settings: &Settings) -> anyhow::Result<LocalEngine> {
    let engine = larimar_engine_local::Settings {
        folder: settings.data_dir.clone(),
        durability: match settings.durability {
            Durability::Sync => larimar_engine_local::Durability::Sync,
            Durability::Async => larimar_engine_local::Durability::Async,
            Durability::Memory => larimar_engine_local::Durability::Memory,
        },
        memory_bytes: settings.memory,
    };
    LocalEngine::open(&engine)
        .with_context(|| format!("cannot open {}, as the setting data_dir says", settings.data_dir.display()))
}

/// Serves one engine, whichever it is: the type is known here, so no call on it is boxed.
async fn serve<E: Engine>(
    settings: &Settings,
    engine: Arc<E>,
    sockets: Sockets,
    tls: Option<Arc<TlsConfig>>,
    signals: Signals,
) -> anyhow::Result<()> {
    let metrics = Arc::new(Metrics::default());
    let table_address = sockets.table.local_addr()?;
    let admin_address = sockets.admin.as_ref().map(TcpListener::local_addr).transpose()?;

    let service = table::service(settings, Arc::clone(&engine), Arc::clone(&metrics))?;
    let tables = Listener::new(Arc::new(service), Arc::clone(&metrics), listener_settings(settings)).with_tls(tls);
    let tables = Running::start(tables, sockets.table);
    let admin = sockets.admin.map(|socket| {
        let service = Arc::new(AdminService::new(engine, metrics));
        // Counted apart: the pages tell of the clients, not of those who read the pages.
        let counts = Arc::new(Metrics::default());
        Running::start(Listener::new(service, counts, admin_listener_settings(settings)), socket)
    });
    announce(settings, table_address, admin_address);

    signals.wait().await;
    tables.stop().await?;
    if let Some(admin) = admin {
        admin.stop().await?;
    }
    Ok(())
}

/// A listener at work.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start<H: Handler>(listener: Listener<H>, socket: TcpListener) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            // An error means that nobody is left to send; that is a stop too.
            let _ = listener.serve(socket, async { drop(stopped.await) }).await;
        });
        Self { stop, task }
    }

    async fn stop(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.task.await.context("a listener ended in a defect of the server")
    }
}

/// The signals that end a server.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes the signals over; one that comes while the server starts ends it as soon as it has started.
    #[cfg(unix)]
    fn new() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    #[cfg(not(unix))]
    fn new() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the first signal; a second one, while requests finish, ends the process at once.
    async fn wait(mut self) {
        let name = self.next().await;
        tracing::info!(signal = name, "ending: requests in flight finish first");
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!(signal = name, "ending at once");
            std::process::exit(EXIT_IMPATIENT);
        });
    }

    #[cfg(unix)]
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> &'static str {
        // Without signals there is no way to ask for an end, and the process serves until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "interrupt"
    }
}

fn listener_settings(settings: &Settings) -> ListenerSettings {
    ListenerSettings {
        connections_max: settings.connections_max,
        header_bytes_max: usize::try_from(settings.header_bytes_max).unwrap_or(usize::MAX),
        header_timeout: settings.header_timeout,
        idle_timeout: settings.idle_timeout,
        shutdown_grace: settings.shutdown_grace,
    }
}

/// The admin pages are for a few scrapers; they must not compete with clients for connections.
fn admin_listener_settings(settings: &Settings) -> ListenerSettings {
    ListenerSettings { connections_max: ADMIN_CONNECTIONS_MAX, ..listener_settings(settings) }
}

fn announce(settings: &Settings, table: SocketAddr, admin: Option<SocketAddr>) {
    let text = banner(settings, table, admin);
    let mut out = std::io::stdout().lock();
    // A closed standard output is no reason not to serve.
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!(%error, "the banner could not be written");
    }
}

/// Connections and store files need descriptors, and the usual soft limit of 1,024 is far below the hard one.
#[cfg(unix)]
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(FILES_WANTED).min(FILES_WANTED);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
}

#[cfg(not(unix))]
fn raise_file_limit() {}

/// Above any sensible number of connections.
#[cfg(unix)]
const FILES_WANTED: u64 = 1 << 20;

const ADMIN_CONNECTIONS_MAX: usize = 64;

/// What shells report for a process that an interrupt ended.
const EXIT_IMPATIENT: i32 = 130;
