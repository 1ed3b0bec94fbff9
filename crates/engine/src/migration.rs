//! Copies a whole store into another, whichever engines they are, and proves that both hold the same.
//!
//! A store has parts (`part.rs`): the settings of each account, and each table, queue and container. A part is read in
//! slices (`rows.rs`, `messages.rs`, `blobs.rs` with `payloads.rs`). After each slice the part's record in the
//! destination (`record.rs`) says how far it got, so that an interrupted run continues there. At the end both stores are
//! read again and compared by count and checksum (`digest.rs`). Rows keep their versions, so clients' etags stay valid.

mod blobs;
mod copy;
mod digest;
mod messages;
mod part;
mod payloads;
mod plan;
mod record;
mod rows;

pub use digest::{Checksum, Digest};
pub use part::Part;

use crate::blob::bytes::ByteStore;
use crate::clock::Clock;
use crate::contract::{Engine, SpaceKind};
use crate::error::{Fault, ReadError, WriteError};
use crate::seed::load_seed_record;
use digest::digest;
use futures_util::future::join;
use larimar_model::Timestamp;
use part::{Parts, parts};
use plan::plan;
use record::Log;
use std::fmt;
use std::time::{Duration, Instant};

/// One of the two stores.
#[derive(Debug)]
pub struct Side<'a, E, B> {
    /// The engine.
    pub engine: &'a E,
    /// The store of its blobs' bytes, if it has one.
    pub bytes: Option<&'a B>,
}

/// How to copy.
#[derive(Clone, Copy)]
pub struct MigrationOptions<'a> {
    /// The name of the source: a run continues only a migration from the same source.
    pub source: &'a str,
    /// Gives the records their time.
    pub clock: &'a dyn Clock,
    /// Whether to count the items first, so that progress can be shown as a share of all of them.
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
    /// Entities, messages, blobs and settings that this stage has finished, including those of earlier runs.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Items that there are, if that is known.
    pub items_total: Option<u64>,
}

/// What a run does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Counts the items of the source.
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
    /// The source is not complete: it was being filled at a server's start, and that did not finish.
    #[error(
        "the source holds only a part of the files that a server's --seed was filling it with; start that server once more \
         first; nothing was copied"
    )]
    PartlyFilled,
    /// There are blobs, and a store has no place for their bytes.
    #[error("{part} holds blobs, and no store of their bytes was named for the {side}; nothing was copied")]
    NoBytes {
        /// The first container with blobs.
        part: Part,
        /// `source` or `destination`.
        side: &'static str,
    },
    /// The bytes of a blob could not be read.
    #[error("cannot read the bytes of blob {blob:?}: {error}")]
    Payload {
        /// The blob's name.
        blob: String,
        /// Why not.
        #[source]
        error: Fault,
    },
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
    from: &Side<'_, impl Engine, impl ByteStore>,
    to: &Side<'_, impl Engine, impl ByteStore>,
    options: MigrationOptions<'_>,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<PartReport>, MigrationError> {
    if load_seed_record(from.engine).await?.is_some_and(|record| !record.tables.is_empty()) {
        return Err(MigrationError::PartlyFilled);
    }
    let source = parts(from.engine).await?;
    check_bytes(from, to, &source).await?;
    let mut log = Log::load(to.engine, options).await?;
    let mut meter = Meter { progress, parts_total: source.len(), stage: Stage::Count, items_total: None };
    if !log.is_verified {
        plan(&source, &mut log).await?;
        copy::copy_parts(from, to.bytes, &source, &mut log, &mut meter, options.counts_first).await?;
    }
    meter.stage = Stage::Verify;
    match compare_parts(from, to, &source, options.clock, &mut meter).await {
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
    from: &Side<'_, impl Engine, impl ByteStore>,
    to: &Side<'_, impl Engine, impl ByteStore>,
    clock: &dyn Clock,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<PartReport>, MigrationError> {
    let source = parts(from.engine).await?;
    check_bytes(from, to, &source).await?;
    let mut meter = Meter { progress, parts_total: source.len(), stage: Stage::Verify, items_total: None };
    compare_parts(from, to, &source, clock, &mut meter).await
}

/// If there are blobs, both stores need a store of bytes.
async fn check_bytes(
    from: &Side<'_, impl Engine, impl ByteStore>,
    to: &Side<'_, impl Engine, impl ByteStore>,
    source: &Parts,
) -> Result<(), MigrationError> {
    let side = match (from.bytes, to.bytes) {
        (Some(_), Some(_)) => return Ok(()),
        (None, _) => "source",
        (Some(_), None) => "destination",
    };
    for (part, found) in source.iter().filter(|(part, _)| part.kind() == Some(SpaceKind::Container)) {
        if blobs::has_blobs(from.engine, part, found.id).await? {
            return Err(MigrationError::NoBytes { part: part.clone(), side });
        }
    }
    Ok(())
}

/// Reads both stores and compares them part by part.
async fn compare_parts(
    from: &Side<'_, impl Engine, impl ByteStore>,
    to: &Side<'_, impl Engine, impl ByteStore>,
    source: &Parts,
    clock: &dyn Clock,
    meter: &mut Meter<'_>,
) -> Result<Vec<PartReport>, MigrationError> {
    let destination = parts(to.engine).await?;
    let (mut reports, mut differences) = (Vec::with_capacity(source.len()), Vec::new());
    let mut done = Digest::default();
    for (index, (part, found)) in source.iter().enumerate() {
        let theirs = destination.get(part);
        let began = Instant::now();
        let mut compare = async |margin: Duration| -> Result<_, MigrationError> {
            let living_at = latest(from.engine, to.engine, clock).await?.after(margin);
            let ours = digest(from, part, found, living_at, |so_far| meter.tell(part, index, done.and(so_far)));
            let theirs = async {
                match theirs {
                    Some(found) => digest(to, part, found, living_at, |_| ()).await.map(Some),
                    None => Ok(None),
                }
            };
            let (ours, theirs) = join(ours, theirs).await;
            Ok((ours?, theirs?))
        };
        let mut found = compare(Duration::ZERO).await?;
        if part.kind() == Some(SpaceKind::Queue) && found.1.is_some_and(|theirs| theirs != found.0) {
            // Messages that expired meanwhile may have been removed from one of the stores.
            found = compare(2 * began.elapsed() + EXPIRY_MARGIN).await?;
        }
        let (ours, theirs) = found;
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

/// The latest of the clocks by which messages expire.
async fn latest(from: &impl Engine, to: &impl Engine, clock: &dyn Clock) -> Result<Timestamp, Fault> {
    let now = clock.now();
    Ok(from.now(now).await?.latest.max(to.now(now).await?.latest))
}

/// Reports the progress of a run.
struct Meter<'a> {
    progress: &'a mut (dyn FnMut(Progress<'_>) + Send),
    stage: Stage,
    parts_total: usize,
    items_total: Option<u64>,
}

impl Meter<'_> {
    fn tell(&mut self, part: &Part, parts_done: usize, done: Digest) {
        let Self { stage, parts_total, items_total, .. } = *self;
        let Digest { items, bytes, .. } = done;
        (self.progress)(Progress { stage, part, parts_done, parts_total, items, bytes, items_total });
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

/// Messages that expire within this time are left out when a queue is compared once more.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
/// Differences that a message shows.
const SHOWN_MAX: usize = 10;
