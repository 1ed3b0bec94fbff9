//! `larimar migrate`: copies everything from one engine into another and proves that both hold the same.
//!
//! The copy itself is `larimar_engine::migration`; here the engines are opened, and progress and outcome are shown.

mod progress;
mod report;

use crate::engines;
use crate::logging;
use crate::settings::engine::DatabaseUrl;
use crate::settings::{Resolved, Settings, SettingsError, Source};
use crate::signals::Runtime;
use anyhow::{Context, bail, ensure};
use larimar_engine::migration::{self, MigrationError, MigrationOptions, PartReport};
use larimar_engine::{Engine, Fault, SpaceKind, SpaceName, SystemClock};
use larimar_engine_local::LocalEngine;
use larimar_engine_local::store::StoreError;
use larimar_engine_postgres::{Dialect, Password, PostgresEngine};
use progress::Display;
use std::path::{Path, PathBuf};

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
        "warn".clone_into(&mut settings.log_level);
    }
    logging::start(&settings)?;
    runtime.block_on(async |mut signals| {
        let (from, to) = (migration.from.place("from")?, migration.to.place("to")?);
        let (source, destination) = (from.name()?, to.name()?);
        ensure!(source != destination, "--from and --to name the same store: {source}");
        // A database that cannot be reached may take long to say so.
        let (from, to) = tokio::select! {
            opened = async {
                let from = Store::open(&migration.from, from, "from", &settings).await?;
                let to = Store::open(&migration.to, to, "to", &settings).await?;
                anyhow::Ok((from, to))
            } => opened?,
            _ = signals.end() => return Err(Interrupted.into()),
        };
        let outcome = tokio::select! {
            outcome = from.migrate(&to, &source, migration) => outcome.map_err(anyhow::Error::from),
            _ = signals.end() => Err(Interrupted.into()),
        };
        let left_behind = from.left_behind().await;
        from.close().await?;
        to.close().await?;
        let reports = outcome?;
        print!("{}", report::table(&reports));
        let done = if migration.verify_only { "alike" } else { "copied and verified" };
        println!("{done}: {source} and {destination}");
        let (queues, containers) = left_behind.context("the queues and containers could not be counted")?;
        if queues + containers > 0 {
            eprintln!("NOT COPIED: {queues} queues and {containers} containers of blobs; only tables are copied");
        }
        Ok(())
    })
}

/// An engine that was opened.
enum Store {
    Local(LocalEngine),
    Postgres(PostgresEngine),
}

impl Store {
    #[expect(clippy::disallowed_methods, reason = "an endpoint of a migration has settings of its own")]
    async fn open(end: &End, place: &Place, side: &str, settings: &Settings) -> anyhow::Result<Self> {
        match place {
            Place::Local(folder) => open_local(folder, side, settings).map(Self::Local),
            Place::Postgres(url) => {
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
                let database = larimar_engine_postgres::Settings {
                    dialect: end.dialect,
                    password,
                    ..engines::database(settings, url)
                };
                let opened = PostgresEngine::open(&database).await;
                opened.map(Self::Postgres).with_context(|| format!("cannot open --{side} {url}"))
            }
        }
    }

    /// The types of both engines are known here, so no call on them is boxed.
    async fn migrate(&self, to: &Self, source: &str, migration: &Migration) -> Result<Vec<PartReport>, MigrationError> {
        match (self, to) {
            (Self::Local(from), Self::Local(to)) => migrate(from, to, source, migration).await,
            (Self::Local(from), Self::Postgres(to)) => migrate(from, to, source, migration).await,
            (Self::Postgres(from), Self::Local(to)) => migrate(from, to, source, migration).await,
            (Self::Postgres(from), Self::Postgres(to)) => migrate(from, to, source, migration).await,
        }
    }

    /// How many queues and containers there are, which stay where they are.
    async fn left_behind(&self) -> Result<(usize, usize), Fault> {
        match self {
            Self::Local(engine) => left_behind(engine).await,
            Self::Postgres(engine) => left_behind(engine).await,
        }
    }

    async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Local(engine) => engine.close().context("an engine did not close cleanly; nothing is lost"),
            Self::Postgres(engine) => {
                engine.close().await;
                Ok(())
            }
        }
    }
}

async fn migrate(
    from: &impl Engine,
    to: &impl Engine,
    source: &str,
    arguments: &Migration,
) -> Result<Vec<PartReport>, MigrationError> {
    let mut display = Display::new();
    if arguments.verify_only {
        migration::compare(from, to, &mut |progress| display.show(progress)).await
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

async fn left_behind(engine: &impl Engine) -> Result<(usize, usize), Fault> {
    let mut counts = [0, 0];
    for account in engine.accounts().await? {
        for (kind, count) in [SpaceKind::Queue, SpaceKind::Container].into_iter().zip(&mut counts) {
            let mut from = String::new();
            loop {
                let spaces = engine.list_spaces(SpaceName { account: &account, kind, name: &from }, 1000).await?;
                let Some((last, _)) = spaces.last() else { break };
                from = format!("{last}\0");
                *count += spaces.len();
            }
        }
    }
    Ok(counts.into())
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
