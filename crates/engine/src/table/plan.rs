//! From a filter to a plan: the key ranges to read, and what of the filter remains to be checked.
//!
//! A plan is data: it is printed, tested and counted. Running it is `query.rs`.

use super::region::{Join, PlanningWork, Region, TextSet};
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
        Self::counted(filter).0
    }

    /// The plan for a filter and what it cost, which is bounded whatever the filter is: a part that would cost more, or
    /// need too many ranges, is covered by wider ranges and checked for each row.
    #[must_use]
    pub fn counted(filter: Option<&Filter>) -> (Self, PlanningWork) {
        let mut work = PlanningWork::default();
        let Some(filter) = filter else { return (Self::of(&Region::all(), None), work) };
        let parts = match filter {
            Filter::And(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let folded: Vec<KeyCondition<'_>> = parts.iter().map(|part| fold(part, false, &mut work)).collect();
        let flags: Vec<(bool, bool)> = folded.iter().map(|part| (part.is_exact, part.tests_rows)).collect();
        let regions = folded.into_iter().map(|part| KeyCondition { is_exact: true, ..part }).collect();
        let KeyCondition { region, is_exact: is_intersection, .. } = joined(regions, Join::Intersection, &mut work);
        let keeps_rows = region.0.iter().all(|band| band.rows.is_all() || band.partitions.as_point().is_some());
        let residual: Vec<Filter> = parts
            .iter()
            .zip(flags)
            .filter(|(_, (is_exact, tests_rows))| !is_exact || !is_intersection || (*tests_rows && !keeps_rows))
            .map(|(filter, _)| filter.clone())
            .collect();
        (Self::of(&region, (!residual.is_empty()).then(|| Filter::all(residual))), work)
    }

    /// The plan without what is before a position: the rest of a query after a continuation.
    #[must_use]
    pub fn resumed_at(mut self, position: Position) -> Self {
        self.clip(&KeyRange { start: position, end: None });
        self
    }

    /// The plan without what is outside of a range: a query under a limited signature.
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

    fn of(region: &Region<'_>, residual: Option<Filter>) -> Self {
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

/// What a part of a filter requires of the keys.
struct KeyCondition<'a> {
    /// Covers every key that the part admits.
    region: Region<'a>,
    /// Whether the region is just what the part admits.
    is_exact: bool,
    /// Whether the part compares RowKey.
    tests_rows: bool,
}

impl KeyCondition<'_> {
    /// A part that does not restrict the keys.
    fn unknown() -> Self {
        Self { region: Region::all(), is_exact: false, tests_rows: false }
    }

    fn constant(value: bool) -> Self {
        Self { region: if value { Region::all() } else { Region::none() }, is_exact: true, tests_rows: false }
    }
}

/// Folds a filter, or its negation, into a region.
fn fold<'a>(filter: &'a Filter, is_negated: bool, work: &mut PlanningWork) -> KeyCondition<'a> {
    let mut fold_parts = |parts: &'a [Filter], join: Join| {
        let parts = parts.iter().map(|part| fold(part, is_negated, work)).collect();
        joined(parts, join, work)
    };
    match filter {
        Filter::Not(inner) => fold(inner, !is_negated, work),
        Filter::And(parts) if is_negated => fold_parts(parts, Join::Union),
        Filter::Or(parts) if !is_negated => fold_parts(parts, Join::Union),
        Filter::And(parts) | Filter::Or(parts) => fold_parts(parts, Join::Intersection),
        Filter::Constant(value) => KeyCondition::constant(*value != is_negated),
        Filter::Compare(comparison) => match key_set(comparison) {
            Some(set) => {
                let set = if is_negated { set.complement() } else { set };
                let tests_rows = comparison.property == "RowKey";
                let region = if tests_rows { Region::of_rows(set) } else { Region::of_partitions(set) };
                KeyCondition { region, is_exact: true, tests_rows }
            }
            None => KeyCondition::unknown(),
        },
        // Keys are strings, so a key by itself is never true.
        Filter::Flag(name) if name == "PartitionKey" || name == "RowKey" => KeyCondition::constant(is_negated),
        Filter::Flag(_) => KeyCondition::unknown(),
    }
}

