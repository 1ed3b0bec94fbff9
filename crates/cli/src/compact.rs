//! `larimar compact`: removes what nothing refers to, and gives the room back to the disk.
//!
//! A data directory that no server uses is opened here. If a server uses it, the server does the work and goes on serving
//! (`POST /compact` of its admin endpoint). A database is opened beside its servers.

use crate::own_server::OwnServer;
use crate::settings::Resolved;
use crate::signals::{EXIT_INTERRUPTED, Runtime};
use crate::{engines, logging};
use anyhow::{Context, bail, ensure};
use larimar_bytes::{Admission, AnyBytes, Removal};
use larimar_engine::blob::bytes::ByteStore as _;
use larimar_engine::blob::{Blobs, Compacted, Reclaimer};
use larimar_engine::{Clock as _, Engine, SystemClock};
use larimar_engine_local::store::StoreError;
use std::sync::Arc;
use std::time::Duration;

/// Compacts the configured store and prints what was freed.
pub(crate) fn run(resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
    logging::start(&resolved.settings)?;
    runtime.block_on(async |mut signals| {
        tokio::select! {
            report = compact(resolved) => print!("{}", report?),
            _ = signals.end() => {
                eprintln!("larimar: interrupted; nothing is lost, and the same command begins again");
                // Not by an error: closing the store would wait for the compaction.
                std::process::exit(EXIT_INTERRUPTED);
            }
        }
        Ok(())
    })
}

async fn compact(resolved: &Resolved) -> anyhow::Result<String> {
    let settings = &resolved.settings;
    if let Some(database) = engines::postgres_settings(resolved)? {
        let engine = Arc::new(engines::open_postgres(settings, &database).await?);
        let bytes = engines::open_bytes(settings, Admission::default(), engines::removal(&engine))?;
        let done = compact_here(&engine, bytes, settings.blob_grace).await;
        engine.close().await;
        return Ok(done?.to_string());
    }
    let folder = &settings.data_dir;
    let shown = folder.display();
    ensure!(folder.is_dir(), "there is no directory {shown}, as the setting data_dir says");
    ensure!(larimar_engine_local::repair::is_data_folder(folder)?, "there is no store in {shown}");
    let engine = match engines::open_local(settings, None) {
        Ok(engine) => Arc::new(engine),
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Locked { .. })) => {
            return ask_server(resolved).await;
        }
        Err(error) => return Err(error),
    };
    // Nothing else reads or writes the store, so nothing has to be kept for others.
    let mut alone = settings.clone();
    alone.blob_grace = Duration::ZERO;
    let has_blobs = settings.blob_store.is_some() || folder.join("blobs").is_dir();
    let bytes = if has_blobs {
        engines::open_bytes(&alone, Admission::new(engine.admission()), Removal::default())?
    } else {
        None
    };
    let done = compact_here(&engine, bytes, Duration::ZERO).await;
    engine.close().context("the engine did not close cleanly; nothing is lost")?;
    Ok(done?.to_string())
}

/// Compacts a store that this process has opened.
async fn compact_here<E: Engine>(
    engine: &Arc<E>,
    bytes: Option<AnyBytes>,
    grace: Duration,
) -> anyhow::Result<Compacted> {
    let Some(bytes) = bytes else {
        return Ok(Compacted { store: engine.compact().await?, ..Compacted::default() });
    };
    let blobs = Blobs::new(Arc::clone(engine), Arc::new(bytes));
    let mut reclaimer = Reclaimer::new(grace);
    while reclaimer.step(&blobs).await? {}
    let done = blobs.compact(SystemClock.now()).await?;
    if blobs.bytes().statistics().discarded > 0 && !grace.is_zero() {
        eprintln!(
            "waiting {grace:?} for requests that still read (blob_grace); what Ctrl-C leaves goes with a server's next sweep"
        );
    }
    while blobs.bytes().statistics().discarded > 0 {
        tokio::time::sleep(POLL).await;
    }
    Ok(done)
}

/// Has the server that uses the data directory do it.
async fn ask_server(resolved: &Resolved) -> anyhow::Result<String> {
    let server = OwnServer::find(resolved).context("a server uses the data directory")?;
    let answer = server.post("/compact").await.context("a server uses the data directory")?;
    match answer.status {
        200 => Ok(answer.text),
        status => bail!("the server at {} answered {status}: {}", server.url(), answer.text.trim_end()),
    }
}

const POLL: Duration = Duration::from_millis(50);
