//! What the measured table holds, and how its entities look.
//!
//! Every store gets one wide partition of 10,000 rows, for filtered scans, and narrow partitions of
//! 1,000 rows, for point gets, ranges and updates. "0 preloaded" is the wide partition and one narrow
//! one, because reads need something to read.

use std::fmt::Write as _;
use std::io::Write as _;

/// The table that every workload uses.
pub(crate) const TABLE: &str = "bench";
/// The partition of filtered scans.
pub(crate) const WIDE: &str = "wide";
pub(crate) const WIDE_ROWS: u64 = 10_000;
pub(crate) const NARROW_ROWS: u64 = 1_000;
/// Entities of a partition spread over this many values of `Category`.
pub(crate) const CATEGORIES: u64 = 100;
/// Operations of a transaction: the service's limit.
pub(crate) const TRANSACTION_ROWS: u64 = 100;

/// The entities that are there before the first measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dataset {
    narrow_partitions: u64,
}

impl Dataset {
    /// The data set of about `preload` entities.
    pub(crate) fn new(preload: u64) -> Self {
        Self { narrow_partitions: (preload.saturating_sub(WIDE_ROWS) / NARROW_ROWS).max(1) }
    }

    /// All entities of the table.
    pub(crate) fn rows(self) -> u64 {
        WIDE_ROWS + self.narrow_rows()
    }

    /// The entities of all narrow partitions, which are numbered from 0.
    pub(crate) fn narrow_rows(self) -> u64 {
        self.narrow_partitions * NARROW_ROWS
    }

    /// The narrow partitions.
    pub(crate) fn narrow_partitions(self) -> u64 {
        self.narrow_partitions
    }

    /// How many transactions load it.
    pub(crate) fn transactions(self) -> u64 {
        self.rows() / TRANSACTION_ROWS
    }

    /// The data set after only so many of its transactions, in order; at least the smallest one.
    pub(crate) fn cut_after(self, transactions: u64) -> Self {
        Self::new((transactions * TRANSACTION_ROWS).min(self.rows()))
    }
}

/// Partition and row key of an entity, reused from request to request.
#[derive(Default)]
pub(crate) struct Key {
    pub(crate) partition: String,
    pub(crate) row: String,
}

impl Key {
    /// Names an entity: a partition of a family, and a row in it.
    pub(crate) fn set(&mut self, family: &str, partition: u64, row: u64) {
        self.partition.clear();
        self.row.clear();
        let _ = write!(self.partition, "{family}{partition:06}");
        let _ = write!(self.row, "r{row:010}");
    }

    /// Names a row of the narrow partitions by its number.
    pub(crate) fn set_narrow(&mut self, number: u64) {
        self.set("p", number / NARROW_ROWS, number % NARROW_ROWS);
    }

    /// Names a row of a partition without a number.
    pub(crate) fn set_row(&mut self, partition: &str, row: u64) {
        self.set("", 0, row);
        self.partition.clear();
        self.partition.push_str(partition);
    }

    /// Names the `index`-th entity in the order of loading: the wide partition, then the narrow ones.
    pub(crate) fn set_loaded(&mut self, index: u64) {
        match index.checked_sub(WIDE_ROWS) {
            None => self.set_row(WIDE, index),
            Some(number) => self.set_narrow(number),
        }
    }
}

/// Writes an entity of about 500 bytes with properties of every type.
pub(crate) fn write_entity(out: &mut Vec<u8>, key: &Key, number: u64) {
    let noise = Random::new(number).next();
    let (partition, row) = (&key.partition, &key.row);
    let _ = write!(
        out,
        r#"{{"PartitionKey":"{partition}","RowKey":"{row}","Category":"c{category:02}","Name":"Customer {number}","Email":"customer.{noise:016x}@mail.example.com","Age":{age},"Score":{score}.5,"Active":{active},"Balance@odata.type":"Edm.Int64","Balance":"{balance}","Created@odata.type":"Edm.DateTime","Created":"2024-{month:02}-{day:02}T12:34:56.789Z","Reference@odata.type":"Edm.Guid","Reference":"{noise_high:08x}-9d3c-4f6a-8e21-{noise_low:012x}","Digest@odata.type":"Edm.Binary","Digest":"{noise:016x}{number:016x}","#,
        category = number % CATEGORIES,
        balance = noise >> 1,
        age = noise % 90,
        score = noise % 1000,
        active = noise & 1 == 0,
        month = noise % 12 + 1,
        day = noise % 28 + 1,
        noise_high = noise >> 32,
        noise_low = noise & 0xffff_ffff_ffff,
    );
    out.extend_from_slice(br#""Note":""#);
    write_words(out, noise);
    out.extend_from_slice(br#""}"#);
}

/// Writes the properties that a merge changes.
pub(crate) fn write_change(out: &mut Vec<u8>, number: u64) {
    let _ = write!(out, r#"{{"Age":{},"Name":"Customer {number} again"}}"#, number % 90);
}

/// Writes fourteen words, the same for the same noise.
pub(crate) fn write_words(out: &mut Vec<u8>, noise: u64) {
    const WORDS: [&str; 16] = [
        "ledger", "harbour", "violet", "orbit", "granite", "meadow", "signal", "copper", "lantern", "willow", "summit",
        "marble", "cinder", "prairie", "anchor", "velvet",
    ];
    for step in 0..14 {
        let word = WORDS[(noise >> (step * 4)) as usize % WORDS.len()];
        out.extend_from_slice(word.as_bytes());
        out.push(b' ');
    }
}

/// A small deterministic generator (splitmix64): runs repeat, and numbers cost nothing.
pub(crate) struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sets_have_the_rows_they_are_named_for() {
        assert_eq!(Dataset::new(0).rows(), 11_000);
        assert_eq!(Dataset::new(100_000).rows(), 100_000);
        assert_eq!(Dataset::new(1_000_000).transactions(), 10_000);
        assert_eq!(Dataset::new(1_000_000).cut_after(1_000).rows(), 100_000);
    }

    #[test]
    fn loading_order_fills_the_wide_partition_first() {
        let mut key = Key::default();
        key.set_loaded(9_999);
        assert_eq!((key.partition.as_str(), key.row.as_str()), ("wide", "r0000009999"));
        key.set_loaded(11_002);
        assert_eq!((key.partition.as_str(), key.row.as_str()), ("p000001", "r0000000002"));
    }

    #[test]
    fn entities_have_about_the_promised_size() {
        let (mut key, mut out) = (Key::default(), Vec::new());
        key.set_narrow(123_456);
        write_entity(&mut out, &key, 123_456);
        assert!((450..700).contains(&out.len()), "{} bytes", out.len());
    }
}
