//! Restores a backup into a new data directory. Every chunk is checked as it is read.
//!
//! Spaces get new numbers and payloads new addresses; rows keep their versions. The caller keeps the directory marked
//! until this has succeeded and the engine is closed (`larimar_engine_local::restoring`).

use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::index::{DataChunk, IndexReader};
use crate::place::Place;
use crate::record::{BackedSpace, Record};
use crate::take::KNOWN_MAX;
use bytes::Bytes;
use futures_util::future::try_join_all;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Extent, Owner};
use larimar_engine::blob::relocate::relocated;
use larimar_engine::{Fault, RowRef, Rows, SpaceId, SpaceKind, Spaces};
use larimar_engine_local::LocalEngine;
use std::collections::HashMap;

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
    let (version, commit) = generation.point();
    engine.continue_after(version, commit);
    let mut index = IndexReader::new(place, generation)?;
    let mut target = Target {
        place,
        engine,
        bytes,
        space: SpaceId::SYSTEM,
        name: Vec::new(),
        is_container: false,
        known: Known::default(),
        totals: Totals::default(),
    };
    while let Some(chunk) = index.next().await? {
        target.chunk(&chunk).await?;
        progress(&target.totals);
    }
    let Totals { spaces, rows, row_bytes, payloads, payload_bytes, .. } = target.totals;
    let Totals { chunks, sent_bytes, .. } = generation.totals;
    if (Totals { spaces, rows, row_bytes, payloads, payload_bytes, chunks, sent_bytes }) != generation.totals {
        return Err(BackupError::damaged(generation.name(), "its chunks do not hold what its totals say"));
    }
    Ok(target.totals)
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
    totals: Totals,
}

/// Where the payloads of the blob at hand are now. A backup repeats those that are forgotten (`take.rs`).
#[derive(Default)]
struct Known {
    blob: String,
    addresses: HashMap<Extent, Extent>,
    /// Whether a row came after the last payload.
    is_row_over: bool,
}

impl Known {
    fn insert(&mut self, blob: &str, extent: Extent, address: Extent) {
        if self.blob != blob || self.is_row_over && self.addresses.len() >= KNOWN_MAX {
            blob.clone_into(&mut self.blob);
            self.addresses.clear();
        }
        self.is_row_over = false;
        self.addresses.insert(extent, address);
    }

    /// Where the payload of a row is.
    fn address(&self, blob: &str, extent: &Extent) -> Option<Extent> {
        self.addresses.get(extent).filter(|_| self.blob == blob).copied()
    }
}

/// A payload to store: its blob, its old address, and its bytes or pieces.
struct NewPayload<'a> {
    blob: &'a str,
    extent: Extent,
    source: Source<'a>,
}

