//! Opens the engines: for `serve` from the settings, for `migrate` from its arguments.

use crate::settings::engine::{DatabaseUrl, EngineChoice};
use crate::settings::value::{Durability, StoreUrl};
use crate::settings::{Resolved, Settings, SettingsError};
use anyhow::Context;
use larimar_backup::CommitMailbox;
use larimar_bytes::{Admission, AnyBytes, FileBytes, FileSettings, ObjectBytes, ObjectSettings, Removal};
use larimar_engine::blob::bytes::MemoryBytes;
use larimar_engine_local::LocalEngine;
use larimar_engine_postgres::{Password, PostgresEngine};
use std::sync::Arc;

/// The embedded engine of the settings, which gives its commits to the archive if there is one.
pub(crate) fn open_local(settings: &Settings, feed: Option<Arc<CommitMailbox>>) -> anyhow::Result<LocalEngine> {
    let engine = larimar_engine_local::Settings {
        folder: settings.data_dir.clone(),
        durability: match settings.durability {
            Durability::Sync => larimar_engine_local::Durability::Sync,
            Durability::Async => larimar_engine_local::Durability::Async,
            Durability::Memory => larimar_engine_local::Durability::Memory,
        },
        memory_bytes: settings.memory,
        reserve_bytes: settings.reserve,
    };
    let opened = match feed {
        Some(feed) => LocalEngine::open_fed(&engine, feed),
        None => LocalEngine::open(&engine),
    };
    opened.with_context(|| format!("cannot open {}, as the setting data_dir says", settings.data_dir.display()))
}

/// The store of blobs' bytes, if blobs are served. The engine admits writes of files in the data directory and the removal
/// of objects.
pub(crate) fn open_bytes(
    settings: &Settings,
    admission: Admission,
    removal: Removal,
) -> anyhow::Result<Option<AnyBytes>> {
    if !settings.serves_blobs() {
        if settings.blob {
            tracing::warn!("blobs are not served: with PostgreSQL their bytes need the setting blob_store");
        }
        return Ok(None);
    }
    if let Some(url) = &settings.blob_store {
        let opened =
            open_objects(url, settings, removal).context("cannot open the store that the setting blob_store names")?;
        return Ok(Some(opened));
    }
    let durability = match settings.durability {
        Durability::Sync => larimar_bytes::Durability::Sync,
        Durability::Async => larimar_bytes::Durability::System,
        Durability::Memory => return Ok(Some(AnyBytes::Memory(MemoryBytes::new(settings.blob_grace)))),
    };
    let folder = settings.data_dir.join("blobs");
    let shown = folder.display().to_string();
    let files = FileSettings { folder, durability, grace: settings.blob_grace, admission };
    let opened = FileBytes::open(&files).with_context(|| format!("cannot open {shown}, below the setting data_dir"))?;
    Ok(Some(AnyBytes::Files(opened)))
}

/// The objects that a URL names.
#[expect(clippy::disallowed_methods, reason = "an object store's own variables are settings too")]
pub(crate) fn open_objects(url: &StoreUrl, settings: &Settings, removal: Removal) -> anyhow::Result<AnyBytes> {
    // Credentials and addresses of stores have well-known variables.
    let options = std::env::vars().filter(|(name, _)| STORE_VARIABLES.iter().any(|start| name.starts_with(start)));
    let (url, grace) = (url.with_secrets().to_owned(), settings.blob_grace);
    let objects = ObjectSettings { url, options: options.collect(), grace, removal };
    Ok(AnyBytes::Objects(ObjectBytes::open(&objects)?))
}

/// Whether discarded payloads may be removed: not while any server over the database takes a backup.
pub(crate) fn removal(engine: &Arc<PostgresEngine>) -> Removal {
    let engine = Arc::clone(engine);
    Removal::new(move || {
        let engine = Arc::clone(&engine);
        Box::pin(async move { Ok(!engine.is_backed_up().await?) })
    })
}

/// The distributed engine of the settings.
pub(crate) async fn open_postgres(
    settings: &Settings,
    database: &larimar_engine_postgres::Settings,
) -> anyhow::Result<PostgresEngine> {
    let refused = || format!("cannot open {}, as the setting engine says", settings.engine);
    PostgresEngine::open(database).await.with_context(refused)
}

