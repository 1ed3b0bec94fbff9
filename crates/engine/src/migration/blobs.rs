//! Copies the rows of a container and the payloads that they point to.
//!
//! A payload is copied before the row that points to it, and of each blob its own row last: in the destination a blob is
//! there whole or not at all. Everything is kept, uncommitted blocks and what is still to be reclaimed included; only
//! addresses of payloads change. A digest has the checksum of a payload where the row has its address.

use super::digest::{budget, size};
use super::payloads::Payloads;
use super::record::{Log, Record};
use super::rows;
use super::{Digest, MigrationError, Part, Side};
use crate::blob::bytes::{ByteStore, Extent};
use crate::blob::relocate::{is_blob, payloads_in, relocated};
use crate::contract::{Engine, Flow, Key, KeyRange, OwnedRow, Position, RowRef, Space, SpaceId, successor};

/// Copies what is left of a container.
pub(super) async fn copy(
    from: &Side<'_, impl Engine, impl ByteStore>,
    to_bytes: Option<&impl ByteStore>,
    log: &Log<'_, impl Engine>,
    source: SpaceId,
    record: &mut Record,
    mut tell: impl FnMut(&Digest),
) -> Result<(), MigrationError> {
    let part = record.part.clone();
    let mut reader = BlobRows::begin(from.engine, &part, source, record.range().start).await?;
    let mut payloads = Payloads::default();
    while let Some(slice) = reader.slice().await? {
        let pointed = slice.pointed()?;
        let mut so_far = record.digest;
        let copied = payloads.copy(from.bytes, to_bytes, record.space, &pointed, |bytes| {
            so_far.bytes += bytes;
            tell(&so_far);
        });
        copied.await?;
        let mut rows = Vec::with_capacity(slice.rows.len());
        for row in &slice.rows {
            if let Some(body) = relocated(row.as_ref(), |extent| payloads.address(extent))? {
                rows.push(OwnedRow { body, ..OwnedRow::of(&row.as_ref()) });
                add(&mut record.digest, row, &payloads)?;
            }
        }
        if !rows.is_empty() {
            // One call, so that all of them are visible at once.
            let rows: Vec<RowRef<'_>> = rows.iter().map(OwnedRow::as_ref).collect();
            log.to.restore(record.space, &rows).await.map_err(|error| part.cannot_write(error))?;
        }
        record.go_on_at(reader.next.clone());
        log.put(record).await?;
        tell(&record.digest);
    }
    Ok(())
}

/// Reads a container and its payloads, and computes its digest.
pub(super) async fn digest(
    side: &Side<'_, impl Engine, impl ByteStore>,
    part: &Part,
    found: &Space,
    mut tell: impl FnMut(&Digest),
) -> Result<Digest, MigrationError> {
    let mut digest = Digest::new(part, &found.meta);
    let mut reader = BlobRows::begin(side.engine, part, found.id, part.range().start).await?;
    let mut payloads = Payloads::default();
    while let Some(slice) = reader.slice().await? {
        let pointed = slice.pointed()?;
        let mut so_far = digest;
        let read = payloads.read(side.bytes, &pointed, |bytes| {
            so_far.bytes += bytes;
            tell(&so_far);
        });
        read.await?;
        for row in &slice.rows {
            add(&mut digest, row, &payloads)?;
        }
        tell(&digest);
    }
    Ok(digest)
}

/// Whether a container has a blob, or rows of one.
pub(super) async fn has_blobs(engine: &impl Engine, part: &Part, space: SpaceId) -> Result<bool, MigrationError> {
    // Before that are the rows of the index of tags.
    Ok(!rows::is_empty_from(engine, part, space, Position::new(successor(""), "")).await?)
}

/// Takes a row into a digest.
fn add(digest: &mut Digest, row: &OwnedRow, payloads: &Payloads) -> Result<(), MigrationError> {
    let row = row.as_ref();
    let mut bytes = 0;
    let body = relocated(row, |extent| {
        bytes += extent.length;
        payloads.checksum(extent)
    })?;
    if let Some(body) = body {
        let row = RowRef { body: &body, ..row };
        digest.chain(&row);
        digest.items += u64::from(is_blob(&row));
        digest.bytes += size(&row) + bytes;
    }
    Ok(())
}

/// Rows that are stored together.
struct Slice {
    rows: Vec<OwnedRow>,
}

impl Slice {
    /// The payloads of the rows, each with the blob that it belongs to.
    fn pointed(&self) -> Result<Vec<(&str, Extent)>, MigrationError> {
        let mut pointed = Vec::new();
        for row in &self.rows {
            let payloads = payloads_in(row.as_ref())?;
            pointed.extend(payloads.into_iter().map(|extent| (row.partition.as_str(), extent)));
        }
        Ok(pointed)
    }
}

/// Reads the rows of a container in the order in which they are stored: in key order, but each blob's own row after its
/// others.
struct BlobRows<'a, E> {
    engine: &'a E,
    part: &'a Part,
    space: SpaceId,
    /// The own row of the blob that is being read.
    held: Option<OwnedRow>,
    /// Where to go on; `None` at the end. A reader that begins there in the middle of a blob reads the blob's row again.
    next: Option<Position>,
}

impl<'a, E: Engine> BlobRows<'a, E> {
    async fn begin(engine: &'a E, part: &'a Part, space: SpaceId, start: Position) -> Result<Self, MigrationError> {
        let mut held = None;
        if !start.row.is_empty() && !start.partition.is_empty() {
            let key = Key { space, partition: &start.partition, row: "" };
            let found = engine.get(key, |row| row.as_ref().map(OwnedRow::of)).await;
            held = found.map_err(|error| part.cannot_read(error))?;
        }
        Ok(Self { engine, part, space, held, next: Some(start) })
    }

    /// The next rows; `None` after the last.
    async fn slice(&mut self) -> Result<Option<Slice>, MigrationError> {
        let Some(start) = self.next.take() else { return Ok(None) };
        let range = KeyRange { start, end: None };
        let (mut rows, mut count, mut bytes, mut payload_bytes) = (Vec::new(), 0, 0, 0);
        let held = &mut self.held;
        let next = self.engine.scan(self.space, &range, budget(), |row| {
            bytes += size(&row);
            let is_full = bytes > SLICE_BYTES_MAX || count == SLICE_ROWS_MAX || payload_bytes > SLICE_PAYLOAD_BYTES_MAX;
            // One row at least, however large.
            if count > 0 && is_full {
                return Flow::StopHere;
            }
            count += 1;
            // A damaged row is refused when it is used.
            payload_bytes += payloads_in(row).unwrap_or_default().iter().map(|extent| extent.length).sum::<u64>();
            rows.extend(held.take_if(|held| held.partition != row.partition));
            match row.row.is_empty() && !row.partition.is_empty() {
                true => *held = Some(OwnedRow::of(&row)),
                false => rows.push(OwnedRow::of(&row)),
            }
            Flow::Continue
        });
        self.next = next.await.map_err(|error| self.part.cannot_read(error))?;
        let next = self.next.as_ref();
        rows.extend(self.held.take_if(|held| next.is_none_or(|next| next.partition != held.partition)));
        Ok(Some(Slice { rows }))
    }
}

/// Bounds of a slice, and so of memory and of what an interrupted run copies again; a single row may be larger.
const SLICE_ROWS_MAX: usize = 1000;
const SLICE_BYTES_MAX: u64 = 1 << 20;
const SLICE_PAYLOAD_BYTES_MAX: u64 = 64 << 20;