/// Combines parts: first those that restrict one of the keys only, because their intervals do not multiply.
fn joined<'a>(parts: Vec<KeyCondition<'a>>, join: Join, work: &mut PlanningWork) -> KeyCondition<'a> {
    let (partitions, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| !part.tests_rows);
    let (rows, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|part| part.region.0.len() <= 1);
    let groups = [partitions, rows, others].into_iter();
    let groups = groups.filter(|group| !group.is_empty()).map(|group| joined_in_pairs(group, join, work)).collect();
    joined_in_pairs(groups, join, work)
}

/// Combines parts in pairs, then the results in pairs: sets stay small for as long as possible, and no part is combined often.
fn joined_in_pairs<'a>(mut parts: Vec<KeyCondition<'a>>, join: Join, work: &mut PlanningWork) -> KeyCondition<'a> {
    while parts.len() > 1 {
        let mut pairs = parts.into_iter();
        parts = std::iter::from_fn(|| {
            let first = pairs.next()?;
            let Some(second) = pairs.next() else { return Some(first) };
            let (region, is_exact) = first.region.joined(second.region, join, work);
            let is_exact = is_exact && first.is_exact && second.is_exact;
            Some(KeyCondition { region, is_exact, tests_rows: first.tests_rows || second.tests_rows })
        })
        .collect();
    }
    // The parser makes no conjunction and no disjunction without parts.
    parts.pop().unwrap_or_else(|| KeyCondition::constant(join == Join::Intersection))
}

/// The keys that a comparison admits, if it is one of a key.
fn key_set(comparison: &Comparison) -> Option<TextSet<'_>> {
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

fn ranges(region: &Region<'_>) -> Vec<KeyRange> {
    let mut out = Vec::with_capacity(region.len());
    for band in &region.0 {
        let end_of_band = band.partitions.end.map(|end| Position::new(end.to_text(), ""));
        match band.partitions.as_point() {
            Some(partition) => out.extend(band.rows.0.iter().map(|rows| KeyRange {
                start: Position::new(partition, rows.start.to_text()),
                end: rows.end.map_or_else(|| end_of_band.clone(), |end| Some(Position::new(partition, end.to_text()))),
            })),
            None => out.push(KeyRange { start: Position::new(band.partitions.start.to_text(), ""), end: end_of_band }),
        }
    }
    out
}

fn kind(region: &Region<'_>) -> QueryKind {
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

    const RANGES_MAX: usize = PlanningWork::RANGES_MAX;

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
            ("PartitionKey ne 'b' and PartitionKey eq 'a' and RowKey eq ''", r#"point ["a"/"" .. "a"/"\0")"#),
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
    fn many_exclusions_of_both_keys_are_widened_and_checked_for_each_row() {
        let excluded =
            |key: &str, n: usize| (0..n).map(|i| format!("{key} ne '{i:04}'")).collect::<Vec<_>>().join(" and ");
        for n in [10, 100, 200, 300, 600, 1500] {
            let text = format!("{} and {}", excluded("PartitionKey", n), excluded("RowKey", n));
            let filter = Filter::parse(&text).expect("a filter");
            let (plan, work) = Plan::counted(Some(&filter));
            assert!(plan.ranges.len() <= RANGES_MAX, "{n}");
            assert!(work.comparisons <= 2 * PlanningWork::COMPARISONS_MAX, "{n}: {work:?}");
            assert!(work.intervals_max <= 4 * RANGES_MAX, "{n}: {work:?}");
            assert!(plan.residual.is_some(), "{n}");
            // One partition is still one partition.
            let text = format!("{text} and PartitionKey eq 'p'");
            let plan = Plan::new(Some(&Filter::parse(&text).expect("a filter")));
            assert!(plan.ranges.iter().all(|range| range.start.partition == "p"), "{n}: {:?}", plan.kind);
        }
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
