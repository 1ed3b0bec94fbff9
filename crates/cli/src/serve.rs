//! The life of a server: bind, open the engine, serve, and on a signal finish in order. `serve/background.rs` has the
//! tasks beside the services, `serve/access_log.rs` the file of the access log.
//!
//! Requests in flight end first, then the admin pages, then the engine, so that the operator can watch until
//! the end and nothing that was acknowledged is lost.

mod access_log;
mod background;

use crate::admin_token::ServerToken;
use crate::backup::{self, ServedBackups, ServedRestores};
use crate::banner::{Addresses, banner};
use crate::command_line::CommandLine;
use crate::logging::LogLevel;
use crate::reload::Reloader;
use crate::seed::{self, Seed, Seeder};
use crate::settings::engine::EngineChoice;
use crate::settings::value::Durability;
use crate::settings::{Resolved, Settings, SettingsError};
use crate::signals::{Runtime, Signals};
use crate::{admin_token, data_dir, engines, file_limit, logging, storage};
use anyhow::Context;
pub(crate) use background::Running;
use background::{start_blob_reclaimer, start_container_reclaimer, start_observers, start_restore_sweeper};
use larimar_backup::CommitMailbox;
use larimar_bytes::{Admission, AnyBytes, Removal};
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Blobs, Compacted};
use larimar_engine::{BackupSource, Clock, Engine, SystemClock};
use larimar_server::{
    AccessLog, AdminService, AdminSettings, Backups, BlobService, Compact, Console, Handler, Listener,
    ListenerSettings, Metrics, QueueService, Restores, SharedPort, Storage, TableService, TlsCertificate, TlsConfig,
    TlsError,
};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// Runs the services until a signal ends them.
pub(crate) fn run(line: &CommandLine, resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
    resolved.check_serves()?;
    let mut settings = resolved.settings.clone();
    let level = logging::start(&settings)?;
    for variable in &resolved.unknown_variables {
        tracing::warn!(variable, "there is no such setting; the variable is ignored");
    }
    settings.connections_max = file_limit::fit_connections(settings.connections_max, file_limit::raise());
    let settings = &settings;
    let certificate = load_certificate(settings)?;
    let database = engines::postgres_settings(resolved)?;
    let seed = Seed::find(resolved)?;
    let backup_key = backup::key(resolved)?;
    runtime.block_on(async |mut signals| {
        let sockets = Sockets::bind(settings).await?;
        check_keys(resolved, &sockets.addresses()?)?;
        let metrics = Arc::new(Metrics::default());
        let access_log = access_log::start(resolved, &metrics)?;
        let parts = Parts { line, resolved, settings, level, certificate, sockets, seed, metrics, access_log };
        let outcome = match database {
            None => {
                if settings.durability != Durability::Memory {
                    data_dir::prepare(resolved)?;
                }
                let mailbox = settings.archive.place.is_some().then(|| Arc::new(CommitMailbox::default()));
                let engine = Arc::new(engines::open_local(settings, mailbox.clone())?);
                let bytes = engines::open_bytes(settings, Admission::new(engine.admission()), Removal::default())?;
                if matches!(bytes, Some(AnyBytes::Files(_))) {
                    engine.record_blobs().context("the inventory of the data directory cannot be written")?;
                }
                let bytes = bytes.map(Arc::new);
                let backups = Arc::new(ServedBackups::new(Arc::clone(&engine), bytes.clone(), settings, backup_key));
                backups.start_archive(resolved, &engine, bytes.clone(), mailbox).await?;
                let outcome = serve(parts, Arc::clone(&engine), bytes, Arc::clone(&backups), signals).await;
                backups.end(&engine).await?;
                outcome
            }
            Some(database) => {
                // A database that cannot be reached may take long to say so.
                let engine = tokio::select! {
                    opened = engines::open_postgres(settings, &database) => Arc::new(opened?),
                    name = signals.end() => return Err(EndedEarly(name).into()),
                };
                let bytes =
                    engines::open_bytes(settings, Admission::default(), engines::removal(&engine))?.map(Arc::new);
                let backups = Arc::new(ServedBackups::new(Arc::clone(&engine), bytes.clone(), settings, backup_key));
                let outcome = serve(parts, Arc::clone(&engine), bytes, Arc::clone(&backups), signals).await;
                backups.cancel().await;
                engine.close().await;
                outcome
            }
        };
        tracing::info!("shut down");
        outcome
    })
}

