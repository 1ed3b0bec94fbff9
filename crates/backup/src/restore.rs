//! Restores a backup into a new data directory. Every chunk is checked as it is read.
//!
//! Rows go to the store below the engine (`Loader`). Payloads get new addresses; spaces keep their numbers and rows their versions, so that commits of the archive can be
//! applied afterwards (`archive/replay.rs`). The caller keeps the directory marked
//! until this has succeeded and the store is closed (`larimar_engine_local::restoring`).

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
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_engine::blob::relocate::relocated;
use larimar_engine::{Fault, RowRef, SpaceId, SpaceKind};
use larimar_engine_local::Loader;
use larimar_engine_local::restoring::Restoring;
use larimar_engine_local::store::StoreError;
use std::collections::HashMap;
use std::sync::Arc;

/// The bytes that have to be free to restore a generation: its own, a tenth more, and room to work.
#[must_use]
pub const fn room_needed(generation: &Generation) -> u64 {
    let bytes = generation.totals.bytes();
    bytes.saturating_add(bytes / 10).saturating_add(ROOM_TO_WORK)
}

/// Restores a generation into an empty store and its store of bytes. The caller finishes the loader
/// ([`Generation::point`]), or abandons it.
///
/// # Errors
/// A file of the backup that is missing or damaged, by name; or what the store fails with.
pub async fn restore<B: ByteStore>(
    place: &Place,
    generation: &Generation,
    loader: &mut Loader,
    bytes: Option<&B>,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Totals, BackupError> {
    restore_rows(place, generation, loader, bytes, &mut None, progress).await
}

/// Restores what leads to a moment: a backup, and the commits of the archive after it. The store of bytes is opened if there
/// are payloads. The directory is a data directory when the caller has finished it.
///
/// # Errors
/// A file that is missing or damaged, by name; or what the store or the disk fails with.
pub async fn restore_to<B: ByteStore>(
    place: &Place,
    plan: &Plan,
    restoring: &Restoring,
    open_bytes: impl FnOnce() -> Result<Arc<B>, Fault>,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Totals, BackupError> {
    let store_failed = |error: StoreError| Fault::Unavailable(error_chain(&error));
    let mut loader = restoring.load(plan.has_payloads()).map_err(store_failed)?;
    let is_followed = plan.archived.commits > 0;
    let load = async {
        let bytes = if plan.has_payloads() { Some(open_bytes()?) } else { None };
        let is_mapped = is_followed && bytes.is_some();
        let scratch = restoring.scratch("addresses");
        let mut addresses = if is_mapped { Some(Addresses::create(&scratch)?) } else { None };
        let bytes_ref = bytes.as_deref();
        let totals = restore_rows(place, &plan.generation, &mut loader, bytes_ref, &mut addresses, progress).await?;
        Ok::<_, BackupError>((totals, bytes, addresses))
    };
    let (totals, bytes, mut addresses) = match load.await {
        Ok(loaded) => loaded,
        Err(error) => {
            loader.abandon().await;
            return Err(error);
        }
    };
    let (version, commit) = plan.generation.point();
    if is_followed {
        loader.finish(version, commit).await?;
        let replay = restoring.replay().map_err(store_failed)?;
        plan.apply(place, replay, bytes.as_deref(), &mut addresses, &|_| progress(&totals)).await?;
        addresses.map_or(Ok(()), Addresses::remove)?;
    } else {
        loader.finish(version, plan.last()).await?;
    }
    Ok(totals)
}

/// Restores a generation; keeps the addresses of payloads if that is asked for.
async fn restore_rows<B: ByteStore>(
    place: &Place,
    generation: &Generation,
    loader: &mut Loader,
    bytes: Option<&B>,
    addresses: &mut Option<Addresses>,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Totals, BackupError> {
    let index = IndexReader::new(place, generation)?;
    let mut target = Target {
        place,
        loader,
        bytes,
        space: SpaceId::SYSTEM,
        name: Vec::new(),
        is_container: false,
        known: Known::default(),
        addresses,
        tally: Tally::new(generation),
    };
    let mut ahead = ReadAhead::new(index);
    while let Some((chunk, bytes)) = ahead.next().await? {
        target.chunk(&chunk, &bytes).await?;
        progress(&target.tally.totals);
    }
    target.tally.finish()
}

/// What is restored into, and how far the stream is.
struct Target<'a, B> {
    place: &'a Place,
    loader: &'a mut Loader,
    bytes: Option<&'a B>,
    space: SpaceId,
    /// The space's name as records have it.
    name: Vec<u8>,
    is_container: bool,
    known: Known,
    /// Keeps the addresses of all payloads, if commits of the archive follow.
    addresses: &'a mut Option<Addresses>,
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
                Record::Space { name, number, meta } => self.begin_space(name, SpaceId(number), meta, &what)?,
                Record::Within(name) if encoded(name) == self.name => {}
                _ => return Err(wrong("its space did not begin before")),
            }
            self.part(records, &mut pieces, &what).await?;
        }
        if pieces.is_empty() { Ok(()) } else { Err(wrong(OTHER_PIECES)) }
    }

    fn begin_space(
        &mut self,
        name: BackedSpace<'_>,
        number: SpaceId,
        meta: &[u8],
        what: &str,
    ) -> Result<(), BackupError> {
        self.name = encoded(name);
        self.is_container = name.is_some_and(|name| name.kind == SpaceKind::Container);
        self.known = Known::default();
        self.space = SpaceId::SYSTEM;
        if let Some(name) = name {
            if !self.loader.create_space(name, number, meta)? {
                return Err(BackupError::damaged(what, format!("{}, or its number, begins twice", name.name)));
            }
            self.space = number;
        }
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
        let mut partition = None;
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
                    self.row(row, what)?;
                    if self.loader.is_full() {
                        self.loader.send().await?;
                    }
                }
                Record::Space { .. } | Record::Within(_) => unreachable!("a part ends before the next space"),
            }
        }
        Ok(())
    }

    /// Stores a row, with the new addresses of its payloads.
    fn row(&mut self, row: RowRef<'_>, what: &str) -> Result<(), BackupError> {
        if !self.is_container {
            return Ok(self.loader.add(self.space, row)?);
        }
        self.known.is_row_over = true;
        let mut is_missing = false;
        let body = relocated(row, |extent| {
            let address = self.known.address(row.partition, extent);
            is_missing |= address.is_none();
            address.unwrap_or(*extent)
        })?;
        if is_missing {
            return Err(BackupError::damaged(what, "a payload does not come before the row that points to it"));
        }
        // A row may have no meaning in another store.
        if let Some(body) = body {
            self.loader.add(self.space, RowRef { body: &body, ..row })?;
        }
        Ok(())
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
/// Journals, and tables that are compacted.
pub(crate) const ROOM_TO_WORK: u64 = 64 << 20;
