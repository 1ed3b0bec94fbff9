//! Copies a whole store into another, whichever engines they are, and proves that both hold the same.
//!
//! A store has parts: the settings of each account, and each table. A part is read in slices; while one slice is
//! stored the next is read. After each slice the part's record in the destination (`record.rs`) says how far it
//! got, so that an interrupted run continues there. At the end both stores are read again and compared by
//! count and checksum (`digest.rs`). Rows keep their versions, so clients' etags stay valid.

mod digest;
mod plan;
mod record;

pub use digest::{Checksum, Digest};

use crate::clock::Clock;
use crate::contract::{Engine, Flow, KeyRange, Position, RowRef, Space, SpaceId, SpaceKind, SpaceName, successor};
use crate::error::{Fault, ReadError, WriteError};
use digest::digest;
use futures_util::future::{join, join_all};
use larimar_model::Timestamp;
use plan::plan;
use record::{Log, Record, State};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A part of a store that is copied and compared by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What the service keeps for an account, such as its service properties.
    Settings {
        /// The account.
        account: String,
    },
    /// A table with its access control list and its entities.
    Table {
        /// The account.
        account: String,
        /// The table's folded name.
        name: String,
    },
}

/// How to copy.
#[derive(Clone, Copy)]
pub struct MigrationOptions<'a> {
    /// The name of the source: a run continues only a migration from the same source.
    pub source: &'a str,
    /// Gives the records their time.
    pub clock: &'a dyn Clock,
    /// Whether to count the rows first, so that progress can be shown as a share of all rows.
    pub counts_first: bool,
    /// Whether to drop what an unfinished run has copied and start over, from this source or another.
    pub restarts: bool,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What is being done.
    pub stage: Stage,
    /// The part it is done to.
    pub part: &'a Part,
    /// Parts that this stage has finished.
    pub parts_done: usize,
    /// Parts that there are.
    pub parts_total: usize,
    /// Rows that this stage has finished, including those of earlier runs.
    pub rows: u64,
    /// Bytes of their keys and bodies.
    pub bytes: u64,
    /// Rows that there are, if that is known.
    pub rows_total: Option<u64>,
}

/// What a run does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Counts the rows of the source.
    Count,
    /// Copies them.
    Copy,
    /// Reads both stores and compares them.
    Verify,
}

/// A part that both stores hold alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReport {
    /// The part.
    pub part: Part,
    /// What it holds.
    pub digest: Digest,
}

/// A part that the stores do not hold alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The part.
    pub part: Part,
    /// What the source holds.
    pub source: Digest,
    /// What the destination holds, if it has the part.
    pub destination: Option<Digest>,
    /// Whether the source is known to have changed since it was copied.
    pub has_source_changed: bool,
}

/// Why a migration failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The destination has a part that this migration did not create.
    #[error("{0} is already in the destination and did not come from this migration; nothing was copied")]
    Exists(Part),
    /// A part came to be in the destination after this run had begun.
    #[error(
        "another process created {0} in the destination while this run was copying; is another migration running? When \
         it has ended, the same command goes on, or `--restart` begins anew"
    )]
    Raced(Part),
    /// The destination holds the records of a migration from somewhere else.
    #[error("the destination holds an unfinished migration from {0}; finish that one, or restart")]
    OtherSource(String),
    /// The stores do not hold the same.
    #[error("{}", Differences(.0))]
    Differs(Vec<Difference>),
    /// A part could not be read.
    #[error("cannot read {what}: {error}")]
    Read {
        /// What was read.
        what: String,
        /// Why not.
        #[source]
        error: ReadError,
    },
    /// A part could not be written.
    #[error("cannot write {what}: {error}")]
    Write {
        /// What was written.
        what: String,
        /// Why not.
        #[source]
        error: WriteError,
    },
    /// A store failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Copies every part of a store into another and compares them. Continues where an earlier run was interrupted.
