//! Promises about scans: budgets, resuming, and what a scan sees.

use super::rows::{NOW, create, page, pages, rows_budget, store, unbounded, write};
use crate::Polls;
use larimar_engine::{Act, Budget, Engine, Expect, Flow, KeyRange, Op, Position, ReadError, SpaceId};
use std::time::Instant;

/// An unbounded scan visits every row once, in order, and has nothing to resume.
pub async fn a_scan_of_all_visits_every_row_once(engine: &impl Engine) {
    let (space, places) = numbered(engine, 100).await;
    let (rows, resume) = page(engine, space, &KeyRange::all(), unbounded()).await;
    assert_eq!(rows.iter().map(|row| Position::new(&*row.partition, &*row.row)).collect::<Vec<_>>(), places);
    assert_eq!(resume, None);
}

/// A scan whose visitor stops at a row returns that row as the place to resume, also for the first and the last.
pub async fn a_scan_that_stops_resumes_at_the_row_it_stopped_at(engine: &impl Engine) {
    let (space, places) = numbered(engine, 20).await;
    for stop in [0, 1, 9, 10, 19] {
        let mut visited = 0;
        let all = KeyRange::all();
        let scan = engine.scan(space, &all, unbounded(), |_| {
            visited += 1;
            if visited > stop { Flow::StopHere } else { Flow::Continue }
        });
        assert_eq!(scan.await, Ok(Some(places[stop].clone())), "stopped at {stop}");
        let rest = KeyRange { start: places[stop].clone(), end: None };
        let (rows, _) = page(engine, space, &rest, unbounded()).await;
        assert_eq!(rows.len(), places.len() - stop);
    }
}

/// A visitor that asks for a pause after each row sees every row once, and other tasks get their turn.
pub async fn a_scan_that_pauses_lets_others_run_and_goes_on(engine: &impl Engine) {
    let (space, places) = numbered(engine, 20).await;
    let mut rest = KeyRange::all();
    let mut visited = Vec::new();
    loop {
        let before = visited.len();
        let scan = engine.scan(space, &rest, unbounded(), |row| {
            visited.push(Position::new(row.partition, row.row));
            Flow::Pause
        });
        let (resume, polls) = Polls::watch(scan).await;
        // The last row of a scan needs no pause behind it.
        assert!(polls.count >= (visited.len() - before) as u64, "{polls:?}");
        match resume.expect("the space is there") {
            Some(position) => rest.start = position,
            None => break,
        }
    }
    assert_eq!(visited, places);
}

/// No page has more rows than its budget, and the pages together are the range.
pub async fn a_row_budget_is_kept_and_resumed_without_gap_or_repeat(engine: &impl Engine) {
    let (space, places) = numbered(engine, 50).await;
    let range = KeyRange { start: places[3].clone(), end: Some(places[47].clone()) };
    for rows_max in [1, 2, 7, 43, 44, 45, 1000] {
        let (rows, resume) = page(engine, space, &range, rows_budget(rows_max)).await;
        assert!(rows.len() <= rows_max, "{} rows for a budget of {rows_max}", rows.len());
        if let Some(position) = resume {
            let last = rows.last().expect("a page has a row at least");
            assert!(position > Position::new(&*last.partition, &*last.row), "a scan gets ahead");
        }
        let all = pages(engine, space, &range, rows_max).await;
        let all: Vec<_> = all.into_iter().map(|row| Position::new(row.partition, row.row)).collect();
        assert_eq!(all, places[3..47], "pages of {rows_max}");
    }
}

/// A budget of exactly the rows there are exhausts the range.
pub async fn a_budget_that_suffices_leaves_nothing_to_resume(engine: &impl Engine) {
    let (space, places) = numbered(engine, 10).await;
    let (rows, resume) = page(engine, space, &KeyRange::all(), rows_budget(10)).await;
    assert_eq!((rows.len(), resume), (10, None));
    let (rows, resume) = page(engine, space, &KeyRange::all(), rows_budget(9)).await;
    assert_eq!((rows.len(), resume), (9, Some(places[9].clone())));
}

/// A scan that may visit no row visits one, so that a caller that resumes comes to an end.
pub async fn a_scan_without_budget_still_advances(engine: &impl Engine) {
    let (space, places) = numbered(engine, 5).await;
    assert_eq!(pages(engine, space, &KeyRange::all(), 0).await.len(), places.len());
}