/// A signal came before the server served.
#[derive(Debug, thiserror::Error)]
#[error("stopped by {0} before the server served")]
pub(crate) struct EndedEarly(&'static str);

/// What a server is made of besides its engine.
struct Parts<'a> {
    line: &'a CommandLine,
    resolved: &'a Resolved,
    settings: &'a Settings,
    level: LogLevel,
    certificate: Option<Arc<TlsCertificate>>,
    sockets: Sockets,
    seed: Option<Seed>,
    metrics: Arc<Metrics>,
    access_log: Option<Arc<AccessLog>>,
}

/// The sockets of a server, bound before anything is opened: a port in use costs nothing.
struct Sockets {
    services: Vec<ServiceSocket>,
    admin: Option<TcpListener>,
}

/// A socket, and which services it is for.
struct ServiceSocket {
    socket: TcpListener,
    words: Vec<&'static str>,
}

impl Sockets {
    async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let Settings { host, admin_host, .. } = settings;
        let wanted = [
            (TABLE, settings.table, settings.table_port, "host and table_port"),
            (QUEUE, settings.queue, settings.queue_port, "host and queue_port"),
            (BLOB, settings.serves_blobs(), settings.blob_port, "host and blob_port"),
        ];
        let mut services: Vec<(u16, ServiceSocket)> = Vec::new();
        for (word, _, port, names) in wanted.into_iter().filter(|(_, is_on, ..)| *is_on) {
            match services.iter_mut().find(|(other, _)| *other == port && port != 0) {
                Some((_, shared)) => shared.words.push(word),
                None => {
                    services.push((port, ServiceSocket { socket: bind(host, port, names).await?, words: vec![word] }))
                }
            }
        }
        let services = services.into_iter().map(|(_, socket)| socket).collect();
        let admin = match settings.admin {
            true => Some(bind(admin_host, settings.admin_port, "admin_host and admin_port").await?),
            false => None,
        };
        Ok(Self { services, admin })
    }

    fn addresses(&self) -> anyhow::Result<Addresses> {
        let mut addresses = Addresses::default();
        for ServiceSocket { socket, words } in &self.services {
            for (word, place) in
                [(TABLE, &mut addresses.table), (QUEUE, &mut addresses.queue), (BLOB, &mut addresses.blob)]
            {
                if words.contains(&word) {
                    *place = Some(socket.local_addr()?);
                }
            }
        }
        addresses.admin = self.admin.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(addresses)
    }
}

/// Refuses to serve the public key where other machines can reach it.
pub(crate) fn check_keys(resolved: &Resolved, addresses: &Addresses) -> Result<(), SettingsError> {
    let settings = &resolved.settings;
    if addresses.are_loopback() {
        return Ok(());
    }
    let well_known = settings.accounts.iter().find(|account| account.has_well_known_key());
    if let Some(account) = well_known.filter(|_| !settings.allow_well_known_key) {
        let (host, name) = (&settings.host, &account.name);
        return Err(resolved.refused_because(
            "host",
            format!(
                "other machines can reach {host}, and {name} has the well-known key, which is public; give accounts \
                 with keys of your own (LARIMAR_ACCOUNTS=name:key, or [[accounts]] in the configuration file), or for \
                 tests --allow-well-known-key"
            ),
        ));
    }
    for account in settings.accounts.iter().filter(|account| account.has_short_key()) {
        tracing::warn!(account = account.name, "a key of this account is shorter than 16 bytes and can be guessed");
    }
    Ok(())
}

