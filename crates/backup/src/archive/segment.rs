//! A segment: some commits of a line, one after the other, each after the payloads that it points to.
//!
//! ```text
//! "LARSEG1\n" first last through:u64          the numbers of the first and the last commit; nothing later was published by then
//! 01 number time:u64 count (key 00 | key 01 value)*   a commit: when it was published, and what it writes or deletes
//! 02 extent bytes                             a payload, before the first commit of the segment that points to it
//! 03 extent count (checksum length)*          the same, in chunks of the place
//! xxh3:u128                                   of all bytes before
//! ```
//!
//! Keys and values are those of the store (engine-local's `key.rs` and `catalogue.rs`): numbers of spaces stay what they
//! are. Keys, values and payloads have their length first, as a varint; numbers are varints unless they have a size.

use crate::chunk::{ChunkId, ChunkRef};
use crate::error::BackupError;
use crate::record::{put_bytes, take_byte, take_bytes};
use bytes::Bytes;
use larimar_engine::blob::bytes::Extent;
use larimar_model::{Timestamp, varint};
use xxhash_rust::xxh3::xxh3_128;

/// A commit as the archive has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedCommit<'a> {
    pub(crate) sequence: u64,
    /// When it was published. Times never go back within a line.
    pub(crate) time: Timestamp,
    /// Keys and their new values, or none to delete them.
    pub(crate) writes: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

/// One record of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SegmentRecord<'a> {
    Commit(ArchivedCommit<'a>),
    Payload { extent: Extent, bytes: &'a [u8] },
    Pieces { extent: Extent, chunks: Vec<ChunkRef> },
}

/// What a segment holds: the numbers of its first and last commit, and a time before which nothing later was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) through: Timestamp,
}

/// Builds a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentWriter {
    records: Vec<u8>,
}

impl SegmentWriter {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn payload(&mut self, extent: &Extent, bytes: &[u8]) {
        self.records.push(2);
        extent.encode(&mut self.records);
        put_bytes(&mut self.records, bytes);
    }

    pub(crate) fn pieces(&mut self, extent: &Extent, chunks: &[ChunkRef]) {
        self.records.push(3);
        extent.encode(&mut self.records);
        varint::put(&mut self.records, chunks.len() as u64);
        for chunk in chunks {
            self.records.extend_from_slice(&chunk.id.0);
            varint::put(&mut self.records, chunk.length);
        }
    }

    /// Adds commits as [`put_commit`] writes them.
    pub(crate) fn commits(&mut self, records: &[u8]) {
        self.records.extend_from_slice(records);
    }

    /// The bytes of the segment.
    pub(crate) fn finish(self, span: Span) -> Bytes {
        let mut bytes = Vec::with_capacity(self.records.len() + 64);
        bytes.extend_from_slice(MAGIC);
        varint::put(&mut bytes, span.first);
        varint::put(&mut bytes, span.last);
        bytes.extend_from_slice(&span.through.ticks().to_be_bytes());
        bytes.extend_from_slice(&self.records);
        let sum = xxh3_128(&bytes);
        bytes.extend_from_slice(&sum.to_be_bytes());
        bytes.into()
    }
}

/// Appends the record of a commit.
pub(crate) fn put_commit<'a>(
    out: &mut Vec<u8>,
    sequence: u64,
    time: Timestamp,
    writes: impl ExactSizeIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) {
    out.push(1);
    varint::put(out, sequence);
    out.extend_from_slice(&time.ticks().to_be_bytes());
    varint::put(out, writes.len() as u64);
    for (key, value) in writes {
        put_bytes(out, key);
        match value {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                put_bytes(out, value);
            }
        }
    }
}

/// A segment whose checksum was found right.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) span: Span,
    bytes: Bytes,
    /// Where the records begin.
    start: usize,
}

impl Segment {
    /// Checks the bytes of a segment; `what` is its name for messages.
    pub(crate) fn open(bytes: Bytes, what: &str) -> Result<Self, BackupError> {
        let damaged = |reason: &str| BackupError::damaged(what, reason);
        let (content, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or_else(|| damaged("it ends early"))?;
        if xxh3_128(content) != u128::from_be_bytes(*sum) {
            return Err(damaged("its checksum is wrong"));
        }
        let (span, start) = header(content).ok_or_else(|| damaged("it is not a segment that this release reads"))?;
        Ok(Self { span, bytes, start })
    }

    /// The size of its file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of one of its records, which keep the segment in memory.
    pub(crate) fn slice(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }

    /// The records, in order; `None` for one that cannot be read, which is the last.
    pub(crate) fn records(&self) -> impl Iterator<Item = Option<SegmentRecord<'_>>> {
        let mut rest = &self.bytes[self.start..self.bytes.len() - SUM_BYTES];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let record = take_record(&mut rest);
            if record.is_none() {
                rest = &[];
            }
            Some(record)
        })
    }
}

