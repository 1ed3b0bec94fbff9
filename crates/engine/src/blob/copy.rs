//! Copies within the server: bytes of one blob become new payloads of another, a piece at a time.

use super::access::{Admit, BlobRef, Written};
use super::bytes::{ByteStore, ByteWriter, Bytes, Extent};
use super::change::{Attempts, Change, Decision};
use super::conditions::{Purpose, check, check_tags};
use super::layout::{Block, Blocks, Layout, Pages, Piece, Run};
use super::page_region::{Region, encode_runs};
use super::put::replacement;
use super::read::{BlockSegments, Content};
use super::reclaim::unreachable::Leftover;
use super::reject::BlobReject;
use super::row::BlobRow;
use super::work_slice::{PIECE_ITEMS, WorkSlice};
use super::{Blobs, keys};
use crate::contract::Engine;
use crate::error::{EngineError, Reject};
use larimar_model::blob::{
    Access, AccessTier, BlobProperties, BlobType, ByteRange, Conditions, CopyInfo, NewBlob, RehydratePriority,
    Rehydration, SnapshotTime, TagCondition, Tags,
};
use larimar_model::{Guid, Metadata, Timestamp};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// Where a copy comes from.
#[derive(Clone, Copy, Debug)]
pub struct CopySource<'a> {
    /// The blob.
    pub at: BlobRef<'a>,
    /// Its snapshot, if one is meant.
    pub snapshot: Option<SnapshotTime>,
    /// The `x-ms-source-if-*` headers.
    pub conditions: Conditions,
    /// `x-ms-source-if-tags`.
    pub if_tags: Option<&'a TagCondition>,
}

/// What a copy is asked to do besides copying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyRequest {
    /// The copy's id, made up by the caller.
    pub id: Guid,
    /// The source's address as the request has it; what is kept of it has no secrets.
    pub source_url: String,
    /// Metadata instead of the source's.
    pub metadata: Option<Metadata>,
    /// Tags; without, those of the source.
    pub tags: Option<Tags>,
    /// A tier, if one is given.
    pub tier: Option<AccessTier>,
    /// Whether an append blob is sealed; without, as the source is.
    pub seal: Option<bool>,
    /// How urgently a source in the archive is rehydrated; without, it is refused.
    pub rehydrate: Option<RehydratePriority>,
}

/// Sees the bytes of a copy on their way, and may refuse them before the copy is visible.
pub trait CopyInspector: Send {
    /// The next bytes.
    fn piece(&mut self, bytes: &Bytes);

    /// Whether the copy may become visible. `is_seen` is false for page blobs, whose bytes are not shown.
    fn admits(&mut self, is_seen: bool) -> bool;
}

impl CopyInspector for () {
    fn piece(&mut self, _bytes: &Bytes) {}

    fn admits(&mut self, _is_seen: bool) -> bool {
        true
    }
}

/// A copied blob before it is installed: everything but its place.
struct Copied {
    source: BlobRow,
    content: CopiedContent,
    /// The new payloads.
    extents: Vec<Extent>,
}

/// Where the bytes of a source are.
pub(super) enum CopyPlan {
    Blocks(Vec<Block>),
    Regions(BTreeMap<u32, Region>),
}

enum CopiedContent {
    Blocks(Vec<Block>),
    Regions(Vec<(u32, Vec<Run>)>),
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// As [`Blobs::copy_blob_inspected`], without an inspector.
    ///
    /// # Errors
    /// The same.
    pub async fn copy_blob(
        &self,
        source: &CopySource<'_>,
        at: BlobRef<'_>,
        request: &CopyRequest,
        access: &Access,
        now: Timestamp,
    ) -> Result<(Written, CopyInfo), EngineError> {
        self.copy_blob_inspected(source, at, request, access, &mut (), now).await
    }

    /// Copies a blob or a snapshot over a blob, which must be of the same type if it is there. The copy is finished when
    /// this returns.
    ///
    /// # Errors
    /// [`BlobReject::SourceNotFound`], conditions on either side, the lease, another type of blob.
    pub async fn copy_blob_inspected(
        &self,
        source: &CopySource<'_>,
        at: BlobRef<'_>,
        request: &CopyRequest,
        access: &Access,
        inspector: &mut impl CopyInspector,
        now: Timestamp,
    ) -> Result<(Written, CopyInfo), EngineError> {
        let admitted = self.now(now).await?;
        let _hold = self.hold(at);
        let (row, plan) = self.plan_copy(source).await?;
        // What will be refused is refused before the bytes are copied.
        let there = self.load(at, keys::BLOB).await?.map(|(_, row)| row);
        admit_copy(&row, there.as_ref(), access, admitted)?;
        if request.seal == Some(true) && row.kind != BlobType::Append {
            return Err(BlobReject::InvalidBlobType.into());
        }
        let is_online = request.tier.is_some_and(|tier| tier != AccessTier::ARCHIVE);
        if !is_online || request.rehydrate.is_none() {
            row.admit_online(admitted)?;
        }
        let copied = self.copy_content(row, plan, at, inspector).await?;
        let extents = copied.extents.clone();
        let is_seen = matches!(copied.content, CopiedContent::Blocks(_));
        let installed = match inspector.admits(is_seen) {
            true => self.install(at, copied, request, access, (admitted, now)).await,
            false => Err(BlobReject::SourceRefused.into()),
        };
        self.settle(installed, &extents)
    }

