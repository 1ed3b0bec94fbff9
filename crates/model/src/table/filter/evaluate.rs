//! What a filter says about one row; `predicate.rs` has the rules.

use super::{Filter, Predicate};
use crate::{EntityBody, Timestamp, ValueRef};

/// A stored row, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// PartitionKey.
    pub partition: &'a str,
    /// RowKey.
    pub row: &'a str,
    /// The version, which is the Timestamp.
    pub version: Timestamp,
    /// The other properties.
    pub body: EntityBody<'a>,
}

impl<'a> Row<'a> {
    /// The value of a property, the three of the system included.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        match name {
            "PartitionKey" => Some(ValueRef::String(self.partition)),
            "RowKey" => Some(ValueRef::String(self.row)),
            "Timestamp" => Some(ValueRef::DateTime(self.version)),
            _ => self.body.get(name),
        }
    }
}

impl Filter {
    /// Whether the row is one of those the filter asks for. For many rows, prepare a [`Predicate`].
    #[must_use]
    pub fn admits(&self, row: &Row<'_>) -> bool {
        Predicate::new(self).admits(row, &mut 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BodyBuilder, Guid};

    fn admits(text: &str) -> bool {
        let mut body = BodyBuilder::new();
        for (name, value) in [
            ("Str", ValueRef::String("abc")),
            ("I32", ValueRef::Int32(5)),
            ("I64", ValueRef::Int64(5)),
            ("Dbl", ValueRef::Double(5.0)),
            ("Yes", ValueRef::Boolean(true)),
            ("No", ValueRef::Boolean(false)),
            ("Nan", ValueRef::Double(f64::NAN)),
            ("Time", ValueRef::DateTime(Timestamp::parse("2008-07-10").expect("a time"))),
            ("Bin", ValueRef::Binary(b"bin")),
            ("Gid", ValueRef::Guid(Guid([7; 16]))),
        ] {
            body.push(name, value).expect("a property");
        }
        let bytes = body.into_bytes();
        let version = Timestamp::parse("2020-01-01").expect("a time");
        let row = Row { partition: "p", row: "r", version, body: EntityBody::from_trusted(&bytes) };
        Filter::parse(text).expect(text).admits(&row)
    }

    #[test]
    fn q6_typed_comparisons() {
        for text in [
            "Str eq 'abc'",
            "Str lt 'abd'",
            "Str gt 'ABC'",
            "I32 ge 5",
            "I32 ne 4",
            "I64 eq 5",
            "I64 eq 5L",
            "Dbl eq 5",
            "Dbl eq 5L",
            "Dbl eq 5.0",
            "Yes",
            "Yes eq true",
            "No lt true",
            "not No",
            "Time eq datetime'2008-07-10T00:00:00Z'",
            "Bin eq X'62696e'",
            "Bin gt X'62'",
            "Gid eq guid'07070707-0707-0707-0707-070707070707'",
            "PartitionKey eq 'p'",
            "RowKey lt 's'",
            "Timestamp lt datetime'2021-01-01T00:00:00Z'",
            "5 eq I32",
            "4 lt I32",
            "Nan ne 1.0",
        ] {
            assert!(admits(text), "{text}");
        }
        for text in [
            "Str eq 'ABC'",
            "No",
            "I32 gt 5",
            "Nan eq NaN",
            "Nan lt 1.0",
            "Timestamp gt datetime'2021-01-01T00:00:00Z'",
            "Str",
            "I32",
        ] {
            assert!(!admits(text), "{text}");
        }
    }

    #[test]
    fn a_mismatched_type_counts_as_less_than_the_literal() {
        for property_and_literal in [
            "Str {} 1",
            "I32 {} 5L",
            "I32 {} 5.0",
            "I64 {} 5.0",
            "I32 {} '5'",
            "Yes {} 'true'",
            "Bin {} 'bin'",
            "Time {} 1",
        ] {
            for (operator, holds) in
                [("eq", false), ("ne", true), ("lt", true), ("le", true), ("gt", false), ("ge", false)]
            {
                let text = property_and_literal.replace("{}", operator);
                assert_eq!(admits(&text), holds, "{text}");
            }
        }
    }

    #[test]
    fn a_missing_property_makes_every_comparison_false() {
        for operator in ["eq", "ne", "lt", "le", "gt", "ge"] {
            assert!(!admits(&format!("Gone {operator} 'x'")), "{operator}");
            assert!(admits(&format!("not (Gone {operator} 'x')")), "not {operator}");
        }
        assert!(!admits("Gone"));
    }
}
