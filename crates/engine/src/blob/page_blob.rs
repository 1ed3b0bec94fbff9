//! Page blobs: Put Page, Get Page Ranges, resizing and sequence numbers.
//!
//! The rules for runs are in `page_runs.rs`, those for rows in `page_region.rs`. A write changes the blob's own row and
//! the rows of the regions it touches, in one commit. If a region has many runs, some are rewritten as one payload, so
//! that its base row stays short.

use super::access::{Admit, BlobRef, Written};
use super::bytes::{ByteStore, ByteWriter, Extent, READ_BYTES_MAX};
use super::change::{Attempts, Change, Decision};
use super::layout::{Layout, Pages, Piece, Run};
use super::page_region::{Delta, REGION_BYTES, Region, encode_runs};
use super::page_runs::{covered, difference, worth_joining};
use super::reclaim::Leftover;
use super::reject::BlobReject;
use super::row::BlobRow;
use super::work_slice::{PIECE_ITEMS, WorkSlice};
use super::{Blobs, keys};
use crate::contract::Engine;
use crate::error::{EngineError, Fault};
use larimar_model::blob::{
    AccessConditions, BlobProperties, BlobType, ByteRange, ContentHeaders, PageRange, SequenceConditions,
    SequenceNumberAction, SnapshotTime,
};
use larimar_model::{Timestamp, limits};
use std::collections::HashSet;
use std::ops::Range;

/// The result of a write of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesWritten {
    /// The blob's new time and etag.
    pub written: Written,
    /// The blob's sequence number.
    pub sequence_number: u64,
}

/// The changes of a page blob by Set Blob Properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageBlobChange {
    /// New content headers.
    pub content: Option<ContentHeaders>,
    /// A new length, a multiple of 512; bytes beyond it are cut off.
    pub length: Option<u64>,
    /// A new sequence number.
    pub sequence_number: Option<SequenceNumberAction>,
}