    /// Copies bytes of a blob into a payload for another, which is handed to the operation that makes use of it. `inspect`
    /// sees all bytes on their way. There is no payload if there are no bytes.
    ///
    /// # Errors
    /// [`BlobReject::SourceNotFound`], conditions, [`BlobReject::InvalidRange`], more than `bytes_max`.
    pub async fn copy_bytes(
        &self,
        source: &CopySource<'_>,
        (range, bytes_max): (Option<ByteRange>, u64),
        at: BlobRef<'_>,
        mut inspect: impl FnMut(&Bytes) + Send,
        now: Timestamp,
    ) -> Result<(Option<Extent>, BlobProperties), EngineError> {
        self.load_source(source).await?;
        let access = Access::default();
        let mut open = self.open(source.at, source.snapshot, range, &access, now).await.map_err(of_source)?;
        check(&source.conditions, Some(open.properties.last_modified), Purpose::Source)?;
        check_tags(source.if_tags, &open.properties.tags)?;
        if open.range.is_empty() {
            return Ok((None, open.properties));
        }
        let length = open.range.end - open.range.start;
        if length > bytes_max {
            return Err(BlobReject::SourceTooLarge { bytes_max }.into());
        }
        let mut writer = self.begin(at, Some(length)).await?;
        let mut slice = WorkSlice::default();
        while let Some(bytes) = open.content.next().await? {
            inspect(&bytes);
            writer.write(bytes).await?;
            slice.add(PIECE_ITEMS).await;
        }
        Ok((Some(writer.finish().await?), open.properties))
    }

    async fn load_source(&self, source: &CopySource<'_>) -> Result<BlobRow, EngineError> {
        let row = self.load_version(source.at, source.snapshot).await.map_err(of_source)?;
        row.admit_content(source.snapshot)?;
        check(&source.conditions, Some(row.changed), Purpose::Source)?;
        check_tags(source.if_tags, &row.tags)?;
        Ok(row)
    }

    /// The source, and where its bytes are.
    pub(super) async fn plan_copy(&self, source: &CopySource<'_>) -> Result<(BlobRow, CopyPlan), EngineError> {
        let mut attempts = Attempts::default();
        loop {
            let _lock = self.next_read(source.at, &mut attempts).await?;
            let row = self.load_source(source).await?;
            match &row.layout {
                Layout::Blocks(blocks) => {
                    let Some(blocks) = self.all_blocks(source.at, blocks).await? else { continue };
                    return Ok((row, CopyPlan::Blocks(blocks)));
                }
                Layout::Pages(pages) => {
                    let regions = self.regions_within(source.at, *pages, 0..row.length).await?;
                    // As for reads: only an unchanged row proves that all pages are of its version.
                    if self.load_source(source).await? == row {
                        return Ok((row, CopyPlan::Regions(regions)));
                    }
                }
            }
        }
    }

    /// Copies all bytes of a blob into payloads for another.
    async fn copy_content(
        &self,
        row: BlobRow,
        plan: CopyPlan,
        at: BlobRef<'_>,
        inspector: &mut impl CopyInspector,
    ) -> Result<Copied, EngineError> {
        let (content, extents) = match plan {
            CopyPlan::Blocks(blocks) => {
                let extent = self.copy_blocks(&blocks, row.length, at, inspector).await?;
                (CopiedContent::Blocks(moved(blocks, extent).await), extent.into_iter().collect())
            }
            CopyPlan::Regions(regions) => {
                let (mut copied, mut extents) = (Vec::new(), Vec::new());
                for (number, region) in regions {
                    let runs = region.runs();
                    if runs.is_empty() {
                        continue;
                    }
                    let (extent, runs) = self.rewrite(at, &runs).await?;
                    copied.push((number, runs));
                    extents.push(extent);
                }
                (CopiedContent::Regions(copied), extents)
            }
        };
        Ok(Copied { source: row, content, extents })
    }

