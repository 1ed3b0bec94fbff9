//! What changes leave behind: rows that nothing refers to, and payloads that no row points to.
//!
//! A commit changes the blob's row and what must be seen with it; everything that it makes unreachable is removed
//! afterwards, here. If that does not happen, the sweeps find it: [`Blobs::reclaim_container`] for rows, and
//! [`ByteStore::reclaim`] with [`crate::blob::RowOwners`] for payloads.

use crate::blob::Blobs;
use crate::blob::access::BlobRef;
use crate::blob::bytes::{ByteStore, Extent};
use crate::blob::change::{Attempts, Change, Committed, Decision};
use crate::blob::codec::damaged;
use crate::blob::keys::{self, RowName};
use crate::blob::layout::{Layout, decode_chunk, decode_uncommitted};
use crate::blob::page_region::extents_of_pages;
use crate::blob::row::BlobRow;
use crate::blob::work_slice::WorkSlice;
use crate::contract::{Engine, Flow, RowRef};
use crate::error::{EngineError, Fault};
use larimar_model::Timestamp;
use larimar_model::blob::SnapshotTime;
use std::collections::{HashMap, HashSet};

/// What a change left behind.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// Payloads that the old row pointed to.
    pub(crate) extents: Vec<Extent>,
    /// Whether other rows may have become unreachable.
    pub(crate) has_rows: bool,
    /// Which snapshots may point to the same payloads.
    pub(crate) shared: Shared,
}

/// Which snapshots may point to the payloads of a change's leftover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shared {
    /// None.
    #[default]
    Nowhere,
    /// This one and later ones.
    Since(SnapshotTime),
    /// Any, and the blob itself.
    Anywhere,
}

