//! Incremental Copy Blob: snapshots of a page blob become snapshots of another, of which only the differences are copied.
//!
//! The destination's row and its newest snapshot always have the pages of the source's snapshot that was copied last. The
//! next copy compares that snapshot with a later one of the source, writes the pages that differ into rows of the
//! destination's epoch, and takes a snapshot of it; one commit shows all of that. The destination itself is neither read
//! nor changed otherwise, so it cannot come to differ from what was copied.

use super::access::{Admit, BlobRef, Written};
use super::bytes::{ByteStore, Extent};
use super::change::{Attempts, Change, Decision};
use super::codec::{Reader, put_bytes, put_time};
use super::copy::{CopyPlan, CopySource};
use super::layout::{Layout, Pages, Run};
use super::page_blob::pages_of;
use super::page_region::{REGION_BYTES, Region, encode_runs};
use super::page_runs::{difference, inside, outside, worth_joining};
use super::put::replacement;
use super::reclaim::unreachable::Leftover;
use super::reject::BlobReject;
use super::row::BlobRow;
use super::snapshot::{frozen, next_epoch};
use super::work_slice::WorkSlice;
use super::{Blobs, keys};
use crate::contract::Engine;
use crate::error::EngineError;
use larimar_model::blob::{Access, BlobType, CopyInfo, IncrementalCopy, NewBlob, SnapshotTime, Tags};
use larimar_model::{Guid, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What an incremental copy is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncrementalCopyRequest {
    /// The copy's id, made up by the caller.
    pub id: Guid,
    /// The source's address as the request has it; what is kept of it has no secrets.
    pub source_url: String,
    /// The source blob, however its address is spelled: its account, its container and its name, separated by slashes.
    /// All copies of a destination have the same.
    pub source_blob: String,
}

/// The last copy of a destination, which the next one adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Basis {
    /// The destination's pages.
    pages: Pages,
    /// The destination's length.
    length: u64,
    /// The source's snapshot that was copied.
    copied: SnapshotTime,
}

/// The regions of the destination that a copy changes.
#[derive(Debug, Default)]
struct Changed {
    regions: Vec<(u32, Vec<Run>)>,
    /// The new payloads.
    extents: Vec<Extent>,
}

