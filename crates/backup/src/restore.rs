//! Restores a backup into a new data directory. Every chunk is checked as it is read.
//!
//! Payloads get new addresses; spaces keep their numbers and rows their versions, so that commits of the archive can be
//! applied afterwards (`archive/replay.rs`). The caller keeps the directory marked
//! until this has succeeded and the engine is closed (`larimar_engine_local::restoring`).

use crate::addresses::Addresses;
use crate::archive::replay::Plan;
use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::index::{DataChunk, IndexReader, ReadAhead};
use crate::payloads::{NewPayload, Source, no_store, store_payloads};
use crate::place::Place;
use crate::record::{BackedSpace, Record, Records};
use crate::take::KNOWN_MAX;
use crate::tally::Tally;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_engine::blob::relocate::relocated;
use larimar_engine::{Fault, RowRef, SpaceId, SpaceKind, WriteError};
use larimar_engine_local::restoring::Restoring;
use larimar_engine_local::store::StoreError;
use larimar_engine_local::{LocalEngine, Settings};
use std::collections::HashMap;
use std::sync::Arc;

/// The bytes that have to be free to restore a generation: its own, a tenth more, and room to work.
#[must_use]
pub const fn room_needed(generation: &Generation) -> u64 {
    let bytes = generation.totals.bytes();
    bytes.saturating_add(bytes / 10).saturating_add(ROOM_TO_WORK)
}

