//! The shape of a filter: its text without its literals, to log and to group queries by.
//!
//! Two filters that differ in literals only have the same shape, so nothing of a literal can be read from one.

use super::{Comparison, Filter};
use std::ops::Range;

impl Filter {
    /// The filter without its literals: `PartitionKey eq ? and Age gt ?`.
    ///
    /// Parts of an `and` or `or` that have the same shape are written once, followed by `…`, so that lists of keys have
    /// one shape whatever their length. The text has at most [`SHAPE_BYTES_MAX`] bytes; one that was cut ends with `…`.
    #[must_use]
    pub fn shape(&self) -> String {
        let mut writer = ShapeWriter::default();
        writer.filter(self);
        if writer.is_full {
            writer.text.push(CUT);
        }
        writer.text
    }
}

#[derive(Default)]
struct ShapeWriter {
    text: String,
    /// Whether something found no room. Nothing is written from then on.
    is_full: bool,
}

impl ShapeWriter {
    fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::And(parts) => self.joined(parts, " and "),
            Filter::Or(parts) => self.joined(parts, " or "),
            Filter::Not(inner) => {
                self.push("not (");
                self.filter(inner);
                self.push(")");
            }
            Filter::Compare(Comparison { property, operator, literal: _ }) => {
                for piece in [property, " ", operator.name(), " ?"] {
                    self.push(piece);
                }
            }
            Filter::Flag(property) => self.push(property),
            Filter::Constant(_) => self.push("?"),
        }
    }

    fn joined(&mut self, parts: &[Filter], word: &str) {
        let mut shapes: Vec<Range<usize>> = Vec::new();
        let mut is_repeated = false;
        for part in parts {
            let before = self.text.len();
            if !shapes.is_empty() {
                self.push(word);
            }
            let start = self.text.len();
            match part {
                Filter::And(_) | Filter::Or(_) => {
                    self.push("(");
                    self.filter(part);
                    self.push(")");
                }
                _ => self.filter(part),
            }
            if self.is_full {
                return;
            }
            let shape = start..self.text.len();
            if shapes.iter().any(|known| self.text[known.clone()] == self.text[shape.clone()]) {
                self.text.truncate(before);
                is_repeated = true;
            } else if shapes.len() == PARTS_MAX {
                self.text.truncate(start);
                self.is_full = true;
                return;
            } else {
                shapes.push(shape);
            }
        }
        if is_repeated {
            self.push(word);
            self.push("…");
        }
    }

    /// Adds as much of a text as there is room for.
    fn push(&mut self, text: &str) {
        if self.is_full {
            return;
        }
        let room = SHAPE_BYTES_MAX - CUT.len_utf8() - self.text.len();
        self.is_full = text.len() > room;
        let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        self.text.push_str(&text[..end.unwrap_or_default()]);
    }
}