fn load_certificate(settings: &Settings) -> Result<Option<Arc<TlsCertificate>>, TlsError> {
    match (&settings.tls_certificate, &settings.tls_key) {
        (Some(certificate), Some(key)) => TlsCertificate::load(certificate, key).map(Some),
        _ => Ok(None),
    }
}

async fn bind(host: &str, port: u16, names: &str) -> anyhow::Result<TcpListener> {
    let refused = || format!("cannot listen on {host} port {port}, as the settings {names} say");
    TcpListener::bind((host, port)).await.with_context(refused)
}

/// Serves one engine, whichever it is: the type is known here, so no call on it is boxed.
async fn serve<E: BackupSource>(
    parts: Parts<'_>,
    engine: Arc<E>,
    bytes: Option<Arc<AnyBytes>>,
    backups: Arc<ServedBackups<E>>,
    mut signals: Signals,
) -> anyhow::Result<()> {
    let Parts { line, resolved, settings, level, certificate, sockets, seed, metrics, access_log } = parts;
    let tls = certificate.as_ref().map(TlsCertificate::config);
    let addresses = sockets.addresses()?;
    let token = addresses.admin.map(|admin| admin_token::prepare(resolved, admin.port())).transpose()?;
    let storage = storage::storage(settings, Arc::clone(&engine), Arc::clone(&metrics), access_log.clone())?;
    let (backup_key, removal) = (backup::key(resolved)?, backups.removal_lock());
    let restores = ServedRestores::new(Arc::clone(&engine), bytes.clone(), Arc::clone(&storage), backup_key, removal);
    let restores = Arc::new(restores);
    let sweeper = start_restore_sweeper(Arc::clone(&engine));
    let blobs = bytes.map(|bytes| Blobs::new(Arc::clone(&engine), bytes));
    let blobs = blobs.map(|blobs| Arc::new(blobs.with_rehydration_time(settings.rehydration_time)));
    let observers = start_observers(&storage, blobs.clone()).await;
    let blob_reclaimer = blobs.clone().map(|blobs| start_blob_reclaimer(blobs, settings.blob_grace));
    let reclaimer = blobs.clone().map(|blobs| start_container_reclaimer(blobs, settings.blob_grace));
    let (line, started, shared, log) = (line.clone(), resolved.clone(), Arc::clone(&storage), access_log.clone());
    let reloader = Reloader { line, level, certificate, storage: shared, addresses, started, access_log: log };
    let start = Start { settings, metrics: &metrics, tls: &tls };
    let seeder = seed.map(|seed| Arc::new(Seeder::new(Arc::clone(&engine), seed, settings)));
    let is_filling = Arc::new(AtomicBool::new(true));
    let admin = sockets.admin.zip(token.as_ref()).zip(addresses.admin).map(|((socket, token), bound)| {
        let service = AdminService::new(Arc::clone(&storage), admin_settings(settings, bound, token));
        let service = service.with_restores(Arc::clone(&restores) as Arc<dyn Restores>);
        let service = service.with_compact(compaction(&engine, blobs.as_ref())).with_filling(Arc::clone(&is_filling));
        let service = service.with_backups(Some(backups as Arc<dyn Backups>));
        let service = service.with_console(console(settings, &storage, blobs.as_ref()));
        start.admin(with_refill(service, seeder.as_ref()), socket)
    });
    // Connections wait in the meantime: the sockets are bound.
    tokio::select! {
        filled = fill(&engine, seeder.as_deref()) => filled?,
        name = signals.end() => return Err(EndedEarly(name).into()),
    }
    is_filling.store(false, Ordering::Relaxed);
    let of_socket = |ServiceSocket { socket, words }| start.services(&storage, blobs.as_ref(), &words, socket);
    let services: Vec<_> = sockets.services.into_iter().map(of_socket).collect();
    announce(resolved, settings, &addresses, token.as_ref().map_or("", |token| &token.shown));

    signals.wait(|| reloader.reload()).await;
    // All at once, so that the time they have to end is the same for all.
    let services: Vec<_> = services.into_iter().map(Running::ending).collect();
    for service in services {
        service.await.context("a listener ended in a defect of the server")?;
    }
    restores.cancel().await;
    end_reclaiming([blob_reclaimer, reclaimer, Some(sweeper)]).await?;
    access_log::end(access_log).await;
    // What the last requests were is known now.
    end_observing(observers).await?;
    storage.end_live_requests();
    if let Some(admin) = admin {
        admin.ending().await.context("the admin listener ended in a defect of the server")?;
    }
    Ok(())
}

