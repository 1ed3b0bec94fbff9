//! Sets of keys: what a filter over PartitionKey and RowKey admits.
//!
//! Every interval is half-open. No text is between `t` and `t` followed by U+0000, so each comparison has
//! an exact interval: `> t` starts, and `<= t` ends, at that successor. Bounds borrow their text from the filter, so
//! combining sets copies none of it.
//!
//! A filter can ask for a product of intervals, so no set is combined without a bound: a result of more than
//! [`PlanningWork::RANGES_MAX`] intervals is replaced by a wider one of fewer, and all comparisons of a plan are counted against
//! [`PlanningWork::COMPARISONS_MAX`]. Beyond either, the result is a superset and is marked as not exact.

use larimar_model::filter::Operator;
use larimar_model::{limits, utf16};
use std::cmp::Ordering;

/// Bytes of a text that count as one comparison.
const COMPARISON_BYTES: usize = 32;

/// What a plan has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanningWork {
    /// Comparisons of texts; long texts count by their length.
    pub comparisons: u64,
    /// The most intervals that any intermediate result had.
    pub intervals_max: usize,
}

/// A bound in the order of texts: a text, or its direct successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextBound<'a> {
    text: &'a str,
    is_after: bool,
}

/// Texts from `start` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval<'a> {
    pub(super) start: TextBound<'a>,
    pub(super) end: Option<TextBound<'a>>,
}

/// Disjoint intervals in order, none empty, none touching the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextSet<'a>(pub(super) Vec<Interval<'a>>);

/// The keys whose PartitionKey is in an interval and whose RowKey is in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Band<'a> {
    pub(super) partitions: Interval<'a>,
    pub(super) rows: TextSet<'a>,
}

/// Bands in order, disjoint, none with an empty set of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region<'a>(pub(super) Vec<Band<'a>>);

/// How two sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Union,
    Intersection,
}

impl PlanningWork {
    /// Intervals of one region, and so ranges of one plan.
    pub const RANGES_MAX: usize = 256;
    /// Comparisons after which a plan is finished with less exact sets, which takes few more: a millisecond or two.
    pub const COMPARISONS_MAX: u64 = 100_000;

    const fn is_spent(&self) -> bool {
        self.comparisons >= Self::COMPARISONS_MAX
    }

    fn compare(&mut self, a: TextBound<'_>, b: TextBound<'_>) -> Ordering {
        self.comparisons += 1 + (a.text.len().min(b.text.len()) / COMPARISON_BYTES) as u64;
        a.compare(b)
    }
}

impl<'a> TextBound<'a> {
    const FIRST: Self = Self { text: "", is_after: false };

    /// The bound of a literal. A very long literal is cut to a length that no key has, so every key compares with the cut
    /// text as with the whole one.
    fn of(literal: &'a str) -> Self {
        let mut units = 0;
        let end = literal.char_indices().find_map(|(at, c)| {
            units += c.len_utf16();
            (units > limits::KEY_UTF16_MAX).then_some(at + c.len_utf8())
        });
        Self { text: &literal[..end.unwrap_or(literal.len())], is_after: false }
    }

    const fn next(self) -> Self {
        Self { text: self.text, is_after: true }
    }

    /// The text of this bound.
    pub(super) fn to_text(self) -> String {
        let mut text = String::with_capacity(self.text.len() + 1);
        text.push_str(self.text);
        if self.is_after {
            text.push('\0');
        }
        text
    }

    fn compare(self, other: Self) -> Ordering {
        let order = utf16::compare(self.text, other.text);
        // U+0000 is the least character, so the one that follows `text` in a successor decides only here.
        match (self.is_after, other.is_after) {
            (true, false) if order.is_eq() => Ordering::Greater,
            (true, false) if other.text.strip_prefix(self.text) == Some("\0") => Ordering::Equal,
            (false, true) => other.compare(self).reverse(),
            _ => order,
        }
    }
}

impl<'a> Interval<'a> {
    const ALL: Self = Self { start: TextBound::FIRST, end: None };

    /// The only text inside, if there is just one.
    pub(super) fn as_point(&self) -> Option<&'a str> {
        let end = self.end?;
        (!self.start.is_after && end.is_after && end.text == self.start.text).then_some(self.start.text)
    }
}

