//! A filter made ready for many rows: each property is found once for each row, and what a row costs is counted.
//!
//! Two rules of the service are surprising: a comparison with a missing property is false, `ne` included; and a
//! property whose type does not fit the literal's counts as less than it.

use super::{Comparison, Filter, Operator, Row};
use crate::{Value, ValueRef, utf16};
use std::cmp::Ordering;
use std::collections::HashMap;

/// A filter made ready for many rows.
#[derive(Clone, Debug)]
pub struct Predicate<'f> {
    root: Node<'f>,
    names: Names<'f>,
}

/// Bytes of texts that count as one step.
const STEP_BYTES: usize = 32;

/// Rows whose filter asks for no more properties than this need no allocation.
const INLINE_NAMES: usize = 8;

/// A filter whose properties have numbers.
#[derive(Clone, Debug)]
enum Node<'f> {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Compare(PropertySource, &'f Comparison),
    Flag(PropertySource),
    Constant(bool),
}

/// Where the value of a property comes from.
#[derive(Clone, Copy, Debug)]
enum PropertySource {
    PartitionKey,
    RowKey,
    Timestamp,
    /// Among those that the body has, by the number of its name.
    Body(usize),
}

/// The names of the properties that a filter asks for, numbered.
#[derive(Clone, Debug, Default)]
struct Names<'f> {
    list: Vec<&'f str>,
    numbers: HashMap<&'f str, usize>,
}

impl<'f> Predicate<'f> {
    /// Prepares a filter.
    #[must_use]
    pub fn new(filter: &'f Filter) -> Self {
        let mut names = Names::default();
        Self { root: Node::new(filter, &mut names), names }
    }

    /// Whether the row is one of those the filter asks for. Adds to `steps` what that cost: a step for each part of the
    /// filter and each property that was looked at, and for every 32 bytes of a text.
    #[must_use]
    pub fn admits(&self, row: &Row<'_>, steps: &mut u64) -> bool {
        let count = self.names.list.len();
        if count > INLINE_NAMES {
            let mut values = vec![None; count];
            self.names.find(row, &mut values, steps);
            return self.root.admits(row, &values, steps);
        }
        let mut values = [None; INLINE_NAMES];
        self.names.find(row, &mut values[..count], steps);
        self.root.admits(row, &values, steps)
    }
}

impl<'f> Names<'f> {
    fn source(&mut self, name: &'f str) -> PropertySource {
        match name {
            "PartitionKey" => PropertySource::PartitionKey,
            "RowKey" => PropertySource::RowKey,
            "Timestamp" => PropertySource::Timestamp,
            _ => {
                let number = *self.numbers.entry(name).or_insert(self.list.len());
                if number == self.list.len() {
                    self.list.push(name);
                }
                PropertySource::Body(number)
            }
        }
    }

    /// Finds the values of all names in one pass over the body.
    fn find<'r>(&self, row: &Row<'r>, values: &mut [Option<ValueRef<'r>>], steps: &mut u64) {
        let mut missing = values.len();
        let mut properties = row.body.raw_properties();
        while missing > 0
            && let Some((name, value)) = properties.next()
        {
            *steps += 1;
            let Some(number) = self.number(name) else { continue };
            // The first one counts, as for a look at one property.
            if let Some(value) = value.decode().filter(|_| values[number].is_none()) {
                *steps += text_steps(value);
                values[number] = Some(value);
                missing -= 1;
            }
        }
    }

    fn number(&self, name: &[u8]) -> Option<usize> {
        if self.list.len() <= INLINE_NAMES {
            return self.list.iter().position(|known| known.as_bytes() == name);
        }
        self.numbers.get(std::str::from_utf8(name).ok()?).copied()
    }
}

