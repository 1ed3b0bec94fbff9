//! Short words for what every promise does: make a space, put, read, scan, and run writers in parallel.

use larimar_engine::{
    Act, Budget, Engine, Expect, Flow, Key, KeyRange, Op, Position, SpaceId, SpaceKind, SpaceName, WriteError,
};
use larimar_model::Timestamp;
use std::time::{Duration, Instant};

/// A point in 2024, the time of most writes here.
pub(super) const NOW: Timestamp = Timestamp::from_ticks(638_500_000_000_000_000);

/// Pages that a scan may need at most before it is called endless.
const PAGES_MAX: usize = 100_000;

/// A row, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) partition: String,
    pub(super) row: String,
    pub(super) version: Timestamp,
    pub(super) body: Vec<u8>,
}

pub(super) const fn name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "account", kind: SpaceKind::Table, name }
}

pub(super) async fn create(engine: &impl Engine, space: &str) -> SpaceId {
    engine.create_space(name(space), b"").await.expect("no fault").expect("the name is free")
}

pub(super) fn put<'a>(row: &'a str, body: &'a [u8]) -> Op<'a> {
    Op { row, expect: Expect::Any, act: Act::Put(body) }
}

/// Applies one operation.
pub(super) async fn write(
    engine: &impl Engine,
    space: SpaceId,
    partition: &str,
    op: Op<'_>,
    now: Timestamp,
) -> Result<Timestamp, WriteError> {
    let versions = engine.apply(space, partition, &[op], now).await?;
    assert_eq!(versions.len(), 1, "one version for each operation");
    Ok(versions[0])
}

/// Puts a row, whatever was there.
pub(super) async fn store(engine: &impl Engine, space: SpaceId, partition: &str, row: &str, body: &[u8]) -> Timestamp {
    let op = Op { row, expect: Expect::Any, act: Act::Put(body) };
    write(engine, space, partition, op, NOW).await.expect("an unconditional put succeeds")
}

pub(super) async fn read(
    engine: &impl Engine,
    space: SpaceId,
    partition: &str,
    row: &str,
) -> Option<(Timestamp, Vec<u8>)> {
    let key = Key { space, partition, row };
    let found = engine.get(key, |found| {
        found.map(|found| {
            assert_eq!((found.partition, found.row), (partition, row), "a read returns the row it was asked for");
            (found.version, found.body.to_vec())
        })
    });
    found.await.expect("no fault")
}

pub(super) fn unbounded() -> Budget {
    Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(3600) }
}

pub(super) fn rows_budget(rows_max: usize) -> Budget {
    Budget { rows_max, ..unbounded() }
}

/// One call of scan with a visitor that never stops.
pub(super) async fn page(
    engine: &impl Engine,
    space: SpaceId,
    range: &KeyRange,
    budget: Budget,
) -> (Vec<Row>, Option<Position>) {
    let mut rows = Vec::new();
    let resume = engine
        .scan(space, range, budget, |found| {
            rows.push(Row {
                partition: found.partition.to_owned(),
                row: found.row.to_owned(),
                version: found.version,
                body: found.body.to_vec(),
            });
            Flow::Continue
        })
        .await
        .expect("no fault");
    (rows, resume)
}

/// All rows of a range, in as many pages as the budget makes of it.
pub(super) async fn pages(engine: &impl Engine, space: SpaceId, range: &KeyRange, rows_max: usize) -> Vec<Row> {
    let mut all = Vec::new();
    let mut rest = range.clone();
    for _ in 0..PAGES_MAX {
        let (rows, resume) = page(engine, space, &rest, rows_budget(rows_max)).await;
        all.extend(rows);
        match resume {
            Some(position) => rest.start = position,
            None => return all,
        }
    }
    panic!("the scan does not end");
}

/// The keys of a range, in order.
pub(super) async fn keys(engine: &impl Engine, space: SpaceId, range: &KeyRange) -> Vec<(String, String)> {
    let (rows, resume) = page(engine, space, range, unbounded()).await;
    assert_eq!(resume, None, "an unbounded scan exhausts its range");
    rows.into_iter().map(|row| (row.partition, row.row)).collect()
}

/// Runs a future for each number on a thread of its own and returns their results in order.
pub(super) fn parallel<F, R>(count: usize, work: impl Fn(usize) -> F + Sync) -> Vec<R>
where
    F: Future<Output = R>,
    R: Send,
{
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|number| {
                    let (runtime, work) = (runtime.clone(), &work);
                    scope.spawn(move || runtime.block_on(work(number)))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("the thread did not panic")).collect()
        })
    })
}

/// A counter as bytes.
pub(super) fn count(body: Option<&[u8]>) -> u64 {
    body.map_or(0, |body| u64::from_le_bytes(body.try_into().expect("a counter has eight bytes")))
}
