//! The pages of a region of 16 MiB: a base row with all of them, and small rows for the writes since.
//!
//! The base row of many scattered pages is long. A write therefore adds a delta, a row with that write alone, and
//! readers apply the deltas to the base row in the order of their numbers. After some writes, one puts a new base row
//! and deletes the deltas, in one commit. Deltas belong to the base row of their epoch, so a snapshot reads whole
//! epochs. Payloads that a delta hides are still in the base row; they are discarded when it is replaced.

use super::bytes::Extent;
use super::codec::{Reader, put_number};
use super::layout::{Piece, Run};
use larimar_model::blob::PageRange;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The pages of a region, as its rows of one epoch hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    /// The epoch of these rows.
    pub(crate) epoch: u32,
    /// Whether there is a row of an earlier epoch, which this one covers: a snapshot's, or one that is not reclaimed
    /// yet.
    pub(crate) covers_earlier: bool,
    /// The runs of the base row, in order and without overlaps.
    base: Vec<Run>,
    /// Length of the base row; 0 if there is no row yet.
    base_bytes: usize,
    /// The writes since, in their order.
    deltas: Vec<Delta>,
}

/// One write of pages, or clearing of them, within a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delta {
    /// The range of the blob that it replaces.
    range: Range<u64>,
    /// The written run; `None` if the range was cleared.
    run: Option<Run>,
}

impl Region {
    /// A region without rows.
    pub(crate) fn new(epoch: u32) -> Self {
        Self { epoch, ..Self::default() }
    }

    /// The runs of pages: the base row with all deltas applied.
    pub(crate) fn runs(&self) -> Vec<Run> {
        folded(&self.base, &self.deltas)
    }

    /// Adds a row to the regions that were read. Rows come in the order of their names: of each region the epochs in their
    /// order, and of each epoch the base row before its deltas. The last epoch counts.
    pub(crate) fn read_row(
        regions: &mut BTreeMap<u32, Self>,
        (number, epoch, delta): (u32, u32, Option<u32>),
        body: &[u8],
    ) -> Option<()> {
        let Some(delta) = delta else {
            let covers_earlier = regions.contains_key(&number);
            let (base, base_bytes) = (decode_runs(number, body)?, body.len());
            regions.insert(number, Self { epoch, covers_earlier, base, base_bytes, deltas: Vec::new() });
            return Some(());
        };
        let region = regions.get_mut(&number)?;
        // A gap in the deltas means damage: the next one would apply to the wrong pages.
        if (region.epoch, region.deltas.len()) != (epoch, delta as usize) {
            return None;
        }
        region.deltas.push(Delta::decode(number, body)?);
        Some(())
    }

    /// The number of the next delta: how many there are.
    pub(crate) fn delta_count(&self) -> usize {
        self.deltas.len()
    }

    /// An upper bound for the number of runs.
    pub(crate) fn run_count_max(&self) -> usize {
        self.base.len() + 2 * self.deltas.len()
    }

    /// Adds a write; returns whether its delta may be stored as a row. If not, a new base row is due.
    pub(crate) fn add(&mut self, delta: Delta, epoch: u32) -> bool {
        let is_row = self.epoch == epoch && self.deltas.len() < DELTAS_MAX && self.base_bytes >= SHORT_BASE_BYTES;
        self.deltas.push(delta);
        is_row && self.deltas.iter().map(|delta| delta.range.end - delta.range.start).sum::<u64>() <= HIDDEN_BYTES_MAX
    }

    /// The payloads that only this region's rows and its newest write name.
    pub(crate) fn local_extents(&self) -> HashSet<Extent> {
        let runs = self.base.iter().chain(self.deltas.iter().filter_map(|delta| delta.run.as_ref()));
        runs.filter(|run| run.is_local).map(|run| run.piece.extent).collect()
    }
}

impl Delta {
    /// The part of a write, or without a piece of a clearing, that is in a region. A piece begins with the range's
    /// first byte.
    pub(crate) fn of(range: PageRange, region: u32, piece: Option<Piece>) -> Self {
        let base = u64::from(region) * REGION_BYTES;
        let inside = range.start().max(base)..range.end().min(base + REGION_BYTES);
        let run = piece.map(|piece| Run {
            start: inside.start,
            piece: piece.slice(inside.start - range.start()..inside.end - range.start()),
            is_local: inside == (range.start()..range.end()),
        });
        Self { range: inside, run }
    }