///
/// # Errors
/// Nothing was copied if a part of the source was in the destination before. After any other error a further run
/// continues; parts that differ are then copied again.
pub async fn migrate(
    from: &impl Engine,
    to: &impl Engine,
    options: MigrationOptions<'_>,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<PartReport>, MigrationError> {
    let source = parts(from).await?;
    let mut log = Log::load(to, options).await?;
    let mut meter = Meter { progress, parts_total: source.len(), stage: Stage::Count, rows_total: None };
    if !log.is_verified {
        plan(&source, &mut log).await?;
        copy_parts(from, &source, &mut log, &mut meter, options.counts_first).await?;
    }
    meter.stage = Stage::Verify;
    match compare_parts(from, to, &source, &mut meter).await {
        Err(MigrationError::Differs(differences)) => Err(log.mark(differences).await?),
        Err(other) => Err(other),
        Ok(reports) => log.finish().await.map(|()| reports),
    }
}

/// Compares a store with another without writing to either: every part of the first must be in the second, alike.
///
/// # Errors
/// `MigrationError::Differs` names the parts that are not alike.
pub async fn compare(
    from: &impl Engine,
    to: &impl Engine,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<PartReport>, MigrationError> {
    let source = parts(from).await?;
    let mut meter = Meter { progress, parts_total: source.len(), stage: Stage::Verify, rows_total: None };
    compare_parts(from, to, &source, &mut meter).await
}

/// The space that holds a part.
type Parts = BTreeMap<Part, Space>;

/// Every part of a store.
async fn parts(engine: &impl Engine) -> Result<Parts, MigrationError> {
    let mut parts = Parts::new();
    // The partition without a name is the engines' own, and holds our records.
    let mut range = KeyRange { start: Position::new(successor(""), ""), end: None };
    loop {
        let mut accounts = Vec::new();
        let next = engine.scan(SpaceId::SYSTEM, &range, digest::budget(), |row| {
            if accounts.last().is_none_or(|last: &String| last != row.partition) {
                accounts.push(row.partition.to_owned());
            }
            Flow::Continue
        });
        let next =
            next.await.map_err(|error| MigrationError::Read { what: "the accounts' settings".to_owned(), error })?;
        for account in accounts {
            parts.insert(Part::Settings { account }, Space { id: SpaceId::SYSTEM, meta: Arc::new([]) });
        }
        let Some(next) = next else { break };
        range.start = next;
    }
    for account in engine.accounts().await? {
        let mut from = String::new();
        loop {
            let name = SpaceName { account: &account, kind: SpaceKind::Table, name: &from };
            let listed = engine.list_spaces(name, SLICE_TABLES).await?;
            let is_last = listed.len() < SLICE_TABLES;
            for (name, space) in listed {
                from = successor(&name);
                parts.insert(Part::Table { account: account.clone(), name }, space);
            }
            if is_last {
                break;
            }
        }
    }
    Ok(parts)
}

/// Copies what is left of every part.
async fn copy_parts(
    from: &impl Engine,
    source: &Parts,
    log: &mut Log<'_, impl Engine>,
    meter: &mut Meter<'_>,
    counts_first: bool,
) -> Result<(), MigrationError> {
    if counts_first {
        meter.rows_total = Some(count(from, source, log, meter).await?);
    }
    meter.stage = Stage::Copy;
    let mut done = Digest::default();
    for (index, (part, found)) in source.iter().enumerate() {
        let mut record = log.record(part);
        match record.state {
            State::Planned => record = create(log, record, found).await?,
            // The source's description may have changed since the run that created the table.
            State::Copying => describe(log.to, part, found).await?,
            State::Copied | State::Differing => {}
        }
        copy_part(from, log, found, &mut record, |record| meter.tell(part, index, done.and(&record.digest))).await?;
        done = done.and(&record.digest);
        log.remember(record);
    }
    meter.rows_total = Some(done.rows);
    Ok(())
}

/// How many rows the parts have, those that earlier runs copied included.
async fn count(
    from: &impl Engine,
    source: &Parts,
    log: &Log<'_, impl Engine>,
    meter: &mut Meter<'_>,
) -> Result<u64, MigrationError> {
    let mut total = Digest::default();
    for (index, (part, found)) in source.iter().enumerate() {
        let record = log.record(part);
        total = total.and(&record.digest);
        let mut next = (record.state != State::Copied).then(|| record.range().start);
        while let Some(start) = next {
            let range = KeyRange { start, end: part.range().end };
            let (rows, bytes) = (&mut total.rows, &mut total.bytes);
            let scanned = from.scan(found.id, &range, digest::budget(), |row| {
                *rows += 1;
                *bytes += digest::size(&row);
                Flow::Continue
            });
            next = scanned.await.map_err(|error| part.cannot_read(error))?;
            meter.tell(part, index, total);
        }
    }
    Ok(total.rows)
}

/// Creates the table of a part that is planned.
async fn create(log: &Log<'_, impl Engine>, mut record: Record, found: &Space) -> Result<Record, MigrationError> {
    let Part::Table { account, name } = &record.part else { unreachable!("only tables are planned") };
    let name = SpaceName { account, kind: SpaceKind::Table, name };
    let id = log.to.create_space(name, &found.meta).await?;
    record.space = id.ok_or_else(|| MigrationError::Raced(record.part.clone()))?;
    record.state = State::Copying;
    log.put(&record).await?;
    Ok(record)
}

/// Gives a table the description that it has in the source.
async fn describe(to: &impl Engine, part: &Part, found: &Space) -> Result<(), MigrationError> {
    if let Part::Table { account, name } = part {
        let name = SpaceName { account, kind: SpaceKind::Table, name };
        if let Some(space) = to.space(name).await? {
            // Nothing else writes to a copy, so the bytes that were found are the bytes that are there.
            to.change_space(name, &space.meta, &found.meta).await?;
        }
    }
    Ok(())
}

/// Copies what is left of a part.
async fn copy_part(
    from: &impl Engine,
    log: &Log<'_, impl Engine>,
    found: &Space,
    record: &mut Record,
    mut tell: impl FnMut(&Record),
) -> Result<(), MigrationError> {
    if record.state == State::Copied {
        return Ok(());
    }
    let part = record.part.clone();
    if record.digest.rows == 0 {
        record.digest = Digest::new(&part, &found.meta);
    }
    let mut slice = read_slice(from, &part, found.id, record.range()).await?;
    loop {
        for row in &slice.rows {
            record.digest.add(&row.as_ref());
        }
        record.next = slice.next.clone();
        if record.next.is_none() {
            record.state = State::Copied;
        }
        let store = async {
            store_slice(log.to, &part, record.space, &slice.rows).await?;
            log.put(record).await
        };
        let ahead = async {
            match &slice.next {
                Some(_) => read_slice(from, &part, found.id, record.range()).await.map(Some),
                None => Ok(None),
            }
        };
        let (stored, ahead) = join(store, ahead).await;
        stored?;
        tell(record);
        match ahead? {
            Some(next) => slice = next,
            None => return Ok(()),
        }
    }
}

/// Rows that are read and stored together.
struct Slice {
    rows: Vec<OwnedRow>,
    next: Option<Position>,
}

struct OwnedRow {
    partition: String,
    row: String,
    version: Timestamp,
    body: Vec<u8>,
}

impl OwnedRow {
    fn as_ref(&self) -> RowRef<'_> {
        RowRef { partition: &self.partition, row: &self.row, version: self.version, body: &self.body }
    }
}

