//! What is known about the traffic of one table.

use super::codec::{Reader, put_text};
use super::distinct::Distinct;
use super::frequent::{Figures, Frequent, KEY_BYTES_MAX, cut};
use super::hash_key::HashKey;
use super::key_ranges::KeyRanges;
use super::latencies::Latencies;
use larimar_engine::table::QueryKind;
use larimar_model::utf16;
use larimar_model::varint::put;
use std::cmp::Ordering;
use std::time::Duration;

/// The figures of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableFigures {
    /// By [`OperationKind`].
    pub(crate) operations: [OperationFigures; OPERATIONS],
    pub(crate) partitions: Partitions,
    pub(crate) partitions_seen: Distinct<256>,
    pub(crate) shapes: Shapes,
    pub(crate) other_shapes: ShapeCounts,
    pub(crate) ranges: KeyRanges,
    /// The order of inserted keys over the whole table.
    pub(crate) inserts: InsertOrder,
    pub(crate) entities: EntitySizes,
    /// Entities that were written in transactions.
    pub(crate) transaction_writes: u64,
    /// Operations of a kind on another row of the same partition as the one of that kind before, by [`RUNS`].
    pub(crate) followed: [u64; RUNS.len()],
    /// The partition and row of the last operation, by [`RUNS`]. Not stored.
    last: [(u64, u64); RUNS.len()],
}

/// What a request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Get,
    Query,
    Insert,
    Replace,
    Merge,
    Delete,
    Transaction,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// 404.
    Missing,
    /// 409: the entity is there already.
    Exists,
    /// 412: the condition does not hold.
    Changed,
    /// 503.
    Busy,
    /// Any other 4xx.
    Refused,
    /// Any other 5xx.
    Failed,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct OperationFigures {
    /// By [`Outcome`].
    pub(crate) outcomes: [u64; OUTCOMES],
    pub(crate) latencies: Latencies,
}

/// The busiest partitions.
#[derive(Clone, Debug)]
pub(crate) struct Partitions(pub(crate) Frequent<PartitionFigures>);

#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionFigures {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// 409 and 412.
    pub(crate) conflicts: u64,
    pub(crate) throttled: u64,
    pub(crate) inserts: InsertOrder,
    /// The rows that were read or written by their key.
    pub(crate) rows_seen: Distinct<64>,
}

/// The most frequent shapes of queries.
#[derive(Clone, Debug)]
pub(crate) struct Shapes(pub(crate) Frequent<ShapeFigures>);

#[derive(Clone, Debug, Default)]
pub(crate) struct ShapeFigures {
    pub(crate) counts: ShapeCounts,
    pub(crate) latencies: Latencies,
    /// The plan of the last one.
    pub(crate) plan: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShapeCounts {
    pub(crate) queries: u64,
    pub(crate) rows_read: u64,
    pub(crate) rows_returned: u64,
    /// Queries that read at least [`WASTEFUL_ROWS_MIN`] rows and returned less than a tenth of them.
    pub(crate) wasteful: u64,
}

/// How many inserted keys came after, or before, all keys that were inserted since the minute began.
#[derive(Clone, Debug, Default)]
pub(crate) struct InsertOrder {
    /// Inserts that had another one before them to compare with.
    pub(crate) compared: u64,
    pub(crate) above: u64,
    pub(crate) below: u64,
    /// Inserts since the last one that was compared. Not stored.
    skipped: u64,
    /// The least and the greatest key: partition and row. Not stored.
    bounds: Option<Box<(Key, Key)>>,
}

type Key = (String, String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntitySizes {
    /// Entities that were inserted or replaced, by the number of bits of their size in stored bytes.
    pub(crate) by_bits: [u64; SIZE_BITS],
    pub(crate) bytes_max: u64,
    /// Of every eighth entity.
    pub(crate) properties_max: u64,
}

/// A write of one entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteFigures<'a> {
    pub(crate) kind: OperationKind,
    pub(crate) partition: &'a str,
    pub(crate) row: &'a str,
    /// The stored bytes of an entity that was inserted or replaced, whole.
    pub(crate) body: Option<larimar_model::EntityBody<'a>>,
    pub(crate) outcome: Outcome,
}

/// A page of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryFigures<'a> {
    pub(crate) plan: QueryKind,
    pub(crate) shape: &'a str,
    /// Where the first range begins, and whether all ranges are in its partition.
    pub(crate) start: Option<(&'a str, &'a str)>,
    pub(crate) is_in_partition: bool,
    pub(crate) rows_read: u64,
    pub(crate) rows_returned: u64,
    pub(crate) elapsed: Duration,
}

