//! Where the bytes of a blob are: blocks in order, and pages by offset.
//!
//! A short list of blocks is stored in the blob's own row. A long one is cut into chunks, immutable rows whose lengths
//! are in the blob's row: a range is found by reading the chunks it touches. Pages are kept by regions of 16 MiB
//! (`page_region.rs`); a snapshot freezes their rows by beginning a new epoch.

use super::bytes::Extent;
use super::codec::{Reader, put_bytes, put_number};
use std::ops::Range;

/// A part of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The payload.
    pub(crate) extent: Extent,
    /// The offset of the part in the payload.
    pub(crate) skip: u64,
    /// Its length in bytes.
    pub(crate) length: u64,
}

/// One block of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its id; empty if it was put or appended without one.
    pub(crate) id: String,
    /// Its bytes.
    pub(crate) piece: Piece,
}

/// The blocks of a blob, in order: first those in chunks, then those in the blob's own row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The number that the names of the chunks begin with.
    pub(crate) set: u64,
    /// What the chunks hold, in order.
    pub(crate) chunks: Vec<ChunkHead>,
    /// The blocks in the blob's own row.
    pub(crate) tail: Vec<Block>,
}

/// How much a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    /// Bytes of its blocks.
    pub(crate) bytes: u64,
    /// Its blocks.
    pub(crate) blocks: u32,
}

/// Which rows hold the pages of a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pages {
    /// The number that the names of the rows begin with.
    pub(crate) map: u64,
    /// The epoch of this version: rows of later epochs do not belong to it.
    pub(crate) epoch: u32,
}

/// Where the bytes of a blob are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In blocks.
    Blocks(Blocks),
    /// In pages.
    Pages(Pages),
}

/// Consecutive pages that are stored in one payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Their offset in the blob.
    pub(crate) start: u64,
    /// Their bytes.
    pub(crate) piece: Piece,
    /// Whether no other region has bytes of the payload.
    pub(crate) is_local: bool,
}

impl Run {
    /// The offset after the last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.piece.length
    }

    /// The part inside a range of the blob.
    pub(crate) fn within(&self, range: Range<u64>) -> Option<Self> {
        let (start, end) = (self.start.max(range.start), self.end().min(range.end));
        if start >= end {
            return None;
        }
        Some(Self { start, piece: self.piece.slice(start - self.start..end - self.start), is_local: self.is_local })
    }
}

impl Piece {
    /// A whole payload.
    pub(crate) const fn whole(extent: Extent) -> Self {
        Self { extent, skip: 0, length: extent.length }
    }

    /// The bytes that lie inside a range of this piece.
    pub(crate) fn slice(&self, range: Range<u64>) -> Self {
        debug_assert!(range.end <= self.length, "the range lies inside");
        Self { extent: self.extent, skip: self.skip + range.start, length: range.end - range.start }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.extent.encode(out);
        put_number(out, self.skip);
        // The bytes of the payload after the piece: almost always 0.
        put_number(out, self.extent.length - self.skip - self.length);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let extent = Extent::decode(&mut reader.0)?;
        let skip = reader.number()?;
        let length = extent.length.checked_sub(skip)?.checked_sub(reader.number()?)?;
        Some(Self { extent, skip, length })
    }
}

impl Block {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.id.as_bytes());
        self.piece.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { id: reader.text()?.to_owned(), piece: Piece::decode(reader)? })
    }
}

impl Blocks {
    /// One block without an id, or none.
    pub(crate) fn of(extent: Option<Extent>) -> Self {
        let block = extent.filter(|extent| extent.length > 0);
        let tail = block.map(|extent| Block { id: String::new(), piece: Piece::whole(extent) }).into_iter().collect();
        Self { set: 0, chunks: Vec::new(), tail }
    }

    /// The blocks of a list, cut into chunks if it is long: what the blob's row holds, and the rows of the chunks. Other
    /// tasks run after each chunk.
    pub(crate) async fn cut<T, R>(
        set: u64,
        list: &[T],
        blocks_of: impl Fn(&[T]) -> Result<Vec<Block>, R>,
    ) -> Result<(Self, Vec<Vec<u8>>), R> {
        if list.len() <= INLINE_MAX {
            return Ok((Self { set: 0, chunks: Vec::new(), tail: blocks_of(list)? }, Vec::new()));
        }
        let (mut chunks, mut rows) = (Vec::new(), Vec::new());
        for part in list.chunks(CHUNK_BLOCKS) {
            let blocks = blocks_of(part)?;
            chunks.push(ChunkHead::of(&blocks));
            rows.push(encode_blocks(&blocks));
            tokio::task::yield_now().await;
        }
        Ok((Self { set, chunks, tail: Vec::new() }, rows))
    }

