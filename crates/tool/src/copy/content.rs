//! The content of a blob, read in pieces of bounded size and summed up.

use super::checksum::{self, Checksum};
use crate::Result;
use bytes::{Bytes, BytesMut};
use futures_util::future::ready;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use larimar_client::{Blob, BlobCondition, BlobItem, BlobKind};
use std::ops::Range;
use tokio::sync::Semaphore;

/// A part of a blob's content.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
    /// What of it was written; the rest is zeros. Only page blobs have a rest.
    pub(super) written: Vec<Range<u64>>,
}

/// Reads blobs within a budget of memory that all readers share.
#[derive(Debug)]
pub(super) struct Reader {
    /// In units of [`UNIT_BYTES`].
    budget: Semaphore,
}

impl Default for Reader {
    fn default() -> Self {
        Self { budget: Semaphore::new(UNITS_MAX as usize) }
    }
}

impl Reader {
    /// Reads this version of a blob, passes each piece to `take`, and returns the checksum of the content. Pieces of
    /// append blobs come in order, those of others several at a time.
    pub(super) async fn read<F>(
        &self,
        blob: &Blob,
        item: &BlobItem,
        take: impl Fn(Piece) -> F,
    ) -> Result<Checksum, larimar_client::Error>
    where
        F: Future<Output = Result<(), larimar_client::Error>>,
    {
        if piece_bytes(item.kind, item.size) > PIECE_BYTES_MAX {
            let max = (BLOCKS_MAX * PIECE_BYTES_MAX) >> 30;
            return Err(larimar_client::Error::Invalid(format!("expected a blob of at most {max} GiB")));
        }
        let at_once = if item.kind == BlobKind::Append { 1 } else { PIECES_AT_ONCE };
        let (item, take) = (item, &take);
        let pieces = ranges(blob, item).map_ok(|(range, written)| async move {
            let bytes = range.end - range.start;
            let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).expect("a piece has at most 128 units");
            let _held = self.budget.acquire_many(units).await.expect("it is never closed");
            let bytes = read_range(blob, item, range.clone()).await?;
            let mut sum = Checksum::default();
            // Whether a page of zeros was written or never touched makes no difference to its readers.
            if item.kind != BlobKind::Page || bytes.iter().any(|byte| *byte != 0) {
                sum.add(checksum::piece(range.start, &bytes));
            }
            take(Piece { start: range.start, bytes, written }).await?;
            Ok::<_, larimar_client::Error>(sum)
        });
        let add = |mut sum: Checksum, piece| {
            sum.merge(piece);
            ready(Ok(sum))
        };
        pieces.try_buffer_unordered(at_once).try_fold(Checksum::default(), add).await
    }
}

/// One piece may be larger than what services and clients send in one response.
async fn read_range(blob: &Blob, item: &BlobItem, range: Range<u64>) -> Result<Bytes, larimar_client::Error> {
    if range.end - range.start <= READ_BYTES_MAX {
        return blob.download_part(range, &item.etag).await;
    }
    let mut whole = BytesMut::with_capacity(usize::try_from(range.end - range.start).unwrap_or(0));
    for start in range.clone().step_by(READ_BYTES_MAX as usize) {
        let end = range.end.min(start + READ_BYTES_MAX);
        whole.extend_from_slice(&blob.download_part(start..end, &item.etag).await?);
    }
    Ok(whole.freeze())
}

/// The ranges that are read, with what of them was written.
fn ranges<'a>(
    blob: &'a Blob,
    item: &'a BlobItem,
) -> impl Stream<Item = Result<(Range<u64>, Vec<Range<u64>>), larimar_client::Error>> + 'a {
    let size = item.size;
    if item.kind != BlobKind::Page {
        let step = piece_bytes(item.kind, size);
        let starts = (0..size).step_by(usize::try_from(step).expect("a piece fits into memory"));
        let pieces =
            starts.map(move |start| start..size.min(start + step)).map(|range| Ok((range.clone(), vec![range])));
        return stream::iter(pieces).left_stream();
    }
    let windows = (0..size).step_by(WINDOW_BYTES as usize).map(move |start| start..size.min(start + WINDOW_BYTES));
    let pieces = stream::iter(windows).then(move |window| async move {
        let written = blob.page_ranges(window.clone(), BlobCondition::ETag(item.etag.clone())).await?;
        let pieces = window.clone().step_by(PAGES_BYTES as usize).filter_map(move |start| {
            let piece = start..window.end.min(start + PAGES_BYTES);
            let first = written.partition_point(|range| range.end <= piece.start);
            let within = written[first..].iter().take_while(|range| range.start < piece.end);
            let within: Vec<_> = within.map(|range| range.start.max(piece.start)..range.end.min(piece.end)).collect();
            (!within.is_empty()).then_some(Ok((piece, within)))
        });
        Ok::<_, larimar_client::Error>(stream::iter(pieces))
    });
    pieces.try_flatten().right_stream()
}

/// Bytes of a piece: a block of a block blob, of which there are at most 50,000, or an append.
pub(super) fn piece_bytes(kind: BlobKind, size: u64) -> u64 {
    match kind {
        BlobKind::Block => (size.div_ceil(BLOCKS_MAX)).next_multiple_of(UNIT_BYTES).max(BLOCK_BYTES),
        _ => PAGES_BYTES,
    }
}

/// The most pages and the usual append of one request.
const PAGES_BYTES: u64 = 4 << 20;
/// The usual block.
const BLOCK_BYTES: u64 = 8 << 20;
const BLOCKS_MAX: u64 = 50_000;
/// Of what one request asks whether it was written.
const WINDOW_BYTES: u64 = 256 << 20;
/// Bytes of one response.
const READ_BYTES_MAX: u64 = 8 << 20;
const PIECES_AT_ONCE: usize = 4;
const UNIT_BYTES: u64 = 1 << 20;
/// Pieces in memory have 128 MiB together.
const UNITS_MAX: u32 = 128;
/// The largest piece: the client sends a block from memory. Blobs that would need larger blocks are refused.
const PIECE_BYTES_MAX: u64 = UNITS_MAX as u64 * UNIT_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_blob_has_no_more_blocks_than_the_service_takes() {
        let largest = 50_000 * (4_000 << 20);
        for size in [1, BLOCK_BYTES, BLOCK_BYTES + 1, 400 << 30, 1 << 40, largest] {
            let piece = piece_bytes(BlobKind::Block, size);
            assert!(size.div_ceil(piece) <= BLOCKS_MAX, "{size}");
            assert!(piece <= 4_000 << 20, "{size}");
        }
        assert_eq!(piece_bytes(BlobKind::Block, BLOCKS_MAX * PIECE_BYTES_MAX), PIECE_BYTES_MAX, "6,250 GiB");
        assert!(piece_bytes(BlobKind::Block, BLOCKS_MAX * PIECE_BYTES_MAX + 1) > PIECE_BYTES_MAX);
        assert_eq!(piece_bytes(BlobKind::Block, 300 << 30), BLOCK_BYTES, "small pieces while they suffice");
    }
}
