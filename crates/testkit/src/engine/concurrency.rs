//! Promises about writers and readers that meet: nothing lost, nothing half seen.

use super::rows::{NOW, count, create, name, page, parallel, put, read, store, unbounded, write};
use larimar_engine::{Act, Engine, Expect, Key, KeyRange, Op, SpaceId, WriteError};
use larimar_model::Timestamp;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

const WRITERS: usize = 8;
const ROUNDS: usize = 25;

/// Many writers add one to the same row by edits; every addition counts, every version is new.
pub async fn concurrent_edits_of_one_row_lose_no_update(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let versions = parallel(WRITERS, |_| async {
        let mut versions = Vec::new();
        for _ in 0..ROUNDS {
            let add = |old: Option<&[u8]>| Ok((count(old) + 1).to_le_bytes().to_vec());
            let op = Op { row: "r", expect: Expect::Any, act: Act::Edit(&add) };
            versions.push(write(engine, space, "p", op, NOW).await.expect("the edit agrees"));
        }
        assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "one writer's versions increase");
        versions
    });
    let (version, body) = read(engine, space, "p", "r").await.expect("the row is there");
    assert_eq!(count(Some(&body)), (WRITERS * ROUNDS) as u64);
    let distinct: BTreeSet<_> = versions.concat().into_iter().collect();
    assert_eq!(distinct.len(), WRITERS * ROUNDS, "no version was given twice");
    assert_eq!(distinct.last(), Some(&version));
}

/// Many writers count in the same row by edits; each is given the number that its own write stored, also if its edit ran
/// more than once.
pub async fn concurrent_edits_return_the_values_that_were_committed(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let numbers = parallel(WRITERS, |_| async {
        let mut numbers = Vec::new();
        for _ in 0..ROUNDS {
            let add = |old: Option<&[u8]>| {
                let number = count(old) + 1;
                Ok::<_, WriteError>((number.to_le_bytes().to_vec(), number))
            };
            let key = Key { space, partition: "p", row: "r" };
            numbers.push(engine.edit(key, NOW, add).await.expect("the edit agrees"));
        }
        numbers
    });
    let mut numbers = numbers.concat();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=(WRITERS * ROUNDS) as u64), "each number was given once");
}

/// Many writers read, add one and write if unchanged; every success counts and no failure does.
pub async fn concurrent_compare_and_swap_loses_no_update(engine: &impl Engine) {
    let space = create(engine, "t").await;
    store(engine, space, "p", "r", &0u64.to_le_bytes()).await;
    let won = parallel(WRITERS, |_| async {
        let mut won = 0u64;
        for _ in 0..ROUNDS {
            let (version, body) = read(engine, space, "p", "r").await.expect("the row is there");
            let next = (count(Some(&body)) + 1).to_le_bytes();
            let op = Op { row: "r", expect: Expect::Version(version), act: Act::Put(&next) };
            match write(engine, space, "p", op, NOW).await {
                Ok(_) => won += 1,
                Err(WriteError::Condition { op: 0, found: Some(found) }) => assert!(found > version),
                Err(other) => panic!("{other}"),
            }
        }
        won
    });
    let (_, body) = read(engine, space, "p", "r").await.expect("the row is there");
    assert_eq!(count(Some(&body)), won.iter().sum::<u64>());
    assert!(won.iter().sum::<u64>() > 0, "someone won");
}

