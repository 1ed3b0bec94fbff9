//! Cuts the stream of records into data chunks.
//!
//! Where a chunk ends depends on the keys of rows, not on where the chunk began: a row whose hash is below a bound ends
//! one. So a row that is inserted, changed or deleted changes its own chunk, and the chunks after it stay what they were.

use crate::record::{BackedSpace, Record};
use larimar_engine::blob::bytes::Extent;
use larimar_model::Timestamp;
use xxhash_rust::xxh3::Xxh3;

/// Builds data chunks.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    chunk: Vec<u8>,
    /// The name of the space at hand, as the hash and later chunks have it.
    space: Vec<u8>,
    /// The partition that the last record of the chunk is in.
    partition: Option<String>,
    /// Pieces of large payloads that belong to the chunk.
    pieces: u64,
    /// Where the records of the row at hand begin: its payloads come before it.
    row_start: usize,
}

impl Cutter {
    /// Begins a space; whether the chunk ends here.
    pub(crate) fn space(&mut self, name: BackedSpace<'_>, number: u64, meta: &[u8]) -> bool {
        self.space.clear();
        Record::Within(name).encode(&mut self.space);
        Record::Space { name, number, meta }.encode(&mut self.chunk);
        self.partition = None;
        self.row_start = self.chunk.len();
        self.is_full()
    }

    /// Adds a payload of a blob; whether the chunk ends here, before the row that points to it.
    pub(crate) fn payload(&mut self, partition: &str, extent: Extent, bytes: &[u8]) -> bool {
        self.partition(partition);
        Record::Payload { extent, bytes }.encode(&mut self.chunk);
        self.is_full()
    }

    /// Adds a payload whose pieces were stored; whether the chunk ends here.
    pub(crate) fn pieces(&mut self, partition: &str, extent: Extent, count: u64) -> bool {
        self.partition(partition);
        Record::Pieces { extent, count }.encode(&mut self.chunk);
        self.pieces += count;
        self.is_full()
    }

    /// Adds a row; whether the chunk ends here.
    pub(crate) fn row(&mut self, partition: &str, row: &str, version: Timestamp, body: &[u8]) -> bool {
        self.partition(partition);
        Record::Row { row, version, body }.encode(&mut self.chunk);
        let weight = self.chunk.len() - self.row_start;
        self.row_start = self.chunk.len();
        if self.is_full() {
            return true;
        }
        let mut hash = Xxh3::new();
        hash.update(&self.space);
        hash.update(partition.as_bytes());
        hash.update(&[0]);
        hash.update(row.as_bytes());
        self.chunk.len() >= CHUNK_MIN && u128::from(hash.digest()) * TARGET < (weight as u128) << 64
    }

    /// Takes the chunk, and goes on in an empty buffer; `None` if there are no records.
    pub(crate) fn take(&mut self, buffer: impl FnOnce() -> Vec<u8>) -> Option<Vec<u8>> {
        (self.partition, self.pieces, self.row_start) = (None, 0, 0);
        (!self.chunk.is_empty()).then(|| std::mem::replace(&mut self.chunk, buffer()))
    }

    fn is_full(&self) -> bool {
        self.chunk.len() >= CHUNK_FULL || self.pieces >= PIECES_FULL
    }

    fn partition(&mut self, partition: &str) {
        if self.chunk.is_empty() {
            self.chunk.extend_from_slice(&self.space);
        }
        if self.partition.as_deref() != Some(partition) {
            Record::Partition(partition).encode(&mut self.chunk);
            self.partition = Some(partition.to_owned());
        }
    }
}

const CHUNK_MIN: usize = 64 << 10;
/// Bytes between two ends, on average.
const TARGET: u128 = 1 << 20;
const CHUNK_FULL: usize = 4 << 20;
const PIECES_FULL: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_engine::{SpaceKind, SpaceName};

    fn chunks(rows: impl Iterator<Item = u32>) -> Vec<Vec<u8>> {
        let name = Some(SpaceName { account: "one", kind: SpaceKind::Table, name: "t" });
        let (mut cutter, mut chunks) = (Cutter::default(), Vec::new());
        assert!(!cutter.space(name, 1, b""));
        for row in rows {
            if cutter.row("p", &format!("{row:08}"), Timestamp::EDM_MIN, &[7; 500]) {
                chunks.extend(cutter.take(Vec::new));
            }
        }
        chunks.extend(cutter.take(Vec::new));
        chunks
    }

    #[test]
    fn a_row_more_or_less_changes_few_chunks() {
        let before = chunks(0..40_000);
        assert!((10..60).contains(&before.len()), "{}", before.len());
        assert!(before.iter().all(|chunk| chunk.len() < CHUNK_FULL + 1000));
        for changed in [chunks((0..40_000).filter(|row| *row != 20_000)), chunks((0..40_000).chain([50_000]))] {
            let new = changed.iter().filter(|chunk| !before.contains(chunk)).count();
            assert!((1..=2).contains(&new), "{new} of {}", changed.len());
        }
    }

    #[test]
    fn each_chunk_begins_with_its_space() {
        let name = Some(SpaceName { account: "one", kind: SpaceKind::Table, name: "t" });
        for (place, chunk) in chunks(0..10_000).iter().enumerate() {
            let records = crate::record::tests::all(chunk).expect("records");
            let first = if place == 0 { Record::Space { name, number: 1, meta: b"" } } else { Record::Within(name) };
            assert_eq!(records[..2], [first, Record::Partition("p")]);
        }
    }
}
