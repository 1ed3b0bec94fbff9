//! Backups: a read-only transaction on a connection of its own, which holds the database as it is at one moment.
//!
//! Its session has an advisory lock, taken before the transaction begins. While a server has it no server removes payloads
//! of blobs ([`PostgresEngine::is_backed_up`]), and no other backup begins. The lock ends with the session, whatever ends
//! that: the backup, a killed server, the database. No clock is involved.

use crate::catalogue::kind_number;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::engine::PostgresEngine;
use crate::failure::Failure;
use crate::key;
use crate::statements::backup::{BackupLock, BackupMoment, Contents, Deliveries, IsBackedUp, SpacesAfter};
use crate::statements::pages::TailAndMore;
use larimar_engine::queue::message_rows;
use larimar_engine::{
    BackupPoint, BackupSnapshot, BackupSource, Fault, HeldSpace, OwnedRow, Position, ReadError, SLICE_BYTES,
    SLICE_ROWS, Space, SpaceId, SpaceKind, SpaceName,
};
use larimar_model::{Guid, Timestamp};
use std::time::{Duration, Instant};

/// The database at one moment.
pub struct PostgresBackup {
    connection: Connection,
    began: Instant,
    point: BackupPoint,
}

impl PostgresEngine {
    /// Whether a server takes a backup of this database, so that payloads have to be kept.
    pub async fn is_backed_up(&self) -> Result<bool, Fault> {
        if self.parts.core.target.dialect != Dialect::Postgres {
            return Ok(false);
        }
        let answer = self.parts.pool.ask(&IsBackedUp {}).await?;
        Ok(answer.first().is_none_or(|(is_backed_up,)| *is_backed_up))
    }
}

impl BackupSource for PostgresEngine {
    type Held = PostgresBackup;

    const NAME: Option<&'static str> = Some("postgres");

    async fn hold(&self) -> Result<PostgresBackup, Fault> {
        let core = &self.parts.core;
        if core.target.dialect != Dialect::Postgres {
            let reason =
                format!("backups of {} are not supported: use the tools of that database", core.target.dialect);
            return Err(Fault::Unavailable(reason));
        }
        let connection = core.connect().await.map_err(|error| Fault::Unavailable(error.reason))?;
        begin(connection).await.map_err(Failure::into_unavailable)
    }
}

async fn begin(connection: Connection) -> Result<PostgresBackup, Failure> {
    connection.run(&format!("{SESSION} SET idle_in_transaction_session_timeout = {}", HELD_MAX.as_millis())).await?;
    if connection.query_first(&BackupLock {}).await? != Some((true,)) {
        return Err(Failure::Refused("another backup of this database is running".to_owned()));
    }
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let (began, now) = connection.query_first(&BackupMoment {}).await?.unwrap_or_default();
    let [taken, version] = [began, now].map(|ticks: i64| Timestamp::from_ticks(ticks.cast_unsigned()));
    let point = BackupPoint { taken, version, sequence: 0, committed: version };
    Ok(PostgresBackup { connection, began: Instant::now(), point })
}

impl PostgresBackup {
    /// Reads rows of a table, a container or the system.
    async fn rows(&self, space: SpaceId, start: &Position) -> Result<(Vec<OwnedRow>, Option<Position>), Failure> {
        let (pk, rk) = (key::partition(space, &start.partition), key::row(&start.row));
        let end_pk = key::space_end(space);
        let (rows_max, bytes_max) = (SLICE_ROWS as i64, SLICE_BYTES as i64);
        let found =
            self.connection.query(&TailAndMore { rows_max, bytes_max, pk: &pk, rk: &rk, end_pk: &end_pk }).await?;
        let (mut rows, is_full) = (Vec::with_capacity(found.len()), found.len() == SLICE_ROWS);
        for row in found {
            let mut position = Position::new("", "");
            key::read_partition(row.pk()?, &mut position.partition)?;
            key::read_row(row.rk()?, &mut position.row)?;
            // The first row beyond the bound on bytes has no body.
            let Some(body) = row.body()? else { return Ok((rows, Some(position))) };
            let Position { partition, row: name } = position;
            rows.push(OwnedRow { partition, row: name, version: row.version()?, body: body.to_vec() });
        }
        // No row is between a row key and that key followed by a zero.
        let next = rows.last().filter(|_| is_full);
        let next = next.map(|last| Position::new(last.partition.as_str(), format!("{}\0", last.row)));
        Ok((rows, next))
    }