/// Restores a generation into an empty engine and its store of bytes.
///
/// # Errors
/// A file of the backup that is missing or damaged, by name; or what the engine fails with.
pub async fn restore<B: ByteStore>(
    place: &Place,
    generation: &Generation,
    engine: &LocalEngine,
    bytes: Option<&B>,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Totals, BackupError> {
    restore_rows(place, generation, engine, bytes, &mut None, progress).await
}

/// Restores what leads to a moment: a backup, and the commits of the archive after it. The store of bytes is opened when
/// the engine is, if there are payloads. The directory is a data directory when the caller has finished it.
///
/// # Errors
/// A file that is missing or damaged, by name; or what the engine or the disk fails with.
pub async fn restore_to<B: ByteStore>(
    place: &Place,
    plan: &Plan,
    restoring: &Restoring,
    settings: &Settings,
    open_bytes: impl FnOnce() -> Result<Arc<B>, Fault>,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Totals, BackupError> {
    let store_failed = |error: StoreError| Fault::Unavailable(error_chain(&error));
    let engine = restoring.open(settings).map_err(store_failed)?;
    let bytes = if plan.has_payloads() { Some(open_bytes()?) } else { None };
    if bytes.is_some() {
        engine.record_blobs().map_err(store_failed)?;
    }
    let is_followed = plan.archived.commits > 0 && bytes.is_some();
    let scratch = restoring.scratch("addresses");
    let mut addresses = if is_followed { Some(Addresses::create(&scratch)?) } else { None };
    let restored = restore_rows(place, &plan.generation, &engine, bytes.as_deref(), &mut addresses, progress).await;
    let closed = engine.close();
    drop(engine);
    let totals = restored?;
    closed.map_err(store_failed)?;
    let replay = restoring.replay().map_err(store_failed)?;
    plan.apply(place, replay, bytes.as_deref(), &mut addresses, &|_| progress(&totals)).await?;
    addresses.map_or(Ok(()), Addresses::remove)?;
    Ok(totals)
}

/// Restores a generation; keeps the addresses of payloads if that is asked for.
async fn restore_rows<B: ByteStore>(
    place: &Place,
    generation: &Generation,
    engine: &LocalEngine,
    bytes: Option<&B>,
    addresses: &mut Option<Addresses>,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Totals, BackupError> {
    let (version, commit) = generation.point();
    engine.continue_after(version, commit);
    let index = IndexReader::new(place, generation)?;
    let mut target = Target {
        place,
        engine,
        bytes,
        space: SpaceId::SYSTEM,
        name: Vec::new(),
        is_container: false,
        known: Known::default(),
        addresses,
        commits: FuturesOrdered::new(),
        tally: Tally::new(generation),
    };
    let mut ahead = ReadAhead::new(index);
    while let Some((chunk, bytes)) = ahead.next().await? {
        target.chunk(&chunk, &bytes).await?;
        progress(&target.tally.totals);
    }
    target.settle(0).await?;
    target.tally.finish()
}

/// What is restored into, and how far the stream is.
struct Target<'a, B> {
    place: &'a Place,
    engine: &'a LocalEngine,
    bytes: Option<&'a B>,
    space: SpaceId,
    /// The space's name as records have it.
    name: Vec<u8>,
    is_container: bool,
    known: Known,
    /// Keeps the addresses of all payloads, if commits of the archive follow.
    addresses: &'a mut Option<Addresses>,
    /// Rows that are being stored.
    commits: FuturesOrdered<BoxFuture<'static, Result<(), WriteError>>>,
    tally: Tally<'a>,
}

/// Where the payloads of the blob at hand are now. A backup repeats those that are forgotten (`take.rs`).
#[derive(Default)]
pub(crate) struct Known {
    blob: String,
    addresses: HashMap<Extent, Extent>,
    /// Whether a row came after the last payload.
    pub(crate) is_row_over: bool,
}

impl Known {
    pub(crate) fn insert(&mut self, blob: &str, extent: Extent, address: Extent) {
        if self.blob != blob || self.is_row_over && self.addresses.len() >= KNOWN_MAX {
            blob.clone_into(&mut self.blob);
            self.addresses.clear();
        }
        self.is_row_over = false;
        self.addresses.insert(extent, address);
    }

    /// Where the payload of a row is.
    pub(crate) fn address(&self, blob: &str, extent: &Extent) -> Option<Extent> {
        self.addresses.get(extent).filter(|_| self.blob == blob).copied()
    }
}

impl<B: ByteStore> Target<'_, B> {
    async fn chunk(&mut self, chunk: &DataChunk, bytes: &[u8]) -> Result<(), BackupError> {
        let what = self.place.show(&chunk.data.name());
        let wrong = |reason: &str| BackupError::damaged(&what, reason);
        self.tally.chunks(1 + chunk.pieces.len())?;
        // A chunk is written space by space; each part has its payloads stored first.
        let (mut rest, mut pieces) = (bytes, &chunk.pieces[..]);
        while !rest.is_empty() {
            let (first, records) = Record::take_part(&mut rest).map_err(wrong)?;
            self.tally.part(&first, records.clone())?;
            match first {
                Record::Space { name, number, meta } => self.begin_space(name, SpaceId(number), meta, &what).await?,
                Record::Within(name) if encoded(name) == self.name => {}
                _ => return Err(wrong("its space did not begin before")),
            }
            self.part(records, &mut pieces, &what).await?;
        }
        if pieces.is_empty() { Ok(()) } else { Err(wrong(OTHER_PIECES)) }
    }

    async fn begin_space(
        &mut self,
        name: BackedSpace<'_>,
        number: SpaceId,
        meta: &[u8],
        what: &str,
    ) -> Result<(), BackupError> {
        self.name = encoded(name);
        self.is_container = name.is_some_and(|name| name.kind == SpaceKind::Container);
        self.known = Known::default();
        self.space = match name {
            None => SpaceId::SYSTEM,
            Some(name) => {
                let created = self.engine.create_numbered_space(name, number, meta).await?;
                created
                    .ok_or_else(|| BackupError::damaged(what, format!("{}, or its number, begins twice", name.name)))?
            }
        };
        Ok(())
    }

    /// Stores the payloads and rows of one space.
    async fn part<'a>(
        &mut self,
        records: Records<'a>,
        pieces: &mut &'a [ChunkRef],
        what: &str,
    ) -> Result<(), BackupError> {
        let payloads = new_payloads(self.space, records.clone(), pieces, what)?;
        let mut addresses = self.payloads(&payloads).await?.into_iter();
        let (mut partition, mut rows) = (None, Vec::new());
        for record in records {
            let blob = || partition.ok_or_else(|| BackupError::damaged(what, "a row has no partition"));
            match record {
                Record::Partition(text) => partition = Some(text),
                Record::Payload { extent, .. } | Record::Pieces { extent, .. } => {
                    let address = addresses.next().expect("each payload was stored");
                    self.known.insert(blob()?, extent, address);
                    if let Some(addresses) = &mut *self.addresses {
                        addresses.insert(extent, address)?;
                    }
                }
                Record::Row { row, version, body } => {
                    let row = RowRef { partition: blob()?, row, version, body };
                    rows.extend(self.relocated(row, what)?.map(|body| (row, body)));
                    if rows.len() >= ROWS_AT_ONCE {
                        self.rows(&mut rows).await?;
                    }
                }
                Record::Space { .. } | Record::Within(_) => unreachable!("a part ends before the next space"),
            }
        }
        self.rows(&mut rows).await
    }

    /// Begins to store rows with their new bodies.
    async fn rows(&mut self, rows: &mut Vec<(RowRef<'_>, Vec<u8>)>) -> Result<(), BackupError> {
        let stored: Vec<RowRef<'_>> = rows.iter().map(|(row, body)| RowRef { body, ..*row }).collect();
        if !stored.is_empty() {
            self.commits.push_back(self.engine.begin_restore(self.space, &stored)?.boxed());
        }
        drop(stored);
        rows.clear();
        self.settle(COMMITS_MAX - 1).await
    }

    /// Waits until no more than so many commits are under way.
    async fn settle(&mut self, left: usize) -> Result<(), BackupError> {
        while self.commits.len() > left
            && let Some(stored) = self.commits.next().await
        {
            stored?;
        }
        Ok(())
    }

    /// The body of a row with the new addresses of its payloads; `None` for a row that has no meaning in another store.
    fn relocated(&mut self, row: RowRef<'_>, what: &str) -> Result<Option<Vec<u8>>, BackupError> {
        if !self.is_container {
            return Ok(Some(row.body.to_vec()));
        }
        self.known.is_row_over = true;
        let mut is_missing = false;
        let body = relocated(row, |extent| {
            let address = self.known.address(row.partition, extent);
            is_missing |= address.is_none();
            address.unwrap_or(*extent)
        })?;
        match is_missing {
            false => Ok(body),
            true => Err(BackupError::damaged(what, "a payload does not come before the row that points to it")),
        }
    }

    /// Stores payloads; returns their addresses, in order.
    async fn payloads(&self, payloads: &[NewPayload<'_>]) -> Result<Vec<Extent>, BackupError> {
        if payloads.is_empty() {
            return Ok(Vec::new());
        }
        let Some(store) = self.bytes else { return Err(no_store().into()) };
        let (stored, unreferenced) = store_payloads(self.place, store, payloads).await?;
        // A restore that fails leaves no store.
        unreferenced.keep();
        Ok(stored)
    }
}

/// The payloads of a part, with the pieces that belong to each.
pub(crate) fn new_payloads<'a>(
    space: SpaceId,
    records: Records<'a>,
    pieces: &mut &'a [ChunkRef],
    what: &str,
) -> Result<Vec<NewPayload<'a>>, BackupError> {
    let wrong = || BackupError::damaged(what, "a payload does not have the pieces that the index lists");
    let (mut blob, mut payloads) = ("", Vec::new());
    for record in records {
        match record {
            Record::Partition(text) => blob = text,
            Record::Payload { extent, bytes } => {
                payloads.push(NewPayload { space, blob, extent, source: Source::Inline(bytes) });
            }
            Record::Pieces { extent, count } => {
                let count = usize::try_from(count).map_err(|_| wrong())?;
                let (own, rest) = pieces.split_at_checked(count).ok_or_else(wrong)?;
                *pieces = rest;
                if own.iter().fold(0, |sum: u64, piece| sum.saturating_add(piece.length)) != extent.length {
                    return Err(wrong());
                }
                payloads.push(NewPayload { space, blob, extent, source: Source::Pieces(own) });
            }
            _ => {}
        }
    }
    Ok(payloads)
}

/// An error of the store with its causes.
fn error_chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", error_chain(source)))
}

fn encoded(name: BackedSpace<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Record::Within(name).encode(&mut bytes);
    bytes
}

pub(crate) const OTHER_PIECES: &str = "the index lists pieces that none of its payloads has";
/// Rows that are stored at once: in memory they have ten times their bytes if they are small.
pub(crate) const ROWS_AT_ONCE: usize = 1 << 16;
/// Commits of a chunk's rows, of about a MiB each, that may wait for one sync together.
const COMMITS_MAX: usize = 8;
/// Journals, and tables that are compacted.
pub(crate) const ROOM_TO_WORK: u64 = 64 << 20;
