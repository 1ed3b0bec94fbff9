//! The engine: opening, the calls of the contract, closing.

use crate::background;
use crate::catalogue::Catalogue;
use crate::claim_starts::ClaimStarts;
use crate::clock::StoreClock;
use crate::core::{Core, random};
use crate::failure::Failure;
use crate::gather::Gather;
use crate::key;
use crate::message_writes::{self, MessageWrites};
use crate::messages::Counts;
use crate::pool::Pool;
use crate::reads::PointReads;
use crate::row_sizes::RowSizes;
use crate::schema;
use crate::settings::{OpenError, Settings};
use crate::single_writes::SingleWrites;
use crate::snapshot::{PostgresSnapshot, Snapshots};
use crate::statements::Statement;
use crate::statements::entities::RestoreRows;
use crate::statements::spaces::HasSpace;
use crate::transactions::Transactions;
use larimar_engine::queue::MessageIds;
use larimar_engine::{
    Beside, Changed, EditError, Engine, Fault, Key, Moment, Op, Position, ReadError, Reads as ReadsWanted, Renamed,
    RowRef, Rows, Space, SpaceId, SpaceName, Spaces, Statistics, WriteError,
};
use larimar_model::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// An engine over a database that speaks PostgreSQL's protocol. Any number of processes may open one each over the same
/// database.
pub struct PostgresEngine {
    pub(crate) parts: Arc<Parts>,
    /// Aborted with the engine.
    tasks: tokio::sync::Mutex<JoinSet<()>>,
}

/// The parts that the calls of the contract use.
pub(crate) struct Parts {
    pub(crate) core: Arc<Core>,
    pub(crate) reads: Arc<Gather<PointReads>>,
    pub(crate) single_writes: Arc<Gather<SingleWrites>>,
    pub(crate) transactions: Arc<Gather<Transactions>>,
    pub(crate) message_writes: Arc<Gather<MessageWrites>>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) snapshots: Snapshots,
    pub(crate) row_sizes: RowSizes,
    /// Edits of a row run one after the other; indexed by the hash of the row.
    pub(crate) turns: Vec<tokio::sync::Mutex<()>>,
    pub(crate) ids: MessageIds,
    pub(crate) counts: Counts,
    /// Identifies this server's jobs on dropped containers.
    pub(crate) dropped_owner: i64,
    pub(crate) claim_starts: ClaimStarts,
}

impl PostgresEngine {
    /// Connects, and creates or migrates the tables.
    ///
    /// # Errors
    /// If the database cannot be reached in time, refuses, or has tables of a later release.
    pub async fn open(settings: &Settings) -> Result<Self, OpenError> {
        let core = Arc::new(Core::new(settings.target()?));
        let connection = first_connection(&core).await?;
        schema::prepare(&connection, settings.dialect).await?;
        drop(connection);
        let shares = Shares::of(settings.connections_max);
        let pool = Arc::new(Pool::new(Arc::clone(&core), shares.pooled));
        let parts = Parts {
            reads: Gather::new(&pool, shares.reads),
            single_writes: Gather::new(&pool, shares.single_writes),
            transactions: Gather::new(&pool, shares.transactions),
            message_writes: Gather::new(&pool, message_writes::WORKERS),
            catalogue: Catalogue::new(Arc::clone(&core), Arc::clone(&pool)),
            clock: StoreClock::new(Arc::clone(&pool)),
            snapshots: Snapshots::new(shares.pooled),
            row_sizes: RowSizes::default(),
            ids: MessageIds::default(),
            counts: Counts::default(),
            dropped_owner: random().cast_signed(),
            claim_starts: ClaimStarts::default(),
            turns: (0..TURNS).map(|_| tokio::sync::Mutex::new(())).collect(),
            pool,
            core,
        };
        let parts = Arc::new(parts);
        let mut tasks = JoinSet::new();
        parts.reads.start(&mut tasks);
        parts.single_writes.start(&mut tasks);
        parts.transactions.start(&mut tasks);
        parts.message_writes.start(&mut tasks);
        tasks.spawn(Arc::clone(&parts.clock).serve());
        tasks.spawn(background::run(Arc::clone(&parts.core), Arc::clone(&parts.pool)));
        Ok(Self { parts, tasks: tokio::sync::Mutex::new(tasks) })
    }

