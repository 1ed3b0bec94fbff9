//! What a page reads, as statements: a range becomes index ranges that every database reads well, keys become look-ups.
//!
//! Every statement is bounded in rows and in bytes. The sizes of bodies are added up in the database, without reading
//! bodies that are kept outside of their rows, so that rows beyond the bound are not sent. The first row beyond it is sent
//! without its body: it says where to go on.

use crate::key;
use crate::statements::{POINTS, SLICE, TAIL, TAIL_AND_MORE, TAIL_AND_MORE_AND_HEAD};
use larimar_engine::{KeyRange, Position, SpaceId};
use tokio_postgres::types::ToSql;

/// What one read of a snapshot is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted<'a> {
    /// The rows of a range.
    Range(&'a KeyRange),
    /// The rows of these keys (partition, row), in their order.
    Keys(&'a [(&'a str, &'a str)]),
}

impl Wanted<'_> {
    /// Where it begins; nothing if it is about no row.
    pub(crate) fn start(&self) -> Option<Position> {
        match self {
            Self::Range(range) => (!range.is_empty()).then(|| range.start.clone()),
            Self::Keys(keys) => keys.first().map(|(partition, row)| Position::new(*partition, *row)),
        }
    }

    /// Where it ends; nothing for the end of the space.
    pub(crate) fn end(&self) -> Option<Position> {
        match self {
            Self::Range(range) => range.end.clone(),
            Self::Keys(keys) => keys.last().map(|(partition, row)| Position::new(*partition, *row)),
        }
    }

    /// The statement and its parameters from `$3` on; `$1` is the limit of rows and `$2` that of bytes.
    pub(crate) fn statement(&self, space: SpaceId) -> (&'static str, Bounds) {
        match self {
            Self::Range(range) => {
                let arms = Arms::new(space, range);
                (arms.sql(), Bounds::Range(arms.bounds))
            }
            Self::Keys(keys) => {
                let pks = keys.iter().map(|(partition, _)| key::partition(space, partition)).collect();
                (POINTS, Bounds::Keys(pks, keys.iter().map(|(_, row)| key::row(row)).collect()))
            }
        }
    }
}

/// Parameters that say which rows are wanted.
pub(crate) enum Bounds {
    /// One each.
    Range(Vec<Vec<u8>>),
    /// Arrays of pk and rk.
    Keys(Vec<Vec<u8>>, Vec<Vec<u8>>),
}

impl Bounds {
    pub(crate) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        match self {
            Self::Range(bounds) => bounds.iter().map(|bound| bound as &(dyn ToSql + Sync)).collect(),
            Self::Keys(pks, rks) => vec![pks, rks],
        }
    }
}

/// A range as index ranges that every database reads well: the rest of the first partition, the partitions between,
/// the beginning of the last.
struct Arms {
    shape: Shape,
    bounds: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Empty,
    /// Rows of one partition, from one on: pk, first rk.
    Tail,
    /// Rows of one partition between two: pk, first rk, rk after the last.
    Slice,
    /// The rest of one partition and all up to another: pk, first rk, pk after the last.
    TailAndMore,
    /// That, and the beginning of the last: pk, first rk, last pk, rk after the last.
    TailAndMoreAndHead,
}

impl Arms {
    fn new(space: SpaceId, range: &KeyRange) -> Self {
        if range.is_empty() {
            return Self { shape: Shape::Empty, bounds: Vec::new() };
        }
        let first = key::partition(space, &range.start.partition);
        let from = key::row(&range.start.row);
        let Some(end) = &range.end else {
            return Self { shape: Shape::TailAndMore, bounds: vec![first, from, key::space_end(space)] };
        };
        let last = key::partition(space, &end.partition);
        let to = key::row(&end.row);
        if first == last {
            return Self { shape: Shape::Slice, bounds: vec![first, from, to] };
        }
        // The text that follows another directly is that one and a zero: no partition lies between.
        let is_next = last.strip_prefix(first.as_slice()) == Some(&[0, 0]);
        match (is_next, to.is_empty()) {
            (true, true) => Self { shape: Shape::Tail, bounds: vec![first, from] },
            (_, true) => Self { shape: Shape::TailAndMore, bounds: vec![first, from, last] },
            (_, false) => Self { shape: Shape::TailAndMoreAndHead, bounds: vec![first, from, last, to] },
        }
    }

    const fn sql(&self) -> &'static str {
        match self.shape {
            Shape::Empty | Shape::Tail => TAIL,
            Shape::Slice => SLICE,
            Shape::TailAndMore => TAIL_AND_MORE,
            Shape::TailAndMoreAndHead => TAIL_AND_MORE_AND_HEAD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(5);

    fn shape(range: &KeyRange) -> Shape {
        Arms::new(SPACE, range).shape
    }

    #[test]
    fn a_range_becomes_as_few_index_ranges_as_it_needs() {
        let to = |start: (&str, &str), end: (&str, &str)| KeyRange {
            start: Position::new(start.0, start.1),
            end: Some(Position::new(end.0, end.1)),
        };
        assert_eq!(shape(&KeyRange::all()), Shape::TailAndMore);
        assert_eq!(shape(&KeyRange::partition("p")), Shape::Tail);
        assert_eq!(shape(&KeyRange::point("p", "r")), Shape::Slice);
        assert_eq!(shape(&to(("p", "a"), ("p", "b"))), Shape::Slice);
        assert_eq!(shape(&to(("p", "a"), ("q", ""))), Shape::TailAndMore);
        assert_eq!(shape(&to(("p", "a"), ("q", "b"))), Shape::TailAndMoreAndHead);
        assert_eq!(shape(&to(("p", "a"), ("p\0", "b"))), Shape::TailAndMoreAndHead);
        assert_eq!(shape(&to(("q", ""), ("p", "b"))), Shape::Empty);
    }
}
