//! Bounds and accuracy of the figures of a table.

use super::super::tests::HeapBytes;
use super::*;
use std::collections::HashMap;

const KEY: HashKey = HashKey([7; HashKey::BYTES]);

impl HeapBytes for InsertOrder {
    fn heap_bytes(&self) -> usize {
        let key_bytes = |(partition, row): &Key| partition.capacity() + row.capacity();
        let bounds_bytes = |(min, max): &(Key, Key)| size_of::<(Key, Key)>() + key_bytes(min) + key_bytes(max);
        self.bounds.as_deref().map_or(0, bounds_bytes)
    }
}

impl HeapBytes for PartitionFigures {
    fn heap_bytes(&self) -> usize {
        self.inserts.heap_bytes()
    }
}

impl HeapBytes for ShapeFigures {
    fn heap_bytes(&self) -> usize {
        self.plan.capacity()
    }
}

impl HeapBytes for TableFigures {
    fn heap_bytes(&self) -> usize {
        let parts = [&self.partitions.0 as &dyn HeapBytes, &self.shapes.0, &self.ranges, &self.inserts];
        parts.iter().map(|part| part.heap_bytes()).sum()
    }
}

/// Reads and inserts under these keys, with a query of this shape.
fn load(table: &mut TableFigures, partition: &str, row: &str, shape: &str) {
    let (kind, outcome) = (OperationKind::Insert, Outcome::Done);
    table.operation(kind, outcome, Duration::from_millis(1));
    table.write(KEY, &WriteFigures { kind, partition, row, body: None, outcome }, true);
    table.get(KEY, partition, row, outcome);
    let (plan, start, elapsed) = (QueryKind::PartitionScan, Some((partition, row)), Duration::from_millis(7));
    let is_in_partition = true;
    table.query(KEY, &QueryFigures { plan, shape, start, is_in_partition, rows_read: 1, rows_returned: 1, elapsed });
}

#[test]
fn many_partitions_take_the_memory_of_a_few() {
    touch(30_000);
}

/// Prints the figure of `docs/insights.md`: `cargo test -p larimar-server --lib a_million -- --ignored --nocapture`.
#[test]
#[ignore = "takes half a minute in a debug build"]
fn a_million_partitions_take_the_memory_of_a_few() {
    touch(1_000_000);
}

fn touch(partitions: u32) {
    let mut table = TableFigures::default();
    let mut most = 0;
    for number in 0..partitions {
        let partition = format!("partition-{:08}", number.wrapping_mul(2_654_435_761));
        table.get(KEY, &partition, "row", Outcome::Done);
        if number.is_power_of_two() || number + 1 == partitions {
            most = most.max(size_of::<TableFigures>() + table.heap_bytes());
        }
    }
    let seen = table.partitions_seen.estimate();
    println!("memory with {partitions} partitions touched: {most} bytes; partitions seen: {seen}");
    assert!(most <= 96 << 10, "{most}");
    assert!(seen.abs_diff(u64::from(partitions)) < u64::from(partitions) / 5, "{seen}");
}

/// The longest keys and shapes, each of them new: memory and the stored form keep the bounds that `docs/insights.md` has.
#[test]
fn memory_and_stored_bytes_of_a_table_are_bounded() {
    let mut table = TableFigures::default();
    let mut most = 0;
    for number in 0..3000_u32 {
        let text = format!("{:08}{}", number.wrapping_mul(2_654_435_761), "ü".repeat(500));
        load(&mut table, &text, &text, &text);
        if number % 300 == 0 {
            most = most.max(size_of::<TableFigures>() + table.heap_bytes());
        }
    }
    let mut bytes = Vec::new();
    table.encode(32, &mut bytes);
    println!("a table takes at most {most} bytes in memory, {} stored", bytes.len());
    assert!(most <= 192 << 10, "{most}");
    // The row of a minute has room for one such table at least.
    assert!(bytes.len() <= 30 << 10, "{}", bytes.len());
}

/// Draws the numbers of partitions, as a load has them.
struct Draw {
    random: u64,
    /// For each partition the sum of the shares up to it.
    sums: Vec<f64>,
}

impl Draw {
    /// A load in which the partitions have these shares, or parts of them.
    fn new(shares: impl IntoIterator<Item = f64>) -> Self {
        let sums = shares.into_iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        Self { random: 1, sums: sums.collect() }
    }

    fn partition(&mut self) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (self.random >> 11) as f64 / (1_u64 << 53) as f64 * self.sums.last().expect("a partition");
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len() - 1)
    }
}

/// How many minutes, requests in each, and partitions that are stored of each.
type Run = (u32, u32, usize);

