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
    assert!(most <= 64 << 10, "{most}");
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
    table.encode(&mut bytes);
    println!("a table takes at most {most} bytes in memory, {} stored", bytes.len());
    assert!(most <= 160 << 10, "{most}");
    // The row of a minute has room for one such table at least.
    assert!(bytes.len() <= 30 << 10, "{}", bytes.len());
}

/// A load with Zipf's distribution: the partition of rank n has a share of 1/n. It is stored in parts, as by the minute.
#[test]
fn the_top_partitions_are_near_the_exact_count() {
    let mut sums = vec![0.0];
    sums.extend((1..=5000).scan(0.0, |sum, rank| {
        *sum += 1.0 / f64::from(rank);
        Some(*sum)
    }));
    let (mut exact, mut sum) = (HashMap::<usize, u64>::new(), TableFigures::default());
    let mut random = 1_u64;
    for _ in 0..10 {
        let mut table = TableFigures::default();
        for _ in 0..5000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 11) as f64 / (1_u64 << 53) as f64 * sums[5000];
            let rank = sums.partition_point(|sum| *sum <= at) - 1;
            *exact.entry(rank).or_default() += 1;
            table.get(KEY, &format!("p{rank}"), "r", Outcome::Done);
        }
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        sum.merge(TableFigures::decode(&mut Reader::new(&bytes)).expect("as encoded"));
    }
    let ranked = sum.partitions.0.ranked();
    for (rank, (_, tracked)) in ranked.iter().take(10).enumerate() {
        let name = format!("p{rank}");
        let count = exact[&tracked.key[1..].parse::<usize>().expect("a rank")];
        println!("{name}: {} of {count}, missed at most {}", tracked.value.reads, tracked.missed_max);
        assert!(rank > 5 || tracked.key == name, "{}", tracked.key);
        assert!(tracked.value.reads <= count && count <= tracked.value.reads + tracked.missed_max);
        // The sixth partition has a share of 1.8 %; a 64th is 1.6 %.
        assert!(rank > 5 || count - tracked.value.reads <= count / 50, "{name}: {} of {count}", tracked.value.reads);
    }
}
