//! The tables, made and brought up to date by whichever server comes first.

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::settings::OpenError;
use crate::statements::system::{FoundFormat, HasFormat, LockFormat};
use std::time::Duration;

/// Makes or migrates the tables. Servers that start together take turns by a row that the first of them inserts.
pub(crate) async fn prepare(connection: &Connection, dialect: Dialect) -> Result<(), OpenError> {
    let mut refusal = String::new();
    for attempt in 0..ATTEMPTS_MAX {
        match migrate(connection, dialect).await {
            Ok(()) => return Ok(()),
            Err(Step::Final(reason)) => return Err(OpenError::Schema(reason)),
            Err(Step::Again(reason)) => refusal = reason,
        }
        tokio::time::sleep(Duration::from_millis(20 * (attempt + 1))).await;
    }
    Err(OpenError::Schema(refusal))
}

enum Step {
    /// Somebody else was faster, perhaps.
    Again(String),
    Final(String),
}

impl From<Failure> for Step {
    fn from(failure: Failure) -> Self {
        let is_final = matches!(failure, Failure::Broken(_) | Failure::Elsewhere(_));
        let text = failure.into_unavailable().to_string();
        // Two sessions that make the same table at once collide in the system's own tables, with various codes.
        if is_final { Self::Final(text) } else { Self::Again(text) }
    }
}

async fn migrate(connection: &Connection, dialect: Dialect) -> Result<(), Step> {
    if found_format(connection).await? == Some(FORMAT) {
        return Ok(());
    }
    connection.run(FORMAT_TABLE).await?;
    connection.run("INSERT INTO larimar_format (id, format) VALUES (1, 0) ON CONFLICT (id) DO NOTHING").await?;
    connection.run("BEGIN").await?;
    let outcome = migrate_in_turn(connection, dialect).await;
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.run(end).await?;
    outcome?;
    match found_format(connection).await? {
        Some(FORMAT) => Ok(()),
        _ => Err(Step::Again("the tables were not made".to_owned())),
    }
}

async fn migrate_in_turn(connection: &Connection, dialect: Dialect) -> Result<(), Step> {
    let Some((format,)) = connection.query_first(&LockFormat {}).await? else {
        return Err(Step::Again("the format is not there yet".to_owned()));
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

/// The format of the tables, if there are any; one of a later release is refused.
async fn found_format(connection: &Connection) -> Result<Option<i64>, Step> {
    if connection.query_first(&HasFormat {}).await? != Some((true,)) {
        return Ok(None);
    }
    match connection.query_first(&FoundFormat {}).await?.map(|(format,)| format) {
        Some(format) if format > FORMAT => {
            Err(Step::Final(format!("their format is {format}; this release knows formats up to {FORMAT}")))
        }
        other => Ok(other),
    }
}

const FORMAT: i64 = 2;
const ATTEMPTS_MAX: u64 = 50;
const FORMAT_TABLE: &str = "CREATE TABLE IF NOT EXISTS larimar_format (id int8 PRIMARY KEY, format int8 NOT NULL)";
const SYSTEM_SPACE: &str = "INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
    VALUES ('', 0, '', 0, 0, '') ON CONFLICT (account, kind, name) DO NOTHING";
