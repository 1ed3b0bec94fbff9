//! Pure rules of runs of pages: which ranges they cover, when they are joined, and how versions differ.

use super::layout::Run;
use std::ops::Range;

/// The ranges that runs cover; adjacent ones are joined.
pub(crate) fn covered(runs: &[Run], within: &Range<u64>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for run in runs.iter().filter_map(|run| run.within(within.clone())) {
        join(&mut ranges, run.start..run.end());
    }
    ranges
}

/// The parts of runs inside of ranges. Both are in order and without overlaps.
pub(crate) fn inside(runs: &[Run], ranges: &[Range<u64>]) -> Vec<Run> {
    runs.iter().flat_map(|run| touching(run, ranges).iter().filter_map(|range| run.within(range.clone()))).collect()
}

/// The parts of runs outside of ranges. Both are in order and without overlaps.
pub(crate) fn outside(runs: &[Run], ranges: &[Range<u64>]) -> Vec<Run> {
    let mut left = Vec::with_capacity(runs.len() + ranges.len());
    for run in runs {
        let mut place = run.start;
        for range in touching(run, ranges) {
            left.extend(run.within(place..range.start));
            place = range.end;
        }
        left.extend(run.within(place..u64::MAX));
    }
    left
}

/// The ranges that overlap a run.
fn touching<'a>(run: &Run, ranges: &'a [Range<u64>]) -> &'a [Range<u64>] {
    let first = ranges.partition_point(|range| range.end <= run.start);
    let end = ranges.partition_point(|range| range.start < run.end());
    &ranges[first..end.max(first)]
}

/// The ranges that were written and cleared between two versions. Bytes in another payload count as written, even if
/// they are equal.
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

/// A group of runs that is worth rewriting as one payload, because few bytes are copied for each run that is saved. If
/// there are too many runs, the cheapest group is returned, whatever it costs.
pub(crate) fn worth_joining(runs: &[Run]) -> Option<Range<usize>> {
    if runs.len() <= RUNS_MANY {
        return None;
    }
    let groups = (0..runs.len()).step_by(JOINED_RUNS).filter_map(|start| {
        let group = start..runs.len().min(start + JOINED_RUNS);
        let saved = group.len() - covered(&runs[group.clone()], &(0..u64::MAX)).len();
        let bytes: u64 = runs[group.clone()].iter().map(|run| run.piece.length).sum();
        (saved >= SAVED_RUNS_MIN).then(|| (bytes / saved as u64, group))
    });
    let (bytes_a_run, group) = groups.min_by_key(|(bytes_a_run, _)| *bytes_a_run)?;
    (bytes_a_run <= CHEAP_RUN_BYTES || runs.len() > RUNS_MAX).then_some(group)
}

fn join(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Runs of a region above which some are joined if that is cheap.
const RUNS_MANY: usize = 256;
/// Runs of a region above which adjacent ones are always joined. In a full region such a join writes at most 2 MiB.
const RUNS_MAX: usize = 2048;
/// Runs that are joined at once.
const JOINED_RUNS: usize = 256;
/// Runs that a join must save to be worth a new base row.
const SAVED_RUNS_MIN: usize = 64;
/// Bytes that may be copied for each run that is saved.
const CHEAP_RUN_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::super::bytes::Extent;
    use super::super::layout::Piece;
    use super::*;

    /// So many runs of pages, each from one payload on to where the next begins, or with a gap.
    fn runs(count: u64, pages: u64, gap: u64) -> Vec<Run> {
        let piece = Piece::whole(Extent { file: [1; 16], offset: 0, length: pages * 512 });
        (0..count).map(|n| Run { start: n * (pages + gap) * 512, piece, is_local: true }).collect()
    }

    #[test]
    fn runs_are_cut_at_ranges() {
        // Pages 0 to 3, 6 to 9 and 12 to 15.
        let runs = runs(3, 4, 2);
        let ranges = [0..512, 1024..3584, 4096..4608, 5120..6144];
        let bounds = |runs: Vec<Run>| runs.iter().map(|run| (run.start, run.end())).collect::<Vec<_>>();
        assert_eq!(bounds(inside(&runs, &ranges)), [(0, 512), (1024, 2048), (3072, 3584), (4096, 4608)]);
        assert_eq!(bounds(outside(&runs, &ranges)), [(512, 1024), (3584, 4096), (4608, 5120), (6144, 8192)]);
        assert_eq!(inside(&runs, &ranges)[2].piece.skip, 0);
        assert_eq!(outside(&runs, &ranges)[1].piece.skip, 512);
        assert_eq!(outside(&runs, &[]), runs);
        assert_eq!(inside(&runs, &[]), []);
    }

    #[test]
    fn many_runs_that_touch_are_joined_and_scattered_ones_are_not() {
        assert_eq!(worth_joining(&runs(257, 1, 0)), Some(0..256));
        assert_eq!(worth_joining(&runs(256, 1, 0)), None);
        assert_eq!(worth_joining(&runs(5000, 1, 1)), None);
    }

    #[test]
    fn long_runs_are_joined_only_if_there_are_too_many() {
        assert_eq!(worth_joining(&runs(2048, 16, 0)), None);
        assert!(worth_joining(&runs(2049, 16, 0)).is_some());
        // Short ones are preferred.
        let mixed: Vec<Run> = [runs(1024, 16, 0), runs(1600, 1, 0).split_off(100)].concat();
        let group = worth_joining(&mixed).expect("there are short ones");
        assert!(group.start >= 1024, "{group:?}");
    }
}