impl<'f> Node<'f> {
    fn new(filter: &'f Filter, names: &mut Names<'f>) -> Self {
        let mut all = |parts: &'f [Filter]| parts.iter().map(|part| Self::new(part, names)).collect();
        match filter {
            Filter::And(parts) => Self::And(all(parts)),
            Filter::Or(parts) => Self::Or(all(parts)),
            Filter::Not(inner) => Self::Not(Box::new(Self::new(inner, names))),
            Filter::Compare(comparison) => Self::Compare(names.source(&comparison.property), comparison),
            Filter::Flag(name) => Self::Flag(names.source(name)),
            Filter::Constant(value) => Self::Constant(*value),
        }
    }

    fn admits(&self, row: &Row<'_>, values: &[Option<ValueRef<'_>>], steps: &mut u64) -> bool {
        *steps += 1;
        match self {
            Self::And(parts) => parts.iter().all(|part| part.admits(row, values, steps)),
            Self::Or(parts) => parts.iter().any(|part| part.admits(row, values, steps)),
            Self::Not(inner) => !inner.admits(row, values, steps),
            Self::Compare(source, comparison) => source.value(row, values).is_some_and(|value| {
                *steps += comparison.steps(value);
                comparison.admits(value)
            }),
            Self::Flag(source) => source.value(row, values) == Some(ValueRef::Boolean(true)),
            Self::Constant(value) => *value,
        }
    }
}

impl PropertySource {
    fn value<'r>(self, row: &Row<'r>, values: &[Option<ValueRef<'r>>]) -> Option<ValueRef<'r>> {
        match self {
            Self::PartitionKey => Some(ValueRef::String(row.partition)),
            Self::RowKey => Some(ValueRef::String(row.row)),
            Self::Timestamp => Some(ValueRef::DateTime(row.version)),
            Self::Body(number) => values[number],
        }
    }
}

impl Comparison {
    /// Whether the comparison holds for this value of the property.
    fn admits(&self, value: ValueRef<'_>) -> bool {
        match order(value, &self.literal) {
            Some(order) => self.operator.admits(order),
            // NaN has no order: it is unequal to everything.
            None => self.operator == Operator::Ne,
        }
    }

    /// What comparing texts costs, beyond one step.
    fn steps(&self, value: ValueRef<'_>) -> u64 {
        let bytes = match (value, &self.literal) {
            (ValueRef::String(v), Value::String(l)) => v.len().min(l.len()),
            (ValueRef::Binary(v), Value::Binary(l)) => v.len().min(l.len()),
            _ => 0,
        };
        (bytes / STEP_BYTES) as u64
    }
}

/// What reading a text costs.
fn text_steps(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::String(text) => (text.len() / STEP_BYTES) as u64,
        _ => 0,
    }
}

impl Operator {
    /// Whether the operator holds between two values that compare like this.
    #[must_use]
    pub const fn admits(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
        }
    }
}

/// How a property's value compares with a literal. The literal is widened to the property's type where
/// numbers allow it, never the other way round.
fn order(value: ValueRef<'_>, literal: &Value) -> Option<Ordering> {
    match (value, literal) {
        (ValueRef::String(v), Value::String(l)) => Some(utf16::compare(v, l)),
        (ValueRef::Int32(v), Value::Int32(l)) => Some(v.cmp(l)),
        (ValueRef::Int64(v), Value::Int64(l)) => Some(v.cmp(l)),
        (ValueRef::Int64(v), Value::Int32(l)) => Some(v.cmp(&i64::from(*l))),
        (ValueRef::Double(v), Value::Double(l)) => v.partial_cmp(l),
        (ValueRef::Double(v), Value::Int32(l)) => v.partial_cmp(&f64::from(*l)),
        (ValueRef::Double(v), Value::Int64(l)) => v.partial_cmp(&(*l as f64)),
        (ValueRef::Boolean(v), Value::Boolean(l)) => Some(v.cmp(l)),
        (ValueRef::DateTime(v), Value::DateTime(l)) => Some(v.cmp(l)),
        (ValueRef::Guid(v), Value::Guid(l)) => Some(v.cmp(l)),
        (ValueRef::Binary(v), Value::Binary(l)) => Some(v.cmp(l.as_slice())),
        _ => Some(Ordering::Less),
    }
}
