//! Filters of queries: text that is well-formed because it is only ever built from well-formed parts.
//!
//! [`crate::Column`] makes the comparisons that filters begin with.

use crate::Value;
use std::fmt::{self, Write as _};
use std::ops::{BitAnd, BitOr, Not};

/// Which entities a query asks for.
///
/// ```
/// use larimar_client::{Column, Filter, keys};
/// let age: Column<i32> = Column::named("Age");
/// let name: Column<String> = Column::named("LastName");
///
/// let filter = keys::partition_key().eq("Sales").and(age.ge(30).or(name.eq("O'Hara")));
/// assert_eq!(filter.as_str(), "PartitionKey eq 'Sales' and (Age ge 30 or LastName eq 'O''Hara')");
///
/// let same = keys::partition_key().eq("Sales") & (age.ge(30) | name.eq("O'Hara"));
/// assert_eq!(filter, same);
///
/// let text = Filter::raw("Age lt 20 or IsIntern").and(!name.eq("Hall"));
/// assert_eq!(text.to_string(), "(Age lt 20 or IsIntern) and not (LastName eq 'Hall')");
/// ```
///
/// A comparison is false for an entity that lacks the property, `ne` included; `not` of it is true then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    text: String,
    form: Form,
}

/// The outermost operation of a filter, which determines where it needs parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// A comparison, or the opposite of something.
    Single,
    And,
    Or,
    /// Text of the caller's.
    Raw,
    Everything,
    Nothing,
}

impl Filter {
    /// A filter from text of the `$filter` language, passed on as it is.
    ///
    /// Its syntax is the caller's to get right, and so is quoting: prefer [`crate::Column`] for values that come from
    /// elsewhere. Text without anything in it is [`Filter::everything`].
    #[must_use]
    pub fn raw(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.trim().is_empty() { Self::everything() } else { Self { text, form: Form::Raw } }
    }

    /// The filter that every entity passes.
    #[must_use]
    pub fn everything() -> Self {
        // Every entity has a PartitionKey, and no text comes before the empty one.
        Self { text: "PartitionKey ge ''".to_owned(), form: Form::Everything }
    }

    /// The filter that no entity passes.
    #[must_use]
    pub fn nothing() -> Self {
        Self { text: "PartitionKey lt ''".to_owned(), form: Form::Nothing }
    }

    /// The entities that pass every one of these filters; of no filters, [`Filter::everything`].
    ///
    /// ```
    /// use larimar_client::{Column, Filter};
    /// let age: Column<i32> = Column::named("Age");
    /// assert_eq!(Filter::all([age.ge(30), age.lt(40), age.ne(35)]).as_str(), "Age ge 30 and Age lt 40 and Age ne 35");
    /// assert_eq!(Filter::all([]), Filter::everything());
    /// ```
    #[must_use]
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Self {
        filters.into_iter().fold(Self::everything(), Self::and)
    }

    /// The entities that pass at least one of these filters; of no filters, [`Filter::nothing`].
    #[must_use]
    pub fn any(filters: impl IntoIterator<Item = Self>) -> Self {
        filters.into_iter().fold(Self::nothing(), Self::or)
    }

    /// The entities that pass this filter and another.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.form, other.form) {
            (Form::Everything, _) | (_, Form::Nothing) => other,
            (_, Form::Everything) | (Form::Nothing, _) => self,
            _ => self.joined("and", Form::And, &other),
        }
    }

    /// The entities that pass this filter or another.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self.form, other.form) {
            (Form::Nothing, _) | (_, Form::Everything) => other,
            (_, Form::Nothing) | (Form::Everything, _) => self,
            _ => self.joined("or", Form::Or, &other),
        }
    }

    /// The entities that do not pass this filter, those that lack the properties it speaks of among them.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "it is implemented, and this saves the import")]
    pub fn not(self) -> Self {
        match self.form {
            Form::Everything => Self::nothing(),
            Form::Nothing => Self::everything(),
            _ => Self { text: format!("not ({})", self.text), form: Form::Single },
        }
    }

    /// The text, for `$filter`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this is [`Filter::everything`], so that a query may go without it.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.form == Form::Everything
    }

    /// A property compared with a literal. The name has been checked.
    pub(crate) fn comparison(name: &str, operator: &str, literal: &Value) -> Self {
        let mut text = String::with_capacity(name.len() + operator.len() + 16);
        text.push_str(name);
        text.push(' ');
        text.push_str(operator);
        text.push(' ');
        write_literal(&mut text, literal);
        Self { text, form: Form::Single }
    }

    /// Two filters with a word between. A part of the same form needs no parentheses: order does not matter in it.
    /// One of the other form gets them even where `and` binds tighter, for the reader's sake.
    fn joined(mut self, word: &str, form: Form, other: &Self) -> Self {
        let is_bare = |part: &Self| part.form == Form::Single || part.form == form;
        if !is_bare(&self) {
            self.text.insert(0, '(');
            self.text.push(')');
        }
        self.text.push(' ');
        self.text.push_str(word);
        if is_bare(other) {
            self.text.push(' ');
            self.text.push_str(&other.text);
        } else {
            self.text.push_str(" (");
            self.text.push_str(&other.text);
            self.text.push(')');
        }
        Self { text: self.text, form }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for Filter {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Filter> for String {
    fn from(filter: Filter) -> Self {
        filter.text
    }
}

impl BitAnd for Filter {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.and(other)
    }
}

impl BitOr for Filter {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self::not(self)
    }
}

fn write_literal(text: &mut String, literal: &Value) {
    let written = match literal {
        Value::String(value) => {
            text.push('\'');
            for (i, part) in value.split('\'').enumerate() {
                text.push_str(if i > 0 { "''" } else { "" });
                text.push_str(part);
            }
            text.push('\'');
            Ok(())
        }
        Value::Int32(value) => write!(text, "{value}"),
        Value::Int64(value) => write!(text, "{value}L"),
        Value::Double(value) if value.is_nan() => write!(text, "NaN"),
        Value::Double(value) if value.is_infinite() => write!(text, "{}INF", if *value < 0.0 { "-" } else { "" }),
        // This form always has a fraction or an exponent, which distinguishes a Double from an Int32.
        Value::Double(value) => write!(text, "{value:?}"),
        Value::Boolean(value) => write!(text, "{value}"),
        Value::DateTime(value) => write!(text, "datetime'{value}'"),
        Value::Guid(value) => write!(text, "guid'{value}'"),
        Value::Binary(bytes) => {
            text.push_str("X'");
            let written = bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
            text.push('\'');
            written
        }
    };
    written.expect("writing to a String does not fail");
}