/// What is shown of the busiest partitions after some minutes, on two servers with two threads each that store every minute,
/// against the exact count: the error for each of the first 32 partitions by their exact count, as a share of it.
fn errors(name: &str, (minutes, requests, stored_max): Run, mut partition: impl FnMut(u32) -> usize) -> Vec<f64> {
    let mut exact = HashMap::<usize, u64>::new();
    let mut stored = [TableFigures::default(), TableFigures::default()];
    let as_stored = |table: &TableFigures| {
        let mut bytes = Vec::new();
        table.encode(stored_max, &mut bytes);
        TableFigures::decode(&mut Reader::new(&bytes)).expect("as encoded")
    };
    for minute in 0..minutes {
        let mut threads: [_; 4] = std::array::from_fn(|_| TableFigures::default());
        for request in 0..requests {
            let partition = partition(minute);
            *exact.entry(partition).or_default() += 1;
            threads[request as usize % 4].get(KEY, &format!("p{partition}"), "r", Outcome::Done);
        }
        let [mut one, two, mut three, four] = threads;
        one.merge(two);
        three.merge(four);
        for (sum, server) in stored.iter_mut().zip([one, three]) {
            sum.merge(as_stored(&server));
            *sum = as_stored(sum);
        }
    }
    let [mut sum, other] = stored;
    sum.merge(other);
    let mut busiest: Vec<_> = exact.into_iter().collect();
    busiest.sort_by_key(|(partition, count)| (std::cmp::Reverse(*count), *partition));
    let ranked = sum.partitions.0.ranked();
    let mut errors = Vec::new();
    for (rank, (partition, count)) in busiest.into_iter().take(32).enumerate() {
        let found = ranked.iter().find(|(_, tracked)| tracked.key == format!("p{partition}"));
        let (shown, missed_max) = found.map_or((0, count), |(_, tracked)| (tracked.value.reads, tracked.missed_max));
        assert!(shown <= count && count <= shown + missed_max, "{name}, rank {rank}: {shown} of {count}");
        errors.push((count - shown) as f64 / count as f64);
        println!("{name}, rank {}: {shown} of {count}, missed at most {missed_max}", rank + 1);
    }
    errors
}

/// Errors of three loads, or of as many as there are bounds: see `docs/insights.md`.
fn check_errors(run: Run, errors_max: &[f64]) {
    // The partition of rank n has a share of 1/n.
    let mut zipf = Draw::new((1..=5000).map(|rank| 1.0 / f64::from(rank)));
    // Half of the requests go to 32 partitions.
    let mut heavy = Draw::new((0..20_000).map(|number| if number < 32 { 20_000.0 / 32.0 } else { 1.0 }));
    // Each minute has 100 partitions of its own that are the busiest, and 32 others are the busiest of all minutes.
    let mut moving = Draw::new((0..20_000).map(|number| {
        if number < 32 {
            120.0
        } else if number < 132 {
            200.0
        } else {
            1.0
        }
    }));
    let of_minute = |partition: usize, minute: u32| match partition {
        32..132 => 1_000_000 + minute as usize * 100 + partition,
        _ => partition,
    };
    let loads = [
        errors("zipf", run, |_| zipf.partition()),
        errors("heavy", run, |_| heavy.partition()),
        errors("moving", run, |minute| of_minute(moving.partition(), minute)),
    ];
    for ((errors, error_max), name) in loads.iter().zip(errors_max).zip(["zipf", "heavy", "moving"]) {
        let most = errors.iter().copied().fold(0.0, f64::max);
        let (first, stored) = (errors[..8].iter().copied().fold(0.0, f64::max), run.2);
        println!(
            "{name}, {stored} stored: at most {:.1} % too few for ranks 1 to 8, {:.1} % to 32",
            first * 100.0,
            most * 100.0
        );
        assert!(most <= *error_max, "{name}: {most}");
    }
}

#[test]
fn the_32_busiest_partitions_are_near_the_exact_count() {
    // A partition of the last load has five requests in a minute and thread.
    check_errors((8, 8000, PARTITIONS_MAX), &[0.05, 0.01, 0.3]);
}

/// Prints the errors of `docs/insights.md`: `cargo test -p larimar-server --release --lib an_hour_of -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute in a debug build"]
fn an_hour_of_requests_is_near_the_exact_count() {
    check_errors((60, 30_000, PARTITIONS_MAX), &[0.02, 0.01, 0.05]);
    // As with a dozen busy tables. The last load has more busy partitions in each minute than are stored then.
    check_errors((60, 30_000, 64), &[0.02, 0.01]);
}