    /// The stored form: what it is and where it begins, then the piece, or how long the cleared pages are.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.push(self.run.map_or(CLEARED, |run| if run.is_local { LOCAL } else { SHARED }));
        put_number(&mut out, self.range.start % REGION_BYTES);
        match &self.run {
            Some(run) => run.piece.encode(&mut out),
            None => put_number(&mut out, self.range.end - self.range.start),
        }
        out
    }

    /// Reads the row of a delta.
    fn decode(region: u32, body: &[u8]) -> Option<Self> {
        let mut reader = Reader(body);
        let kind = reader.byte()?;
        let start = u64::from(region) * REGION_BYTES + reader.number()?;
        let run = match kind {
            CLEARED => None,
            SHARED | LOCAL => Some(Run { start, piece: Piece::decode(&mut reader)?, is_local: kind == LOCAL }),
            _ => return None,
        };
        let end = match &run {
            Some(run) => run.end(),
            None => start.checked_add(reader.number()?)?,
        };
        reader.0.is_empty().then_some(Self { range: start..end, run })
    }

    /// The part inside a range of the blob.
    fn within(&self, range: Range<u64>) -> Option<Self> {
        let range = self.range.start.max(range.start)..self.range.end.min(range.end);
        let run = self.run.and_then(|run| run.within(range.clone()));
        (range.start < range.end).then_some(Self { range, run })
    }
}

/// Applies writes to runs. The writes, which are few, are merged first, so that the runs are walked once.
fn folded(base: &[Run], deltas: &[Delta]) -> Vec<Run> {
    let mut patches: Vec<Delta> = Vec::new();
    for delta in deltas {
        let before = patches.iter().filter_map(|patch| patch.within(0..delta.range.start));
        let after = patches.iter().filter_map(|patch| patch.within(delta.range.end..u64::MAX));
        patches = before.chain([delta.clone()]).chain(after).collect();
    }
    let mut runs = base.iter().peekable();
    let mut all = Vec::with_capacity(base.len() + 2 * patches.len());
    // Everything before this offset is done.
    let mut place = 0;
    for Delta { range, run } in patches {
        while let Some(next) = runs.peek().filter(|next| next.start < range.start) {
            all.extend(next.within(place..range.start));
            if next.end() > range.start {
                break;
            }
            runs.next();
        }
        while runs.next_if(|next| next.end() <= range.end).is_some() {}
        all.extend(run);
        place = range.end;
    }
    all.extend(runs.filter_map(|run| run.within(place..u64::MAX)));
    all
}

/// The stored form of a base row: how many runs, then for each its start, a flag and its piece.
pub(crate) fn encode_runs(runs: &[Run]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + runs.len() * 32);
    put_number(&mut out, runs.len() as u64);
    for run in runs {
        put_number(&mut out, run.start % REGION_BYTES);
        out.push(u8::from(run.is_local));
        run.piece.encode(&mut out);
    }
    out
}

/// Reads a base row.
fn decode_runs(region: u32, body: &[u8]) -> Option<Vec<Run>> {
    let mut reader = Reader(body);
    let base = u64::from(region) * REGION_BYTES;
    let count = reader.count()?;
    let runs = (0..count)
        .map(|_| {
            let start = base + reader.number()?;
            Some(Run { start, is_local: reader.flag()?, piece: Piece::decode(&mut reader)? })
        })
        .collect::<Option<_>>()?;
    reader.0.is_empty().then_some(runs)
}

/// The payloads that a row of pages points to: a base row, or a delta.
pub(crate) fn extents_of_pages(is_base: bool, body: &[u8]) -> Option<Vec<Extent>> {
    let runs = if is_base { decode_runs(0, body)? } else { Delta::decode(0, body)?.run.into_iter().collect() };
    Some(runs.into_iter().map(|run| run.piece.extent).collect())
}

/// A row of pages with other addresses of its payloads.
pub(crate) fn relocate_pages(is_base: bool, body: &[u8], mut to: impl FnMut(&Extent) -> Extent) -> Option<Vec<u8>> {
    if is_base {
        let mut runs = decode_runs(0, body)?;
        runs.iter_mut().for_each(|run| run.piece.extent = to(&run.piece.extent));
        return Some(encode_runs(&runs));
    }
    let mut delta = Delta::decode(0, body)?;
    delta.run.iter_mut().for_each(|run| run.piece.extent = to(&run.piece.extent));
    Some(delta.encode())
}

/// Bytes of a page blob whose pages share a base row.
pub(crate) const REGION_BYTES: u64 = 16 << 20;
/// Most deltas of a base row: a read of a region reads up to this many more rows, and a base row is written once for
/// this many writes.
pub(crate) const DELTAS_MAX: usize = 64;
/// Shorter base rows are rewritten by each write, which costs no more than the blob's own row.
const SHORT_BASE_BYTES: usize = 2048;
/// Most bytes that the deltas of a base row may replace: they stay on disk until the next base row.
const HIDDEN_BYTES_MAX: u64 = 1 << 20;
/// The first byte of a delta.
const CLEARED: u8 = 0;
const SHARED: u8 = 1;
const LOCAL: u8 = 2;

#[cfg(test)]
mod tests;
