//! From a filter to a plan: the key ranges to read, and what of the filter remains to be checked.
//!
//! A plan is data: it is printed, tested and counted. Running it is `query.rs`.

use super::region::{Region, TextSet};
use crate::contract::{KeyRange, Position};
use larimar_model::filter::{Comparison, Operator};
use larimar_model::{Filter, Value};
use std::cmp::Ordering;
use std::fmt;

/// How a query is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What kind of query this is, as the design guide names it.
    pub kind: QueryKind,
    /// The ranges to read: disjoint, in key order.
    pub ranges: Vec<KeyRange>,
    /// What every row read must still be checked for.
    pub residual: Option<Filter>,
}

/// The kinds of queries, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryKind {
    /// The filter contradicts itself: nothing is read.
    Nothing,
    /// Both keys given.
    Point,
    /// Several rows by both keys.
    Points,
    /// A range of rows in one partition.
    Range,
    /// Several ranges of rows, each in one partition.
    Ranges,
    /// All rows of one or more named partitions.
    PartitionScan,
    /// All rows of the table or of a range of partitions.
    TableScan,
}

/// Ranges of one plan at most; a filter that asks for more is answered by wider ones.
pub const RANGES_MAX: usize = 256;

impl QueryKind {
    /// The kind's name in metrics and plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Point => "point",
            Self::Points => "points",
            Self::Range => "range",
            Self::Ranges => "ranges",
            Self::PartitionScan => "partition-scan",
            Self::TableScan => "table-scan",
        }
    }
}

