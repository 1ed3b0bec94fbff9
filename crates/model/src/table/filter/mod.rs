//! `$filter`: the expression, its parser and its meaning for one row.
//!
//! The planner in the engine turns an expression into key ranges and what remains of it.

mod evaluate;
mod lexer;
mod parser;
mod predicate;
mod shape;

use crate::{Value, limits};
use std::fmt;

pub use evaluate::Row;
pub use predicate::Predicate;
pub use shape::SHAPE_BYTES_MAX;

/// A filter: always an expression whose value is true or false.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of these hold. Never nested directly in another `And`.
    And(Vec<Self>),
    /// One of these holds. Never nested directly in another `Or`.
    Or(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// A property compared with a literal.
    Compare(Comparison),
    /// A Boolean property by itself.
    Flag(String),
    /// `true` or `false`.
    Constant(bool),
}

/// A property compared with a literal, the property on the left.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The property's name.
    pub property: String,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with.
    pub literal: Value,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the protocol")]
pub enum Operator {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

/// Why a text is not a valid filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text does not follow the grammar; the position is where reading stopped.
    #[error("syntax error at position {position}")]
    Syntax {
        /// Characters read.
        position: usize,
    },
    /// The expression is a number, a string and so on.
    #[error("expected an expression that is true or false")]
    NotBoolean,
    /// Operands whose types do not go together, by the names of the types and of the operator. Only the keys and Timestamp
    /// have a type of their own; another property is of any type.
    #[error("expected operands of fitting types, not {left} {operator} {right}")]
    Types {
        /// The type on the left; empty for a property of any type.
        left: &'static str,
        /// The type on the right.
        right: &'static str,
        /// The operator, as the service names it.
        operator: &'static str,
    },
    /// An operand of `not` that is not Boolean, by its type.
    #[error("expected a Boolean operand of not, not {0}")]
    NotOfType(&'static str),
    /// A literal that has no meaning here: `null`, or a value out of its type's range.
    #[error("expected a literal of a type that properties have")]
    Literal,
    /// The text is longer than any URL.
    #[error("expected at most {} bytes", limits::FILTER_BYTES_MAX)]
    TooLong,
    /// Functions, arithmetic, and comparisons of two properties or two literals.
    #[error("expected a property compared with a literal")]
    NotImplemented,
}

impl Filter {
    /// Reads a `$filter` text.
    ///
    /// # Errors
    /// Syntax errors, and constructs that the service does not offer.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        if text.len() > limits::FILTER_BYTES_MAX {
            return Err(FilterError::TooLong);
        }
        parser::parse(text)
    }

    /// The conjunction of filters; of none, what always holds.
    #[must_use]
    pub fn all(mut parts: Vec<Self>) -> Self {
        match parts.len() {
            0 => Self::Constant(true),
            1 => parts.remove(0),
            _ => Self::And(parts),
        }
    }
}

impl Operator {
    /// The operator with its sides swapped: `3 lt a` is `a gt 3`.
    #[must_use]
    pub const fn swapped(self) -> Self {
        match self {
            Self::Eq => Self::Eq,
            Self::Ne => Self::Ne,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Lt => "lt",
            Self::Le => "le",
        }
    }

    /// The operator's name in messages of the service.
    const fn kind(self) -> &'static str {
        match self {
            Self::Eq => "Equal",
            Self::Ne => "NotEqual",
            Self::Gt => "GreaterThan",
            Self::Ge => "GreaterThanOrEqual",
            Self::Lt => "LessThan",
            Self::Le => "LessThanOrEqual",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Eq, Self::Ne, Self::Gt, Self::Ge, Self::Lt, Self::Le].into_iter().find(|op| op.name() == name)
    }
}

impl fmt::Display for Filter {
    /// Writes a text that parses to an equal filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, parts: &[Self], word: &str| {
            parts.iter().enumerate().try_for_each(|(i, part)| {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                match part {
                    Self::And(_) | Self::Or(_) => write!(f, "({part})"),
                    _ => write!(f, "{part}"),
                }
            })
        };
        match self {
            Self::And(parts) => join(f, parts, "and"),
            Self::Or(parts) => join(f, parts, "or"),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::Compare(Comparison { property, operator, literal }) => {
                write!(f, "{property} {} ", operator.name())?;
                write_literal(f, literal)
            }
            Self::Flag(property) => f.write_str(property),
            Self::Constant(value) => write!(f, "{value}"),
        }
    }
}

fn write_literal(f: &mut fmt::Formatter<'_>, literal: &Value) -> fmt::Result {
    match literal {
        Value::String(v) => write!(f, "'{}'", v.replace('\'', "''")),
        Value::Int32(v) => write!(f, "{v}"),
        Value::Int64(v) => write!(f, "{v}L"),
        Value::Double(v) if v.is_nan() => f.write_str("NaN"),
        Value::Double(v) if v.is_infinite() => f.write_str(if *v > 0.0 { "INF" } else { "-INF" }),
        Value::Double(v) => write!(f, "{v:?}"),
        Value::Boolean(v) => write!(f, "{v}"),
        Value::DateTime(v) => write!(f, "datetime'{v}'"),
        Value::Guid(v) => write!(f, "guid'{v}'"),
        Value::Binary(v) => {
            f.write_str("X'")?;
            v.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("'")
        }
    }
}