/// A copy before it is visible.
struct Prepared<'a> {
    request: &'a IncrementalCopyRequest,
    /// The source's snapshot, and its row.
    source: (SnapshotTime, BlobRow),
    basis: Option<Basis>,
    changed: Changed,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Copies a snapshot of a page blob to a blob that is not there yet, or that has earlier snapshots of the same source,
    /// and takes a snapshot of it. The copy is finished when this returns.
    ///
    /// # Errors
    /// [`BlobReject::SourceNotFound`], conditions on either side, the lease, a source that is not a snapshot of a page blob,
    /// that is of another blob or earlier than the last copy, that was replaced since, or whose last copied snapshot is gone.
    pub async fn copy_incremental(
        &self,
        source: &CopySource<'_>,
        at: BlobRef<'_>,
        request: &IncrementalCopyRequest,
        access: &Access,
        now: Timestamp,
    ) -> Result<(Written, CopyInfo), EngineError> {
        let snapshot = source.snapshot.ok_or(BlobReject::IncrementalCopySourceMustBeSnapshot)?;
        let admitted = self.now(now).await?;
        let _hold = self.hold(at);
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let (row, plan) = self.plan_copy(source).await?;
            let CopyPlan::Regions(pages) = plan else { return Err(BlobReject::InvalidSourceBlobType.into()) };
            // What will be refused is refused before the bytes are copied.
            let there = self.load(at, keys::BLOB).await?.map(|(_, row)| row);
            let basis = admit(there.as_ref(), request, snapshot, access, admitted)?;
            let changed = self.copy_changes(source.at, (&row, pages), at, basis).await?;
            let extents = changed.extents.clone();
            let prepared = Prepared { request, source: (snapshot, row), basis, changed };
            let installed = self.install_incremental(at, &prepared, access, now).await;
            if let Some(done) = self.settle(installed, &extents)? {
                return Ok(done);
            }
            self.discard(extents);
        }
    }

    /// Copies the pages that differ between the source's snapshot and the last one that was copied.
    async fn copy_changes(
        &self,
        source: BlobRef<'_>,
        (row, later): (&BlobRow, BTreeMap<u32, Region>),
        at: BlobRef<'_>,
        basis: Option<Basis>,
    ) -> Result<Changed, EngineError> {
        let (earlier, there) = match basis {
            None => (BTreeMap::new(), BTreeMap::new()),
            Some(basis) => {
                let earlier = self.copied_regions(source, basis.copied, pages_of(row)?).await?;
                (earlier, self.regions_within(at, basis.pages, 0..basis.length).await?)
            }
        };
        let numbers: BTreeSet<u32> = earlier.keys().chain(later.keys()).copied().collect();
        let (mut changed, mut slice) = (Changed::default(), WorkSlice::default());
        for number in numbers {
            let (before, after) = (earlier.get(&number), later.get(&number));
            if before == after {
                slice.add(1).await;
                continue;
            }
            let (before, after) = (runs_of(before), runs_of(after));
            slice.add(1 + before.len() + after.len()).await;
            let there = runs_of(there.get(&number));
            self.copy_region(at, number, [&before, &after, &there], &mut changed).await?;
        }
        Ok(changed)
    }

    /// The pages of the source that were copied last. The source must still be the same blob, with the snapshot.
    async fn copied_regions(
        &self,
        source: BlobRef<'_>,
        snapshot: SnapshotTime,
        later: Pages,
    ) -> Result<BTreeMap<u32, Region>, EngineError> {
        let name = keys::snapshot(snapshot);
        let (_, row) = self.load(source, &name).await?.ok_or(BlobReject::PreviousSnapshotNotFound)?;
        // Put Blob and Copy Blob begin new maps.
        let pages = pages_of(&row).ok().filter(|pages| pages.map == later.map).ok_or(BlobReject::SourceOverwritten)?;
        let regions = self.regions_within(source, pages, 0..row.length).await?;
        // Clean-up removes the rows of a snapshot that was deleted; while it is there, they are.
        match self.load(source, &name).await? {
            Some(_) => Ok(regions),
            None => Err(BlobReject::PreviousSnapshotNotFound.into()),
        }
    }

    /// Copies what differs in one region: from the runs of the source before and after to those that are there.
    async fn copy_region(
        &self,
        at: BlobRef<'_>,
        number: u32,
        [before, after, there]: [&[Run]; 3],
        changed: &mut Changed,
    ) -> Result<(), EngineError> {
        let start = u64::from(number) * REGION_BYTES;
        let (written, cleared) = difference(before, after, &(start..start + REGION_BYTES));
        if written.is_empty() && cleared.is_empty() {
            return Ok(());
        }
        let mut runs = outside(&outside(there, &written), &cleared);
        let fresh = inside(after, &written);
        if !fresh.is_empty() {
            let (extent, fresh) = self.rewrite(at, &fresh).await?;
            changed.extents.push(extent);
            runs.extend(fresh);
            runs.sort_unstable_by_key(|run| run.start);
        }
        if let Some(group) = worth_joining(&runs) {
            let (extent, joined) = self.rewrite(at, &runs[group.clone()]).await?;
            changed.extents.push(extent);
            runs.splice(group, joined);
        }
        changed.regions.push((number, runs));
        Ok(())
    }

    /// Makes a copy visible; nothing if another copy came between.
    async fn install_incremental(
        &self,
        at: BlobRef<'_>,
        prepared: &Prepared<'_>,
        access: &Access,
        now: Timestamp,
    ) -> Result<Option<(Written, CopyInfo)>, EngineError> {
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let old = stored.row;
            if admit(old.as_ref(), prepared.request, prepared.source.0, access, now)? != prepared.basis {
                return Ok(Decision::Keep(None));
            }
            let time = self.free_snapshot_time(at, self.earliest_snapshot_time(stored.version, now)).await?;
            let (change, written, copy) = prepared.change(old.as_ref(), time, now)?;
            // Of a blob that was not there yet only uncommitted blocks can be left.
            let replaced = old.filter(|_| prepared.basis.is_none());
            let change = change.leaving(replaced.map(Leftover::of).unwrap_or_default());
            Ok(Decision::Commit(change, Some((written, copy))))
        })
        .await
    }
}