    /// Reads messages as rows: the contents in the order of ids, then the deliveries in their order.
    async fn messages(&self, queue: i64, start: &Position) -> Result<(Vec<OwnedRow>, Option<Position>), Failure> {
        let place = QueuePlace::parse(&start.row)?;
        let (found, count, part) = match &place {
            QueuePlace::Content(id) => {
                let count = CONTENTS_MAX;
                (self.connection.query(&Contents { queue, after: id, count }).await?, count, 0)
            }
            QueuePlace::Delivery(visible_at, id) => {
                let (visible_at, count) = (*visible_at, SLICE_ROWS as i64);
                (self.connection.query(&Deliveries { queue, visible_at, after: id, count }).await?, count, 1)
            }
        };
        let is_full = found.len() as i64 == count;
        let messages = found.into_iter().filter_map(|row| row.message);
        let rows = messages.map(|message| message_rows(&message, self.point.version)).map(|mut rows| {
            rows.swap(0, part);
            let [row, _] = rows;
            row
        });
        let rows: Vec<OwnedRow> = rows.collect();
        let next = match (rows.last(), place) {
            (Some(last), _) if is_full => Some(last.row.clone()),
            (_, QueuePlace::Content(_)) => Some(DELIVERIES.to_owned()),
            (_, QueuePlace::Delivery(..)) => None,
        };
        Ok((rows, next.map(|row| Position::new("", row))))
    }
}

impl BackupSnapshot for PostgresBackup {
    fn point(&self) -> Result<BackupPoint, Fault> {
        Ok(self.point)
    }

    async fn spaces(&self, after: Option<&HeldSpace>, max: usize) -> Result<Vec<HeldSpace>, Fault> {
        let name = after.map(HeldSpace::name);
        // The system's own space is the first of all.
        let SpaceName { account, name, .. } =
            name.unwrap_or(SpaceName { account: "", kind: SpaceKind::Table, name: "" });
        let kind = after.map_or(0, |after| kind_number(after.kind));
        let count = i64::try_from(max).unwrap_or(i64::MAX);
        let found = SpacesAfter { account: account.as_bytes(), kind, name: name.as_bytes(), count };
        let found = self.connection.query(&found).await.map_err(Failure::into_unavailable)?;
        found.into_iter().map(held_space).collect()
    }

    async fn slice(
        &self,
        kind: Option<SpaceKind>,
        space: SpaceId,
        start: Position,
    ) -> Result<(Vec<OwnedRow>, Option<Position>), ReadError> {
        if self.began.elapsed() > HELD_MAX {
            let reason = "the backup has taken longer than 24 hours, and the database keeps all deleted rows for it: try \
                          --rate max, or use the database's own tools";
            return Err(Fault::Unavailable(reason.to_owned()).into());
        }
        let number = key::number(space).ok_or(ReadError::SpaceGone)?;
        let read = match kind {
            Some(SpaceKind::Queue) => self.messages(number, &start).await,
            Some(SpaceKind::Table | SpaceKind::Container) | None => self.rows(space, &start).await,
        };
        Ok(read.map_err(Failure::into_unavailable)?)
    }

    fn is_gone(&self) -> bool {
        self.connection.is_closed()
    }
}

/// After which row of a queue to read on.
enum QueuePlace {
    /// The content of a message; no bytes before the first.
    Content(Vec<u8>),
    /// The delivery of a message, which is in the order of the times at which messages are visible.
    Delivery(i64, Vec<u8>),
}

impl QueuePlace {
    /// Reads the name of a row, as [`message_rows`] makes them.
    fn parse(row: &str) -> Result<Self, Fault> {
        let parse = || match row.strip_prefix(DELIVERIES) {
            None if row.is_empty() => Some(Self::Content(Vec::new())),
            None => Some(Self::Content(id(row.strip_prefix('m')?)?)),
            Some("") => Some(Self::Delivery(-1, Vec::new())),
            Some(digits) => {
                let (visible_at, digits) = digits.split_at_checked(16)?;
                Some(Self::Delivery(i64::from_str_radix(visible_at, 16).ok()?, id(digits)?))
            }
        };
        parse().ok_or_else(|| Fault::Damaged(format!("a queue has an unknown row {row:?}")))
    }
}

fn id(digits: &str) -> Option<Vec<u8>> {
    Some(Guid(u128::from_str_radix(digits, 16).ok()?.to_be_bytes()).0.to_vec())
}

fn held_space((account, kind, name, id, meta): (Vec<u8>, i64, Vec<u8>, i64, Vec<u8>)) -> Result<HeldSpace, Fault> {
    let damaged = || Fault::Damaged(format!("the space {id} has an unknown name or kind"));
    let kind = [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container]
        .into_iter()
        .find(|known| kind_number(*known) == kind);
    Ok(HeldSpace {
        account: String::from_utf8(account).map_err(|_| damaged())?,
        kind: kind.ok_or_else(damaged)?,
        name: String::from_utf8(name).map_err(|_| damaged())?,
        space: Space { id: SpaceId(id.cast_unsigned()), meta: meta.into() },
    })
}

/// How long a backup may take: all that time the database keeps the rows that were deleted or replaced.
const HELD_MAX: Duration = Duration::from_secs(24 * 3600);
/// The session waits between statements as long as the backup does. If the server's machine is lost, the database notices
/// within two minutes. PostgreSQL 17 has a limit on the time of transactions.
const SESSION: &str = "\
    SET application_name = 'larimar backup'; \
    SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 5; \
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout';";
/// Messages whose contents are read together: 8 MiB of the largest ones.
const CONTENTS_MAX: i64 = 128;
/// What the names of deliveries begin with, after all contents.
const DELIVERIES: &str = "v";