    /// Moves the tail to a chunk if it is long; returns the chunk's row.
    pub(crate) fn spill(&mut self, set: u64) -> Option<Vec<u8>> {
        if self.tail.len() < INLINE_MAX {
            return None;
        }
        if self.chunks.is_empty() {
            self.set = set;
        }
        self.chunks.push(ChunkHead::of(&self.tail));
        Some(encode_blocks(&std::mem::take(&mut self.tail)))
    }

    /// How many bytes the blocks have.
    pub(crate) fn length(&self) -> u64 {
        let tail = self.tail.iter().map(|block| block.piece.length).sum::<u64>();
        self.chunks.iter().map(|chunk| chunk.bytes).sum::<u64>() + tail
    }

    /// How many blocks there are.
    pub(crate) fn count(&self) -> u32 {
        self.chunks.iter().map(|chunk| chunk.blocks).sum::<u32>() + self.tail.len() as u32
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.set);
        put_number(out, self.chunks.len() as u64);
        for chunk in &self.chunks {
            put_number(out, chunk.bytes);
            put_number(out, u64::from(chunk.blocks));
        }
        out.extend_from_slice(&encode_blocks(&self.tail));
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let heads = Self::decode_heads(reader)?;
        Some(Self { tail: take_blocks(reader)?, ..heads })
    }

    fn decode_heads(reader: &mut Reader<'_>) -> Option<Self> {
        let set = reader.number()?;
        let count = reader.count()?;
        let chunks = (0..count)
            .map(|_| Some(ChunkHead { bytes: reader.number()?, blocks: reader.small()? }))
            .collect::<Option<_>>()?;
        Some(Self { set, chunks, tail: Vec::new() })
    }
}

impl ChunkHead {
    fn of(blocks: &[Block]) -> Self {
        Self { bytes: blocks.iter().map(|block| block.piece.length).sum(), blocks: blocks.len() as u32 }
    }
}

impl Layout {
    /// Appends the stored form: a tag, then the fields.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Blocks(blocks) => {
                out.push(0);
                blocks.encode(out);
            }
            Self::Pages(pages) => {
                out.push(1);
                put_number(out, pages.map);
                put_number(out, u64::from(pages.epoch));
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.byte()? {
            0 => Blocks::decode(reader).map(Self::Blocks),
            1 => Some(Self::Pages(Pages { map: reader.number()?, epoch: reader.small()? })),
            _ => None,
        }
    }

    /// Reads only how many blocks there are.
    pub(crate) fn decode_count(reader: &mut Reader<'_>) -> Option<u32> {
        match reader.byte()? {
            0 => Some(Blocks::decode_heads(reader)?.count() + reader.small()?),
            1 => Some(0),
            _ => None,
        }
    }

    /// The payloads that the blob's own row points to.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Extent> {
        let tail = match self {
            Self::Blocks(blocks) => blocks.tail.as_slice(),
            Self::Pages(_) => &[],
        };
        tail.iter().map(|block| block.piece.extent)
    }

    /// Whether other rows belong to it.
    pub(crate) fn has_rows(&self) -> bool {
        match self {
            Self::Blocks(blocks) => !blocks.chunks.is_empty(),
            Self::Pages(_) => true,
        }
    }
}

/// The stored form of a chunk, and of the tail: how many blocks, then the blocks.
fn encode_blocks(blocks: &[Block]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + blocks.len() * 40);
    put_number(&mut out, blocks.len() as u64);
    for block in blocks {
        block.encode(&mut out);
    }
    out
}

fn take_blocks(reader: &mut Reader<'_>) -> Option<Vec<Block>> {
    let count = reader.count()?;
    (0..count).map(|_| Block::decode(reader)).collect()
}

/// Reads a chunk's row.
pub(crate) fn decode_chunk(body: &[u8]) -> Option<Vec<Block>> {
    let mut reader = Reader(body);
    take_blocks(&mut reader).filter(|_| reader.0.is_empty())
}

/// A chunk's row with other addresses of its payloads.
pub(crate) fn relocate_chunk(body: &[u8], mut to: impl FnMut(&Extent) -> Extent) -> Option<Vec<u8>> {
    let mut blocks = decode_chunk(body)?;
    blocks.iter_mut().for_each(|block| block.piece.extent = to(&block.piece.extent));
    Some(encode_blocks(&blocks))
}

/// The stored form of a block that is not committed: its payload.
pub(crate) fn encode_uncommitted(extent: &Extent) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    extent.encode(&mut out);
    out
}

/// Reads the row of a block that is not committed.
pub(crate) fn decode_uncommitted(mut body: &[u8]) -> Option<Extent> {
    Extent::decode(&mut body).filter(|_| body.is_empty())
}

/// Blocks that the blob's own row holds at most.
pub(crate) const INLINE_MAX: usize = 128;
/// Blocks of a chunk of a list that is committed at once.
pub(crate) const CHUNK_BLOCKS: usize = 512;