async fn end_observing(tasks: [Running; 2]) -> anyhow::Result<()> {
    for task in tasks {
        task.ending().await.context("storage analytics or insights ended in a defect of the server")?;
    }
    Ok(())
}

async fn end_reclaiming(tasks: [Option<Running>; 3]) -> anyhow::Result<()> {
    for task in tasks.into_iter().flatten() {
        task.ending().await.context("a task that reclaims room ended in a defect of the server")?;
    }
    Ok(())
}

/// Fills the store if a seed says so, and refuses one that is only partly filled.
async fn fill<E: Engine>(engine: &Arc<E>, seeder: Option<&Seeder<E>>) -> anyhow::Result<()> {
    match seeder {
        Some(seeder) => seeder.fill_if_empty().await,
        None => seed::check_filled(&**engine).await,
    }
}

/// Lets a reset fill accounts again. A caller that goes away does not end the filling.
fn with_refill<E: Engine>(service: AdminService<E>, seeder: Option<&Arc<Seeder<E>>>) -> AdminService<E> {
    let Some(seeder) = seeder.cloned() else { return service };
    service.with_refill(Box::new(move |accounts| {
        let seeder = Arc::clone(&seeder);
        let filling = tokio::spawn(async move { seeder.fill_again(&accounts).await });
        Box::pin(async move {
            let filled = filling.await.unwrap_or_else(|panic| Err(panic.into()));
            filled.map_err(|error| format!("{error:#}"))
        })
    }))
}

/// What starting a service takes besides the service.
struct Start<'a> {
    settings: &'a Settings,
    metrics: &'a Arc<Metrics>,
    tls: &'a Option<Arc<TlsConfig>>,
}

impl Start<'_> {
    /// The services of a socket. Where they are several, the host name says which one a request is for.
    fn services<E: Engine, B: ByteStore>(
        &self,
        storage: &Arc<Storage<E>>,
        blobs: Option<&Arc<Blobs<E, B>>>,
        words: &[&str],
        socket: TcpListener,
    ) -> Running {
        let table = words.contains(&TABLE).then(|| TableService::new(Arc::clone(storage)));
        let queue = words.contains(&QUEUE).then(|| QueueService::new(Arc::clone(storage)));
        let blobs = blobs.filter(|_| words.contains(&BLOB));
        let blob = blobs.map(|blobs| BlobService::new(Arc::clone(storage), Arc::clone(blobs)));
        match (table, queue, blob) {
            (Some(table), None, None) => self.service(table, socket),
            (None, Some(queue), None) => self.service(queue, socket),
            (None, None, Some(blob)) => self.service(blob, socket),
            (table, queue, blob) => self.service(SharedPort::new(table, queue, blob, Arc::clone(storage)), socket),
        }
    }

    fn admin<E: Engine>(&self, service: AdminService<E>, socket: TcpListener) -> Running {
        // Counted apart: the metrics are about clients, not about scrapers of metrics.
        let counts = Arc::new(Metrics::default());
        let listener = Listener::new(Arc::new(service), counts, admin_listener_settings(self.settings));
        Running::start(listener.with_tls(self.tls.clone()), socket)
    }

    fn service(&self, service: impl Handler, socket: TcpListener) -> Running {
        let listener = Listener::new(Arc::new(service), Arc::clone(self.metrics), listener_settings(self.settings));
        Running::start(listener.with_tls(self.tls.clone()), socket)
    }
}

