//! Sets of keys: what a filter over PartitionKey and RowKey admits.
//!
//! Every interval is half-open. No text lies between `t` and `t` followed by U+0000, so each comparison has
//! an exact interval: `> t` starts, and `<= t` ends, at that successor.

use crate::contract::successor;
use larimar_model::filter::Operator;
use larimar_model::utf16;
use std::cmp::Ordering;

/// Texts from `start` up to, but without, `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: String,
    pub(super) end: Option<String>,
}

/// Disjoint intervals in order, none empty, none touching the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextSet(pub(super) Vec<Interval>);

/// The keys whose PartitionKey lies in an interval and whose RowKey lies in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) partitions: Interval,
    pub(super) rows: TextSet,
}

/// Bands in order, disjoint, none with an empty set of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region(pub(super) Vec<Band>);

impl Interval {
    /// The only text inside, if there is just one.
    pub(super) fn as_point(&self) -> Option<&str> {
        let end = self.end.as_deref()?;
        (end.strip_suffix('\0') == Some(&self.start)).then_some(&self.start)
    }

    fn ends_by(&self, place: &str) -> bool {
        self.end.as_deref().is_some_and(|end| utf16::compare(end, place).is_le())
    }
}

impl TextSet {
    pub(super) fn all() -> Self {
        Self(vec![Interval { start: String::new(), end: None }])
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// The texts for which `text operator literal` holds.
    pub(super) fn compared(operator: Operator, literal: &str) -> Self {
        let at = literal.to_owned();
        let after = successor(literal);
        let below = |end: String| {
            if end.is_empty() { Self::none() } else { Self(vec![Interval { start: String::new(), end: Some(end) }]) }
        };
        match operator {
            Operator::Eq => Self(vec![Interval { start: at, end: Some(after) }]),
            Operator::Ne => Self::compared(Operator::Eq, literal).complement(),
            Operator::Lt => below(at),
            Operator::Le => below(after),
            Operator::Ge => Self(vec![Interval { start: at, end: None }]),
            Operator::Gt => Self(vec![Interval { start: after, end: None }]),
        }
    }

    pub(super) fn is_all(&self) -> bool {
        matches!(self.0.as_slice(), [Interval { start, end: None }] if start.is_empty())
    }

    pub(super) fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut start = Some(String::new());
        for interval in &self.0 {
            if let Some(start) = start.filter(|start| *start != interval.start) {
                gaps.push(Interval { start, end: Some(interval.start.clone()) });
            }
            start = interval.end.clone();
        }
        gaps.extend(start.map(|start| Interval { start, end: None }));
        Self(gaps)
    }

    fn combined(&self, other: &Self, keep: fn(bool, bool) -> bool) -> Self {
        let mut out: Vec<Interval> = Vec::new();
        let (mut here, mut there) = (Walk::new(&self.0, |i| i), Walk::new(&other.0, |i| i));
        for piece in pieces(self.0.iter().chain(&other.0)) {
            if !keep(here.at(&piece.start).is_some(), there.at(&piece.start).is_some()) {
                continue;
            }
            match out.last_mut() {
                Some(last) if last.end.as_ref() == Some(&piece.start) => last.end = piece.end,
                _ => out.push(piece),
            }
        }
        Self(out)
    }

    /// One interval that covers the set.
    fn hull(&self) -> Self {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => Self(vec![Interval { start: first.start.clone(), end: last.end.clone() }]),
            _ => Self::none(),
        }
    }
}

impl Region {
    pub(super) fn all() -> Self {
        Self::of_partitions(TextSet::all())
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    pub(super) fn of_partitions(set: TextSet) -> Self {
        Self(set.0.into_iter().map(|partitions| Band { partitions, rows: TextSet::all() }).collect())
    }

    pub(super) fn of_rows(rows: TextSet) -> Self {
        if rows.0.is_empty() {
            return Self::none();
        }
        Self(vec![Band { partitions: Interval { start: String::new(), end: None }, rows }])
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        self.combined(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => Some(a.combined(b, |a, b| a || b)),
            (a, b) => a.or(b).cloned(),
        })
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |a, b| Some(a?.combined(b?, |a, b| a && b)))
    }

    fn combined(&self, other: &Self, rows: impl Fn(Option<&TextSet>, Option<&TextSet>) -> Option<TextSet>) -> Self {
        let mut out: Vec<Band> = Vec::new();
        let (mut here, mut there) = (Walk::new(&self.0, |b| &b.partitions), Walk::new(&other.0, |b| &b.partitions));
        for piece in pieces(self.0.iter().chain(&other.0).map(|band| &band.partitions)) {
            let (a, b) = (here.at(&piece.start).map(|b| &b.rows), there.at(&piece.start).map(|b| &b.rows));
            let Some(rows) = rows(a, b).filter(|rows| !rows.0.is_empty()) else { continue };
            match out.last_mut() {
                Some(last) if last.partitions.end.as_ref() == Some(&piece.start) && last.rows == rows => {
                    last.partitions.end = piece.end;
                }
                _ => out.push(Band { partitions: piece, rows }),
            }
        }
        Self(out)
    }

    /// How many intervals of rows there are in all.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|band| band.rows.0.len()).sum()
    }

    /// A region of at most `max` intervals that covers this one.
    pub(super) fn widened(self, max: usize) -> Self {
        if self.len() <= max {
            return self;
        }
        let bands: Vec<Band> =
            self.0.into_iter().map(|band| Band { rows: band.rows.hull(), partitions: band.partitions }).collect();
        if bands.len() <= max {
            return Self(bands);
        }
        let partitions = TextSet(bands.into_iter().map(|band| band.partitions).collect()).hull();
        Self::of_partitions(partitions)
    }
}

/// Finds the item of an ordered list that covers a place, for places in ascending order.
struct Walk<'a, T> {
    rest: &'a [T],
    interval: fn(&T) -> &Interval,
}

impl<'a, T> Walk<'a, T> {
    const fn new(items: &'a [T], interval: fn(&T) -> &Interval) -> Self {
        Self { rest: items, interval }
    }

    fn at(&mut self, place: &str) -> Option<&'a T> {
        while let [first, rest @ ..] = self.rest
            && (self.interval)(first).ends_by(place)
        {
            self.rest = rest;
        }
        self.rest.first().filter(|item| utf16::compare(&(self.interval)(item).start, place).is_le())
    }
}

/// Cuts the line at every start and end, and returns the pieces in order.
fn pieces<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Vec<Interval> {
    let mut cuts: Vec<&str> = Vec::new();
    let mut is_open = false;
    for interval in intervals {
        cuts.push(&interval.start);
        cuts.extend(interval.end.as_deref());
        is_open |= interval.end.is_none();
    }
    cuts.sort_unstable_by(|a, b| utf16::compare(a, b));
    cuts.dedup_by(|a, b| utf16::compare(a, b) == Ordering::Equal);
    let piece =
        |start: &&str, end: Option<&&str>| Interval { start: (*start).to_owned(), end: end.map(|e| (*e).to_owned()) };
    let closed = cuts.windows(2).map(|pair| piece(&pair[0], Some(&pair[1])));
    closed.chain(cuts.last().filter(|_| is_open).map(|start| piece(start, None))).collect()
}