impl Plan {
    /// The plan for a filter, or for all rows.
    #[must_use]
    pub fn new(filter: Option<&Filter>) -> Self {
        let Some(filter) = filter else { return Self::of(&Region::all(), None) };
        let parts = match filter {
            Filter::And(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let folded: Vec<Folded> = parts.iter().map(|part| fold(part, false)).collect();
        let region = folded.iter().fold(Region::all(), |all, part| all.intersection(&part.region));
        let is_widened = region.len() > RANGES_MAX;
        let region = region.widened(RANGES_MAX);
        let keeps_rows = region.0.iter().all(|band| band.rows.is_all() || band.partitions.as_point().is_some());
        let residual: Vec<Filter> = parts
            .iter()
            .zip(&folded)
            .filter(|(_, part)| !part.is_exact || is_widened || (part.tests_rows && !keeps_rows))
            .map(|(filter, _)| filter.clone())
            .collect();
        Self::of(&region, (!residual.is_empty()).then(|| Filter::all(residual)))
    }

    /// The plan without what lies before a position: the rest of a query after a continuation.
    #[must_use]
    pub fn resumed_at(mut self, position: Position) -> Self {
        self.clip(&KeyRange { start: position, end: None });
        self
    }

    /// The plan without what lies outside of a range: a query under a limited signature.
    #[must_use]
    pub fn limited_to(mut self, range: &KeyRange) -> Self {
        self.clip(range);
        self
    }

    fn clip(&mut self, to: &KeyRange) {
        for range in &mut self.ranges {
            *range = range.intersection(to);
        }
        self.ranges.retain(|range| !range.is_empty());
    }

    fn of(region: &Region, residual: Option<Filter>) -> Self {
        Self { kind: kind(region), ranges: ranges(region), residual }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        for range in &self.ranges {
            write!(f, " [{:?}/{:?}", range.start.partition, range.start.row)?;
            match &range.end {
                Some(end) => write!(f, " .. {:?}/{:?})", end.partition, end.row)?,
                None => f.write_str(" ..)")?,
            }
        }
        match &self.residual {
            Some(residual) => write!(f, " where {residual}"),
            None => Ok(()),
        }
    }
}

/// What a part of a filter says about keys.
struct Folded {
    /// Covers every key that the part admits.
    region: Region,
    /// Whether the region is just what the part admits.
    is_exact: bool,
    /// Whether the part compares RowKey.
    tests_rows: bool,
}

/// Folds a filter, or its negation, into a region.
fn fold(filter: &Filter, is_negated: bool) -> Folded {
    let constant = |value: bool| Folded {
        region: if value == is_negated { Region::none() } else { Region::all() },
        is_exact: true,
        tests_rows: false,
    };
    match filter {
        Filter::Not(inner) => fold(inner, !is_negated),
        Filter::And(parts) if is_negated => fold_parts(parts, is_negated, Region::union),
        Filter::Or(parts) if !is_negated => fold_parts(parts, is_negated, Region::union),
        Filter::And(parts) | Filter::Or(parts) => fold_parts(parts, is_negated, Region::intersection),
        Filter::Constant(value) => constant(*value),
        Filter::Compare(comparison) => match key_set(comparison) {
            Some(set) => {
                let set = if is_negated { set.complement() } else { set };
                let tests_rows = comparison.property == "RowKey";
                let region = if tests_rows { Region::of_rows(set) } else { Region::of_partitions(set) };
                Folded { region, is_exact: true, tests_rows }
            }
            None => Folded { region: Region::all(), is_exact: false, tests_rows: false },
        },
        // Keys are strings, so a key by itself is never true.
        Filter::Flag(name) if name == "PartitionKey" || name == "RowKey" => constant(false),
        Filter::Flag(_) => Folded { region: Region::all(), is_exact: false, tests_rows: false },
    }
}

fn fold_parts(parts: &[Filter], is_negated: bool, join: fn(&Region, &Region) -> Region) -> Folded {
    let mut folded = parts.iter().map(|part| fold(part, is_negated));
    let first = folded.next().expect("a conjunction or disjunction has parts");
    folded.fold(first, |all, part| {
        let region = join(&all.region, &part.region);
        let is_widened = region.len() > RANGES_MAX;
        Folded {
            region: region.widened(RANGES_MAX),
            is_exact: all.is_exact && part.is_exact && !is_widened,
            tests_rows: all.tests_rows || part.tests_rows,
        }
    })
}

/// The keys that a comparison admits, if it is one of a key.
fn key_set(comparison: &Comparison) -> Option<TextSet> {
    if comparison.property != "PartitionKey" && comparison.property != "RowKey" {
        return None;
    }
    Some(match &comparison.literal {
        Value::String(literal) => TextSet::compared(comparison.operator, literal),
        // A literal of another type: the key counts as less than it.
        _ if Operator::admits(comparison.operator, Ordering::Less) => TextSet::all(),
        _ => TextSet::none(),
    })
}

fn ranges(region: &Region) -> Vec<KeyRange> {
    let mut out = Vec::with_capacity(region.len());
    for band in &region.0 {
        let end_of_band = band.partitions.end.as_ref().map(|end| Position::new(end.as_str(), ""));
        match band.partitions.as_point() {
            Some(partition) => out.extend(band.rows.0.iter().map(|rows| {
                KeyRange {
                    start: Position::new(partition, rows.start.as_str()),
                    end: rows
                        .end
                        .as_ref()
                        .map_or_else(|| end_of_band.clone(), |end| Some(Position::new(partition, end.as_str()))),
                }
            })),
            None => out.push(KeyRange { start: Position::new(band.partitions.start.as_str(), ""), end: end_of_band }),
        }
    }
    out
}

fn kind(region: &Region) -> QueryKind {
    let bands = &region.0;
    if bands.is_empty() {
        return QueryKind::Nothing;
    }
    if bands.iter().any(|band| band.partitions.as_point().is_none()) {
        return QueryKind::TableScan;
    }
    if bands.iter().any(|band| band.rows.is_all()) {
        return QueryKind::PartitionScan;
    }
    let are_points = bands.iter().flat_map(|band| &band.rows.0).all(|rows| rows.as_point().is_some());
    match (are_points, region.len()) {
        (true, 1) => QueryKind::Point,
        (true, _) => QueryKind::Points,
        (false, 1) => QueryKind::Range,
        (false, _) => QueryKind::Ranges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(filter: &str) -> String {
        Plan::new(Some(&Filter::parse(filter).expect(filter))).to_string()
    }

    #[test]
    fn every_kind_of_query_has_its_plan() {
        for (filter, plan) in [
            ("PartitionKey eq 'p' and RowKey eq 'r'", r#"point ["p"/"r" .. "p"/"r\0")"#),
            (
                "PartitionKey eq 'p' and (RowKey eq 's' or RowKey eq 'r')",
                r#"points ["p"/"r" .. "p"/"r\0") ["p"/"s" .. "p"/"s\0")"#,
            ),
            ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", r#"range ["p"/"a" .. "p"/"b")"#),
            ("PartitionKey eq 'p' and RowKey gt 'a'", r#"range ["p"/"a\0" .. "p\0"/"")"#),
            ("PartitionKey eq 'p' and Age gt 3", r#"partition-scan ["p"/"" .. "p\0"/"") where Age gt 3"#),
            (
                "PartitionKey eq 'q' or PartitionKey eq 'p'",
                r#"partition-scan ["p"/"" .. "p\0"/"") ["q"/"" .. "q\0"/"")"#,
            ),
            ("RowKey eq 'r'", r#"table-scan [""/"" ..) where RowKey eq 'r'"#),
            ("Age gt 3", r#"table-scan [""/"" ..) where Age gt 3"#),
            (
                "PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq 'x'",
                r#"table-scan ["a"/"" .. "b"/"") where RowKey eq 'x'"#,
            ),
            ("PartitionKey eq 'a' and PartitionKey eq 'b'", "nothing"),
            ("PartitionKey eq 'a' and RowKey lt ''", "nothing"),
            ("PartitionKey eq 5", "nothing"),
            ("PartitionKey ne 5 and PartitionKey eq 'a' and RowKey eq ''", r#"point ["a"/"" .. "a"/"\0")"#),
            ("not (PartitionKey ne 'p' or RowKey ne 'r')", r#"point ["p"/"r" .. "p"/"r\0")"#),
            (
                "PartitionKey eq 'p' and (RowKey eq 'r' or Age eq 1)",
                r#"partition-scan ["p"/"" .. "p\0"/"") where RowKey eq 'r' or Age eq 1"#,
            ),
            ("PartitionKey eq 'p' and RowKey ne 'r'", r#"ranges ["p"/"" .. "p"/"r") ["p"/"r\0" .. "p\0"/"")"#),
            (
                "(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'b' and RowKey eq '2' and Age eq 3)",
                r#"points ["a"/"1" .. "a"/"1\0") ["b"/"2" .. "b"/"2\0") where (PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'b' and RowKey eq '2' and Age eq 3)"#,
            ),
        ] {
            assert_eq!(shown(filter), plan, "{filter}");
        }
        assert_eq!(Plan::new(None).to_string(), r#"table-scan [""/"" ..)"#);
    }

    #[test]
    fn q5_many_keys_become_many_seeks_up_to_a_bound() {
        let filter = |n: usize| {
            let keys: Vec<String> = (0..n).map(|i| format!("RowKey eq '{i:04}'")).collect();
            Filter::parse(&format!("PartitionKey eq 'p' and ({})", keys.join(" or "))).expect("a filter")
        };
        let plan = Plan::new(Some(&filter(RANGES_MAX)));
        assert_eq!((plan.kind, plan.ranges.len(), plan.residual), (QueryKind::Points, RANGES_MAX, None));
        let plan = Plan::new(Some(&filter(RANGES_MAX + 1)));
        assert_eq!((plan.kind, plan.ranges.len()), (QueryKind::Range, 1));
        assert!(plan.residual.is_some());
    }

    #[test]
    fn q9_a_resumed_plan_leaves_out_what_was_read() {
        let filter = Filter::parse("PartitionKey eq 'a' or PartitionKey eq 'b'").expect("a filter");
        let plan = Plan::new(Some(&filter)).resumed_at(Position::new("a\0", ""));
        assert_eq!(plan.ranges, [KeyRange::partition("b")]);
        let plan = Plan::new(Some(&filter)).resumed_at(Position::new("b", "5"));
        assert_eq!(plan.ranges[0].start, Position::new("b", "5"));
    }
}
