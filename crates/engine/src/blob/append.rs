//! Append Block and Append Blob Seal.

use super::access::{Admit, BlobRef, Written};
use super::bytes::{ByteStore, Extent};
use super::change::{Change, Decision};
use super::layout::{Block, Layout, Piece};
use super::reject::BlobReject;
use super::row::BlobRow;
use super::{Blobs, keys};
use crate::contract::Engine;
use crate::error::EngineError;
use larimar_model::blob::{AccessConditions, AppendConditions, BlobType};
use larimar_model::{Timestamp, limits};

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The blob's new time and etag.
    pub written: Written,
    /// Where the bytes begin.
    pub offset: u64,
    /// The blob's number of blocks after the append.
    pub blocks: u32,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Appends bytes to an append blob.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease, too many blocks.
    pub async fn append_block(
        &self,
        at: BlobRef<'_>,
        extent: Extent,
        appends: AppendConditions,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Appended, EngineError> {
        let appended = self.try_append(at, extent, appends, access, now).await;
        self.settle(appended, &[extent])
    }

    async fn try_append(
        &self,
        at: BlobRef<'_>,
        extent: Extent,
        appends: AppendConditions,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Appended, EngineError> {
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let mut row = access.admit_change(stored.row, now)?;
            row.released.admit([extent])?;
            let (appended, chunk) = append(&mut row, extent, appends, now)?;
            Ok(Decision::Commit(Change::put(row).with_puts(chunk), appended))
        })
        .await
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Seals an append blob: nothing more can be appended. Its properties, metadata and tags can still change. A blob that
    /// is sealed already stays as it is.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease, another length than expected.
    pub async fn seal_blob(
        &self,
        at: BlobRef<'_>,
        position: Option<u64>,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let now = self.now(now).await?;
        self.edit(at, now, |row| {
            let mut row = access.admit_change(row, now)?;
            if row.kind != BlobType::Append {
                return Err(BlobReject::InvalidBlobType);
            }
            if position.is_some_and(|position| position != row.length) {
                return Err(BlobReject::AppendPositionConditionNotMet);
            }
            if !row.is_sealed {
                (row.changed, row.lease, row.is_sealed) = (row.next_change(now), row.lease.after_write(now), true);
            }
            let written = Written { last_modified: row.changed };
            Ok(Decision::Commit(Change::put(row), written))
        })
        .await
    }
}

/// The name and the bytes of a chunk's row.
type ChunkRow = (String, Vec<u8>);

/// Appends a block to a row. When the row gets long, its blocks are moved to a chunk, a row of their own.
fn append(
    row: &mut BlobRow,
    extent: Extent,
    appends: AppendConditions,
    now: Timestamp,
) -> Result<(Appended, Option<ChunkRow>), BlobReject> {
    let changed = row.next_change(now);
    let BlobRow { kind: BlobType::Append, layout: Layout::Blocks(blocks), .. } = row else {
        return Err(BlobReject::InvalidBlobType);
    };
    if row.is_sealed {
        return Err(BlobReject::Sealed);
    }
    if appends.position.is_some_and(|position| position != row.length) {
        return Err(BlobReject::AppendPositionConditionNotMet);
    }
    let (offset, length) = (row.length, row.length + extent.length);
    if appends.size_max.is_some_and(|max| length > max) {
        return Err(BlobReject::MaxBlobSizeConditionNotMet);
    }
    if blocks.count() >= limits::APPENDS_MAX {
        return Err(BlobReject::BlockCountExceedsLimit);
    }
    blocks.tail.push(Block { id: String::new(), piece: Piece::whole(extent) });
    let spilled = blocks.spill(changed.ticks());
    let chunk = spilled.map(|body| (keys::chunk(blocks.set, blocks.chunks.len() - 1), body));
    let appended = Appended { written: Written { last_modified: changed }, offset, blocks: blocks.count() };
    (row.length, row.changed, row.lease) = (length, changed, row.lease.after_write(now));
    Ok((appended, chunk))
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Blocks, INLINE_MAX, decode_chunk};
    use super::*;

    fn appended(row: &mut BlobRow, length: u64, appends: AppendConditions) -> Result<Option<ChunkRow>, BlobReject> {
        let extent = Extent { file: [1; 16], offset: row.length, length };
        append(row, extent, appends, Timestamp::EDM_MIN).map(|(_, chunk)| chunk)
    }

    fn empty() -> BlobRow {
        BlobRow { is_committed: true, kind: BlobType::Append, ..BlobRow::uncommitted(Timestamp::EDM_MIN) }
    }

    #[test]
    fn conditions_on_the_position_and_the_size() {
        let mut row = empty();
        let none = AppendConditions::default();
        assert!(appended(&mut row, 10, AppendConditions { position: Some(0), size_max: Some(10) }).is_ok());
        let position = appended(&mut row, 1, AppendConditions { position: Some(0), ..none });
        assert_eq!(position, Err(BlobReject::AppendPositionConditionNotMet));
        let size = appended(&mut row, 1, AppendConditions { size_max: Some(10), ..none });
        assert_eq!(size, Err(BlobReject::MaxBlobSizeConditionNotMet));
        assert_eq!(row.length, 10);
    }

    #[test]
    fn a_long_row_spills_into_chunks_and_ends_at_the_limit() {
        let mut row = empty();
        let mut chunks = Vec::new();
        for _ in 0..limits::APPENDS_MAX {
            chunks.extend(appended(&mut row, 7, AppendConditions::default()).expect("it is appended"));
        }
        let many = appended(&mut row, 7, AppendConditions::default());
        assert_eq!(many, Err(BlobReject::BlockCountExceedsLimit));
        let Layout::Blocks(Blocks { chunks: heads, tail, .. }) = &row.layout else { panic!("blocks") };
        assert_eq!((heads.len(), tail.len()), (50_000 / INLINE_MAX, 50_000 % INLINE_MAX));
        assert_eq!(chunks.len(), heads.len());
        let names: std::collections::BTreeSet<_> = chunks.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), chunks.len());
        assert_eq!(decode_chunk(&chunks[3].1).map(|blocks| blocks[0].piece.extent.offset), Some(3 * 7 * 128));
        assert_eq!(row.length, 350_000);
    }
}
