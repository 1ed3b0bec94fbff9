//! `larimar migrate`: copies everything from one engine into another and proves that both hold the same.
//!
//! The copy itself is `larimar_engine::migration`; here the stores are opened (`store.rs`), and progress and outcome are
//! shown.

mod progress;
mod report;
mod store;

use crate::logging;
use crate::settings::engine::DatabaseUrl;
use crate::settings::value::StoreUrl;
use crate::settings::{Resolved, SettingsError, Source};
use crate::signals::Runtime;
use anyhow::ensure;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::migration::{self, MigrationError, MigrationOptions, PartReport, Side};
use larimar_engine::{Engine, SystemClock};
use larimar_engine_postgres::Dialect;
use progress::Display;
use std::path::PathBuf;
use store::Store;

/// What to copy where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Migration {
    pub(crate) from: End,
    pub(crate) to: End,
    /// Whether to compare without copying.
    pub(crate) verify_only: bool,
    /// Whether to drop what an unfinished migration has copied.
    pub(crate) restart: bool,
}

/// One of the two stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Nothing if it could not be read.
    pub(crate) place: Option<Place>,
    pub(crate) dialect: Dialect,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) blobs: BlobStore,
}

/// Where the bytes of a store's blobs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlobStore {
    /// In the data directory, if the store has one.
    Default,
    /// In the store of this URL.
    At(StoreUrl),
    /// The URL could not be read.
    Wrong,
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The data directory of an embedded engine.
    Local(PathBuf),
    /// A database.
    Postgres(DatabaseUrl),
}

/// A signal interrupted the migration; it can be resumed.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; the same command continues where it stopped")]
pub(crate) struct Interrupted;

/// Copies or compares, and prints what was found.
pub(crate) fn run(resolved: &Resolved, migration: &Migration, runtime: Runtime) -> anyhow::Result<()> {
    let mut settings = resolved.settings.clone();
    if resolved.source("log_level") == Source::Default {
        // The progress shows what an operator wants to know.
        "warn".clone_into(&mut settings.logs.level);
    }
    logging::start(&settings)?;
    runtime.block_on(async |mut signals| {
        let (from, to) = (migration.from.place("from")?, migration.to.place("to")?);
        let (source, destination) = (from.name()?, to.name()?);
        ensure!(source != destination, "--from and --to name the same store: {source}");
        migration.check_blob_stores()?;
        // A database that cannot be reached may take long to say so.
        let (from, to) = tokio::select! {
            opened = async {
                let from = Store::open(&migration.from, from, "from", false, &settings).await?;
                let to = Store::open(&migration.to, to, "to", !migration.verify_only, &settings).await?;
                anyhow::Ok((from, to))
            } => opened?,
            _ = signals.end() => return Err(Interrupted.into()),
        };
        let outcome = tokio::select! {
            outcome = from.migrate(&to, &source, migration) => outcome.map_err(explained),
            _ = signals.end() => Err(Interrupted.into()),
        };
        from.close().await?;
        to.close().await?;
        let reports = outcome?;
        print!("{}", report::table(&reports));
        let done = if migration.verify_only { "alike" } else { "copied and verified" };
        println!("{done}: {source} and {destination}");
        Ok(())
    })
}

/// Adds the flag that helps.
fn explained(error: MigrationError) -> anyhow::Error {
    let flag = match &error {
        MigrationError::NoBytes { side: "source", .. } => "--from-blob-store",
        MigrationError::NoBytes { .. } => "--to-blob-store",
        _ => return error.into(),
    };
    anyhow::anyhow!("{error}; name it with {flag}, as the setting blob_store of its servers does")
}

async fn migrate(
    from: &Side<'_, impl Engine, impl ByteStore>,
    to: &Side<'_, impl Engine, impl ByteStore>,
    source: &str,
    arguments: &Migration,
) -> Result<Vec<PartReport>, MigrationError> {
    let mut display = Display::new();
    if arguments.verify_only {
        migration::compare(from, to, &SystemClock, &mut |progress| display.show(progress)).await
    } else {
        let options = MigrationOptions {
            source,
            clock: &SystemClock,
            counts_first: display.is_terminal(),
            restarts: arguments.restart,
        };
        migration::migrate(from, to, options, &mut |progress| display.show(progress)).await
    }
}

impl Migration {
    /// Both stores of bytes must be readable, and different: a store removes what only the other one's rows point to.
    fn check_blob_stores(&self) -> anyhow::Result<()> {
        for (end, name) in [(&self.from, "from-blob-store"), (&self.to, "to-blob-store")] {
            if end.blobs == BlobStore::Wrong {
                return Err(SettingsError::Value {
                    name,
                    origin: Source::Flag(name.to_owned()),
                    expected: "a URL without a password, such as s3://BUCKET/FOLDER or file:///FOLDER".to_owned(),
                    found: "something else (not shown)".to_owned(),
                }
                .into());
            }
        }
        if let (BlobStore::At(from), BlobStore::At(to)) = (&self.from.blobs, &self.to.blobs) {
            let (from, to) = (from.without_secrets(), to.without_secrets());
            let is_same = from.trim_end_matches('/') == to.trim_end_matches('/');
            ensure!(!is_same, "--from-blob-store and --to-blob-store name the same store: {from}");
        }
        Ok(())
    }
}

impl End {
    fn place(&self, side: &'static str) -> Result<&Place, SettingsError> {
        self.place.as_ref().ok_or_else(|| SettingsError::Value {
            name: side,
            origin: Source::Flag(side.to_owned()),
            expected: "local:PATH, a path, or postgres://USER@HOST/DATABASE, a password percent-encoded".to_owned(),
            found: "something else (not shown)".to_owned(),
        })
    }
}

impl Place {
    /// What the store is called, in messages and in the records of an unfinished migration.
    fn name(&self) -> anyhow::Result<String> {
        Ok(match self {
            Self::Local(folder) => {
                let path = std::path::absolute(folder)?;
                format!("local:{}", path.canonicalize().unwrap_or(path).display())
            }
            Self::Postgres(url) => url.to_string(),
        })
    }

    /// Reads `local:PATH`, a path, or a URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let folder = |path: &str| (!path.is_empty()).then(|| Self::Local(PathBuf::from(path)));
        match text.strip_prefix("local:") {
            Some(path) => folder(path),
            None if DatabaseUrl::is_meant(text) => DatabaseUrl::parse(text).map(Self::Postgres),
            None => folder(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_path_or_a_url() {
        let local = |path: &str| Some(Place::Local(path.into()));
        assert_eq!(Place::parse("local:/data"), local("/data"));
        assert_eq!(Place::parse("local:postgres://h"), local("postgres://h"));
        assert_eq!(Place::parse("data/here"), local("data/here"));
        let url = DatabaseUrl::parse("postgres://u:p@h/d").expect("a URL");
        assert_eq!(Place::parse("postgres://u:p@h/d"), Some(Place::Postgres(url)));
        for wrong in ["", "local:", "mysql://h", "postgres://", "postgres://u:p/w@h/d"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
    }
}