    /// Ends the background work and all connections. A write that was not answered before may or may not have been
    /// applied.
    pub async fn close(&self) {
        let Parts { core, reads, single_writes, transactions, message_writes, .. } = &*self.parts;
        core.health.close();
        self.tasks.lock().await.shutdown().await;
        let closed = Fault::Unavailable("the engine is closed".to_owned());
        reads.refuse(&closed);
        single_writes.refuse(&closed);
        transactions.refuse(&closed);
        message_writes.refuse(&closed);
        core.connections.close_all();
    }

    pub(crate) fn noting_gone<T>(&self, space: SpaceId, result: Result<T, WriteError>) -> Result<T, WriteError> {
        if matches!(result, Err(WriteError::SpaceGone)) {
            self.parts.catalogue.forget(space);
        }
        result
    }

    pub(crate) fn noting_gone_reading<T>(&self, space: SpaceId, result: Result<T, ReadError>) -> Result<T, ReadError> {
        if matches!(result, Err(ReadError::SpaceGone)) {
            self.parts.catalogue.forget(space);
        }
        result
    }
}

/// How many connections each kind of work has.
struct Shares {
    reads: usize,
    single_writes: usize,
    transactions: usize,
    pooled: usize,
}

impl Shares {
    fn of(connections_max: usize) -> Self {
        // Few connections make large groups, which cost the database less than many connections do.
        let reads = (connections_max / 8).clamp(1, 4);
        let single_writes = (connections_max / 4).clamp(1, 8);
        let transactions = (connections_max / 4).clamp(1, 16);
        let pooled = connections_max.saturating_sub(reads + single_writes + transactions).max(2);
        Self { reads, single_writes, transactions, pooled }
    }
}

async fn first_connection(core: &Core) -> Result<crate::connection::Connection, OpenError> {
    let started = Instant::now();
    loop {
        match core.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if error.is_final || started.elapsed() > OPEN_PATIENCE => {
                return Err(OpenError::Connect(error.reason));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

impl Rows for PostgresEngine {
    type Snapshot = PostgresSnapshot;

    async fn snapshot(&self, reads: ReadsWanted, deadline: Instant) -> Result<PostgresSnapshot, Fault> {
        PostgresSnapshot::open(&self.parts, reads, deadline).await
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        let space = key::number(key.space).ok_or(ReadError::SpaceGone)?;
        let (pk, rk) = (key::partition(key.space, key.partition), key::row(key.row));
        let answer = self.parts.reads.get(space, pk, rk).await?;
        if !answer.has_space {
            self.parts.catalogue.forget(key.space);
            return Err(ReadError::SpaceGone);
        }
        let row = answer.version.zip(answer.body());
        Ok(visit(row.map(|(version, body)| RowRef {
            partition: key.partition,
            row: key.row,
            version: Timestamp::from_ticks(version),
            body,
        })))
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let applied = self.parts.apply(space, partition, (ops, beside), now).await;
        self.noting_gone(space, applied)
    }

    async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        let edited = self.parts.edit(key, now, edit).await;
        if matches!(edited, Err(EditError::SpaceGone)) {
            self.parts.catalogue.forget(key.space);
        }
        edited
    }

    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        let restored = self.parts.restore(space, rows).await;
        self.noting_gone(space, restored)
    }
}

impl Spaces for PostgresEngine {
    async fn accounts(&self) -> Result<Vec<String>, Fault> {
        self.parts.catalogue.accounts().await
    }

    async fn create_space(&self, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        self.parts.catalogue.create(name, meta).await
    }

    async fn space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        self.parts.catalogue.find(name).await
    }

    async fn recent_space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        self.parts.catalogue.find_recent(name).await
    }

    async fn list_spaces(&self, from: SpaceName<'_>, max: usize) -> Result<Vec<(String, Space)>, Fault> {
        self.parts.catalogue.list(from, max).await
    }

    async fn change_space(&self, name: SpaceName<'_>, expected: &[u8], meta: &[u8]) -> Result<Changed, Fault> {
        self.parts.catalogue.change_meta(name, expected, meta).await
    }

    async fn rename_space(&self, from: SpaceName<'_>, to: SpaceName<'_>, meta: &[u8]) -> Result<Renamed, Fault> {
        self.parts.catalogue.rename(from, to, meta).await
    }

    async fn drop_space(&self, name: SpaceName<'_>) -> Result<bool, Fault> {
        Ok(self.parts.catalogue.drop_space(name, None).await? == Changed::Yes)
    }

    async fn drop_space_if(&self, name: SpaceName<'_>, expected: &[u8]) -> Result<Changed, Fault> {
        self.parts.catalogue.drop_space(name, Some(expected)).await
    }

    async fn claim_dropped(&self, after: SpaceId) -> Result<Option<SpaceId>, Fault> {
        self.parts.claim_dropped(after).await
    }

    async fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        visit: impl FnMut(RowRef<'_>) + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.parts.read_dropped(space, from, visit).await
    }

    async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        self.parts.forget_dropped(space).await
    }
}

