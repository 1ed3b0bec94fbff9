//! Makes a segment of spooled commits, with the payloads that they point to.

use super::line::SegmentName;
use super::segment::{SegmentWriter, Span};
use super::spool::SpooledGroup;
use crate::error::BackupError;
use crate::place::Place;
use crate::sender::store;
use crate::take::{INLINE_BYTES_MAX, PIECE_BYTES, read_payload};
use bytes::Bytes;
use larimar_engine::blob::bytes::{ByteStore, Extent};

/// The segment of some groups. Large payloads are stored as chunks of the place on the way; their names are returned.
pub(super) async fn compose<B: ByteStore>(
    groups: &[SpooledGroup],
    name: SegmentName,
    bytes: Option<&B>,
    place: &Place,
) -> Result<(Bytes, Vec<String>), BackupError> {
    let mut writer = SegmentWriter::default();
    let mut stored = Vec::new();
    for group in groups {
        for extent in &group.payloads {
            // A group may point to more small payloads than a segment has room for.
            if inline_bytes(extent) > 0 && writer.len() < SEGMENT_BYTES || extent.length == 0 {
                writer.payload(extent, &read_payload(bytes, extent, 0..extent.length, Vec::new()).await?);
                continue;
            }
            let (mut chunks, mut start) = (Vec::new(), 0);
            while start < extent.length {
                let end = (start + PIECE_BYTES).min(extent.length);
                let piece = read_payload(bytes, extent, start..end, Vec::new()).await?;
                let (chunk, is_new) = store(place, piece.into()).await?;
                if is_new {
                    stored.push(chunk.name());
                }
                chunks.push(chunk);
                start = end;
            }
            writer.pieces(extent, &chunks);
        }
        writer.commits(&group.records);
    }
    // The next group is published later.
    let through = groups.last().map(|group| group.end.published).expect("a segment has commits");
    Ok((writer.finish(Span { first: name.first, last: name.last, through }), stored))
}

/// How many bytes of a segment a payload takes.
pub(super) fn inline_bytes(extent: &Extent) -> usize {
    if extent.length <= INLINE_BYTES_MAX { extent.length as usize } else { 0 }
}

/// A segment that is this long is stored without waiting for more.
pub(super) const SEGMENT_BYTES: usize = 16 << 20;