enum Source<'a> {
    Inline(&'a [u8]),
    Pieces(&'a [ChunkRef]),
}

impl<B: ByteStore> Target<'_, B> {
    async fn chunk(&mut self, chunk: &DataChunk) -> Result<(), BackupError> {
        let what = self.place.show(&chunk.data.name());
        let bytes = chunk.data.read(self.place).await?;
        let records = Record::all(&bytes).ok_or_else(|| BackupError::damaged(&what, "a record cannot be read"))?;
        let wrong = |reason: &str| BackupError::damaged(&what, reason);
        if !matches!(records.first(), Some(Record::Space { .. } | Record::Within(_))) {
            return Err(wrong("it does not begin with a space"));
        }
        // A chunk is written space by space; each part has its payloads stored first.
        let mut pieces = &chunk.pieces[..];
        let mut rest = &records[..];
        while let Some((first, after)) = rest.split_first() {
            match first {
                Record::Space { name, meta, .. } => self.begin_space(*name, meta, &what).await?,
                Record::Within(name) if encoded(*name) == self.name => {}
                _ => return Err(wrong("its space did not begin before")),
            }
            let end = after.iter().position(|record| matches!(record, Record::Space { .. } | Record::Within(_)));
            let (part, next) = after.split_at(end.unwrap_or(after.len()));
            self.part(part, &mut pieces, &what).await?;
            rest = next;
        }
        if pieces.is_empty() { Ok(()) } else { Err(wrong("the index lists pieces that none of its payloads has")) }
    }

    async fn begin_space(&mut self, name: BackedSpace<'_>, meta: &[u8], what: &str) -> Result<(), BackupError> {
        self.name = encoded(name);
        self.is_container = name.is_some_and(|name| name.kind == SpaceKind::Container);
        self.known = Known::default();
        self.space = match name {
            None => SpaceId::SYSTEM,
            Some(name) => {
                self.totals.spaces += 1;
                let created = self.engine.create_space(name, meta).await?;
                created.ok_or_else(|| BackupError::damaged(what, format!("{} begins twice", name.name)))?
            }
        };
        Ok(())
    }

    /// Stores the payloads and rows of one space.
    async fn part<'a>(
        &mut self,
        records: &[Record<'a>],
        pieces: &mut &'a [ChunkRef],
        what: &str,
    ) -> Result<(), BackupError> {
        let mut addresses = self.payloads(&new_payloads(records, pieces, what)?).await?.into_iter();
        let (mut partition, mut rows) = (None, Vec::new());
        for record in records {
            let blob = || partition.ok_or_else(|| BackupError::damaged(what, "a row has no partition"));
            match record {
                Record::Partition(text) => partition = Some(*text),
                Record::Payload { extent, .. } | Record::Pieces { extent, .. } => {
                    let address = addresses.next().expect("each payload was stored");
                    self.known.insert(blob()?, *extent, address);
                }
                Record::Row { row, version, body } => {
                    let row = RowRef { partition: blob()?, row, version: *version, body };
                    self.totals.rows += 1;
                    self.totals.row_bytes +=
                        (row.partition.len() + row.row.len() + size_of::<u64>() + body.len()) as u64;
                    rows.extend(self.relocated(row, what)?.map(|body| (row, body)));
                }
                Record::Space { .. } | Record::Within(_) => unreachable!("a part ends before the next space"),
            }
        }
        let rows: Vec<RowRef<'_>> = rows.iter().map(|(row, body)| RowRef { body, ..*row }).collect();
        if !rows.is_empty() {
            self.engine.restore(self.space, &rows).await?;
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

    /// Stores payloads, some at a time; returns their addresses, in order.
    async fn payloads(&mut self, payloads: &[NewPayload<'_>]) -> Result<Vec<Extent>, BackupError> {
        let (space, place) = (self.space, self.place);
        let mut addresses = Vec::with_capacity(payloads.len());
        for group in payloads.chunks(PAYLOADS_AT_ONCE) {
            let Some(store) = self.bytes else { return Err(no_store().into()) };
            let stored = group.iter().map(|payload| async move {
                let owner = Owner { space, blob: payload.blob };
                let mut writer = store.begin(owner, Some(payload.extent.length)).await?;
                match payload.source {
                    Source::Inline(bytes) => writer.write(Bytes::copy_from_slice(bytes)).await?,
                    Source::Pieces(pieces) => {
                        for piece in pieces {
                            writer.write(piece.read(place).await?).await?;
                        }
                    }
                }
                Ok::<_, BackupError>(writer.finish().await?)
            });
            addresses.extend(try_join_all(stored).await?);
            self.totals.payloads += group.len() as u64;
            self.totals.payload_bytes += group.iter().map(|payload| payload.extent.length).sum::<u64>();
        }
        Ok(addresses)
    }
}

/// The payloads of a part, with the pieces that belong to each.
fn new_payloads<'a>(
    records: &[Record<'a>],
    pieces: &mut &'a [ChunkRef],
    what: &str,
) -> Result<Vec<NewPayload<'a>>, BackupError> {
    let wrong = || BackupError::damaged(what, "a payload does not have the pieces that the index lists");
    let (mut blob, mut payloads) = ("", Vec::new());
    for record in records {
        match record {
            Record::Partition(text) => blob = text,
            Record::Payload { extent, bytes } => {
                payloads.push(NewPayload { blob, extent: *extent, source: Source::Inline(bytes) });
            }
            Record::Pieces { extent, count } => {
                let count = usize::try_from(*count).map_err(|_| wrong())?;
                let (own, rest) = pieces.split_at_checked(count).ok_or_else(wrong)?;
                *pieces = rest;
                if own.iter().map(|piece| piece.length).sum::<u64>() != extent.length {
                    return Err(wrong());
                }
                payloads.push(NewPayload { blob, extent: *extent, source: Source::Pieces(own) });
            }
            _ => {}
        }
    }
    Ok(payloads)
}

fn encoded(name: BackedSpace<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Record::Within(name).encode(&mut bytes);
    bytes
}

fn no_store() -> Fault {
    Fault::Unavailable("the backup has blobs, and there is no store for their bytes".to_owned())
}

/// Small payloads wait for one sync together; each large one holds a few MiB.
const PAYLOADS_AT_ONCE: usize = 8;
/// Journals, and tables that are compacted.
const ROOM_TO_WORK: u64 = 64 << 20;
