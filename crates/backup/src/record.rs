//! The records of data chunks. Each chunk can be read by itself: it begins with the space that its rows belong to.
//!
//! ```text
//! 01 kind account name number meta   a space begins; kind 0 is the system's own, 1 a table, 2 a queue, 3 a container
//! 02 kind account name               the chunk begins within this space
//! 03 partition                       the rows that follow are in this partition
//! 04 row version:u64 body            a row
//! 05 extent bytes                    a payload of the partition's blob, before the first row that points to it
//! 06 extent count                    the same, in so many pieces, which the index lists before the chunk
//! ```
//!
//! Texts and bodies have their length first, as a varint; numbers are varints.

use larimar_engine::blob::bytes::Extent;
use larimar_engine::{SpaceKind, SpaceName};
use larimar_model::{Timestamp, varint};

/// One record of a data chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Space { name: BackedSpace<'a>, number: u64, meta: &'a [u8] },
    Within(BackedSpace<'a>),
    Partition(&'a str),
    Row { row: &'a str, version: Timestamp, body: &'a [u8] },
    Payload { extent: Extent, bytes: &'a [u8] },
    Pieces { extent: Extent, count: u64 },
}

/// The name of a space; `None` for the system's own.
pub(crate) type BackedSpace<'a> = Option<SpaceName<'a>>;

impl<'a> Record<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Space { name, number, meta } => {
                out.push(1);
                put_name(out, *name);
                varint::put(out, *number);
                put_bytes(out, meta);
            }
            Self::Within(name) => {
                out.push(2);
                put_name(out, *name);
            }
            Self::Partition(partition) => {
                out.push(3);
                put_bytes(out, partition.as_bytes());
            }
            Self::Row { row, version, body } => {
                out.push(4);
                put_bytes(out, row.as_bytes());
                out.extend_from_slice(&version.ticks().to_be_bytes());
                put_bytes(out, body);
            }
            Self::Payload { extent, bytes } => {
                out.push(5);
                extent.encode(out);
                put_bytes(out, bytes);
            }
            Self::Pieces { extent, count } => {
                out.push(6);
                extent.encode(out);
                varint::put(out, *count);
            }
        }
    }

    /// Takes a record off the front of a chunk; `None` if there is none that can be read.
    pub(crate) fn take(input: &mut &'a [u8]) -> Option<Self> {
        let tag = take_byte(input)?;
        Some(match tag {
            1 => Self::Space { name: take_name(input)?, number: varint::take(input)?, meta: take_bytes(input)? },
            2 => Self::Within(take_name(input)?),
            3 => Self::Partition(take_text(input)?),
            4 => {
                let row = take_text(input)?;
                let (version, rest) = input.split_first_chunk()?;
                *input = rest;
                Self::Row {
                    row,
                    version: Timestamp::from_ticks(u64::from_be_bytes(*version)),
                    body: take_bytes(input)?,
                }
            }
            5 => {
                let extent = Extent::decode(input)?;
                let bytes = take_bytes(input).filter(|bytes| bytes.len() as u64 == extent.length)?;
                Self::Payload { extent, bytes }
            }
            6 => Self::Pieces { extent: Extent::decode(input)?, count: varint::take(input)? },
            _ => return None,
        })
    }

    /// Takes the records of one space off the front of a chunk: the one with which it begins, and those that follow. Nothing
    /// is collected: a record has two bytes or more, and would have thirty times as many in memory.
    ///
    /// # Errors
    /// What is wrong with the chunk.
    pub(crate) fn take_part(chunk: &mut &'a [u8]) -> Result<(Self, Records<'a>), &'static str> {
        const UNREADABLE: &str = "a record cannot be read";
        let first = Self::take(chunk).ok_or(UNREADABLE)?;
        if !matches!(first, Self::Space { .. } | Self::Within(_)) {
            return Err("it does not begin with a space");
        }
        let records = *chunk;
        // Tags 1 and 2 begin the next space.
        while chunk.first().is_some_and(|tag| !matches!(tag, 1 | 2)) {
            Self::take(chunk).ok_or(UNREADABLE)?;
        }
        Ok((first, Records(&records[..records.len() - chunk.len()])))
    }
}

/// The records of one space in a chunk. All of them can be read.
#[derive(Clone, Debug)]
pub(crate) struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        Record::take(&mut self.0)
    }
}

pub(crate) fn put_name(out: &mut Vec<u8>, name: BackedSpace<'_>) {
    let Some(SpaceName { account, kind, name }) = name else { return out.push(0) };
    out.push(match kind {
        SpaceKind::Table => 1,
        SpaceKind::Queue => 2,
        SpaceKind::Container => 3,
    });
    put_bytes(out, account.as_bytes());
    put_bytes(out, name.as_bytes());
}

pub(crate) fn take_name<'a>(input: &mut &'a [u8]) -> Option<BackedSpace<'a>> {
    let kind = match take_byte(input)? {
        0 => return Some(None),
        1 => SpaceKind::Table,
        2 => SpaceKind::Queue,
        3 => SpaceKind::Container,
        _ => return None,
    };
    Some(Some(SpaceName { account: take_text(input)?, kind, name: take_text(input)? }))
}

pub(crate) fn take_byte(input: &mut &[u8]) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

fn take_text<'a>(input: &mut &'a [u8]) -> Option<&'a str> {
    str::from_utf8(take_bytes(input)?).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All records of a chunk.
    pub(crate) fn all(mut chunk: &[u8]) -> Result<Vec<Record<'_>>, &'static str> {
        let mut all = Vec::new();
        while !chunk.is_empty() {
            let (first, records) = Record::take_part(&mut chunk)?;
            all.push(first);
            all.extend(records);
        }
        Ok(all)
    }

    #[test]
    fn records_are_read_as_they_were_written_and_cut_ones_are_refused() {
        let extent = Extent { file: [9; 16], offset: 300, length: 3 };
        let name = Some(SpaceName { account: "one", kind: SpaceKind::Queue, name: "jobs" });
        let records = [
            Record::Space { name: None, number: 0, meta: b"" },
            Record::Space { name, number: 70_000, meta: b"meta" },
            Record::Within(name),
            Record::Partition("päth\0"),
            Record::Row { row: "", version: Timestamp::EDM_MIN, body: &[0; 200] },
            Record::Payload { extent, bytes: b"abc" },
            Record::Pieces { extent, count: 130 },
        ];
        let mut chunk = Vec::new();
        records.iter().for_each(|record| record.encode(&mut chunk));
        assert_eq!(all(&chunk).as_deref(), Ok(&records[..]));
        let begun = |record: &[u8]| [b"\x02\0", record].concat();
        for record in records {
            let mut one = Vec::new();
            record.encode(&mut one);
            for length in 1..one.len() {
                let cut = begun(&one[..length]);
                assert_eq!(all(&cut), Err("a record cannot be read"), "{record:?} cut to {length} bytes");
            }
        }
        assert!(all(&[9]).is_err() && all(&begun(&[9])).is_err());
        assert_eq!(all(&[3, 0]), Err("it does not begin with a space"));
        let longer = Extent { length: 4, ..extent };
        let mut wrong = vec![5];
        longer.encode(&mut wrong);
        wrong.extend_from_slice(b"\x03abc");
        assert!(all(&begun(&wrong)).is_err(), "fewer bytes than the extent has");
    }
}
