//! The two stores of a migration: an engine each, and where it keeps the bytes of blobs.

use super::{BlobStore, End, Migration, Place, migrate};
use crate::engines;
use crate::settings::Settings;
use crate::settings::engine::DatabaseUrl;
use anyhow::{Context, bail};
use larimar_bytes::{Admission, AnyBytes, FileBytes, FileSettings, Removal};
use larimar_engine::migration::{MigrationError, PartReport, Side};
use larimar_engine_local::LocalEngine;
use larimar_engine_local::store::StoreError;
use larimar_engine_postgres::{Password, PostgresEngine};
use std::path::Path;

/// A store that was opened.
pub(super) struct Store {
    engine: OpenEngine,
    bytes: Option<AnyBytes>,
}

enum OpenEngine {
    Local(LocalEngine),
    Postgres(PostgresEngine),
}

impl Store {
    /// Opens a store; `creates` if its place for the bytes of blobs may be created.
    pub(super) async fn open(
        end: &End,
        place: &Place,
        side: &str,
        creates: bool,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let engine = match place {
            Place::Local(folder) => open_local(folder, side, settings).map(OpenEngine::Local)?,
            Place::Postgres(url) => OpenEngine::Postgres(open_postgres(end, url, side, settings).await?),
        };
        let bytes = match (&end.blobs, place, &engine) {
            (BlobStore::At(url), _, _) => {
                let cannot = || format!("cannot open --{side}-blob-store {}", url.without_secrets());
                Some(engines::open_objects(url, settings, Removal::default()).with_context(cannot)?)
            }
            (_, Place::Local(folder), OpenEngine::Local(engine)) => open_files(folder, engine, creates, settings)?,
            _ => None,
        };
        Ok(Self { engine, bytes })
    }

    /// The types of both engines are known here, so no call on them is boxed.
    pub(super) async fn migrate(
        &self,
        to: &Self,
        source: &str,
        migration: &Migration,
    ) -> Result<Vec<PartReport>, MigrationError> {
        use OpenEngine::{Local, Postgres};
        let (ours, theirs) = (self.bytes.as_ref(), to.bytes.as_ref());
        match (&self.engine, &to.engine) {
            (Local(from), Local(to)) => migrate(&side(from, ours), &side(to, theirs), source, migration).await,
            (Local(from), Postgres(to)) => migrate(&side(from, ours), &side(to, theirs), source, migration).await,
            (Postgres(from), Local(to)) => migrate(&side(from, ours), &side(to, theirs), source, migration).await,
            (Postgres(from), Postgres(to)) => migrate(&side(from, ours), &side(to, theirs), source, migration).await,
        }
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        // The bytes go first: they ask the engine whether there is room.
        drop(self.bytes);
        match self.engine {
            OpenEngine::Local(engine) => engine.close().context("an engine did not close cleanly; nothing is lost"),
            OpenEngine::Postgres(engine) => {
                engine.close().await;
                Ok(())
            }
        }
    }
}

const fn side<'a, E>(engine: &'a E, bytes: Option<&'a AnyBytes>) -> Side<'a, E, AnyBytes> {
    Side { engine, bytes }
}

#[expect(clippy::disallowed_methods, reason = "an endpoint of a migration has settings of its own")]
async fn open_postgres(
    end: &End,
    url: &DatabaseUrl,
    side: &str,
    settings: &Settings,
) -> anyhow::Result<PostgresEngine> {
    let variable = format!("LARIMAR_{}_PASSWORD", side.to_ascii_uppercase());
    let password = match (std::env::var(&variable), &end.password_file) {
        (Ok(password), _) if !password.is_empty() => Some(Password::Text(password)),
        (_, Some(path)) => {
            let file = Password::File(path.clone());
            let cannot = || format!("--{side}-password-file: cannot read {}", path.display());
            file.read().with_context(cannot)?;
            Some(file)
        }
        _ => None,
    };
    let database =
        larimar_engine_postgres::Settings { dialect: end.dialect, password, ..engines::database(settings, url) };
    PostgresEngine::open(&database).await.with_context(|| format!("cannot open --{side} {url}"))
}

/// The bytes of blobs in a data directory; `None` if there are none and none may be created.
fn open_files(
    folder: &Path,
    engine: &LocalEngine,
    creates: bool,
    settings: &Settings,
) -> anyhow::Result<Option<AnyBytes>> {
    let folder = folder.join("blobs");
    if !creates && !folder.is_dir() {
        return Ok(None);
    }
    let shown = folder.display().to_string();
    let admission = Admission::new(engine.admission());
    let durability = larimar_bytes::Durability::Sync;
    let files = FileSettings { folder, durability, grace: settings.blob_grace, admission };
    let opened = FileBytes::open(&files).with_context(|| format!("cannot open {shown}"))?;
    if creates {
        engine.record_blobs().context("the inventory of the data directory cannot be written")?;
    }
    Ok(Some(AnyBytes::Files(opened)))
}

fn open_local(folder: &Path, side: &str, settings: &Settings) -> anyhow::Result<LocalEngine> {
    let here = folder.display();
    // Opening it would make it, and an empty store is not what anybody wants copied.
    if side == "from" && !folder.is_dir() {
        bail!("--from {here}: there is no such directory");
    }
    if side == "from" && !larimar_engine_local::repair::is_data_folder(folder)? {
        bail!("--from {here}: there is no store in this directory");
    }
    let engine = larimar_engine_local::Settings {
        folder: folder.to_owned(),
        durability: larimar_engine_local::Durability::Sync,
        memory_bytes: settings.memory,
        reserve_bytes: 0,
    };
    match LocalEngine::open(&engine) {
        Err(error @ StoreError::Locked { .. }) => Err(error).with_context(|| {
            format!("cannot open --{side} {here} while a server runs on it; stop that server and try again")
        }),
        opened => opened.with_context(|| format!("cannot open --{side} {here}")),
    }
}