/// Of many inserts of one key exactly one succeeds.
pub async fn one_of_many_concurrent_inserts_wins(engine: &impl Engine) {
    let space = create(engine, "t").await;
    for round in 0..10 {
        let row = format!("r{round}");
        let won = parallel(WRITERS, |writer| {
            let row = &row;
            async move {
                let body = [writer as u8];
                let op = Op { row, expect: Expect::Absent, act: Act::Put(&body) };
                write(engine, space, "p", op, NOW).await.is_ok()
            }
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let winner = won.iter().position(|won| *won).expect("one won");
        assert_eq!(read(engine, space, "p", &row).await.map(|(_, body)| body), Some(vec![winner as u8]));
    }
}

/// Transactions over the same rows happen one after the other: every row always has the same writer.
pub async fn concurrent_transactions_never_interleave(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let rows: Vec<String> = (0..10).map(|i| format!("r{i}")).collect();
    parallel(WRITERS, |writer| {
        let rows = &rows;
        async move {
            for round in 0..ROUNDS {
                let body = [writer as u8, round as u8];
                // Half of the writers name the rows backwards, so that locks by row would meet head-on.
                let mut ops: Vec<Op<'_>> =
                    rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(&body) }).collect();
                if writer % 2 == 1 {
                    ops.reverse();
                }
                engine.apply(space, "p", &ops, NOW).await.expect("no condition");
                let (seen, _) = page(engine, space, &KeyRange::partition("p"), unbounded()).await;
                assert_eq!(seen.len(), rows.len());
                assert!(seen.iter().all(|row| row.body == seen[0].body), "rows of two transactions at once");
            }
        }
    });
}

/// A scan over both ends of a partition never sees one half of a transaction, however many pages lie between.
pub async fn a_scan_is_one_snapshot(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let filler: Vec<String> = (0..500).map(|number| format!("m{number:04}")).collect();
    for rows in filler.chunks(100) {
        let ops: Vec<Op<'_>> = rows.iter().map(|row| put(row, &[7; 200])).collect();
        engine.apply(space, "p", &ops, NOW).await.expect("no condition");
    }
    let write_both = async |round: u64| {
        let body = round.to_le_bytes();
        let op = |row| Op { row, expect: Expect::Any, act: Act::Put(&body) };
        engine.apply(space, "p", &[op("a"), op("z")], NOW).await.expect("no condition");
    };
    write_both(0).await;
    let readers = Readers::new();
    parallel(1 + READERS, |worker| {
        let (readers, write_both) = (&readers, &write_both);
        async move {
            if worker == 0 {
                for round in readers.rounds() {
                    write_both(round).await;
                }
                return;
            }
            let _here = readers.enter();
            let mut last = 0;
            for _ in 0..60 {
                let (rows, _) = page(engine, space, &KeyRange::all(), unbounded()).await;
                assert_eq!(rows.len(), 502);
                let (first, final_) = (count(Some(&rows[0].body)), count(Some(&rows[501].body)));
                assert_eq!(first, final_, "a scan saw two moments");
                assert!(first >= last, "a later scan saw an earlier moment");
                last = first;
            }
        }
    });
}

/// Reads of a row that is being written see its versions and counts only grow.
pub async fn readers_never_see_versions_go_back(engine: &impl Engine) {
    let space = create(engine, "t").await;
    store(engine, space, "p", "r", &0u64.to_le_bytes()).await;
    let readers = Readers::new();
    parallel(1 + READERS, |worker| {
        let readers = &readers;
        async move {
            if worker == 0 {
                for round in readers.rounds() {
                    store(engine, space, "p", "r", &round.to_le_bytes()).await;
                }
                return;
            }
            let _here = readers.enter();
            let mut last = (Timestamp::from_ticks(0), 0);
            for _ in 0..2000 {
                let (version, body) = read(engine, space, "p", "r").await.expect("the row is there");
                let seen = (version, count(Some(&body)));
                assert!(seen >= last, "{seen:?} after {last:?}");
                last = seen;
            }
        }
    });
}

/// Once a write is acknowledged, every read and scan that begins later sees it, from any caller.
pub async fn an_acknowledged_write_is_seen_by_every_later_read(engine: &impl Engine) {
    let space = create(engine, "t").await;
    store(engine, space, "p", "r", &0u64.to_le_bytes()).await;
    let (acknowledged, readers) = (AtomicU64::new(0), Readers::new());
    parallel(1 + READERS, |worker| {
        let (acknowledged, readers) = (&acknowledged, &readers);
        async move {
            if worker == 0 {
                for round in readers.rounds() {
                    store(engine, space, "p", "r", &round.to_le_bytes()).await;
                    acknowledged.store(round, SeqCst);
                }
                return;
            }
            let _here = readers.enter();
            for _ in 0..1000 {
                let floor = acknowledged.load(SeqCst);
                let (_, body) = read(engine, space, "p", "r").await.expect("the row is there");
                assert!(count(Some(&body)) >= floor, "a read missed an acknowledged write");
                let floor = acknowledged.load(SeqCst);
                let (rows, _) = page(engine, space, &KeyRange::all(), unbounded()).await;
                assert!(count(Some(&rows[0].body)) >= floor, "a scan missed an acknowledged write");
            }
        }
    });
}