/// A scan whose deadline has passed visits one row at least.
pub async fn a_scan_past_its_deadline_still_advances(engine: &impl Engine) {
    let (space, places) = numbered(engine, 5).await;
    let mut rest = KeyRange::all();
    let mut visited = 0;
    for _ in 0..places.len() {
        let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() };
        let (rows, resume) = page(engine, space, &rest, budget).await;
        assert!(!rows.is_empty());
        visited += rows.len();
        match resume {
            Some(position) => rest.start = position,
            None => break,
        }
    }
    assert_eq!(visited, places.len());
}

/// Resuming is a new scan: it sees rows written and removed since, and never a row twice.
pub async fn a_resumed_scan_sees_what_was_written_meanwhile(engine: &impl Engine) {
    let (space, places) = numbered(engine, 10).await;
    let (first, resume) = page(engine, space, &KeyRange::all(), rows_budget(5)).await;
    let place = resume.expect("five rows are left");
    assert_eq!(place, places[5]);
    let gone = Op { row: &place.row, expect: Expect::Present, act: Act::Delete };
    write(engine, space, &place.partition, gone, NOW).await.expect("the row is there");
    store(engine, space, "zzz", "new", b"x").await;
    store(engine, space, "", "behind", b"x").await;
    let (rest, resume) = page(engine, space, &KeyRange { start: place, end: None }, unbounded()).await;
    assert_eq!((first.len(), rest.len(), resume), (5, 5, None));
    assert_eq!(rest.last().map(|row| row.partition.as_str()), Some("zzz"));
}

/// A row written many times is one row of a scan, with its newest bytes and version; a removed one is none.
pub async fn a_scan_sees_the_newest_version_of_each_row_once(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let mut versions = Vec::new();
    for round in 0..20u8 {
        for row in ["a", "b", "c"] {
            let version = store(engine, space, "p", row, &[round]).await;
            if round == 19 {
                versions.push(version);
            }
        }
    }
    let gone = Op { row: "b", expect: Expect::Present, act: Act::Delete };
    write(engine, space, "p", gone, NOW).await.expect("the row is there");
    let (rows, _) = page(engine, space, &KeyRange::all(), unbounded()).await;
    let found: Vec<_> = rows.iter().map(|row| (row.row.as_str(), row.version, row.body.as_slice())).collect();
    assert_eq!(found, [("a", versions[0], [19].as_slice()), ("c", versions[2], [19].as_slice())]);
}

/// Spaces with the same keys do not mix.
pub async fn a_scan_does_not_see_other_spaces(engine: &impl Engine) {
    let mut spaces = Vec::new();
    for number in 0..5u8 {
        let space = create(engine, &format!("t{number}")).await;
        store(engine, space, "p", "r", &[number]).await;
        spaces.push(space);
    }
    store(engine, SpaceId::SYSTEM, "p", "r", b"system").await;
    for (number, space) in spaces.iter().enumerate() {
        for range in [KeyRange::all(), KeyRange::partition("p"), KeyRange::point("p", "r")] {
            let (rows, resume) = page(engine, *space, &range, rows_budget(1)).await;
            assert_eq!(rows.iter().map(|row| row.body.as_slice()).collect::<Vec<_>>(), [[number as u8]]);
            assert_eq!(resume, None);
        }
    }
}

/// A number that no space has holds no rows; asking is no fault.
pub async fn a_scan_of_a_missing_space_is_refused(engine: &impl Engine) {
    let (space, _) = numbered(engine, 3).await;
    let missing = SpaceId(space.0 + 1000);
    let all = KeyRange::all();
    let scan = engine.scan(missing, &all, unbounded(), |_| panic!("a row of no space"));
    assert_eq!(scan.await, Err(ReadError::SpaceGone));
}

/// Rows spread over a few partitions, and their places in order.
async fn numbered(engine: &impl Engine, count: usize) -> (SpaceId, Vec<Position>) {
    let space = create(engine, "t").await;
    let mut places = Vec::with_capacity(count);
    for number in 0..count {
        let place = Position::new(format!("p{}", number * 4 / count), format!("r{number:05}"));
        store(engine, space, &place.partition, &place.row, &(number as u64).to_le_bytes()).await;
        places.push(place);
    }
    (space, places)
}