/// The pages of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageList {
    /// The blob's properties.
    pub properties: BlobProperties,
    /// Ranges that were written, or written since the earlier snapshot.
    pub written: Vec<Range<u64>>,
    /// Ranges that were cleared since the earlier snapshot.
    pub cleared: Vec<Range<u64>>,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Writes pages: `extent` holds exactly their bytes.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease, pages outside of the blob.
    pub async fn put_pages(
        &self,
        at: BlobRef<'_>,
        (range, extent): (PageRange, Extent),
        sequence: SequenceConditions,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<PagesWritten, EngineError> {
        let put = if extent.length == range.len() {
            self.write_pages(at, range, Some(Piece::whole(extent)), sequence, access, now).await
        } else {
            Err(BlobReject::InvalidPageRange.into())
        };
        self.settle(put, &[extent])
    }

    /// Clears pages: they read as zeros and take no space.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease, pages outside of the blob.
    pub async fn clear_pages(
        &self,
        at: BlobRef<'_>,
        range: PageRange,
        sequence: SequenceConditions,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<PagesWritten, EngineError> {
        self.write_pages(at, range, None, sequence, access, now).await
    }

    /// Changes the length, the sequence number or the content headers of a page blob.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease, a length that is not of whole pages,
    /// [`BlobReject::SequenceNumberIncrementTooLarge`].
    pub async fn change_page_blob(
        &self,
        at: BlobRef<'_>,
        change: &PageBlobChange,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<PagesWritten, EngineError> {
        let is_aligned = |length: u64| length.is_multiple_of(limits::PAGE_BYTES);
        if change.length.is_some_and(|length| !is_aligned(length) || length > limits::PAGE_BLOB_BYTES_MAX) {
            return Err(BlobReject::InvalidPageRange.into());
        }
        self.change_pages(at, access, now, |row| {
            let old_length = row.length;
            if let Some(content) = &change.content {
                row.content = content.clone();
            }
            if let Some(action) = change.sequence_number {
                row.sequence_number = renumbered(row.sequence_number, action)?;
            }
            row.length = change.length.unwrap_or(old_length);
            // Bytes that are cut off must not come back when the blob grows again.
            let end = old_length.next_multiple_of(limits::PAGE_BYTES);
            Ok(PageRange::new(row.length, end).ok().map(|range| (range, None)))
        })
        .await
    }

    /// Lists the written ranges of a blob or a snapshot, or the ranges that changed since an earlier snapshot.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease if one is named, a range outside of the
    /// blob, an earlier snapshot that is not there or is later.
    pub async fn page_ranges(
        &self,
        at: BlobRef<'_>,
        (snapshot, since): (Option<SnapshotTime>, Option<SnapshotTime>),
        range: Option<ByteRange>,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<PageList, EngineError> {
        if let (Some(snapshot), Some(since)) = (snapshot, since)
            && since > snapshot
        {
            return Err(BlobReject::PreviousSnapshotCannotBeNewer.into());
        }
        let now = self.now(now).await?;
        let mut attempts = Attempts::default();
        loop {
            let _lock = self.next_read(at, &mut attempts).await?;
            let row = self.load_version(at, snapshot).await?;
            access.admit_read(&row, now)?;
            row.admit_content(snapshot)?;
            let pages = pages_of(&row)?;
            let range = match range {
                Some(range) => range.within(row.length).ok_or(BlobReject::InvalidRange { length: row.length })?,
                None => 0..row.length,
            };
            let runs = self.runs_within(at, pages, range.clone()).await?;
            let (written, cleared) = match since {
                Some(since) => difference(&self.runs_of_snapshot(at, since, &range).await?, &runs, &range),
                None => (covered(&runs, &range), Vec::new()),
            };
            // As for reads: only an unchanged row proves that all pages are of its version.
            if self.load_version(at, snapshot).await? == row {
                return Ok(PageList { properties: row.into_properties(now), written, cleared });
            }
        }
    }

    async fn runs_of_snapshot(
        &self,
        at: BlobRef<'_>,
        snapshot: SnapshotTime,
        range: &Range<u64>,
    ) -> Result<Vec<Run>, EngineError> {
        let name = keys::snapshot(snapshot);
        let row = self.load(at, &name).await?.ok_or(BlobReject::PreviousSnapshotNotFound)?.1;
        let range = range.start.min(row.length)..range.end.min(row.length);
        let runs = self.runs_within(at, pages_of(&row)?, range).await?;
        // The rows of a deleted snapshot are reclaimed; while the snapshot exists, they are complete.
        match self.load(at, &name).await? {
            Some(_) => Ok(runs),
            None => Err(BlobReject::PreviousSnapshotNotFound.into()),
        }
    }

    async fn write_pages(
        &self,
        at: BlobRef<'_>,
        range: PageRange,
        piece: Option<Piece>,
        sequence: SequenceConditions,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<PagesWritten, EngineError> {
        self.change_pages(at, access, now, |row| {
            if !sequence.admit(row.sequence_number) {
                return Err(BlobReject::SequenceNumberConditionNotMet);
            }
            if range.end() > row.length {
                return Err(BlobReject::InvalidPageRange);
            }
            row.released.admit(piece.map(|piece| piece.extent))?;
            Ok(Some((range, piece)))
        })
        .await
    }

    /// Changes a page blob's row, and the pages that `decide` returns.
    async fn change_pages(
        &self,
        at: BlobRef<'_>,
        access: &AccessConditions,
        now: Timestamp,
        decide: impl Fn(&mut BlobRow) -> Result<Option<(PageRange, Option<Piece>)>, BlobReject> + Send + Sync,
    ) -> Result<PagesWritten, EngineError> {
        let now = self.now(now).await?;
        let _hold = self.hold(at);
        let decide = &decide;
        self.change(at, now, |stored| async move {
            let mut row = access.admit_change(stored.row, now)?;
            let pages = pages_of(&row)?;
            let edit = decide(&mut row)?;
            (row.changed, row.lease) = (row.next_change(now), row.lease.after_write(now));
            let done =
                PagesWritten { written: Written { last_modified: row.changed }, sequence_number: row.sequence_number };
            let has_snapshots = row.snapshots > 0;
            let edited = match edit {
                Some((range, piece)) => self.edit_regions(at, pages, range, piece).await?,
                None => Edited::default(),
            };
            // Snapshots may share the payloads; then a later pass reclaims them.
            let unused = if has_snapshots { Vec::new() } else { edited.unused };
            let change = Change::put(row).with_puts(edited.puts).with_deletes(edited.deletes);
            Ok(Decision::Commit(change.leaving(Leftover::unshared(unused)).with_payloads(edited.joined), done))
        })
        .await
    }

    /// The rows of regions after pages were written or cleared.
    async fn edit_regions(
        &self,
        at: BlobRef<'_>,
        pages: Pages,
        range: PageRange,
        piece: Option<Piece>,
    ) -> Result<Edited, EngineError> {
        let mut edited = Edited::default();
        let mut regions = self.regions_within(at, pages, range.start()..range.end()).await?;
        if piece.is_some() {
            let touched = (range.start() / REGION_BYTES) as u32..range.end().div_ceil(REGION_BYTES) as u32;
            for region in touched {
                regions.entry(region).or_insert_with(|| Region::new(pages.epoch));
            }
        }
        // A region may have many runs, and a clearing may touch many regions.
        let mut slice = WorkSlice::default();
        for (number, region) in regions {
            slice.add(1 + region.run_count_max()).await;
            self.edit_region(at, pages, (number, region), Delta::of(range, number, piece), &mut edited).await?;
        }
        Ok(edited)
    }

    /// The rows of one region after a write: its delta, or a new base row.
    async fn edit_region(
        &self,
        at: BlobRef<'_>,
        pages: Pages,
        (number, mut region): (u32, Region),
        delta: Delta,
        edited: &mut Edited,
    ) -> Result<(), EngineError> {
        let (count, body) = (region.delta_count(), delta.encode());
        let is_row = region.add(delta, pages.epoch);
        let mut runs = region.runs();
        let group = worth_joining(&runs);
        if is_row && group.is_none() && !runs.is_empty() {
            edited.puts.push((keys::page_delta(pages.map, number, pages.epoch, count), body));
            return Ok(());
        }
        if let Some(group) = group {
            let (extent, joined) = self.rewrite(at, &runs[group.clone()]).await?;
            edited.joined.push(extent);
            runs.splice(group, joined);
        }
        let kept: HashSet<Extent> = runs.iter().map(|run| run.piece.extent).collect();
        // Other regions may have a part of the new payload: then it is not local.
        edited.unused.extend(region.local_extents().difference(&kept));
        let is_same_epoch = region.epoch == pages.epoch;
        if is_same_epoch {
            let names = (0..count).map(|delta| keys::page_delta(pages.map, number, pages.epoch, delta));
            edited.deletes.extend(names);
        }
        let name = keys::pages(pages.map, number, pages.epoch);
        // A region without pages needs no row, unless an earlier epoch has one, which must stay covered: it may never
        // be reclaimed.
        if runs.is_empty() && is_same_epoch && !region.covers_earlier {
            edited.deletes.push(name);
        } else {
            edited.puts.push((name, encode_runs(&runs)));
        }
        Ok(())
    }

    /// Copies the bytes of runs into one payload; returns it, and the runs that point to it. Adjacent runs are joined.
    pub(crate) async fn rewrite(&self, at: BlobRef<'_>, runs: &[Run]) -> Result<(Extent, Vec<Run>), EngineError> {
        let total = runs.iter().map(|run| run.piece.length).sum();
        let mut writer = self.begin(at, Some(total)).await?;
        let mut slice = WorkSlice::default();
        for Run { piece, .. } in runs {
            let mut place = piece.skip;
            let end = piece.skip + piece.length;
            while place < end {
                let bytes = self.bytes.read(&piece.extent, place..end.min(place + READ_BYTES_MAX)).await?;
                if bytes.is_empty() {
                    return Err(Fault::Damaged(format!("the blob bytes {:?} are cut short", piece.extent)).into());
                }
                place += bytes.len() as u64;
                writer.write(bytes).await?;
                slice.add(PIECE_ITEMS).await;
            }
        }
        let extent = writer.finish().await?;
        let mut skip = 0;
        let joined = covered(runs, &(0..u64::MAX)).into_iter().map(|range| {
            let piece = Piece { extent, skip, length: range.end - range.start };
            skip += piece.length;
            Run { start: range.start, piece, is_local: true }
        });
        Ok((extent, joined.collect()))
    }
}

/// The rows and payloads of a change of pages, besides the blob's row.
#[derive(Debug, Default)]
struct Edited {
    /// Rows of regions to store.
    puts: Vec<(String, Vec<u8>)>,
    /// Rows of regions to delete.
    deletes: Vec<String>,
    /// Payloads that no row of these regions points to any more.
    unused: Vec<Extent>,
    /// Payloads that were written to join runs.
    joined: Vec<Extent>,
}

pub(crate) fn pages_of(row: &BlobRow) -> Result<Pages, BlobReject> {
    match (row.kind, &row.layout) {
        (BlobType::Page, Layout::Pages(pages)) => Ok(*pages),
        _ => Err(BlobReject::InvalidBlobType),
    }
}

fn renumbered(number: u64, action: SequenceNumberAction) -> Result<u64, BlobReject> {
    match action {
        SequenceNumberAction::Max(other) => Ok(number.max(other)),
        SequenceNumberAction::Update(other) => Ok(other),
        // The protocol's numbers are signed.
        SequenceNumberAction::Increment if number >= i64::MAX as u64 => {
            Err(BlobReject::SequenceNumberIncrementTooLarge)
        }
        SequenceNumberAction::Increment => Ok(number + 1),
    }
}
