//! Promises about pages: whatever a page reads, it shows one moment.
//!
//! A writer keeps `a + z = 0` in two rows of a partition by transactions, with rows between them, while readers ask for
//! pages that need several reads. A page that shows another sum shows half a transaction.

use super::rows::{NOW, create, parallel, put, unbounded};
use crate::queries::{Node, filter};
use larimar_engine::table::{PageLimits, Plan, query};
use larimar_engine::{Budget, Engine, Flow, KeyRange, Op, Reads, RowRef, Snapshot as _, SpaceId};
use larimar_model::filter::Row;
use larimar_model::{Entity, EntityBody, EntityKey, Filter, PartitionKey, RowKey, Value, ValueRef};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const READERS: usize = 2;
const PAGES: usize = 60;
/// Rows between the two: more than are read in one go under a filter.
const BETWEEN: usize = 700;

/// A page over two ranges and a point shows one moment.
pub async fn a_page_over_several_ranges_is_one_moment(engine: &impl Engine) {
    check_sums(engine, "PartitionKey eq 'p' and (RowKey lt 'b' or RowKey eq 'm0007' or RowKey gt 'y')").await;
}

/// A page whose filter admits two rows at both ends of many shows one moment.
pub async fn a_page_that_filters_many_rows_is_one_moment(engine: &impl Engine) {
    check_sums(engine, "PartitionKey eq 'p' and (Sum lt 1L or Sum ge 1L)").await;
}

/// A page of rows by their keys shows one moment.
pub async fn a_page_of_points_is_one_moment(engine: &impl Engine) {
    check_sums(engine, "PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'm0007' or RowKey eq 'z')").await;
}

/// A page of all rows shows one moment.
pub async fn a_page_of_a_partition_is_one_moment(engine: &impl Engine) {
    check_sums(engine, "PartitionKey eq 'p'").await;
}

/// A snapshot shows one moment, also to a caller that stops and goes on, and however it is read.
pub async fn a_snapshot_that_is_read_in_pieces_is_one_moment(engine: &impl Engine) {
    let space = filled(engine).await;
    under_transactions(engine, space, async || {
        let mut snapshot = engine.snapshot(Reads::Many, unbounded().deadline).await.expect("no fault");
        let (mut rows, mut stops) = (Vec::new(), 0);
        let mut rest = KeyRange::partition("p");
        loop {
            let budget = Budget { rows_max: 300, ..unbounded() };
            let mut visited = 0;
            let resume = snapshot.scan(space, &rest, budget, |row| {
                visited += 1;
                // Stops at a row that the next call begins with.
                if visited == 97 {
                    stops += 1;
                    return Flow::StopHere;
                }
                rows.push((row.row.to_owned(), sum_of(row)));
                Flow::Continue
            });
            match resume.await.expect("no fault") {
                Some(place) => rest.start = place,
                None => break,
            }
            tokio::task::yield_now().await;
        }
        assert!(stops > 5, "{stops} stops");
        assert_eq!(rows.len(), BETWEEN + 2);
        assert!(rows.is_sorted(), "no row twice");
        let mut points = Vec::new();
        let keys = [("p", "a"), ("p", "b"), ("p", "m0001"), ("p", "z")];
        let found = snapshot.get_many(space, &keys, unbounded(), |row| {
            points.push((row.row.to_owned(), sum_of(row)));
            Flow::Continue
        });
        assert_eq!(found.await, Ok(None));
        let ends: Vec<_> =
            rows.iter().filter(|(row, _)| ["a", "m0001", "z"].contains(&row.as_str())).cloned().collect();
        assert_eq!(points, ends, "the same moment");
        let again = snapshot.get(space, ("p", "a"), unbounded()).await.expect("no fault").map(|(_, body)| body);
        let sum = again.as_deref().and_then(|body| EntityBody::from_trusted(body).get("Sum").and_then(number));
        assert_eq!(sum, points[0].1);
        rows.iter().filter_map(|(_, sum)| *sum).collect()
    })
    .await;
}