impl Leftover {
    /// Payloads that no other row points to.
    pub(crate) fn unshared(extents: Vec<Extent>) -> Self {
        Self { extents, ..Self::default() }
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Removes what a change left behind. The change stands whatever happens here: what is not removed now is found by
    /// the sweeps.
    pub(crate) async fn reclaim_leftover(&self, at: BlobRef<'_>, leftover: Leftover, now: Timestamp) {
        let _ = match leftover.shared {
            Shared::Nowhere if !leftover.has_rows => {
                self.discard(leftover.extents);
                Ok(())
            }
            Shared::Since(since) if !leftover.has_rows => self.discard_unshared(at, leftover.extents, since, now).await,
            _ => self.reclaim_unreachable(at, leftover.extents, now).await.map(drop),
        };
    }

    /// Discards payloads of content that a commit has replaced, but for those that a snapshot of that content has. No
    /// commit makes another row point to them from then on, so what no such snapshot has is dead; the first snapshot
    /// usually has them all, and others are not read.
    async fn discard_unshared(
        &self,
        at: BlobRef<'_>,
        extents: Vec<Extent>,
        since: SnapshotTime,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let mut unshared: HashSet<Extent> = extents.iter().copied().collect();
        let mut has_rows = false;
        self.visit_rows(at, (&keys::snapshot(since), keys::SNAPSHOTS.1), |row| {
            let layout = BlobRow::decode(row.body)?.layout;
            has_rows |= layout.has_rows();
            for extent in layout.extents() {
                unshared.remove(&extent);
            }
            Ok(if unshared.is_empty() { Flow::StopHere } else { Flow::Continue })
        })
        .await?;
        if has_rows && !unshared.is_empty() {
            // Some of its payloads are named in other rows.
            return self.reclaim_unreachable(at, extents, now).await.map(drop);
        }
        self.discard(unshared.into_iter().collect());
        Ok(())
    }

    pub(crate) fn discard(&self, extents: Vec<Extent>) {
        if !extents.is_empty() {
            self.bytes.discard(extents);
        }
    }

    /// Removes the rows of a blob that nothing refers to, and the payloads among `candidates` and of those rows that no
    /// row points to. Returns how many rows were removed.
    ///
    /// Candidates are payloads that a row has pointed to, so no write that is under way can bring them back. Each
    /// attempt judges all of them anew, and discards only what the commit that ends it proves dead.
    pub(crate) async fn reclaim_unreachable(
        &self,
        at: BlobRef<'_>,
        candidates: Vec<Extent>,
        now: Timestamp,
    ) -> Result<usize, EngineError> {
        let mut candidates: HashSet<Extent> = candidates.into_iter().collect();
        let (mut attempts, mut removed) = (Attempts::default(), 0);
        loop {
            attempts.next()?;
            let Garbage { version, dead, garbage } = self.find_garbage(at, &candidates).await?;
            if dead.is_empty() && garbage.is_empty() {
                return Ok(removed);
            }
            let (gone, is_proven) = self.remove_rows(at, version, &dead, now).await?;
            removed += gone;
            if is_proven {
                let garbage: Vec<Extent> = garbage.into_iter().collect();
                for part in garbage.chunks(DISCARD_EXTENTS) {
                    self.bytes.discard(part.to_vec());
                    tokio::task::yield_now().await;
                }
                return Ok(removed);
            }
            if gone > 0 {
                // No row leads to the payloads of the rows that are gone already.
                candidates.extend(garbage);
            }
        }
    }

    /// What is dead if the blob's row does not change while this reads: all changes that make something live change it.
    async fn find_garbage(&self, at: BlobRef<'_>, candidates: &HashSet<Extent>) -> Result<Garbage, EngineError> {
        let (version, row) = self.load(at, keys::BLOB).await?.unzip();
        let reachable = self.reachable(at, row).await?;
        let (dead, extents) = self.dead_rows(at, &reachable).await?;
        // A set that grows would be filled anew in one go.
        let (mut garbage, mut slice) = (HashSet::with_capacity(candidates.len() + extents.len()), WorkSlice::default());
        for extent in candidates.iter().copied().chain(extents) {
            garbage.insert(extent);
            slice.add(1).await;
        }
        self.retain_unreachable(at, &reachable, &dead, &mut garbage).await?;
        Ok(Garbage { version, dead, garbage })
    }

    /// What the blob's row and its snapshots refer to.
    async fn reachable(&self, at: BlobRef<'_>, blob: Option<BlobRow>) -> Result<Reachable, EngineError> {
        let mut reachable = Reachable::default();
        if let Some(row) = &blob {
            reachable.add(row);
            reachable.generation = (row.pending.id_length > 0).then_some(row.pending.generation);
        }
        self.visit_rows(at, keys::SNAPSHOTS, |row| {
            reachable.add(&BlobRow::decode(row.body)?);
            Ok(Flow::Continue)
        })
        .await?;
        for epochs in reachable.maps.values_mut() {
            epochs.sort_unstable();
        }
        Ok(reachable)
    }

    /// The rows that nothing refers to, and their payloads.
    async fn dead_rows(
        &self,
        at: BlobRef<'_>,
        reachable: &Reachable,
    ) -> Result<(Vec<String>, Vec<Extent>), EngineError> {
        let (mut dead, mut extents) = (Vec::new(), Vec::new());
        let mut pages = PageRows::default();
        for range in [keys::CHUNKS, keys::PAGES, keys::UNCOMMITTED] {
            self.visit_rows(at, range, |row| {
                let name = row_name(row)?;
                if let Some(epoch) = pages.turn(name, row) {
                    epoch.list_if_unseen(reachable, &mut dead, &mut extents)?;
                }
                if !matches!(name, RowName::Pages { .. }) && !reachable.refers_to(name) {
                    dead.push(row.row.to_owned());
                    extents.extend(extents_of(name, row.body)?);
                }
                Ok(Flow::Continue)
            })
            .await?;
        }
        if let Some(epoch) = pages.end() {
            epoch.list_if_unseen(reachable, &mut dead, &mut extents)?;
        }
        Ok((dead, extents))
    }

    /// Takes from the candidates what rows point to that are not dead.
    async fn retain_unreachable(
        &self,
        at: BlobRef<'_>,
        reachable: &Reachable,
        dead: &[String],
        candidates: &mut HashSet<Extent>,
    ) -> Result<(), EngineError> {
        for extent in &reachable.extents {
            candidates.remove(extent);
        }
        let mut slice = WorkSlice::default();
        let mut is_dead: HashSet<&str> = HashSet::with_capacity(dead.len());
        for name in dead {
            is_dead.insert(name);
            slice.add(1).await;
        }
        for range in [keys::CHUNKS, keys::PAGES, keys::UNCOMMITTED] {
            if candidates.is_empty() {
                return Ok(());
            }
            self.visit_rows(at, range, |row| {
                if is_dead.contains(row.row) {
                    return Ok(Flow::Continue);
                }
                for extent in extents_of(row_name(row)?, row.body)? {
                    candidates.remove(&extent);
                }
                Ok(if candidates.is_empty() { Flow::StopHere } else { Flow::Continue })
            })
            .await?;
        }
        Ok(())
    }

    /// Removes rows in bounded batches while the blob's row is the one that was seen. Returns how many are gone, and
    /// whether the blob's row still was that one at the end, which is checked also if there are no rows.
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

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Gives up payloads of a blob that no row points to; returns them. From then on a write that holds one of them is
    /// refused: the commit that adds them to the blob's row proves that no row points to them, and whoever commits
    /// something after it finds them there.
    pub(crate) async fn release(
        &self,
        at: BlobRef<'_>,
        extents: &[Extent],
        now: Timestamp,
    ) -> Result<HashSet<Extent>, EngineError> {
        let now = self.now(now).await?;
        self.change_unlocked(at, now, |stored| async move {
            let mut row = stored.row.unwrap_or_else(|| BlobRow::uncommitted(now));
            let mut unowned: HashSet<Extent> = extents.iter().copied().collect();
            self.retain_unowned(at, &mut unowned).await?;
            let mut unowned: Vec<Extent> = unowned.into_iter().collect();
            row.released = row.released.kept(now);
            unowned.truncate(row.released.add(&unowned, now));
            if unowned.is_empty() {
                return Ok(Decision::Keep(HashSet::new()));
            }
            Ok(Decision::Commit(Change::put(row), unowned.into_iter().collect()))
        })
        .await
    }

    /// Takes away what rows point to. Rows that nothing refers to are not looked at as such: they go before their
    /// payloads do.
    async fn retain_unowned(&self, at: BlobRef<'_>, unowned: &mut HashSet<Extent>) -> Result<(), EngineError> {
        self.visit_rows(at, (keys::BLOB, "\u{FFFF}"), |row| {
            for extent in payloads_of(row)? {
                unowned.remove(&extent);
            }
            Ok(if unowned.is_empty() { Flow::StopHere } else { Flow::Continue })
        })
        .await
    }
}

/// What one look at a blob's rows found dead.
#[derive(Debug)]
struct Garbage {
    /// The version of the blob's row that it rests on; `None` if there was no row.
    version: Option<Timestamp>,
    /// Rows that nothing refers to.
    dead: Vec<String>,
    /// Payloads that no other row points to.
    garbage: HashSet<Extent>,
}

/// What the rows of a blob and its snapshots refer to.
#[derive(Debug, Default)]
struct Reachable {
    /// Payloads that they point to themselves.
    extents: HashSet<Extent>,
    /// Sets of chunks, with how many are referred to.
    sets: HashMap<u64, usize>,
    /// Maps of pages, with the epochs from which they are looked at.
    maps: HashMap<u64, Vec<u32>>,
    /// The blocks that are not committed.
    generation: Option<u64>,
}

impl Reachable {
    fn add(&mut self, row: &BlobRow) {
        self.extents.extend(row.layout.extents());
        match &row.layout {
            Layout::Blocks(blocks) => {
                let chunks = self.sets.entry(blocks.set).or_default();
                *chunks = blocks.chunks.len().max(*chunks);
            }
            Layout::Pages(pages) => self.maps.entry(pages.map).or_default().push(pages.epoch),
        }
    }

