//! The pure part of page blobs: which ranges runs cover, when they are joined, and how versions differ.

use super::layout::Run;
use std::ops::Range;

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
    use super::super::layout::Piece;
    use super::*;

    #[test]
    fn many_runs_that_touch_are_joined_and_scattered_ones_are_not() {
        let run = |page: u64| Run {
            start: page * 512,
            piece: Piece::whole(Extent { file: [1; 16], offset: 0, length: 512 }),
            is_local: true,
        };
        let touching: Vec<Run> = (0..300).map(run).collect();
        let scattered: Vec<Run> = (0..300).map(|page| run(page * 2)).collect();
        assert!(is_worth_joining(&touching) && !is_worth_joining(&touching[..256]));
        assert!(!is_worth_joining(&scattered));
    }
}