impl<'a> TextSet<'a> {
    pub(super) fn all() -> Self {
        Self(vec![Interval::ALL])
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// The texts for which `text operator literal` holds.
    pub(super) fn compared(operator: Operator, literal: &'a str) -> Self {
        let at = TextBound::of(literal);
        let after = at.next();
        let below = |end: TextBound<'a>| {
            if end == TextBound::FIRST {
                Self::none()
            } else {
                Self(vec![Interval { start: TextBound::FIRST, end: Some(end) }])
            }
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
        matches!(self.0.as_slice(), [Interval::ALL])
    }

    pub(super) fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut start = Some(TextBound::FIRST);
        for interval in &self.0 {
            if let Some(start) = start.filter(|start| *start != interval.start) {
                gaps.push(Interval { start, end: Some(interval.start) });
            }
            start = interval.end;
        }
        gaps.extend(start.map(|start| Interval { start, end: None }));
        Self(gaps)
    }

    fn joined(&self, other: &Self, join: Join, work: &mut PlanningWork) -> Self {
        let mut out: Vec<Interval<'a>> = Vec::new();
        for Piece { interval, here, there } in pieces(&self.0, &other.0, work) {
            let is_inside = join == Join::Union || here.is_some() && there.is_some();
            match out.last_mut() {
                _ if !is_inside => {}
                Some(last) if last.end == Some(interval.start) => last.end = interval.end,
                _ => out.push(interval),
            }
        }
        Self(out)
    }

    /// One interval that covers the set.
    fn hull(&self) -> Self {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => Self(vec![Interval { start: first.start, end: last.end }]),
            _ => Self::none(),
        }
    }
}

impl<'a> Region<'a> {
    pub(super) fn all() -> Self {
        Self::of_partitions(TextSet::all())
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    pub(super) fn of_partitions(set: TextSet<'a>) -> Self {
        Self(set.0.into_iter().map(|partitions| Band { partitions, rows: TextSet::all() }).collect())
    }

    pub(super) fn of_rows(rows: TextSet<'a>) -> Self {
        if rows.0.is_empty() {
            return Self::none();
        }
        Self(vec![Band { partitions: Interval::ALL, rows }])
    }

    /// How many intervals of rows there are in all.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|band| band.rows.0.len()).sum()
    }

    /// Both regions combined, in at most [`PlanningWork::RANGES_MAX`] intervals, and whether that is exact; otherwise the result covers
    /// the combination.
    pub(super) fn joined(self, other: Self, join: Join, work: &mut PlanningWork) -> (Self, bool) {
        if work.is_spent() {
            let wider = match join {
                Join::Union => Self::all(),
                Join::Intersection if self.is_all() => other,
                Join::Intersection => self,
            };
            return (wider, false);
        }
        let mut out: Vec<Band<'a>> = Vec::new();
        let (mut intervals, mut is_exact) = (0, true);
        for Piece { interval: partitions, here, there } in pieces(&self.partitions(), &other.partitions(), work) {
            let (a, b) = (here.map(|at| &self.0[at].rows), there.map(|at| &other.0[at].rows));
            let rows = if is_exact { join.rows(a, b, work) } else { join.hulls(a, b, work) };
            if rows.0.is_empty() {
                continue;
            }
            intervals += rows.0.len();
            push_band(&mut out, Band { partitions, rows }, work);
            work.intervals_max = work.intervals_max.max(intervals);
            if is_exact && (intervals > PlanningWork::RANGES_MAX || work.is_spent()) {
                // From here on a band has one interval of rows, which costs next to nothing.
                is_exact = false;
                out.iter_mut().for_each(|band| band.rows = band.rows.hull());
                intervals = out.len();
            }
        }
        if out.len() <= PlanningWork::RANGES_MAX {
            return (Self(out), is_exact);
        }
        let partitions = TextSet(out.into_iter().map(|band| band.partitions).collect()).hull();
        (Self::of_partitions(partitions), false)
    }

    fn partitions(&self) -> Vec<Interval<'a>> {
        self.0.iter().map(|band| band.partitions).collect()
    }

    fn is_all(&self) -> bool {
        matches!(self.0.as_slice(), [Band { partitions: Interval::ALL, rows }] if rows.is_all())
    }
}

impl Join {
    /// The rows of one band of the result, from those of both sides.
    fn rows<'a>(self, a: Option<&TextSet<'a>>, b: Option<&TextSet<'a>>, work: &mut PlanningWork) -> TextSet<'a> {
        match (self, a, b) {
            (_, Some(a), Some(b)) if a.is_all() && b.is_all() => TextSet::all(),
            (_, Some(a), Some(b)) => a.joined(b, self, work),
            (Self::Union, Some(rows), None) | (Self::Union, None, Some(rows)) => rows.clone(),
            _ => TextSet::none(),
        }
    }

