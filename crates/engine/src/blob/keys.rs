//! The names of the rows that belong to one blob: its partition is the blob's name.
//!
//! ```text
//! ""                         the blob
//! c set:16 n:8               chunk n of a long list of blocks
//! p map:16 region:8 epoch:8  the pages of a region of a page blob, since an epoch: the base row
//! p map:16 region:8 epoch:8 n:8  write n since that base row
//! s time:16                  a snapshot
//! u generation:16 id         a block that is not committed
//! ```
//! No blob has the empty name: the rows of that partition are the index of tags (`tag_index.rs`).
//! Numbers are hexadecimal digits, so that names order as numbers do.

use larimar_model::Timestamp;
use larimar_model::blob::SnapshotTime;

/// The blob's own row.
pub(crate) const BLOB: &str = "";
/// Bounds of the rows of one kind.
pub(crate) const CHUNKS: (&str, &str) = ("c", "d");
pub(crate) const PAGES: (&str, &str) = ("p", "q");
pub(crate) const SNAPSHOTS: (&str, &str) = ("s", "t");
pub(crate) const UNCOMMITTED: (&str, &str) = ("u", "v");

/// The parsed name of a row of a blob's partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowName<'a> {
    Blob,
    Chunk {
        set: u64,
        index: u32,
    },
    /// A base row, or the write of this number since it.
    Pages {
        map: u64,
        region: u32,
        epoch: u32,
        delta: Option<u32>,
    },
    Snapshot(SnapshotTime),
    Uncommitted {
        generation: u64,
        id: &'a str,
    },
}

impl<'a> RowName<'a> {
    /// Parses a name; `None` if it has another form.
    pub(crate) fn parse(row: &'a str) -> Option<Self> {
        let Some(kind) = row.chars().next() else { return Some(Self::Blob) };
        let rest = &row[kind.len_utf8()..];
        let (number, rest) = rest.split_at_checked(16)?;
        let number = u64::from_str_radix(number, 16).ok()?;
        let part = |range: std::ops::Range<usize>| u32::from_str_radix(rest.get(range)?, 16).ok();
        match (kind, rest.len()) {
            ('c', 8) => Some(Self::Chunk { set: number, index: part(0..8)? }),
            ('p', 16 | 24) => {
                let delta = if rest.len() == 24 { Some(part(16..24)?) } else { None };
                Some(Self::Pages { map: number, region: part(0..8)?, epoch: part(8..16)?, delta })
            }
            ('s', 0) => Some(Self::Snapshot(SnapshotTime(Timestamp::from_ticks(number)))),
            ('u', 1..) => Some(Self::Uncommitted { generation: number, id: rest }),
            _ => None,
        }
    }
}

/// The row of a chunk.
pub(crate) fn chunk(set: u64, index: usize) -> String {
    format!("c{set:016x}{index:08x}")
}

/// The base row of a region's pages.
pub(crate) fn pages(map: u64, region: u32, epoch: u32) -> String {
    format!("p{map:016x}{region:08x}{epoch:08x}")
}

/// The row of a write of pages since the base row.
pub(crate) fn page_delta(map: u64, region: u32, epoch: u32, delta: usize) -> String {
    format!("p{map:016x}{region:08x}{epoch:08x}{delta:08x}")
}

/// The row of a snapshot.
pub(crate) fn snapshot(time: SnapshotTime) -> String {
    format!("s{:016x}", time.0.ticks())
}

/// The row of a block that is not committed.
pub(crate) fn uncommitted(generation: u64, id: &str) -> String {
    format!("u{generation:016x}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let time = SnapshotTime(Timestamp::EDM_MIN);
        assert_eq!(RowName::parse(BLOB), Some(RowName::Blob));
        assert_eq!(RowName::parse(&chunk(7, 9)), Some(RowName::Chunk { set: 7, index: 9 }));
        let expected = |delta| Some(RowName::Pages { map: u64::MAX, region: 3, epoch: 4, delta });
        assert_eq!(RowName::parse(&pages(u64::MAX, 3, 4)), expected(None));
        assert_eq!(RowName::parse(&page_delta(u64::MAX, 3, 4, 5)), expected(Some(5)));
        assert_eq!(RowName::parse(&snapshot(time)), Some(RowName::Snapshot(time)));
        let expected = RowName::Uncommitted { generation: 5, id: "AAAA" };
        assert_eq!(RowName::parse(&uncommitted(5, "AAAA")), Some(expected));
        for other in
            ["x", "c", "c1", "sxyz", "u0000000000000001", "c00000000000000010000000", "ä", "u+00000000000000aAAAA"]
        {
            assert!(RowName::parse(other).is_none_or(|name| name != RowName::Blob), "{other}");
        }
        assert_eq!(RowName::parse("u0000000000000001"), None);
    }
}