/// Bytes of a shape at most.
pub const SHAPE_BYTES_MAX: usize = 512;
/// Different parts of one `and` or `or` that a shape shows. It bounds the work for a filter of many parts.
const PARTS_MAX: usize = 32;
/// The end of a shape that was cut.
const CUT: char = '…';

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Operator;
    use crate::{Guid, Timestamp, Value, limits};
    use proptest::prelude::*;

    fn shape(text: &str) -> String {
        Filter::parse(text).expect(text).shape()
    }

    #[test]
    fn a_shape_has_names_and_operators_and_no_literals() {
        for (filter, expected) in [
            ("PartitionKey eq 'secret' and Age gt 3", "PartitionKey eq ? and Age gt ?"),
            ("3 lt Age", "Age gt ?"),
            ("IsActive and not (Name eq 'it''s')", "IsActive and not (Name eq ?)"),
            ("true or A eq false", "? or A eq ?"),
            ("A eq NaN or B le -INF", "A eq ? or B le ?"),
            ("T ge datetime'2020-01-01T00:00:00Z' and B eq X'00ff'", "T ge ? and B eq ?"),
            ("A eq 1 and (B eq 2 or C eq 3)", "A eq ? and (B eq ? or C eq ?)"),
        ] {
            assert_eq!(shape(filter), expected, "{filter}");
        }
    }

    #[test]
    fn lists_have_one_shape_whatever_their_length() {
        let rows = |count: usize| (0..count).map(|row| format!("RowKey eq '{row}'")).collect::<Vec<_>>().join(" or ");
        assert_eq!(shape(&rows(1)), "RowKey eq ?");
        assert_eq!(shape(&rows(2)), "RowKey eq ? or …");
        assert_eq!(shape(&rows(5000)), "RowKey eq ? or …");
        let pairs = "(PartitionKey eq 'a' and RowKey eq 'b') or (PartitionKey eq 'c' and RowKey eq 'd') or A eq 1";
        assert_eq!(shape(pairs), "(PartitionKey eq ? and RowKey eq ?) or A eq ? or …");
        assert_eq!(shape("A ne 1 and A ne 2 and A ne 3"), "A ne ? and …");
        let nested = format!("PartitionKey eq 'p' and ({})", rows(200));
        assert_eq!(shape(&nested), "PartitionKey eq ? and (RowKey eq ? or …)");
    }

    #[test]
    fn a_long_shape_is_cut() {
        let name = "ü".repeat(limits::FILTER_BYTES_MAX / 4);
        for filter in [
            format!("{name} eq 1"),
            "not ".repeat(limits::FILTER_DEPTH_MAX) + "A",
            (0..20_000).map(|number| format!("A{number}")).collect::<Vec<_>>().join(" or "),
            (0..=PARTS_MAX).map(|number| format!("A{number}")).collect::<Vec<_>>().join(" or "),
        ] {
            let shape = shape(&filter);
            assert!(shape.len() <= SHAPE_BYTES_MAX, "{} bytes", shape.len());
            assert!(shape.ends_with(CUT), "{shape}");
        }
        assert!(shape(&format!("{name} eq 1")).starts_with("üüü"));
    }

    /// A literal of any type.
    fn literal() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<String>().prop_map(Value::String),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_map(Value::Double),
            any::<bool>().prop_map(Value::Boolean),
            any::<u32>().prop_map(|second| Value::DateTime(Timestamp::from_ticks(u64::from(second) * 10_000_000))),
            any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
            any::<Vec<u8>>().prop_map(Value::Binary),
        ]
    }

    fn operator() -> impl Strategy<Value = Operator> {
        prop::sample::select(vec![Operator::Eq, Operator::Ne, Operator::Gt, Operator::Ge, Operator::Lt, Operator::Le])
    }

    /// Two filters that differ in literals only.
    fn pair() -> impl Strategy<Value = (Filter, Filter)> {
        let name = || prop_oneof!["[A-E]", "[a-zü_]{1,300}"];
        let leaf = prop_oneof![
            (name(), operator(), literal(), literal()).prop_map(|(property, operator, one, other)| {
                let compare = |literal| Filter::Compare(Comparison { property: property.clone(), operator, literal });
                (compare(one), compare(other))
            }),
            name().prop_map(|name| (Filter::Flag(name.clone()), Filter::Flag(name))),
            any::<(bool, bool)>().prop_map(|(one, other)| (Filter::Constant(one), Filter::Constant(other))),
        ];
        leaf.prop_recursive(6, 80, 8, |part| {
            prop_oneof![
                prop::collection::vec(part.clone(), 2..8).prop_map(|parts| {
                    let (one, other) = parts.into_iter().unzip();
                    (Filter::And(one), Filter::And(other))
                }),
                prop::collection::vec(part.clone(), 2..8).prop_map(|parts| {
                    let (one, other) = parts.into_iter().unzip();
                    (Filter::Or(one), Filter::Or(other))
                }),
                part.prop_map(|(one, other)| (Filter::Not(Box::new(one)), Filter::Not(Box::new(other)))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// So no part of a literal is in a shape, nor its type or length.
        #[test]
        fn filters_that_differ_in_literals_only_have_the_same_shape((one, other) in pair()) {
            prop_assert_eq!(one.shape(), other.shape());
        }

        #[test]
        fn a_shape_is_bounded_and_one_line((filter, _) in pair()) {
            let shape = filter.shape();
            prop_assert!(shape.len() <= SHAPE_BYTES_MAX);
            prop_assert!(!shape.is_empty() && !shape.contains(char::is_control));
        }

        #[test]
        fn a_literal_repeated_in_a_list_does_not_change_the_shape(
            name in "[A-E]", operator in operator(), literals in prop::collection::vec(literal(), 2..20),
        ) {
            let part = |literal: &Value| {
                Filter::Compare(Comparison { property: name.clone(), operator, literal: literal.clone() })
            };
            let list = Filter::Or(literals.iter().map(part).collect());
            let two = Filter::Or(vec![part(&Value::Int32(1)), part(&Value::Int32(2))]);
            prop_assert_eq!(list.shape(), two.shape());
        }
    }
}