async fn read_slice(
    engine: &impl Engine,
    part: &Part,
    space: SpaceId,
    range: KeyRange,
) -> Result<Slice, MigrationError> {
    let mut rows: Vec<OwnedRow> = Vec::new();
    let mut bytes = 0;
    let next = engine.scan(space, &range, digest::budget(), |row| {
        bytes += digest::size(&row);
        // One row at least, however large.
        if !rows.is_empty() && (bytes > SLICE_BYTES_MAX || rows.len() == SLICE_ROWS_MAX) {
            return Flow::StopHere;
        }
        let (partition, name) = (row.partition.to_owned(), row.row.to_owned());
        rows.push(OwnedRow { partition, row: name, version: row.version, body: row.body.to_vec() });
        Flow::Continue
    });
    let next = next.await.map_err(|error| part.cannot_read(error))?;
    Ok(Slice { rows, next })
}

/// Stores a slice in batches, all at the same time.
async fn store_slice(to: &impl Engine, part: &Part, space: SpaceId, rows: &[OwnedRow]) -> Result<(), MigrationError> {
    let rows: Vec<RowRef<'_>> = rows.iter().map(OwnedRow::as_ref).collect();
    let stored = join_all(batches(&rows).into_iter().map(|batch| to.restore(space, batch))).await;
    stored.into_iter().collect::<Result<(), _>>().map_err(|error| part.cannot_write(error))
}