/// Keys that are looked up together come in their order; a visitor that stops goes on at the row it stopped at.
pub async fn keys_are_looked_up_in_their_order(engine: &impl Engine) {
    let space = filled(engine).await;
    let mut snapshot = engine.snapshot(Reads::Many, unbounded().deadline).await.expect("no fault");
    let keys = [("o", "a"), ("p", "a"), ("p", "a\0"), ("p", "m0003"), ("p", "m0004"), ("p", "zz"), ("q", "a")];
    let found = [1, 3, 4];
    for stop in found {
        let mut visited = Vec::new();
        let resume = snapshot.get_many(space, &keys, unbounded(), |row| {
            if (row.partition, row.row) == keys[stop] {
                return Flow::StopHere;
            }
            visited.push((row.partition.to_owned(), row.row.to_owned()));
            Flow::Continue
        });
        assert_eq!(resume.await, Ok(Some(stop)));
        let rest = snapshot.get_many(space, &keys[stop..], unbounded(), |row| {
            visited.push((row.partition.to_owned(), row.row.to_owned()));
            Flow::Continue
        });
        assert_eq!(rest.await, Ok(None));
        let expected: Vec<_> =
            found.iter().map(|index| (keys[*index].0.to_owned(), keys[*index].1.to_owned())).collect();
        assert_eq!(visited, expected, "stopped at {stop}");
    }
    assert_eq!(snapshot.get_many(space, &[], unbounded(), |_| panic!("no key")).await, Ok(None));
    assert_eq!(snapshot.get(space, ("p", "zz"), unbounded()).await, Ok(None));
    let missing = SpaceId(space.0 + 1000);
    let refused = snapshot.get_many(missing, &keys, unbounded(), |_| panic!("a row of no space")).await;
    assert_eq!(refused, Err(larimar_engine::ReadError::SpaceGone));
}

/// A snapshot shows every write that was acknowledged before it was opened, and none that began after its first read.
pub async fn a_snapshot_shows_what_was_acknowledged_before_and_nothing_later(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let write = async |sum: i64| {
        let (a, z) = (body("a", sum), body("z", -sum));
        engine.apply(space, "p", &[put("a", &a), put("z", &z)], NOW).await.expect("no condition");
    };
    for sum in 0..10 {
        write(2 * sum).await;
        let mut snapshot = engine.snapshot(Reads::Many, unbounded().deadline).await.expect("no fault");
        let mut seen = Vec::new();
        for key in [("p", "a"), ("p", "z"), ("p", "a")] {
            let found = snapshot.get(space, key, unbounded()).await.expect("no fault").expect("the row is there");
            seen.extend(EntityBody::from_trusted(&found.1).get("Sum").and_then(number));
            write(2 * sum + 1).await;
        }
        assert_eq!(seen, [2 * sum, -2 * sum, 2 * sum]);
    }
}