impl TableFigures {
    /// Counts a request. What it read or wrote is counted by the other methods.
    pub(crate) fn operation(&mut self, kind: OperationKind, outcome: Outcome, elapsed: Duration) {
        let figures = &mut self.operations[kind as usize];
        figures.outcomes[outcome as usize] += 1;
        figures.latencies.record(elapsed);
    }

    /// Counts a read by both keys.
    pub(crate) fn get(&mut self, key: HashKey, partition: &str, row: &str, outcome: Outcome) {
        let (partition_hash, row_hash) = (key.hash(partition), key.hash(row));
        self.follow(RUN_OF_GETS, partition_hash, row_hash);
        self.ranges.hit(partition, row, false);
        self.partitions_seen.see(partition_hash);
        if let Some(figures) = self.partitions.0.hit_filtered(partition_hash, partition) {
            figures.reads += 1;
            figures.throttled += u64::from(outcome == Outcome::Busy);
            figures.rows_seen.see(row_hash);
        }
    }

    /// Counts a write of one entity, by itself or in a transaction.
    pub(crate) fn write(&mut self, key: HashKey, write: &WriteFigures<'_>, is_single: bool) {
        let WriteFigures { kind, partition, row, body, outcome } = *write;
        let (partition_hash, row_hash) = (key.hash(partition), key.hash(row));
        self.ranges.hit(partition, row, true);
        self.partitions_seen.see(partition_hash);
        let is_done = outcome == Outcome::Done;
        let run = RUNS.iter().position(|run| *run == kind);
        if let Some(run) = run.filter(|_| is_single && is_done) {
            self.follow(run, partition_hash, row_hash);
        }
        self.transaction_writes += u64::from(!is_single && is_done);
        let is_insert = kind == OperationKind::Insert && is_done;
        if let Some(figures) = self.partitions.0.hit_filtered(partition_hash, partition) {
            figures.writes += 1;
            figures.conflicts += u64::from(matches!(outcome, Outcome::Exists | Outcome::Changed));
            figures.throttled += u64::from(outcome == Outcome::Busy);
            figures.rows_seen.see(row_hash);
            if is_insert {
                figures.inserts.note(partition_hash ^ row_hash, "", cut(row, PARTITION_ORDER_BYTES_MAX));
            }
        }
        if is_insert {
            let (partition, row) = (cut(partition, KEY_BYTES_MAX), cut(row, KEY_BYTES_MAX));
            self.inserts.note(partition_hash ^ row_hash, partition, row);
        }
        if let Some(body) = body.filter(|_| is_done) {
            self.entities.note(body);
        }
    }

    /// Counts what a query read.
    pub(crate) fn query(&mut self, key: HashKey, query: &QueryFigures<'_>) {
        if let Some((partition, row)) = query.start {
            self.ranges.hit(partition, row, false);
            if query.is_in_partition {
                let partition_hash = key.hash(partition);
                self.partitions_seen.see(partition_hash);
                if let Some(figures) = self.partitions.0.hit_filtered(partition_hash, partition) {
                    figures.reads += 1;
                }
            }
        }
        let other = &mut self.other_shapes;
        let shape_hash = key.hash(query.shape);
        let figures = self.shapes.0.hit(shape_hash, query.shape, |evicted| other.add(evicted.value.counts));
        figures.counts.add(ShapeCounts::of(query.rows_read, query.rows_returned));
        figures.latencies.record(query.elapsed);
        if figures.plan != query.plan.name() {
            figures.plan = query.plan.name().to_owned();
        }
    }

    fn follow(&mut self, run: usize, partition: u64, row: u64) {
        let last = std::mem::replace(&mut self.last[run], (partition, row));
        self.followed[run] += u64::from(last.0 == partition && last.1 != row);
    }

    /// The requests that were counted.
    pub(crate) fn requests(&self) -> u64 {
        self.operations.iter().flat_map(|operation| operation.outcomes).sum()
    }
}

impl Figures for TableFigures {
    fn merge(&mut self, other: Self) {
        for (one, other) in self.operations.iter_mut().zip(other.operations) {
            add_all(&mut one.outcomes, &other.outcomes);
            one.latencies.merge(&other.latencies);
        }
        self.partitions.0.merge(other.partitions.0, drop);
        self.partitions_seen.merge(&other.partitions_seen);
        let other_shapes = &mut self.other_shapes;
        self.shapes.0.merge(other.shapes.0, |evicted| other_shapes.add(evicted.value.counts));
        self.other_shapes.add(other.other_shapes);
        self.ranges.merge(other.ranges);
        self.inserts.merge(&other.inserts);
        self.entities.merge(&other.entities);
        self.transaction_writes += other.transaction_writes;
        add_all(&mut self.followed, &other.followed);
    }

