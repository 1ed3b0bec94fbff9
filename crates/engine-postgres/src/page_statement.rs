//! The statement that a page reads: a range becomes index ranges that every database reads well, keys become lookups.
//!
//! Every statement is bounded in rows and in bytes. The database adds up the sizes of bodies, without reading bodies
//! that it stores outside of their rows, so that rows beyond the bound are not sent. The first row beyond it is sent
//! without its body: its key is where to continue.

use crate::key;
use crate::statements::Query;
use crate::statements::pages::{PageRow, Points, Slice, Tail, TailAndMore, TailAndMoreAndHead};
use larimar_engine::{KeyRange, Position, SpaceId};

/// What one read of a snapshot returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection<'a> {
    /// The rows of a range.
    Range(&'a KeyRange),
    /// The rows of these keys (partition, row), in their order.
    Keys(&'a [(&'a str, &'a str)]),
}

/// How much a statement returns at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageBounds {
    pub(crate) rows_max: i64,
    pub(crate) bytes_max: i64,
}

impl Selection<'_> {
    /// Where it begins; `None` if it has no row.
    pub(crate) fn start(&self) -> Option<Position> {
        match self {
            Self::Range(range) => (!range.is_empty()).then(|| range.start.clone()),
            Self::Keys(keys) => keys.first().map(|(partition, row)| Position::new(*partition, *row)),
        }
    }

    /// Where it ends; `None` for the end of the space.
    pub(crate) fn end(&self) -> Option<Position> {
        match self {
            Self::Range(range) => range.end.clone(),
            Self::Keys(keys) => keys.last().map(|(partition, row)| Position::new(*partition, *row)),
        }
    }

    /// The keys as the database stores them.
    pub(crate) fn keys(&self, space: SpaceId) -> PageKeys {
        match self {
            Self::Range(range) => PageKeys::of_range(space, range),
            Self::Keys(keys) => PageKeys::Points {
                pks: keys.iter().map(|(partition, _)| key::partition(space, partition)).collect(),
                rks: keys.iter().map(|(_, row)| key::row(row)).collect(),
            },
        }
    }
}

/// Which rows a statement returns. A range is the rest of the first partition, the partitions between, and the first
/// rows of the last partition, as far as it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageKeys {
    Tail { pk: Vec<u8>, rk: Vec<u8> },
    Slice { pk: Vec<u8>, rk: Vec<u8>, end_rk: Vec<u8> },
    TailAndMore { pk: Vec<u8>, rk: Vec<u8>, end_pk: Vec<u8> },
    TailAndMoreAndHead { pk: Vec<u8>, rk: Vec<u8>, last_pk: Vec<u8>, end_rk: Vec<u8> },
    Points { pks: Vec<Vec<u8>>, rks: Vec<Vec<u8>> },
}

impl PageKeys {
    fn of_range(space: SpaceId, range: &KeyRange) -> Self {
        let pk = key::partition(space, &range.start.partition);
        let rk = key::row(&range.start.row);
        let Some(end) = &range.end else { return Self::TailAndMore { pk, rk, end_pk: key::space_end(space) } };
        let last_pk = key::partition(space, &end.partition);
        let end_rk = key::row(&end.row);
        if pk == last_pk {
            return Self::Slice { pk, rk, end_rk };
        }
        // The text that follows another directly is that one and a zero: no partition is between them.
        let is_next = last_pk.strip_prefix(pk.as_slice()) == Some(&[0, 0]);
        match (is_next, end_rk.is_empty()) {
            (true, true) => Self::Tail { pk, rk },
            (_, true) => Self::TailAndMore { pk, rk, end_pk: last_pk },
            (_, false) => Self::TailAndMoreAndHead { pk, rk, last_pk, end_rk },
        }
    }

    pub(crate) fn statement(&self, bounds: PageBounds) -> Box<dyn Query<Row = PageRow> + '_> {
        let PageBounds { rows_max, bytes_max } = bounds;
        match self {
            Self::Tail { pk, rk } => Box::new(Tail { rows_max, bytes_max, pk, rk }),
            Self::Slice { pk, rk, end_rk } => Box::new(Slice { rows_max, bytes_max, pk, rk, end_rk }),
            Self::TailAndMore { pk, rk, end_pk } => Box::new(TailAndMore { rows_max, bytes_max, pk, rk, end_pk }),
            Self::TailAndMoreAndHead { pk, rk, last_pk, end_rk } => {
                Box::new(TailAndMoreAndHead { rows_max, bytes_max, pk, rk, last_pk, end_rk })
            }
            Self::Points { pks, rks } => {
                let pks = pks.iter().map(Vec::as_slice).collect();
                Box::new(Points { rows_max, bytes_max, pks, rks: rks.iter().map(Vec::as_slice).collect() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(5);

    fn statement(range: &KeyRange) -> &'static str {
        PageKeys::of_range(SPACE, range).statement(PageBounds { rows_max: 1, bytes_max: 1 }).sql().name
    }

    #[test]
    fn a_range_becomes_as_few_index_ranges_as_it_needs() {
        let to = |start: (&str, &str), end: (&str, &str)| KeyRange {
            start: Position::new(start.0, start.1),
            end: Some(Position::new(end.0, end.1)),
        };
        assert_eq!(statement(&KeyRange::all()), "TailAndMore");
        assert_eq!(statement(&KeyRange::partition("p")), "Tail");
        assert_eq!(statement(&KeyRange::point("p", "r")), "Slice");
        assert_eq!(statement(&to(("p", "a"), ("p", "b"))), "Slice");
        assert_eq!(statement(&to(("p", "a"), ("q", ""))), "TailAndMore");
        assert_eq!(statement(&to(("p", "a"), ("q", "b"))), "TailAndMoreAndHead");
        assert_eq!(statement(&to(("p", "a"), ("p\0", "b"))), "TailAndMoreAndHead");
    }

    #[test]
    fn a_selection_without_rows_has_no_start() {
        let empty = KeyRange { start: Position::new("q", ""), end: Some(Position::new("p", "b")) };
        assert_eq!(Selection::Range(&empty).start(), None);
        assert_eq!(Selection::Keys(&[]).start(), None);
    }
}
