//! The pure part of page blobs: what a write makes of the runs of a region, and how versions differ.

use super::layout::{Piece, REGION_BYTES, Run};
use larimar_model::blob::PageRange;
use std::ops::Range;

/// The runs of a region after pages of `range` were written, or cleared where there is no piece. A piece begins with the
/// range's first byte.
pub(crate) fn overlay(runs: &[Run], range: PageRange, region: u32, piece: Option<Piece>) -> Vec<Run> {
    let base = u64::from(region) * REGION_BYTES;
    let inside = range.start().max(base)..range.end().min(base + REGION_BYTES);
    let before = runs.iter().filter_map(|run| run.within(0..inside.start));
    let after = runs.iter().filter_map(|run| run.within(inside.end..u64::MAX));
    let written = piece.map(|piece| Run {
        start: inside.start,
        piece: piece.slice(inside.start - range.start()..inside.end - range.start()),
        is_local: inside == (range.start()..range.end()),
    });
    before.chain(written).chain(after).collect()
}

/// The ranges that runs cover, those that touch joined.
pub(crate) fn covered(runs: &[Run], within: &Range<u64>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for run in runs.iter().filter_map(|run| run.within(within.clone())) {
        join(&mut ranges, run.start..run.end());
    }
    ranges
}

/// What was written and what was cleared between two versions. Bytes that lie in another payload count as written, also
/// if they are the same.
pub(crate) fn difference(earlier: &[Run], later: &[Run], within: &Range<u64>) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut written, mut cleared) = (Vec::new(), Vec::new());
    let bounds = |runs: &[Run]| runs.iter().flat_map(|run| [run.start, run.end()]).collect::<Vec<_>>();
    let mut cuts = [bounds(earlier), bounds(later), vec![within.start, within.end]].concat();
    cuts.retain(|cut| (within.start..=within.end).contains(cut));
    cuts.sort_unstable();
    cuts.dedup();
    let (mut earlier, mut later) = (earlier.iter().peekable(), later.iter().peekable());
    for cut in cuts.windows(2) {
        let place = cut[0]..cut[1];
        let source = |runs: &mut std::iter::Peekable<std::slice::Iter<'_, Run>>| {
            while runs.next_if(|run| run.end() <= place.start).is_some() {}
            let run = runs.peek().filter(|run| run.start <= place.start)?;
            Some((run.piece.extent, run.piece.skip + place.start - run.start))
        };
        match (source(&mut earlier), source(&mut later)) {
            (before, Some(after)) if before != Some(after) => join(&mut written, place),
            (Some(_), None) => join(&mut cleared, place),
            _ => {}
        }
    }
    (written, cleared)
}

/// Whether so many runs are worth being written anew as fewer.
pub(crate) fn is_worth_joining(runs: &[Run]) -> bool {
    runs.len() > RUNS_MAX && runs.len() > 2 * covered(runs, &(0..u64::MAX)).len()
}

fn join(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Runs of a region above which they are joined.
const RUNS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::super::bytes::Extent;
    use super::*;
    use proptest::prelude::*;

    fn extent(number: u8, length: u64) -> Extent {
        Extent { file: [number; 16], offset: 0, length }
    }

    fn pages(start: u64, end: u64) -> PageRange {
        PageRange::new(start * 512, end * 512).expect("pages")
    }

    /// For each page the payload and the page of it that it has, as runs tell.
    fn told(runs: &[Run], count: u64) -> Vec<Option<(u8, u64)>> {
        (0..count)
            .map(|page| {
                let run = runs.iter().find(|run| (run.start..run.end()).contains(&(page * 512)))?;
                Some((run.piece.extent.file[0], (run.piece.skip + page * 512 - run.start) / 512))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn runs_tell_what_an_array_of_pages_tells(
            steps in proptest::collection::vec((0..40_u64, 1..20_u64, any::<bool>()), 1..30),
            cut in 0..30_usize,
        ) {
            let (mut runs, mut model) = (Vec::new(), vec![None; 60]);
            let (mut old_runs, mut old_model) = (Vec::new(), model.clone());
            for (number, (start, count, is_write)) in steps.into_iter().enumerate() {
                if number == cut {
                    (old_runs, old_model) = (runs.clone(), model.clone());
                }
                let payload = extent(number as u8, count * 512);
                let piece = is_write.then(|| Piece::whole(payload));
                runs = overlay(&runs, pages(start, start + count), 0, piece);
                for page in 0..count {
                    model[(start + page) as usize] = is_write.then_some((number as u8, page));
                }
                prop_assert_eq!(told(&runs, 60), model.clone());
            }
            let all = 0..60 * 512;
            let is_in = |ranges: &[Range<u64>], page: u64| ranges.iter().any(|range| range.contains(&(page * 512)));
            let covered = covered(&runs, &all);
            let (written, cleared) = difference(&old_runs, &runs, &all);
            for page in 0..60 {
                let (old, new) = (old_model[page as usize], model[page as usize]);
                prop_assert_eq!(is_in(&covered, page), new.is_some());
                prop_assert_eq!(is_in(&written, page), new.is_some() && old != new);
                prop_assert_eq!(is_in(&cleared, page), new.is_none() && old.is_some());
            }
        }
    }

    #[test]
    fn a_write_across_regions_is_cut_and_not_local() {
        let region = REGION_BYTES / 512;
        let range = pages(region - 1, region + 1);
        let piece = Piece::whole(extent(1, 1024));
        let (first, second) = (overlay(&[], range, 0, Some(piece)), overlay(&[], range, 1, Some(piece)));
        assert_eq!((first[0].start, first[0].piece.skip, first[0].is_local), (REGION_BYTES - 512, 0, false));
        assert_eq!((second[0].start, second[0].piece.skip, second[0].is_local), (REGION_BYTES, 512, false));
        assert!(overlay(&[], pages(0, 2), 0, Some(piece))[0].is_local);
    }

    #[test]
    fn many_runs_that_touch_are_joined_and_scattered_ones_are_not() {
        let run = |page: u64| Run { start: page * 512, piece: Piece::whole(extent(1, 512)), is_local: true };
        let touching: Vec<Run> = (0..300).map(run).collect();
        let scattered: Vec<Run> = (0..300).map(|page| run(page * 2)).collect();
        assert!(is_worth_joining(&touching) && !is_worth_joining(&touching[..256]));
        assert!(!is_worth_joining(&scattered));
    }
}
