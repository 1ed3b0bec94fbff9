//! Regions against arrays of pages, and when a base row is due.

use super::super::page_runs::{covered, difference};
use super::*;
use proptest::prelude::*;

fn extent(number: u8, length: u64) -> Extent {
    Extent { file: [number; 16], offset: 0, length }
}

fn pages(start: u64, end: u64) -> PageRange {
    PageRange::new(start * 512, end * 512).expect("pages")
}

/// For each page the payload that has it, and which page of the payload it is.
fn by_page(runs: &[Run], count: u64) -> Vec<Option<(u8, u64)>> {
    (0..count)
        .map(|page| {
            let run = runs.iter().find(|run| (run.start..run.end()).contains(&(page * 512)))?;
            Some((run.piece.extent.file[0], (run.piece.skip + page * 512 - run.start) / 512))
        })
        .collect()
}

/// Stores a region as rows and reads it again.
fn stored(base: &[Run], deltas: &[Delta]) -> Region {
    let mut regions = BTreeMap::new();
    Region::read_row(&mut regions, (0, 7, None), &encode_runs(base)).expect("a base row");
    for (number, delta) in deltas.iter().enumerate() {
        Region::read_row(&mut regions, (0, 7, Some(number as u32)), &delta.encode()).expect("a delta");
    }
    regions.remove(&0).expect("a region")
}

proptest! {
    #[test]
    fn rows_hold_what_an_array_of_pages_holds(
        steps in proptest::collection::vec((0..40_u64, 1..20_u64, any::<bool>(), 0..5_u8), 1..30),
        cut in 0..30_usize,
    ) {
        let (mut base, mut deltas, mut model) = (Vec::new(), Vec::new(), vec![None; 60]);
        let (mut old_runs, mut old_model) = (Vec::new(), model.clone());
        for (number, (start, count, is_write, then)) in steps.into_iter().enumerate() {
            if number == cut {
                (old_runs, old_model) = (folded(&base, &deltas), model.clone());
            }
            let payload = extent(number as u8, count * 512);
            let piece = is_write.then(|| Piece::whole(payload));
            deltas.push(Delta::of(pages(start, start + count), 0, piece));
            for page in 0..count {
                model[(start + page) as usize] = is_write.then_some((number as u8, page));
            }
            let region = stored(&base, &deltas);
            prop_assert_eq!(by_page(&region.runs(), 60), model.clone());
            prop_assert_eq!(region.delta_count(), deltas.len());
            if then == 0 {
                base = region.runs();
                deltas.clear();
            }
        }
        let (runs, all) = (folded(&base, &deltas), 0..60 * 512);
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

    #[test]
    fn any_bytes_are_read_as_a_row_or_refused(body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut regions = BTreeMap::new();
        let _ = Region::read_row(&mut regions, (3, 0, None), &body);
        let _ = Region::read_row(&mut regions, (3, 0, Some(0)), &body);
        let _ = (extents_of_pages(true, &body), extents_of_pages(false, &body));
    }
}

#[test]
fn a_write_across_regions_is_cut_and_not_local() {
    let region = REGION_BYTES / 512;
    let range = pages(region - 1, region + 1);
    let piece = Piece::whole(extent(1, 1024));
    let run = |range, region| Delta::of(range, region, Some(piece)).run.expect("a write");
    let (first, second) = (run(range, 0), run(range, 1));
    assert_eq!((first.start, first.piece.skip, first.is_local), (REGION_BYTES - 512, 0, false));
    assert_eq!((second.start, second.piece.skip, second.is_local), (REGION_BYTES, 512, false));
    assert!(run(pages(0, 2), 0).is_local);
}

#[test]
fn rows_of_pages_are_read_as_they_were_written() {
    let run = |start, skip| {
        let piece = Piece { extent: extent(1, 1024), skip, length: 512 };
        Run { start: 3 * REGION_BYTES + start, piece, is_local: skip == 0 }
    };
    let runs = vec![run(512, 0), run(4096, 512)];
    assert_eq!(decode_runs(3, &encode_runs(&runs)), Some(runs.clone()));
    let cleared = Delta { range: 3 * REGION_BYTES..4 * REGION_BYTES, run: None };
    let writes = runs.into_iter().map(|run| Delta { range: run.start..run.end(), run: Some(run) });
    for delta in writes.chain([cleared]) {
        let body = delta.encode();
        assert_eq!(Delta::decode(3, &body), Some(delta));
        for length in 0..body.len() {
            assert_eq!(Delta::decode(3, &body[..length]), None, "{length} bytes");
        }
        assert_eq!(Delta::decode(3, &[&body[..], &[0]].concat()), None);
        assert_eq!(Delta::decode(3, &[&[3], &body[1..]].concat()), None, "another kind");
    }
}

#[test]
fn a_delta_that_does_not_follow_its_base_row_is_refused() {
    let delta = Delta::of(pages(0, 1), 0, None).encode();
    let read = |rows: &[(u32, Option<u32>)]| {
        let mut regions = BTreeMap::new();
        rows.iter().try_for_each(|&(epoch, number)| {
            let body = if number.is_some() { delta.clone() } else { encode_runs(&[]) };
            Region::read_row(&mut regions, (0, epoch, number), &body)
        })
    };
    assert!(read(&[(1, None), (1, Some(0)), (1, Some(1)), (2, None), (2, Some(0))]).is_some());
    assert!(read(&[(1, Some(0))]).is_none(), "no base row");
    assert!(read(&[(1, None), (1, Some(1))]).is_none(), "a write is missing");
    assert!(read(&[(1, None), (2, Some(0))]).is_none(), "the base row is of another epoch");
}

#[test]
fn a_base_row_is_due_after_many_writes_or_large_ones() {
    let long: Vec<Run> = (0..200_u64)
        .map(|n| Run { start: n * 1024, piece: Piece::whole(extent(n as u8, 512)), is_local: true })
        .collect();
    let write = |pages_count: u64| Delta::of(pages(0, pages_count), 0, None);
    let mut region = stored(&long, &[]);
    for _ in 0..DELTAS_MAX {
        assert!(region.add(write(1), 7));
    }
    assert!(!region.add(write(1), 7), "there are enough");
    assert!(!stored(&long, &[]).add(write(1), 8), "an epoch begins with a base row");
    assert!(!stored(&long[..20], &[]).add(write(1), 7), "the base row is short");
    assert!(!stored(&long, &[]).add(write(2049), 7), "much would stay on disk");
    assert!(!Region::new(7).add(write(1), 7), "there is no base row");
}