fn header(content: &[u8]) -> Option<(Span, usize)> {
    let mut rest = content.strip_prefix(MAGIC)?;
    let (first, last) = (varint::take(&mut rest)?, varint::take(&mut rest)?);
    let through = take_time(&mut rest)?;
    Some((Span { first, last, through }, content.len() - rest.len()))
}

fn take_record<'a>(input: &mut &'a [u8]) -> Option<SegmentRecord<'a>> {
    Some(match take_byte(input)? {
        1 => {
            let (sequence, time) = (varint::take(input)?, take_time(input)?);
            let count = varint::take(input)?;
            // Each takes two bytes at least, so a wrong count cannot ask for much.
            let mut writes = Vec::with_capacity(usize::try_from(count).ok()?.min(input.len() / 2));
            for _ in 0..count {
                let key = take_bytes(input)?;
                let value = match take_byte(input)? {
                    0 => None,
                    1 => Some(take_bytes(input)?),
                    _ => return None,
                };
                writes.push((key, value));
            }
            SegmentRecord::Commit(ArchivedCommit { sequence, time, writes })
        }
        2 => {
            let extent = Extent::decode(input)?;
            let bytes = take_bytes(input).filter(|bytes| bytes.len() as u64 == extent.length)?;
            SegmentRecord::Payload { extent, bytes }
        }
        3 => {
            let extent = Extent::decode(input)?;
            let count = usize::try_from(varint::take(input)?).ok()?;
            let mut chunks = Vec::with_capacity(count.min(input.len() / size_of::<ChunkId>()));
            for _ in 0..count {
                let (id, rest) = input.split_first_chunk()?;
                *input = rest;
                chunks.push(ChunkRef { id: ChunkId(*id), length: varint::take(input)? });
            }
            let length = chunks.iter().try_fold(0_u64, |sum, chunk| sum.checked_add(chunk.length))?;
            (length == extent.length).then_some(SegmentRecord::Pieces { extent, chunks })?
        }
        _ => return None,
    })
}

fn take_time(input: &mut &[u8]) -> Option<Timestamp> {
    let (ticks, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(Timestamp::from_ticks(u64::from_be_bytes(*ticks)))
}

/// No segment is longer: it ends with the group of commits that fills it.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 256 << 20;
const MAGIC: &[u8] = b"LARSEG1\n";
const SUM_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_as_it_was_written_and_damage_is_refused() {
        let extent = |length| Extent { file: [9; 16], offset: 300, length };
        let time = Timestamp::from_ticks(638_000_000_000_000_000);
        let chunks = vec![ChunkRef::of(b"one"), ChunkRef::of(b"three")];
        let commit = ArchivedCommit { sequence: 7, time, writes: vec![(b"key", Some(b"value")), (b"gone", None)] };
        let mut writer = SegmentWriter::default();
        writer.payload(&extent(3), b"abc");
        writer.pieces(&extent(8), &chunks);
        let mut commits = Vec::new();
        put_commit(&mut commits, 7, time, commit.writes.clone().into_iter());
        put_commit(&mut commits, 8, time, std::iter::empty());
        writer.commits(&commits);
        let span = Span { first: 7, last: 8, through: time };
        let bytes = writer.finish(span);
        let segment = Segment::open(bytes.clone(), "s").expect("a segment");
        assert_eq!(segment.span, span);
        let records: Option<Vec<_>> = segment.records().collect();
        let empty = ArchivedCommit { sequence: 8, time, writes: Vec::new() };
        let expected = vec![
            SegmentRecord::Payload { extent: extent(3), bytes: b"abc" },
            SegmentRecord::Pieces { extent: extent(8), chunks },
            SegmentRecord::Commit(commit),
            SegmentRecord::Commit(empty),
        ];
        assert_eq!(records, Some(expected));
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 4;
            assert!(Segment::open(flipped.into(), "s").is_err(), "a flipped bit at {at}");
            assert!(Segment::open(bytes.slice(..at), "s").is_err(), "cut to {at}");
        }
    }

    #[test]
    fn records_that_say_more_than_they_have_are_refused() {
        let extent = Extent { file: [1; 16], offset: 0, length: 4 };
        let mut long = vec![2];
        extent.encode(&mut long);
        long.extend_from_slice(b"\x03abc");
        let mut pieces = vec![3];
        extent.encode(&mut pieces);
        pieces.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]);
        let mut commit = vec![1, 1];
        commit.extend_from_slice(&[0; 8]);
        commit.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]);
        for record in [&long[..], &pieces, &commit, &[9]] {
            assert_eq!(take_record(&mut &record[..]), None, "{record:?}");
        }
    }
}