impl Prepared<'_> {
    /// The rows after the copy: the destination's, the changed regions, and the new snapshot.
    fn change(
        &self,
        old: Option<&BlobRow>,
        time: SnapshotTime,
        now: Timestamp,
    ) -> Result<(Change, Written, CopyInfo), BlobReject> {
        let (source_snapshot, source) = &self.source;
        let new = NewBlob {
            content: source.content.clone(),
            metadata: source.metadata.clone(),
            tags: Tags::new(),
            tier: None,
        };
        let mut row = replacement(BlobType::Page, &new, old, now)?;
        row.released.admit(self.changed.extents.iter().copied())?;
        let copy = CopyInfo {
            id: self.request.id,
            source: CopyInfo::shown_source(&self.request.source_url),
            length: source.length,
            completed: now,
            incremental: Some(IncrementalCopy {
                snapshot: time,
                source: self.request.source_blob.clone(),
                source_snapshot: *source_snapshot,
            }),
        };
        (row.length, row.sequence_number, row.copy) = (source.length, source.sequence_number, Some(copy.clone()));
        if let (Some(_), Some(old)) = (self.basis, old) {
            (row.created, row.shared_since) = (old.created, old.shared_since);
        }
        let pages = self.basis.map_or(Pages { map: row.changed.ticks(), epoch: 0 }, |basis| basis.pages);
        row.layout = Layout::Pages(pages);
        // A region that was cleared keeps an empty row: it covers that of the epoch before.
        let regions = self.changed.regions.iter();
        let mut puts: Vec<_> =
            regions.map(|(number, runs)| (keys::pages(pages.map, *number, pages.epoch), encode_runs(runs))).collect();
        puts.push((keys::snapshot(time), frozen(&row).encode()));
        let written = Written { last_modified: row.changed };
        Ok((Change::put(next_epoch(row, time)).with_puts(puts), written, copy))
    }
}

impl BlobRow {
    /// The last incremental copy, if the blob is the destination of such copies.
    pub(crate) fn incremental(&self) -> Option<&IncrementalCopy> {
        self.copy.as_ref().and_then(|copy| copy.incremental.as_ref())
    }

    /// Refuses what cannot be done with the destination of incremental copies.
    pub(crate) fn admit_ordinary(&self) -> Result<(), BlobReject> {
        if self.incremental().is_some() { Err(BlobReject::IncrementalCopyBlob) } else { Ok(()) }
    }

    /// As [`BlobRow::admit_ordinary`] for the row of a blob; the snapshots of a destination are as any other.
    pub(crate) fn admit_content(&self, snapshot: Option<SnapshotTime>) -> Result<(), BlobReject> {
        if snapshot.is_some() { Ok(()) } else { self.admit_ordinary() }
    }
}

/// Lets a copy go on; returns what it adds to.
fn admit(
    there: Option<&BlobRow>,
    request: &IncrementalCopyRequest,
    snapshot: SnapshotTime,
    access: &Access,
    now: Timestamp,
) -> Result<Option<Basis>, BlobReject> {
    access.admit_replace(there, now)?;
    let Some(there) = there.filter(|there| there.is_committed) else { return Ok(None) };
    let last = there.incremental().ok_or(BlobReject::BlobExists)?;
    if last.source != request.source_blob {
        return Err(BlobReject::IncrementalCopyBlobMismatch);
    }
    if snapshot <= last.source_snapshot {
        return Err(BlobReject::IncrementalCopyOfEarlierSnapshot);
    }
    Ok(Some(Basis { pages: pages_of(there)?, length: there.length, copied: last.source_snapshot }))
}

fn runs_of(region: Option<&Region>) -> Vec<Run> {
    region.map(Region::runs).unwrap_or_default()
}

/// Appends what is stored of an incremental copy.
pub(crate) fn put_incremental(out: &mut Vec<u8>, copy: &IncrementalCopy) {
    put_time(out, copy.snapshot.0);
    put_bytes(out, copy.source.as_bytes());
    put_time(out, copy.source_snapshot.0);
}

/// Takes what is stored of an incremental copy off the front of bytes.
pub(crate) fn take_incremental(reader: &mut Reader<'_>) -> Option<IncrementalCopy> {
    Some(IncrementalCopy {
        snapshot: SnapshotTime(reader.time()?),
        source: reader.text()?.to_owned(),
        source_snapshot: SnapshotTime(reader.time()?),
    })
}
