//! The rows of one blob that nothing refers to, and the payloads that no row points to.
//!
//! A commit writes the blob's row and the rows that must change with it; what it makes unreachable is removed
//! afterwards. If the process stops first, later passes find it: [`Blobs::reclaim_container`] finds rows, and
//! [`ByteStore::reclaim`] with [`crate::blob::RowOwners`] finds payloads.

use crate::blob::Blobs;
use crate::blob::access::BlobRef;
use crate::blob::bytes::{ByteStore, Extent};
use crate::blob::change::{Attempts, Change, Committed};
use crate::blob::codec::damaged;
use crate::blob::keys::{self, RowName};
use crate::blob::layout::{Layout, decode_chunk, decode_uncommitted};
use crate::blob::page_region::extents_of_pages;
use crate::blob::row::BlobRow;
use crate::blob::work_slice::WorkSlice;
use crate::contract::{Engine, Flow, RowRef};
use crate::error::{EngineError, Fault};
use larimar_model::Timestamp;
use std::collections::{HashMap, HashSet};

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Removes the unreachable rows of a blob, and those payloads of these rows and among `candidates` that no other
    /// row points to. Returns the number of removed rows.
    ///
    /// Candidates are payloads that a row has pointed to, so no write that is under way can commit them again. Each
    /// attempt checks all of them again, and discards only what its commit proves unreachable.
    pub(crate) async fn reclaim_unreachable(
        &self,
        at: BlobRef<'_>,
        candidates: Vec<Extent>,
        now: Timestamp,
    ) -> Result<usize, EngineError> {
        Ok(self.reclaim_in_slices(at, candidates, now, SLICE_MAX).await?.rows)
    }

    /// Reclaims slice by slice, so that what is held does not depend on how many rows the blob has. A payload that rows of
    /// several slices point to is discarded with the last of them.
    async fn reclaim_in_slices(
        &self,
        at: BlobRef<'_>,
        mut candidates: Vec<Extent>,
        now: Timestamp,
        max: SliceMax,
    ) -> Result<Reclaimed, EngineError> {
        let (mut attempts, mut reclaimed) = (Attempts::default(), Reclaimed::default());
        loop {
            attempts.next()?;
            let mut given = candidates.split_off(candidates.len().saturating_sub(max.extents));
            let Garbage { version, dead, garbage, has_more } = self.find_garbage(at, &given, max).await?;
            reclaimed.held_max = reclaimed.held_max.max(dead.len() + garbage.len());
            let is_proven = if dead.is_empty() && garbage.is_empty() {
                true
            } else {
                let (gone, is_proven) = self.remove_rows(at, version, &dead, now).await?;
                reclaimed.rows += gone;
                if !is_proven && gone > 0 {
                    // The removed rows no longer lead to their payloads.
                    let given_before: HashSet<Extent> = given.iter().copied().collect();
                    given.extend(garbage.difference(&given_before));
                }
                is_proven
            };
            if !is_proven {
                candidates.extend(given);
                continue;
            }
            let garbage: Vec<Extent> = garbage.into_iter().collect();
            for part in garbage.chunks(DISCARD_EXTENTS) {
                self.bytes.discard(part.to_vec());
                tokio::task::yield_now().await;
            }
            if !has_more && candidates.is_empty() {
                return Ok(reclaimed);
            }
            attempts = Attempts::default();
        }
    }

    /// A slice of the garbage, provided that the blob's row does not change while this reads: every change that makes
    /// something reachable writes that row.
    async fn find_garbage(&self, at: BlobRef<'_>, given: &[Extent], max: SliceMax) -> Result<Garbage, EngineError> {
        let (version, row) = self.load(at, keys::BLOB).await?.unzip();
        let reachable = self.reachable(at, row.as_ref()).await?;
        let DeadRows { names: dead, extents, has_more } = self.dead_rows(at, &reachable, max).await?;
        // Growing the set would rehash it without yielding.
        let (mut garbage, mut slice) = (HashSet::with_capacity(given.len() + extents.len()), WorkSlice::default());
        for extent in given.iter().copied().chain(extents) {
            garbage.insert(extent);
            slice.add(1).await;
        }
        for extent in row.iter().flat_map(|row| row.layout.extents()) {
            garbage.remove(&extent);
        }
        if reachable.has_snapshots {
            self.retain_unreachable(at, &[keys::SNAPSHOTS], &[], &mut garbage).await?;
        }
        self.retain_unreachable(at, &[keys::CHUNKS, keys::PAGES, keys::UNCOMMITTED], &dead, &mut garbage).await?;
        Ok(Garbage { version, dead, garbage, has_more })
    }

    /// The other rows that the rows of the blob and its snapshots refer to.
    async fn reachable(&self, at: BlobRef<'_>, blob: Option<&BlobRow>) -> Result<Reachable, EngineError> {
        let mut reachable = Reachable::default();
        if let Some(row) = blob {
            reachable.add(row);
            reachable.generation = (row.pending.id_length > 0).then_some(row.pending.generation);
        }
        self.visit_rows(at, keys::SNAPSHOTS, |row| {
            reachable.has_snapshots = true;
            reachable.add(&BlobRow::decode(row.body)?);
            Ok(Flow::Continue)
        })
        .await?;
        for epochs in reachable.maps.values_mut() {
            epochs.sort_unstable();
        }
        Ok(reachable)
    }

    /// The first unreachable rows, and their payloads.
    async fn dead_rows(&self, at: BlobRef<'_>, reachable: &Reachable, max: SliceMax) -> Result<DeadRows, EngineError> {
        let mut dead = DeadRows::default();
        let mut pages = PageRows::default();
        for range in [keys::CHUNKS, keys::PAGES, keys::UNCOMMITTED] {
            self.visit_rows(at, range, |row| {
                let name = row_name(row)?;
                if let Some(epoch) = pages.turn(name, row) {
                    epoch.list_if_unseen(reachable, &mut dead)?;
                }
                if !matches!(name, RowName::Pages { .. }) && !reachable.refers_to(name) {
                    dead.extents.extend(extents_of(name, row.body)?);
                    dead.names.push(row.row.to_owned());
                }
                dead.has_more = dead.names.len() >= max.rows || dead.extents.len() >= max.extents;
                Ok(if dead.has_more { Flow::StopHere } else { Flow::Continue })
            })
            .await?;
            if dead.has_more {
                // The next slice begins with the epoch that was being read.
                return Ok(dead);
            }
        }
        if let Some(epoch) = pages.end() {
            epoch.list_if_unseen(reachable, &mut dead)?;
        }
        Ok(dead)
    }

    /// Removes from the candidates the payloads that rows in these ranges point to, except the dead ones.
    async fn retain_unreachable(
        &self,
        at: BlobRef<'_>,
        ranges: &[(&str, &str)],
        dead: &[String],
        candidates: &mut HashSet<Extent>,
    ) -> Result<(), EngineError> {
        let mut slice = WorkSlice::default();
        let mut is_dead: HashSet<&str> = HashSet::with_capacity(dead.len());
        for name in dead {
            is_dead.insert(name);
            slice.add(1).await;
        }
        for range in ranges {
            if candidates.is_empty() {
                return Ok(());
            }
            self.visit_rows(at, *range, |row| {
                if is_dead.contains(row.row) {
                    return Ok(Flow::Continue);
                }
                for extent in payloads_of(row)? {
                    candidates.remove(&extent);
                }
                Ok(if candidates.is_empty() { Flow::StopHere } else { Flow::Continue })
            })
            .await?;
        }
        Ok(())
    }

    /// Removes rows in bounded batches while the blob's row has the version that was read. Returns how many were
    /// removed, and whether the blob's row still had that version at the end; that is checked even if there are no
    /// rows.
    async fn remove_rows(
        &self,
        at: BlobRef<'_>,
        seen: Option<Timestamp>,
        dead: &[String],
        now: Timestamp,
    ) -> Result<(usize, bool), EngineError> {
        let mut gone = 0;
        loop {
            let rows = &dead[gone..dead.len().min(gone + REMOVE_ROWS)];
            let change = Change::beside_blob().with_deletes(rows.iter().cloned());
            if self.commit(at, seen, &change, now).await? != Committed::Yes {
                return Ok((gone, false));
            }
            gone += rows.len();
            if gone == dead.len() {
                return Ok((gone, true));
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Most rows and payloads that are held at a time; a few more are held if a row has many payloads.
#[derive(Clone, Copy, Debug)]
struct SliceMax {
    rows: usize,
    extents: usize,
}

/// What was reclaimed of a blob.
#[derive(Debug, Default)]
struct Reclaimed {
    rows: usize,
    /// Most rows and payloads that were held at a time.
    held_max: usize,
}

/// The garbage that one pass over a blob's rows found.
#[derive(Debug)]
struct Garbage {
    /// The version of the blob's row that it is valid for; `None` if there was no row.
    version: Option<Timestamp>,
    /// Rows that nothing refers to.
    dead: Vec<String>,
    /// Payloads that no other row points to.
    garbage: HashSet<Extent>,
    /// Whether there may be more.
    has_more: bool,
}

/// Rows that nothing refers to.
#[derive(Debug, Default)]
struct DeadRows {
    names: Vec<String>,
    /// The payloads that they point to.
    extents: Vec<Extent>,
    /// Whether there may be more such rows.
    has_more: bool,
}

/// The other rows that the rows of a blob and its snapshots refer to: a few bytes for each snapshot.
#[derive(Debug, Default)]
struct Reachable {
    has_snapshots: bool,
    /// Sets of chunks, with how many are referred to.
    sets: HashMap<u64, usize>,
    /// Maps of pages, with the epochs of the versions that read them.
    maps: HashMap<u64, Vec<u32>>,
    /// The generation of the uncommitted blocks.
    generation: Option<u64>,
}

impl Reachable {
    fn add(&mut self, row: &BlobRow) {
        match &row.layout {
            Layout::Blocks(blocks) => {
                let chunks = self.sets.entry(blocks.set).or_default();
                *chunks = blocks.chunks.len().max(*chunks);
            }
            Layout::Pages(pages) => self.maps.entry(pages.map).or_default().push(pages.epoch),
        }
    }

    /// Whether a row is referred to. Rows of pages are judged by [`Reachable::sees`].
    fn refers_to(&self, name: RowName<'_>) -> bool {
        match name {
            RowName::Blob | RowName::Snapshot(_) | RowName::Pages { .. } => true,
            RowName::Chunk { set, index } => self.sets.get(&set).is_some_and(|chunks| (index as usize) < *chunks),
            RowName::Uncommitted { generation, .. } => self.generation == Some(generation),
        }
    }

    /// Whether a version of the blob reads these pages: one from their epoch on, before the next row's epoch.
    fn sees(&self, pages: &PageEpoch) -> bool {
        let Some(epochs) = self.maps.get(&pages.map) else { return false };
        let first = epochs.partition_point(|epoch| *epoch < pages.epoch);
        epochs.get(first).is_some_and(|epoch| pages.next.is_none_or(|next| *epoch < next))
    }
}

/// The rows of a region that are of one epoch, and the next epoch of the same region.
#[derive(Debug)]
struct PageEpoch {
    map: u64,
    region: u32,
    epoch: u32,
    next: Option<u32>,
    /// Names and bodies: the base row, then its deltas.
    rows: Vec<(String, Vec<u8>)>,
}

impl PageEpoch {
    /// Adds the rows to the dead ones if no version reads them.
    fn list_if_unseen(self, reachable: &Reachable, dead: &mut DeadRows) -> Result<(), Fault> {
        if reachable.sees(&self) {
            return Ok(());
        }
        // The base row is removed last: an interrupted removal never leaves a delta without its base row.
        for (name, body) in self.rows.into_iter().rev() {
            let parsed = RowName::parse(&name).ok_or_else(|| damaged("the name of a blob's row"))?;
            dead.extents.extend(extents_of(parsed, &body)?);
            dead.names.push(name);
        }
        Ok(())
    }
}

/// Collects the rows of pages of one epoch until the next epoch is known.
#[derive(Debug, Default)]
struct PageRows(Option<PageEpoch>);

impl PageRows {
    /// Adds the next row; returns the epoch before it, if that is complete.
    fn turn(&mut self, name: RowName<'_>, row: RowRef<'_>) -> Option<PageEpoch> {
        let RowName::Pages { map, region, epoch, .. } = name else { return self.end() };
        let held = (row.row.to_owned(), row.body.to_vec());
        if let Some(same) =
            self.0.as_mut().filter(|pages| (pages.map, pages.region, pages.epoch) == (map, region, epoch))
        {
            same.rows.push(held);
            return None;
        }
        let mut last = self.0.replace(PageEpoch { map, region, epoch, next: None, rows: vec![held] });
        if let Some(pages) = last.as_mut().filter(|pages| (pages.map, pages.region) == (map, region)) {
            pages.next = Some(epoch);
        }
        last
    }

    fn end(&mut self) -> Option<PageEpoch> {
        self.0.take()
    }
}

fn row_name(row: RowRef<'_>) -> Result<RowName<'_>, Fault> {
    RowName::parse(row.row).ok_or_else(|| damaged("the name of a blob's row"))
}

/// The payloads that a row of any kind points to.
pub(crate) fn payloads_of(row: RowRef<'_>) -> Result<Vec<Extent>, Fault> {
    let name = row_name(row)?;
    match name {
        RowName::Blob | RowName::Snapshot(_) => Ok(BlobRow::decode(row.body)?.layout.extents().collect()),
        _ => extents_of(name, row.body),
    }
}

/// The payloads that a row other than a blob's or a snapshot's points to.
fn extents_of(name: RowName<'_>, body: &[u8]) -> Result<Vec<Extent>, Fault> {
    let extents = match name {
        RowName::Blob | RowName::Snapshot(_) => Some(Vec::new()),
        RowName::Chunk { .. } => {
            decode_chunk(body).map(|blocks| blocks.into_iter().map(|block| block.piece.extent).collect())
        }
        RowName::Pages { delta, .. } => extents_of_pages(delta.is_none(), body),
        RowName::Uncommitted { .. } => decode_uncommitted(body).map(|extent| vec![extent]),
    };
    extents.ok_or_else(|| damaged("a row of a blob"))
}

/// Some 10 MiB.
const SLICE_MAX: SliceMax = SliceMax { rows: 32 << 10, extents: 128 << 10 };
/// Rows that are removed in one commit.
const REMOVE_ROWS: usize = 512;
/// Payloads that are discarded before the task yields.
const DISCARD_EXTENTS: usize = 4096;

#[cfg(test)]
mod tests;