    /// One interval that covers those rows.
    fn hulls<'a>(self, a: Option<&TextSet<'a>>, b: Option<&TextSet<'a>>, work: &mut PlanningWork) -> TextSet<'a> {
        let (a, b) = (a.map(TextSet::hull), b.map(TextSet::hull));
        self.rows(a.as_ref(), b.as_ref(), work).hull()
    }
}

/// Appends a band, as a part of the last one if it continues it.
fn push_band<'a>(out: &mut Vec<Band<'a>>, band: Band<'a>, work: &mut PlanningWork) {
    match out.last_mut() {
        Some(last) if last.partitions.end == Some(band.partitions.start) && last.rows.0.len() == band.rows.0.len() => {
            work.comparisons += band.rows.0.len() as u64;
            if last.rows == band.rows {
                last.partitions.end = band.partitions.end;
            } else {
                out.push(band);
            }
        }
        _ => out.push(band),
    }
}

/// The part between two neighbouring bounds, and which interval of each list covers it.
struct Piece<'a> {
    interval: Interval<'a>,
    here: Option<usize>,
    there: Option<usize>,
}

/// Cuts what two ordered lists of intervals cover at every start and end.
fn pieces<'a>(here: &[Interval<'a>], there: &[Interval<'a>], work: &mut PlanningWork) -> Vec<Piece<'a>> {
    let (mut here, mut there) = (BoundCursor::new(here), BoundCursor::new(there));
    let mut pieces = Vec::new();
    let mut start = TextBound::FIRST;
    loop {
        let (a, b) = (here.next_bound(), there.next_bound());
        let order = match (a, b) {
            (Some(a), Some(b)) => work.compare(a, b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        let end = if order.is_le() { a } else { b };
        let (a, b) = (here.covering(), there.covering());
        if (a.is_some() || b.is_some()) && end != Some(start) {
            pieces.push(Piece { interval: Interval { start, end }, here: a, there: b });
        }
        let Some(end) = end else { return pieces };
        start = end;
        if order.is_le() {
            here.advance();
        }
        if order.is_ge() {
            there.advance();
        }
    }
}

/// Walks along the starts and ends of an ordered list of intervals.
struct BoundCursor<'s, 'a> {
    intervals: &'s [Interval<'a>],
    at: usize,
    is_inside: bool,
}

impl<'s, 'a> BoundCursor<'s, 'a> {
    const fn new(intervals: &'s [Interval<'a>]) -> Self {
        Self { intervals, at: 0, is_inside: false }
    }

    /// The interval that covers what comes next.
    fn covering(&self) -> Option<usize> {
        self.is_inside.then_some(self.at)
    }

    fn next_bound(&self) -> Option<TextBound<'a>> {
        let interval = self.intervals.get(self.at)?;
        if self.is_inside { interval.end } else { Some(interval.start) }
    }

    fn advance(&mut self) {
        self.at += usize::from(self.is_inside);
        self.is_inside = !self.is_inside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound() -> impl Strategy<Value = (String, bool)> {
        ("[\u{0}ab\u{e000}\u{1F600}]{0,3}", any::<bool>())
    }

    proptest! {
        #[test]
        fn bounds_are_ordered_as_the_texts_they_stand_for((a, a_after) in bound(), (b, b_after) in bound()) {
            let (a, b) = (TextBound { text: &a, is_after: a_after }, TextBound { text: &b, is_after: b_after });
            prop_assert_eq!(a.compare(b), utf16::compare(&a.to_text(), &b.to_text()));
        }

        #[test]
        fn a_key_compares_with_a_long_literal_as_with_what_is_kept_of_it(
            key in "[a\u{e000}\u{1F600}]{0,4}", tail in "[a\u{e000}\u{1F600}]{0,6}",
        ) {
            let stem = "a".repeat(limits::KEY_UTF16_MAX - 4);
            let key: String = stem.chars().chain(key.chars()).collect();
            prop_assume!(utf16::fits(&key, limits::KEY_UTF16_MAX));
            let literal = format!("{stem}{tail}");
            let kept = TextBound::of(&literal).text;
            prop_assert!(utf16::len(kept) <= limits::KEY_UTF16_MAX + 2);
            prop_assert_eq!(utf16::compare(&key, &literal), utf16::compare(&key, kept));
        }
    }
}