/// Whatever the filter, a page shows all rows of a partition as one transaction left them.
pub async fn pages_of_random_filters_are_one_moment(engine: &impl Engine) {
    let space = filled(engine).await;
    // All rows are written by every transaction, with one value; a filter looks at their keys and at what never changes.
    let rows: Vec<crate::queries::Row> = ["", "a", "aa", "b", "c", "z", "\u{1F600}", "\u{e000}"]
        .iter()
        .zip(0..)
        .map(|(row, number)| ("a".to_owned(), (*row).to_owned(), vec![("A", Value::Int32(number - 2))]))
        .collect();
    let write = async |value: i64| {
        let bodies: Vec<(&str, Vec<u8>)> = rows
            .iter()
            .map(|(_, row, properties)| {
                let all = properties.iter().cloned().chain([("Sum", Value::Int64(value))]);
                (row.as_str(), entity("a", row, all.collect()))
            })
            .collect();
        let ops: Vec<Op<'_>> = bodies.iter().map(|(row, body)| put(row, body)).collect();
        engine.apply(space, "a", &ops, NOW).await.expect("no condition");
    };
    write(0).await;
    let mut runner = TestRunner::default();
    let random = (0..200).map(|_| filter().new_tree(&mut runner).expect("a filter").current());
    // Few random filters need several reads, so some that do are added.
    let nodes: Vec<Node> = std::iter::repeat_with(both_ends).take(READERS * 5).chain(random).collect();
    let (done, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    parallel(1 + READERS, |worker| {
        let (rows, nodes, done, next, write) = (&rows, &nodes, &done, &next, &write);
        async move {
            if worker == 0 {
                for value in 1.. {
                    write(value).await;
                    if done.load(SeqCst) == READERS {
                        return;
                    }
                }
            }
            let _done = Done(done);
            while let Some(node) = nodes.get(next.fetch_add(1, SeqCst)) {
                let text = format!("PartitionKey eq 'a' and ({})", node.text());
                let plan = Plan::new(Some(&Filter::parse(&text).expect("a filter")));
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                page(engine, space, &plan, |row| {
                    keys.push(row.row.to_owned());
                    values.extend(row.body.get("Sum").and_then(number));
                })
                .await;
                let admitted = rows.iter().filter(|row| node.admits(row)).map(|row| row.1.clone());
                assert_eq!(keys, admitted.collect::<Vec<_>>(), "{text}");
                values.dedup();
                assert!(values.len() <= 1, "{text}: {values:?}");
            }
        }
    });
}

/// A filter that admits rows of two ranges.
fn both_ends() -> Node {
    let compare = |operator, key: &str| Node::Compare {
        property: "RowKey",
        operator,
        literal: Value::String(key.to_owned()),
        is_literal_first: false,
    };
    Node::Or(vec![compare("lt", "aa"), compare("gt", "b")])
}

/// Asks for pages of a filter while the sum is kept.
async fn check_sums(engine: &impl Engine, text: &str) {
    let space = filled(engine).await;
    let plan = Plan::new(Some(&Filter::parse(text).expect("a filter")));
    under_transactions(engine, space, async || {
        let mut sums = Vec::new();
        page(engine, space, &plan, |row| sums.extend(row.body.get("Sum").and_then(number))).await;
        sums
    })
    .await;
}

/// Reads one page, which is all that the plan asks for.
async fn page(engine: &impl Engine, space: SpaceId, plan: &Plan, mut visit: impl FnMut(&Row<'_>) + Send) {
    let deadline = Instant::now() + Duration::from_secs(600);
    let limits = PageLimits { entities_max: 1000, deadline, steps_max: PageLimits::STEPS_MAX };
    let read = query(engine, space, plan, limits, |row| {
        visit(row);
        Flow::Continue
    });
    assert_eq!(read.await.expect("no fault").next, None, "one page");
}

/// A space with a partition of many rows, at both ends the two that a writer changes.
async fn filled(engine: &impl Engine) -> SpaceId {
    let space = create(engine, "t").await;
    let names: Vec<String> = (0..BETWEEN).map(|number| format!("m{number:04}")).collect();
    for names in names.chunks(100) {
        let bodies: Vec<Vec<u8>> = names.iter().map(|name| entity("p", name, Vec::new())).collect();
        let ops: Vec<Op<'_>> = names.iter().zip(&bodies).map(|(name, body)| put(name, body)).collect();
        engine.apply(space, "p", &ops, NOW).await.expect("no condition");
    }
    let (a, z) = (body("a", 0), body("z", 0));
    engine.apply(space, "p", &[put("a", &a), put("z", &z)], NOW).await.expect("no condition");
    space
}

/// Runs reads, which return the two values that they saw, while a writer changes them.
async fn under_transactions(engine: &impl Engine, space: SpaceId, read: impl AsyncFn() -> Vec<i64> + Sync) {
    let done = AtomicUsize::new(0);
    parallel(1 + READERS, |worker| {
        let (done, read) = (&done, &read);
        async move {
            if worker == 0 {
                for sum in 1.. {
                    let (a, z) = (body("a", sum), body("z", -sum));
                    engine.apply(space, "p", &[put("a", &a), put("z", &z)], NOW).await.expect("no condition");
                    if done.load(SeqCst) == READERS {
                        return;
                    }
                }
            }
            let _done = Done(done);
            let mut last = 0;
            for _ in 0..PAGES {
                let sums = read().await;
                assert!(matches!(sums[..], [a, z] if a + z == 0), "half a transaction: {sums:?}");
                assert!(sums[0] >= last, "a later page shows an earlier moment");
                last = sums[0];
            }
        }
    });
}

/// Counts a reader as done when dropped, also by a panic; the writer then stops.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn body(row: &str, sum: i64) -> Vec<u8> {
    entity("p", row, vec![("Sum", Value::Int64(sum))])
}

fn entity(partition: &str, row: &str, properties: Vec<(&'static str, Value)>) -> Vec<u8> {
    let key =
        EntityKey { partition: PartitionKey::new(partition).expect("a key"), row: RowKey::new(row).expect("a key") };
    Entity::from_properties(key, properties).expect("an entity").body().as_bytes().to_vec()
}

fn sum_of(row: RowRef<'_>) -> Option<i64> {
    EntityBody::from_trusted(row.body).get("Sum").and_then(number)
}

const fn number(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int64(number) => Some(number),
        _ => None,
    }
}