/// Rows in batches that an engine takes in one go.
fn batches<'a, 'b>(mut rows: &'b [RowRef<'a>]) -> Vec<&'b [RowRef<'a>]> {
    let mut batches = Vec::new();
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = |row: &&RowRef<'_>| {
            bytes += digest::size(row);
            bytes <= BATCH_BYTES_MAX
        };
        let count = rows.iter().take(BATCH_ROWS_MAX).take_while(fits).count().max(1);
        let (batch, rest) = rows.split_at(count);
        batches.push(batch);
        rows = rest;
    }
    batches
}

/// Reads both stores and compares them part by part.
async fn compare_parts(
    from: &impl Engine,
    to: &impl Engine,
    source: &Parts,
    meter: &mut Meter<'_>,
) -> Result<Vec<PartReport>, MigrationError> {
    let destination = parts(to).await?;
    let (mut reports, mut differences) = (Vec::with_capacity(source.len()), Vec::new());
    let mut done = Digest::default();
    for (index, (part, found)) in source.iter().enumerate() {
        let ours = digest(from, part, found, |so_far| meter.tell(part, index, done.and(so_far)));
        let theirs = async {
            match destination.get(part) {
                Some(found) => digest(to, part, found, |_| ()).await.map(Some),
                None => Ok(None),
            }
        };
        let (ours, theirs) = join(ours, theirs).await;
        let (ours, theirs) = (ours?, theirs?);
        done = done.and(&ours);
        match theirs {
            Some(theirs) if theirs == ours => reports.push(PartReport { part: part.clone(), digest: ours }),
            destination => differences.push(Difference {
                part: part.clone(),
                source: ours,
                destination,
                has_source_changed: false,
            }),
        }
    }
    if differences.is_empty() { Ok(reports) } else { Err(MigrationError::Differs(differences)) }
}

/// Reports the progress of a run.
struct Meter<'a> {
    progress: &'a mut (dyn FnMut(Progress<'_>) + Send),
    stage: Stage,
    parts_total: usize,
    rows_total: Option<u64>,
}

impl Meter<'_> {
    fn tell(&mut self, part: &Part, parts_done: usize, done: Digest) {
        let Self { stage, parts_total, rows_total, .. } = *self;
        (self.progress)(Progress {
            stage,
            part,
            parts_done,
            parts_total,
            rows: done.rows,
            bytes: done.bytes,
            rows_total,
        });
    }
}

impl Part {
    /// Whether it is a table of storage analytics, which every server fills by itself and lists nowhere.
    fn is_metrics(&self) -> bool {
        matches!(self, Self::Table { name, .. } if name.starts_with("$metrics"))
    }

    /// The rows of the part in its space.
    fn range(&self) -> KeyRange {
        match self {
            Self::Settings { account } => KeyRange::partition(account),
            Self::Table { .. } => KeyRange::all(),
        }
    }

    fn cannot_read(&self, error: ReadError) -> MigrationError {
        MigrationError::Read { what: self.to_string(), error }
    }

    fn cannot_write(&self, error: WriteError) -> MigrationError {
        MigrationError::Write { what: self.to_string(), error }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings { account } => write!(f, "the settings of account {account}"),
            Self::Table { account, name } => write!(f, "table {account}/{name}"),
        }
    }
}

/// Differences as a message: the first few, and how many there are.
struct Differences<'a>(&'a [Difference]);

impl fmt::Display for Differences<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source and destination differ")?;
        for Difference { part, source, destination, has_source_changed } in self.0.iter().take(SHOWN_MAX) {
            write!(f, "; {part}: the source has {source}, the destination ")?;
            match destination {
                Some(destination) => write!(f, "{destination}")?,
                None => write!(f, "does not have it")?,
            }
            if *has_source_changed {
                write!(f, " (the source has changed since it was copied: stop its servers)")?;
            }
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

const BATCH_ROWS_MAX: usize = 1000;
const BATCH_BYTES_MAX: u64 = 4 << 20;
/// A slice is a few batches; two slices are in memory at a time.
const SLICE_ROWS_MAX: usize = 4 * BATCH_ROWS_MAX;
const SLICE_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX;
/// Tables listed in one go.
const SLICE_TABLES: usize = 1000;
/// Differences that a message shows.
const SHOWN_MAX: usize = 10;

#[cfg(test)]
mod tests;