/// The web console, with the services that this server has.
fn console<E: Engine, B: ByteStore>(
    settings: &Settings,
    storage: &Arc<Storage<E>>,
    blobs: Option<&Arc<Blobs<E, B>>>,
) -> Option<Console> {
    let engine = match (&settings.engine, settings.durability) {
        (EngineChoice::Postgres(_), _) => "postgresql",
        (EngineChoice::Local, Durability::Memory) => "memory",
        (EngineChoice::Local, Durability::Sync | Durability::Async) => "embedded",
    };
    let table = settings.table.then(|| TableService::new(Arc::clone(storage)));
    let queue = settings.queue.then(|| QueueService::new(Arc::clone(storage)));
    let blobs = blobs.filter(|_| settings.serves_blobs());
    let blob = blobs.map(|blobs| BlobService::new(Arc::clone(storage), Arc::clone(blobs)));
    settings.console.then(|| Console::new(engine).with_services(table, queue, blob))
}

/// What the admin endpoint does to compact the store.
fn compaction<E: Engine, B: ByteStore>(engine: &Arc<E>, blobs: Option<&Arc<Blobs<E, B>>>) -> Box<Compact> {
    let (engine, blobs) = (Arc::clone(engine), blobs.cloned());
    Box::new(move || {
        let (engine, blobs) = (Arc::clone(&engine), blobs.clone());
        Box::pin(async move {
            match blobs {
                Some(blobs) => blobs.compact(SystemClock.now()).await,
                None => Ok(Compacted { store: engine.compact().await?, ..Compacted::default() }),
            }
        })
    })
}

fn listener_settings(settings: &Settings) -> ListenerSettings {
    ListenerSettings {
        connections_max: settings.connections_max,
        header_bytes_max: usize::try_from(settings.header_bytes_max).unwrap_or(usize::MAX),
        header_timeout: settings.header_timeout,
        idle_timeout: settings.idle_timeout,
        answer_timeout: settings.answer_timeout,
        client_rate_min: settings.client_rate_min,
        shutdown_grace: settings.shutdown_grace,
    }
}

/// The admin pages are for a few scrapers; they must not compete with clients for connections.
fn admin_listener_settings(settings: &Settings) -> ListenerSettings {
    let of_services = listener_settings(settings);
    match settings.console {
        // Users of the console read blobs and pages of entities as clients do.
        true => ListenerSettings { connections_max: CONSOLE_CONNECTIONS_MAX, ..of_services },
        false => ListenerSettings {
            connections_max: ADMIN_CONNECTIONS_MAX,
            answer_timeout: of_services.answer_timeout.min(ADMIN_ANSWER_TIMEOUT),
            ..of_services
        },
    }
}

/// Who may send admin requests.
fn admin_settings(settings: &Settings, bound: SocketAddr, token: &ServerToken) -> AdminSettings {
    let names = settings.admin_names.iter().chain([&settings.admin_host]).cloned().collect();
    AdminSettings {
        token: token.token.clone(),
        bound,
        names,
        allow_reset: settings.allows_reset(),
        allow_well_known_key: settings.allow_well_known_key,
    }
}

fn announce(resolved: &Resolved, settings: &Settings, addresses: &Addresses, admin_token: &str) {
    let text = banner(settings, addresses, &resolved.source("accounts"), admin_token);
    let mut out = std::io::stdout().lock();
    // The server also serves with a closed standard output.
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!(%error, "the banner could not be written");
    }
}

const TABLE: &str = "table";
const QUEUE: &str = "queue";
const BLOB: &str = "blob";
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// A browser opens up to six.
const CONSOLE_CONNECTIONS_MAX: usize = 256;
/// The pages are short and their readers near.
const ADMIN_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
