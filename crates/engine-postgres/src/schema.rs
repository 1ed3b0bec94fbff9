//! The tables: created and migrated by the first server that starts.

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::settings::OpenError;
use crate::statements::system::{FoundFormat, HasFormat, LockFormat};
use std::time::Duration;

/// Creates or migrates the tables. Servers that start together do so one after the other, by locking the row that the
/// first of them inserts.
pub(crate) async fn prepare(connection: &Connection, dialect: Dialect) -> Result<(), OpenError> {
    let mut refusal = String::new();
    for attempt in 0..ATTEMPTS_MAX {
        match migrate(connection, dialect).await {
            Ok(()) => return Ok(()),
            Err(MigrateError::Final(reason)) => return Err(OpenError::Schema(reason)),
            Err(MigrateError::Again(reason)) => refusal = reason,
        }
        tokio::time::sleep(Duration::from_millis(20 * (attempt + 1))).await;
    }
    Err(OpenError::Schema(refusal))
}

enum MigrateError {
    /// Another server may have been faster.
    Again(String),
    Final(String),
}

impl From<Failure> for MigrateError {
    fn from(failure: Failure) -> Self {
        let is_final = matches!(failure, Failure::Unknown(_) | Failure::Elsewhere(_));
        let text = failure.into_unavailable().to_string();
        // Two sessions that create the same table at once collide in the system's own tables, with various codes.
        if is_final { Self::Final(text) } else { Self::Again(text) }
    }
}

async fn migrate(connection: &Connection, dialect: Dialect) -> Result<(), MigrateError> {
    if found_format(connection).await? == Some(FORMAT) {
        return Ok(());
    }
    connection.run(FORMAT_TABLE).await?;
    connection.run("INSERT INTO larimar_format (id, format) VALUES (1, 0) ON CONFLICT (id) DO NOTHING").await?;
    connection.run("BEGIN").await?;
    let outcome = migrate_locked(connection, dialect).await;
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.run(end).await?;
    outcome?;
    match found_format(connection).await? {
        Some(FORMAT) => Ok(()),
        _ => Err(MigrateError::Again("the tables were not created".to_owned())),
    }
}

async fn migrate_locked(connection: &Connection, dialect: Dialect) -> Result<(), MigrateError> {
    let Some((format,)) = connection.query_first(&LockFormat {}).await? else {
        return Err(MigrateError::Again("the format is not written yet".to_owned()));
    };
    if format == 0 {
        for table in dialect.tables() {
            connection.run(table).await?;
        }
        connection.run(SYSTEM_SPACE).await?;
    }
    if format < 2 {
        for table in dialect.message_tables() {
            connection.run(table).await?;
        }
        connection.run("UPDATE larimar_format SET format = 2 WHERE id = 1").await?;
    }
    Ok(())
}

/// The format of the tables, if there are any.
///
/// # Errors
/// If it is of a later release.
async fn found_format(connection: &Connection) -> Result<Option<i64>, MigrateError> {
    if connection.query_first(&HasFormat {}).await? != Some((true,)) {
        return Ok(None);
    }
    match connection.query_first(&FoundFormat {}).await?.map(|(format,)| format) {
        Some(format) if format > FORMAT => {
            Err(MigrateError::Final(format!("their format is {format}; this release knows formats up to {FORMAT}")))
        }
        other => Ok(other),
    }
}

const FORMAT: i64 = 2;
const ATTEMPTS_MAX: u64 = 50;
const FORMAT_TABLE: &str = "CREATE TABLE IF NOT EXISTS larimar_format (id int8 PRIMARY KEY, format int8 NOT NULL)";
const SYSTEM_SPACE: &str = "INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
    VALUES ('', 0, '', 0, 0, '') ON CONFLICT (account, kind, name) DO NOTHING";