impl Engine for PostgresEngine {
    async fn now(&self, _caller: Timestamp) -> Result<Moment, Fault> {
        self.parts.clock.now().await
    }

    fn statistics(&self) -> Statistics {
        let core = &self.parts.core;
        Statistics {
            commit_writes: core.commit_writes.snapshot(),
            sync_seconds: core.commit_seconds.snapshot(),
            store_bytes: core.store_bytes.load(Ordering::Relaxed),
            dropped_spaces: core.dropped_spaces.load(Ordering::Relaxed),
            reclaimable_bytes: core.reclaimable_bytes.load(Ordering::Relaxed),
            disk: None,
            // Rows take their versions from the database's clock; none is kept here.
            last_version: None,
            block_reads: Vec::new(),
        }
    }

    fn ready(&self) -> Result<(), Fault> {
        self.parts.core.health.ready()
    }
}

impl Parts {
    /// Stores rows with their versions. It is idempotent, so it is repeated when the answer is lost.
    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        let number = key::number(space).ok_or(WriteError::SpaceGone)?;
        let mut rows: Vec<_> =
            rows.iter().map(|row| (key::partition(space, row.partition), key::row(row.row), row)).collect();
        rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        let restore = RestoreRows {
            space: number,
            pks: rows.iter().map(|(pk, _, _)| pk.as_slice()).collect(),
            rks: rows.iter().map(|(_, rk, _)| rk.as_slice()).collect(),
            versions: rows.iter().map(|(_, _, row)| row.version.ticks().cast_signed()).collect(),
            bodies: rows.iter().map(|(_, _, row)| row.body).collect(),
        };
        self.restore_with(number, &restore, rows.len() as u64).await
    }

    /// Runs a statement that stores this many rows of a space whatever was there before, and repeats it when the answer
    /// is lost.
    pub(crate) async fn restore_with<S: Statement>(
        &self,
        space: i64,
        restore: &S,
        rows: u64,
    ) -> Result<(), WriteError> {
        let mut last = Failure::Refused(String::new());
        for _ in 0..RESTORE_ATTEMPTS {
            let pooled = self.pool.get().await?;
            let stored = match pooled.query_first(&HasSpace { space }).await {
                Ok(None) => return Err(WriteError::SpaceGone),
                Ok(Some(())) => pooled.execute(restore).await,
                Err(failure) => Err(failure),
            };
            match stored {
                Ok(count) if count == rows => return Ok(()),
                Ok(_) => return Err(WriteError::SpaceGone),
                Err(failure) => last = failure,
            }
            pooled.close();
        }
        Err(WriteError::Fault(last.into_unavailable()))
    }
}

/// How long a starting server waits for its database.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);
const TURNS: usize = 1024;
const RESTORE_ATTEMPTS: usize = 3;