    /// Whether a row other than one of pages is referred to.
    fn refers_to(&self, name: RowName<'_>) -> bool {
        match name {
            RowName::Blob | RowName::Snapshot(_) | RowName::Pages { .. } => true,
            RowName::Chunk { set, index } => self.sets.get(&set).is_some_and(|chunks| (index as usize) < *chunks),
            RowName::Uncommitted { generation, .. } => self.generation == Some(generation),
        }
    }

    /// Whether pages are seen by a version of the blob: one from their epoch on, and before the next row's.
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
    /// Adds the rows to the dead ones, and their payloads to `extents`, if no version sees them.
    fn list_if_unseen(
        self,
        reachable: &Reachable,
        dead: &mut Vec<String>,
        extents: &mut Vec<Extent>,
    ) -> Result<(), Fault> {
        if reachable.sees(&self) {
            return Ok(());
        }
        // The base row goes last: if removing is interrupted, there never is a delta without it.
        for (name, body) in self.rows.into_iter().rev() {
            let parsed = RowName::parse(&name).ok_or_else(|| damaged("the name of a blob's row"))?;
            extents.extend(extents_of(parsed, &body)?);
            dead.push(name);
        }
        Ok(())
    }
}

/// Holds the rows of pages of each epoch back until the next epoch is known.
#[derive(Debug, Default)]
struct PageRows(Option<PageEpoch>);

impl PageRows {
    /// Takes the next row; returns the epoch before it, if that has ended.
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

/// Rows that are removed in one commit.
const REMOVE_ROWS: usize = 512;
/// Payloads that are discarded in one go.
const DISCARD_EXTENTS: usize = 4096;