    async fn copy_blocks(
        &self,
        blocks: &[Block],
        length: u64,
        at: BlobRef<'_>,
        inspector: &mut impl CopyInspector,
    ) -> Result<Option<Extent>, EngineError> {
        if length == 0 {
            return Ok(None);
        }
        let (mut segments, mut slice) = (BlockSegments::new(0, 0..length), WorkSlice::default());
        for block in blocks {
            segments.add(&block.piece);
            slice.add(1).await;
        }
        let mut content = Content::new(Arc::clone(&self.bytes), segments.found);
        let mut writer = self.begin(at, Some(length)).await?;
        while let Some(bytes) = content.next().await? {
            inspector.piece(&bytes);
            writer.write(bytes).await?;
            slice.add(PIECE_ITEMS).await;
        }
        Ok(Some(writer.finish().await?))
    }

    /// Makes a copied blob visible.
    async fn install(
        &self,
        at: BlobRef<'_>,
        copied: Copied,
        request: &CopyRequest,
        access: &Access,
        (admitted, now): (Timestamp, Timestamp),
    ) -> Result<(Written, CopyInfo), EngineError> {
        let Copied { source, content, extents } = &copied;
        let new = &NewBlob {
            content: source.content.clone(),
            metadata: request.metadata.clone().unwrap_or_else(|| source.metadata.clone()),
            tags: request.tags.clone().unwrap_or_else(|| source.tags.clone()),
            tier: request.tier,
        };
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let old = stored.row;
            admit_copy(source, old.as_ref(), access, now)?;
            let mut row = replacement(source.kind, new, old.as_ref(), now)?;
            row.released.admit(extents.iter().copied())?;
            let copy = CopyInfo {
                id: request.id,
                source: CopyInfo::shown_source(&request.source_url),
                length: source.length,
                completed: now,
                incremental: None,
            };
            if let (true, Some(to)) = (source.is_archived(admitted), request.tier) {
                let priority = request.rehydrate.unwrap_or_default();
                let until = now.after(self.rehydration_time);
                row.tier = Some((AccessTier::ARCHIVE, row.changed));
                row.rehydration = Some(Rehydration { to, priority, until, is_copy: true });
            }
            row.is_sealed = request.seal.unwrap_or(source.is_sealed);
            (row.length, row.sequence_number, row.copy) = (source.length, source.sequence_number, Some(copy.clone()));
            let (layout, puts) = laid_out(content, row.changed.ticks()).await;
            row.layout = layout;
            let written = Written { last_modified: row.changed };
            let leftover = old.map(Leftover::of).unwrap_or_default();
            Ok(Decision::Commit(Change::put(row).with_puts(puts).leaving(leftover), (written, copy)))
        })
        .await
    }
}

fn admit_copy(source: &BlobRow, there: Option<&BlobRow>, access: &Access, now: Timestamp) -> Result<(), BlobReject> {
    access.admit_create(there, now)?;
    let is_other = there.is_some_and(|there| there.is_committed && there.kind != source.kind);
    if is_other { Err(BlobReject::InvalidBlobType) } else { Ok(()) }
}

/// The same blocks, one after the other in a new payload.
async fn moved(mut blocks: Vec<Block>, extent: Option<Extent>) -> Vec<Block> {
    let Some(extent) = extent else { return Vec::new() };
    let (mut skip, mut slice) = (0, WorkSlice::default());
    for Block { piece, .. } in &mut blocks {
        *piece = Piece { extent, skip, length: piece.length };
        skip += piece.length;
        slice.add(1).await;
    }
    blocks
}

/// What the blob's row holds, and the other rows.
async fn laid_out(content: &CopiedContent, number: u64) -> (Layout, Vec<(String, Vec<u8>)>) {
    match content {
        CopiedContent::Blocks(blocks) => {
            let Ok((blocks, chunks)) = Blocks::cut(number, blocks, |part| Ok::<_, Infallible>(part.to_vec())).await;
            let rows = chunks.into_iter().enumerate().map(|(n, body)| (keys::chunk(number, n), body));
            (Layout::Blocks(blocks), rows.collect())
        }
        CopiedContent::Regions(regions) => {
            let rows = regions.iter().map(|(region, runs)| (keys::pages(number, *region, 0), encode_runs(runs)));
            (Layout::Pages(Pages { map: number, epoch: 0 }), rows.collect())
        }
    }
}

/// A blob that is missing is the source here.
fn of_source(error: EngineError) -> EngineError {
    match error {
        EngineError::Reject(Reject::Blob(BlobReject::BlobNotFound | BlobReject::ContainerNotFound)) => {
            BlobReject::SourceNotFound.into()
        }
        other => other,
    }
}