/// How to open the database of the settings, if they name one.
pub(crate) fn postgres_settings(
    resolved: &Resolved,
) -> Result<Option<larimar_engine_postgres::Settings>, SettingsError> {
    let settings = &resolved.settings;
    let EngineChoice::Postgres(url) = &settings.engine else { return Ok(None) };
    let password = match (&settings.database_password, &settings.database_password_file) {
        (Some(password), _) => Some(Password::Text(password.0.clone())),
        (None, Some(path)) => {
            let file = Password::File(path.clone());
            // Each connection reads it anew; a file that does not exist is refused now.
            file.read().map_err(|error| {
                let found = format!("{}: {error}", path.display());
                resolved.refused("database_password_file", "the path of a file that can be read", &found)
            })?;
            Some(file)
        }
        (None, None) => None,
    };
    let opened = larimar_engine_postgres::Settings { dialect: settings.dialect, password, ..database(settings, url) };
    Ok(Some(opened))
}

/// How to open a database, with the limits of the settings.
pub(crate) fn database(settings: &Settings, url: &DatabaseUrl) -> larimar_engine_postgres::Settings {
    larimar_engine_postgres::Settings {
        connections_max: settings.database_connections,
        timeout: settings.database_timeout,
        ..larimar_engine_postgres::Settings::new(url.with_secrets())
    }
}

/// What the names of variables for object stores begin with.
const STORE_VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Environment, resolve};
    use std::ffi::OsString;
    use std::time::Duration;

    fn resolved(flags: &[(&'static str, &str)]) -> Resolved {
        let flags: Vec<_> = flags.iter().map(|(name, text)| (*name, OsString::from(text))).collect();
        resolve(None, &Environment::new(), &flags).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_settings_of_a_database_reach_the_engine() {
        assert!(postgres_settings(&resolved(&[])).expect("good settings").is_none());
        let flags = [
            ("engine", "postgres://u:word@h/d"),
            ("dialect", "yugabyte"),
            ("database_connections", "9"),
            ("database_timeout", "7s"),
        ];
        let opened = postgres_settings(&resolved(&flags)).expect("good settings").expect("a database");
        assert_eq!(opened.url, "postgres://u:word@h/d");
        assert_eq!(opened.dialect.to_string(), "yugabyte");
        assert_eq!((opened.connections_max, opened.timeout), (9, Duration::from_secs(7)));
        assert_eq!(opened.password, None);
    }

    #[test]
    fn defaults_are_those_of_the_engine() {
        let ours = postgres_settings(&resolved(&[("engine", "postgres://h")])).expect("good settings");
        let (ours, theirs) = (ours.expect("a database"), larimar_engine_postgres::Settings::new("postgres://h"));
        assert_eq!((ours.connections_max, ours.timeout), (theirs.connections_max, theirs.timeout));
        assert_eq!(ours.dialect, theirs.dialect);
    }

    #[test]
    fn a_password_comes_from_its_setting_or_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        let path = file.to_str().expect("text");
        for (text, password) in [("word", "word"), ("word\n", "word"), ("word\r\n", "word"), (" w \n\n", " w \n")] {
            std::fs::write(&file, text).expect("a file");
            let flags = [("engine", "postgres://h"), ("database_password_file", path)];
            let opened = postgres_settings(&resolved(&flags)).expect("good settings").expect("a database");
            let read = opened.password.expect("a password").read();
            assert_eq!(read.expect("a file"), password);
        }
        let both = [("engine", "postgres://h"), ("database_password_file", path), ("database_password", "other")];
        let opened = postgres_settings(&resolved(&both)).expect("good settings").expect("a database");
        assert_eq!(opened.password, Some(Password::Text("other".to_owned())));
        let missing = [("engine", "postgres://h"), ("database_password_file", "none such")];
        let error = postgres_settings(&resolved(&missing)).expect_err("no file").to_string();
        let expected = "setting database_password_file (flag --database-password-file): expected the path of a file \
                        that can be read, found none such: ";
        assert!(error.starts_with(expected), "{error}");
    }
}