/// Writers that race with a drop succeed before it or get the error that the space is gone.
pub async fn no_write_succeeds_after_a_drop_is_acknowledged(engine: &impl Engine) {
    for _ in 0..5 {
        let space = create(engine, "t").await;
        let is_dropped = AtomicBool::new(false);
        parallel(5, |worker| {
            let is_dropped = &is_dropped;
            async move {
                if worker == 0 {
                    for row in 0..20 {
                        store(engine, space, "first", &format!("r{row}"), b"x").await;
                    }
                    assert_eq!(engine.drop_space(name("t")).await, Ok(true));
                    is_dropped.store(true, SeqCst);
                    return;
                }
                for round in 0..100_000 {
                    let was_dropped = is_dropped.load(SeqCst);
                    let row = format!("{worker}-{round}");
                    match write(engine, space, "p", put(&row, b"x"), NOW).await {
                        Ok(_) => assert!(!was_dropped, "a write to a dropped space succeeded"),
                        Err(WriteError::SpaceGone) => return,
                        Err(other) => panic!("{other}"),
                    }
                }
                panic!("the drop never came");
            }
        });
        let again = create(engine, "t").await;
        let (rows, _) = page(engine, again, &KeyRange::all(), unbounded()).await;
        assert_eq!(rows.len(), 0);
        assert_eq!(engine.drop_space(name("t")).await, Ok(true));
    }
}

/// Of many creations of one name exactly one succeeds.
pub async fn one_of_many_concurrent_creations_wins(engine: &impl Engine) {
    let mut seen = BTreeSet::new();
    for _ in 0..10 {
        let made = parallel(WRITERS, |_| async { engine.create_space(name("t"), b"").await.expect("no fault") });
        let made: Vec<SpaceId> = made.into_iter().flatten().collect();
        assert_eq!(made.len(), 1);
        assert!(seen.insert(made[0]), "a number came back");
        let dropped = parallel(WRITERS, |_| async { engine.drop_space(name("t")).await.expect("no fault") });
        assert_eq!(dropped.iter().filter(|dropped| **dropped).count(), 1);
    }
}

/// Writers of different partitions and spaces all get what they wrote.
pub async fn writers_of_many_partitions_do_not_disturb_each_other(engine: &impl Engine) {
    let spaces = [create(engine, "t1").await, create(engine, "t2").await];
    parallel(WRITERS, |writer| async move {
        let space = spaces[writer % 2];
        for round in 0..ROUNDS {
            let (partition, row) = (format!("p{}", writer * 1000 + round % 5), format!("r{round}"));
            let insert = Op { row: &row, expect: Expect::Absent, act: Act::Put(row.as_bytes()) };
            let version = write(engine, space, &partition, insert, NOW).await.expect("the row is new");
            assert_eq!(read(engine, space, &partition, &row).await, Some((version, row.clone().into_bytes())));
        }
    });
    for space in spaces {
        let (rows, _) = page(engine, space, &KeyRange::all(), unbounded()).await;
        assert_eq!(rows.len(), WRITERS / 2 * ROUNDS);
    }
}

const READERS: usize = 3;

/// Counts the readers that still read, so that a writer goes on as long as they do, however fast either is.
struct Readers(AtomicUsize);

struct Here<'a>(&'a AtomicUsize);

impl Readers {
    const fn new() -> Self {
        Self(AtomicUsize::new(READERS))
    }

    /// Rounds of the writer: while there are readers, and a few at least.
    fn rounds(&self) -> impl Iterator<Item = u64> {
        (1..10_000_000).take_while(|round| *round < 20 || self.0.load(SeqCst) > 0)
    }

    /// Counts a reader as there until the guard goes, also by a panic.
    const fn enter(&self) -> Here<'_> {
        Here(&self.0)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
