//! Get Blob and Get Blob Properties: from a range to the pieces of payloads that hold it.

use super::Blobs;
use super::access::{Admit, BlobRef};
use super::bytes::{ByteStore, Bytes, READ_BYTES_MAX};
use super::change::Attempts;
use super::codec::damaged;
use super::keys::{self, RowName};
use super::layout::{Block, Blocks, Layout, Pages, Piece, Run, decode_chunk};
use super::page_region::{DELTAS_MAX, REGION_BYTES, Region};
use super::reject::BlobReject;
use super::row::BlobRow;
use super::work_slice::WorkSlice;
use crate::contract::{Engine, Flow};
use crate::error::{EngineError, Fault};
use larimar_model::Timestamp;
use larimar_model::blob::{AccessConditions, BlobProperties, ByteRange, SnapshotTime};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// A blob that was opened for reading.
#[derive(Debug)]
pub struct OpenBlob<B> {
    /// Its properties.
    pub properties: BlobProperties,
    /// The bytes that are read: the requested range, cut at the end of the blob.
    pub range: Range<u64>,
    /// The bytes.
    pub content: Content<B>,
}

/// The bytes of a blob, read piece by piece. They are those of the moment when the blob was opened, even if it is
/// changed or deleted meanwhile, for as long as the store keeps discarded payloads.
#[derive(Debug)]
pub struct Content<B> {
    bytes: Arc<B>,
    segments: VecDeque<Segment>,
}

/// Consecutive bytes of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// In a payload.
    Data(Piece),
    /// Pages that were never written.
    Zeros(u64),
}

impl<B: ByteStore> Content<B> {
    pub(crate) fn new(bytes: Arc<B>, segments: VecDeque<Segment>) -> Self {
        Self { bytes, segments }
    }