    fn encode(&self, partitions_max: usize, out: &mut Vec<u8>) {
        for OperationFigures { outcomes, latencies } in &self.operations {
            outcomes.iter().for_each(|count| put(out, *count));
            latencies.encode(out);
        }
        self.partitions.0.encode((partitions_max, usize::MAX, 0), out, |_| ());
        self.partitions_seen.encode(out);
        let mut other_shapes = self.other_shapes;
        let bounds = (STORED_SHAPES_MAX, usize::MAX, 0);
        self.shapes.0.encode(bounds, out, |left_out| other_shapes.add(left_out.counts));
        other_shapes.encode(out);
        self.ranges.encode(out);
        self.inserts.encode(out);
        self.entities.by_bits.iter().for_each(|count| put(out, *count));
        put(out, self.entities.bytes_max);
        put(out, self.entities.properties_max);
        put(out, self.transaction_writes);
        self.followed.iter().for_each(|count| put(out, *count));
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let mut table = Self::default();
        for OperationFigures { outcomes, latencies } in &mut table.operations {
            read_all(outcomes, input)?;
            *latencies = Latencies::decode(input)?;
        }
        table.partitions = Partitions(Frequent::decode(PARTITIONS_MAX, KEY_BYTES_MAX, input)?);
        table.partitions_seen = Distinct::decode(input)?;
        table.shapes = Shapes(Frequent::decode(SHAPES_MAX, SHAPE_BYTES_KEPT, input)?);
        table.other_shapes = ShapeCounts::decode(input)?;
        table.ranges = KeyRanges::decode(input)?;
        table.inserts = InsertOrder::decode(input)?;
        read_all(&mut table.entities.by_bits, input)?;
        table.entities.bytes_max = input.number()?;
        table.entities.properties_max = input.number()?;
        table.transaction_writes = input.number()?;
        read_all(&mut table.followed, input)?;
        Some(table)
    }
}

impl Figures for PartitionFigures {
    fn merge(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.conflicts += other.conflicts;
        self.throttled += other.throttled;
        self.inserts.merge(&other.inserts);
        self.rows_seen.merge(&other.rows_seen);
    }

    fn encode(&self, _: usize, out: &mut Vec<u8>) {
        for number in [self.reads, self.writes, self.conflicts, self.throttled] {
            put(out, number);
        }
        self.inserts.encode(out);
        self.rows_seen.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            reads: input.number()?,
            writes: input.number()?,
            conflicts: input.number()?,
            throttled: input.number()?,
            inserts: InsertOrder::decode(input)?,
            rows_seen: Distinct::decode(input)?,
        })
    }
}

impl Figures for ShapeFigures {
    fn merge(&mut self, other: Self) {
        self.counts.add(other.counts);
        self.latencies.merge(&other.latencies);
        if self.plan.is_empty() {
            self.plan = other.plan;
        }
    }

    fn encode(&self, _: usize, out: &mut Vec<u8>) {
        self.counts.encode(out);
        self.latencies.encode(out);
        put_text(out, &self.plan);
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            counts: ShapeCounts::decode(input)?,
            latencies: Latencies::decode(input)?,
            plan: input.text()?.to_owned(),
        })
    }
}

impl ShapeCounts {
    /// One query.
    fn of(rows_read: u64, rows_returned: u64) -> Self {
        let is_wasteful = rows_read >= WASTEFUL_ROWS_MIN && rows_returned < rows_read / 10;
        Self { queries: 1, rows_read, rows_returned, wasteful: u64::from(is_wasteful) }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.queries += other.queries;
        self.rows_read += other.rows_read;
        self.rows_returned += other.rows_returned;
        self.wasteful += other.wasteful;
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.queries, self.rows_read, self.rows_returned, self.wasteful] {
            put(out, number);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let (queries, rows_read) = (input.number()?, input.number()?);
        Some(Self { queries, rows_read, rows_returned: input.number()?, wasteful: input.number()? })
    }
}

impl InsertOrder {
    /// After the first inserts one of four is compared, and counts for those since the one before. Which one is random, as
    /// the keyed hash is: every fourth would see one of four clients that take turns.
    fn note(&mut self, hash: u64, partition: &str, row: &str) {
        self.skipped += 1;
        if self.compared >= UNSAMPLED_INSERTS && !(hash >> 32).is_multiple_of(INSERTS_EVERY) {
            return;
        }
        let Some(bounds) = &mut self.bounds else {
            let key = (partition.to_owned(), row.to_owned());
            self.bounds = Some(Box::new((key.clone(), key)));
            self.skipped = 0;
            return;
        };
        let (min, max) = &mut **bounds;
        let inserts = std::mem::take(&mut self.skipped);
        self.compared += inserts;
        if order(partition, row, max) == Ordering::Greater {
            self.above += inserts;
            set(max, partition, row);
        } else if order(partition, row, min) == Ordering::Less {
            self.below += inserts;
            set(min, partition, row);
        }
    }