    /// The next bytes, at most 1 MiB; `None` at the end.
    ///
    /// # Errors
    /// Faults of the store; the rest cannot be read then.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        self.next_within(READ_BYTES_MAX).await
    }

    /// The next bytes, at most `bytes_max` and at most 1 MiB; `None` at the end.
    ///
    /// # Errors
    /// Faults of the store; the rest cannot be read then.
    pub async fn next_within(&mut self, bytes_max: u64) -> Result<Option<Bytes>, Fault> {
        let bytes_max = bytes_max.clamp(1, READ_BYTES_MAX);
        let Some(segment) = self.segments.front_mut() else { return Ok(None) };
        let (bytes, is_spent) = match segment {
            Segment::Zeros(count) => {
                let length = (*count).min(ZEROS.len() as u64).min(bytes_max);
                *count -= length;
                (Bytes::from_static(&ZEROS[..length as usize]), *count == 0)
            }
            Segment::Data(piece) => {
                let length = piece.length.min(bytes_max);
                let bytes = self.bytes.read(&piece.extent, piece.skip..piece.skip + length).await?;
                let taken = bytes.len() as u64;
                if taken == 0 || taken > length {
                    return Err(Fault::Damaged(format!("the blob bytes {:?} are cut short", piece.extent)));
                }
                *piece = piece.slice(taken..piece.length);
                // The store read more than this small piece; a copy lets the rest be freed.
                let is_small = taken <= COPIED_BYTES_MAX && taken < piece.extent.length;
                (if is_small { Bytes::copy_from_slice(&bytes) } else { bytes }, piece.length == 0)
            }
        };
        if is_spent {
            self.segments.pop_front();
        }
        Ok(Some(bytes))
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Returns the properties, metadata and tags of a blob or a snapshot.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease if one is named.
    pub async fn properties(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<BlobProperties, EngineError> {
        let now = self.now(now).await?;
        let row = self.load_version(at, snapshot).await?;
        access.admit_read(&row, now)?;
        Ok(row.into_properties(now))
    }

    /// Opens a blob or a snapshot to read its bytes, or a range of them.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease if one is named, [`BlobReject::InvalidRange`].
    pub async fn open(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        range: Option<ByteRange>,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<OpenBlob<B>, EngineError> {
        let now = self.now(now).await?;
        let mut attempts = Attempts::default();
        loop {
            let _lock = self.next_read(at, &mut attempts).await?;
            let row = self.load_version(at, snapshot).await?;
            access.admit_read(&row, now)?;
            row.admit_online(now)?;
            row.admit_content(snapshot)?;
            let range = match range {
                Some(range) => range.within(row.length).ok_or(BlobReject::InvalidRange { length: row.length })?,
                None => 0..row.length,
            };
            if let Some(segments) = self.segments(at, &row, snapshot, range.clone()).await? {
                let content = Content::new(Arc::clone(&self.bytes), segments);
                return Ok(OpenBlob { properties: row.into_properties(now), range, content });
            }
        }
    }

    /// The row of a blob or of a snapshot, which must exist.
    pub(crate) async fn load_version(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
    ) -> Result<BlobRow, EngineError> {
        let name = snapshot.map_or(keys::BLOB.to_owned(), keys::snapshot);
        let row = self.load(at, &name).await?.map(|(_, row)| row).filter(|row| row.is_committed);
        Ok(row.ok_or(BlobReject::BlobNotFound)?)
    }

    /// Where the bytes of a range are; `None` if the blob was changed while its rows were read.
    async fn segments(
        &self,
        at: BlobRef<'_>,
        row: &BlobRow,
        snapshot: Option<SnapshotTime>,
        range: Range<u64>,
    ) -> Result<Option<VecDeque<Segment>>, EngineError> {
        match &row.layout {
            Layout::Blocks(blocks) => self.block_segments(at, blocks, range).await,
            Layout::Pages(pages) => {
                let runs = self.runs_within(at, *pages, range.clone()).await?;
                // Pages change in place, and a missing row means pages without bytes: only an unchanged blob row proves
                // that all pages are of its version.
                let is_unchanged = self.load_version(at, snapshot).await? == *row;
                Ok(is_unchanged.then(|| page_segments(&runs, range)))
            }
        }
    }

    /// Where the bytes of a range are; `None` if a chunk is missing because the blob was changed since its row was
    /// read.
    async fn block_segments(
        &self,
        at: BlobRef<'_>,
        blocks: &Blocks,
        range: Range<u64>,
    ) -> Result<Option<VecDeque<Segment>>, EngineError> {
        let ends = blocks.chunks.iter().scan(0, |end, chunk| {
            *end += chunk.bytes;
            Some(*end)
        });
        let ends: Vec<u64> = ends.collect();
        let first = ends.partition_point(|end| *end <= range.start);
        // Chunk n begins where the one before it ends.
        let last = ends.partition_point(|end| *end < range.end).saturating_add(1).min(ends.len());
        let needs_tail = ends.last().is_none_or(|end| range.end > *end);
        let mut segments = BlockSegments::new(if first == 0 { 0 } else { ends[first - 1] }, range);
        if !self.visit_chunks(at, blocks, first..last.max(first), |block| segments.add(&block.piece)).await? {
            return Ok(None);
        }
        if needs_tail {
            blocks.tail.iter().for_each(|block| segments.add(&block.piece));
        }
        Ok(Some(segments.found))
    }

    /// All blocks of a blob; `None` if a chunk is missing because the blob was changed since its row was read.
    pub(crate) async fn all_blocks(&self, at: BlobRef<'_>, blocks: &Blocks) -> Result<Option<Vec<Block>>, EngineError> {
        let mut found = Vec::new();
        Ok(self.visit_blocks(at, blocks, |block| found.push(block)).await?.then_some(found))
    }

    /// Visits all blocks of a blob in their order; `false` if a chunk is missing, because the blob was changed since its
    /// row was read.
    pub(crate) async fn visit_blocks(
        &self,
        at: BlobRef<'_>,
        blocks: &Blocks,
        mut visit: impl FnMut(Block) + Send,
    ) -> Result<bool, EngineError> {
        let is_whole = self.visit_chunks(at, blocks, 0..blocks.chunks.len(), &mut visit).await?;
        if is_whole {
            blocks.tail.iter().cloned().for_each(visit);
        }
        Ok(is_whole)
    }

    /// Visits the blocks of some chunks; `false` if a chunk is missing.
    async fn visit_chunks(
        &self,
        at: BlobRef<'_>,
        blocks: &Blocks,
        chunks: Range<usize>,
        mut visit: impl FnMut(Block) + Send,
    ) -> Result<bool, EngineError> {
        if chunks.is_empty() {
            return Ok(true);
        }
        let mut count = 0;
        let (from, to) = (keys::chunk(blocks.set, chunks.start), keys::chunk(blocks.set, chunks.end));
        self.visit_rows(at, (&from, &to), |row| {
            count += 1;
            decode_chunk(row.body).ok_or_else(|| damaged("a list of blocks"))?.into_iter().for_each(&mut visit);
            // A chunk is long: yield after each.
            Ok(Flow::Pause)
        })
        .await?;
        Ok(count == chunks.len())
    }

    /// The runs of pages of a version of a blob that touch a range, in order.
    pub(crate) async fn runs_within(
        &self,
        at: BlobRef<'_>,
        pages: Pages,
        range: Range<u64>,
    ) -> Result<Vec<Run>, EngineError> {
        let regions = self.regions_within(at, pages, range.clone()).await?;
        let (mut runs, mut slice) = (Vec::new(), WorkSlice::default());
        for region in regions.into_values() {
            let of_region = region.runs().into_iter();
            slice.add(1 + of_region.len()).await;
            runs.extend(of_region.filter(|run| run.start < range.end && run.end() > range.start));
        }
        Ok(runs)
    }

    /// The regions of a version of a blob that touch a range and have a row.
    pub(crate) async fn regions_within(
        &self,
        at: BlobRef<'_>,
        pages: Pages,
        range: Range<u64>,
    ) -> Result<BTreeMap<u32, Region>, EngineError> {
        let first = (range.start / REGION_BYTES) as u32;
        let end = range.end.div_ceil(REGION_BYTES) as u32;
        let (mut from, to) = (keys::pages(pages.map, first, 0), keys::pages(pages.map, end, 0));
        let mut regions = BTreeMap::new();
        loop {
            let (mut current, mut rows, mut passed) = (first, 0, None);
            self.visit_rows(at, (&from, &to), |row| {
                let Some(RowName::Pages { region, epoch, delta, .. }) = RowName::parse(row.row) else {
                    return Err(damaged("the name of a blob's row"));
                };
                rows = if region == current { rows + 1 } else { 1 };
                current = region;
                // Rows of many snapshots, which this version does not need.
                if rows > PASSED_ROWS_MAX && epoch != pages.epoch && delta.is_none() {
                    passed = Some((region, epoch));
                    return Ok(Flow::StopHere);
                }
                // Of each region the newest epoch that is not after the version counts.
                if epoch <= pages.epoch {
                    let read = Region::read_row(&mut regions, (region, epoch, delta), row.body);
                    read.ok_or_else(|| damaged("a row of pages"))?;
                }
                Ok(Flow::Continue)
            })
            .await?;
            from = match passed {
                None => return Ok(regions),
                Some((region, epoch)) if epoch > pages.epoch => keys::pages(pages.map, region + 1, 0),
                Some((region, epoch)) => {
                    let newest = self.newest_epoch(at, pages, (region, epoch)).await?;
                    keys::pages(pages.map, region, newest)
                }
            };
        }
    }

    /// The newest epoch of a region up to a version's epoch, given a known one: a binary search that reads one row per
    /// step.
    async fn newest_epoch(
        &self,
        at: BlobRef<'_>,
        pages: Pages,
        (region, known): (u32, u32),
    ) -> Result<u32, EngineError> {
        let (mut newest, mut bound) = (known, pages.epoch);
        while newest < bound {
            let middle = bound - (bound - newest) / 2;
            let (from, to) = (keys::pages(pages.map, region, middle), keys::pages(pages.map, region + 1, 0));
            match self.first_row(at, (&from, &to)).await?.as_deref().map(RowName::parse) {
                Some(Some(RowName::Pages { epoch, .. })) if epoch <= bound => newest = epoch,
                Some(Some(RowName::Pages { .. })) | None => bound = middle - 1,
                Some(_) => return Err(damaged("the name of a blob's row").into()),
            }
        }
        Ok(newest)
    }
}

/// The parts of blocks that lie inside a range.
#[derive(Debug)]
pub(crate) struct BlockSegments {
    /// Where the next block begins.
    place: u64,
    range: Range<u64>,
    pub(crate) found: VecDeque<Segment>,
}

impl BlockSegments {
    /// Starts at the first block, which begins at `place`.
    pub(crate) const fn new(place: u64, range: Range<u64>) -> Self {
        Self { place, range, found: VecDeque::new() }
    }

    /// Adds the next block.
    pub(crate) fn add(&mut self, piece: &Piece) {
        let end = self.place + piece.length;
        let inside = self.range.start.max(self.place)..self.range.end.min(end);
        if inside.start < inside.end {
            self.found.push_back(Segment::Data(piece.slice(inside.start - self.place..inside.end - self.place)));
        }
        self.place = end;
    }
}

/// The runs that lie inside a range, and the zeros between them.
fn page_segments(runs: &[Run], range: Range<u64>) -> VecDeque<Segment> {
    let mut segments = VecDeque::new();
    let mut place = range.start;
    for run in runs {
        let inside = place.max(run.start)..range.end.min(run.end());
        if inside.start >= inside.end {
            continue;
        }
        if inside.start > place {
            segments.push_back(Segment::Zeros(inside.start - place));
        }
        segments.push_back(Segment::Data(run.piece.slice(inside.start - run.start..inside.end - run.start)));
        place = inside.end;
    }
    if place < range.end {
        segments.push_back(Segment::Zeros(range.end - place));
    }
    segments
}

/// Rows of a region that are read one after the other before a search skips the rest: two epochs.
const PASSED_ROWS_MAX: usize = 2 * (1 + DELTAS_MAX);
/// Pieces up to this size are copied out of the buffer that the store read.
const COPIED_BYTES_MAX: u64 = 32 << 10;

static ZEROS: [u8; 65_536] = [0; 65_536];