    const fn merge(&mut self, other: &Self) {
        self.compared += other.compared;
        self.above += other.above;
        self.below += other.below;
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.compared, self.above, self.below] {
            put(out, number);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let (compared, above) = (input.number()?, input.number()?);
        Some(Self { compared, above, below: input.number()?, ..Self::default() })
    }
}

fn order(partition: &str, row: &str, (other_partition, other_row): &Key) -> Ordering {
    utf16::compare(partition, other_partition).then_with(|| utf16::compare(row, other_row))
}

/// Takes a key, into the memory that there is.
fn set(key: &mut Key, partition: &str, row: &str) {
    key.0.clear();
    key.0.push_str(partition);
    key.1.clear();
    key.1.push_str(row);
}

impl EntitySizes {
    fn note(&mut self, body: larimar_model::EntityBody<'_>) {
        let bytes = body.as_bytes().len() as u64;
        let bits = (u64::BITS - bytes.leading_zeros()) as usize;
        let count = &mut self.by_bits[bits.min(SIZE_BITS - 1)];
        *count += 1;
        self.bytes_max = self.bytes_max.max(bytes);
        if *count % PROPERTIES_EVERY == 1 {
            self.properties_max = self.properties_max.max(body.properties().count() as u64);
        }
    }

    fn merge(&mut self, other: &Self) {
        add_all(&mut self.by_bits, &other.by_bits);
        self.bytes_max = self.bytes_max.max(other.bytes_max);
        self.properties_max = self.properties_max.max(other.properties_max);
    }
}

impl Default for Partitions {
    fn default() -> Self {
        Self(Frequent::filtered(PARTITIONS_MAX, KEY_BYTES_MAX))
    }
}

impl Default for Shapes {
    fn default() -> Self {
        Self(Frequent::new(SHAPES_MAX, SHAPE_BYTES_KEPT))
    }
}

impl OperationKind {
    pub(crate) const ALL: [Self; OPERATIONS] =
        [Self::Get, Self::Query, Self::Insert, Self::Replace, Self::Merge, Self::Delete, Self::Transaction];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Query => "query",
            Self::Insert => "insert",
            Self::Replace => "replace",
            Self::Merge => "merge",
            Self::Delete => "delete",
            Self::Transaction => "transaction",
        }
    }
}

impl Outcome {
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            0..400 => Self::Done,
            404 => Self::Missing,
            409 => Self::Exists,
            412 => Self::Changed,
            503 => Self::Busy,
            400..500 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

fn add_all<const N: usize>(sums: &mut [u64; N], counts: &[u64; N]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

fn read_all<const N: usize>(counts: &mut [u64; N], input: &mut Reader<'_>) -> Option<()> {
    for count in counts {
        *count = input.number()?;
    }
    Some(())
}

const OPERATIONS: usize = 7;
const OUTCOMES: usize = 7;
/// The kinds of operations whose runs in one partition are counted.
pub(crate) const RUNS: [OperationKind; 3] = [OperationKind::Get, OperationKind::Insert, OperationKind::Delete];
const RUN_OF_GETS: usize = 0;
/// Partitions of a table that are tracked, and stored if there is room.
pub(crate) const PARTITIONS_MAX: usize = 256;
/// Shapes of a table that are tracked, and that are stored.
const SHAPES_MAX: usize = 32;
const STORED_SHAPES_MAX: usize = 16;
/// Bytes of a RowKey that decide about the order of inserts in a partition: there are many partitions.
const PARTITION_ORDER_BYTES_MAX: usize = 48;
/// Of the inserts after the first ones, one in so many is compared with those before.
const INSERTS_EVERY: u64 = 4;
const UNSAMPLED_INSERTS: u64 = 64;
/// Bytes that are kept of a shape.
const SHAPE_BYTES_KEPT: usize = 256;
/// An entity has at most 1 MiB as the service counts it, and less than twice that in stored bytes.
const SIZE_BITS: usize = 22;
/// Properties are counted for one of so many entities: the count reads the whole body.
const PROPERTIES_EVERY: u64 = 8;
/// Reads of fewer rows are not wasteful, however few are returned.
pub(crate) const WASTEFUL_ROWS_MIN: u64 = 100;

#[cfg(test)]
mod tests;
