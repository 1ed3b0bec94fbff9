//! Parses a `$filter` text by recursive descent.
//!
//! ```text
//! or      = and ("or" and)*
//! and     = unary ("and" unary)*
//! unary   = "not" unary | operand (("eq"|"ne"|"gt"|"ge"|"lt"|"le") operand)?
//! operand = property | literal | "(" or ")"
//! ```

use super::lexer::{Lexer, Token};
use super::{Comparison, Filter, FilterError, Operator};
use crate::{EdmType, Value, limits};

pub(super) fn parse(text: &str) -> Result<Filter, FilterError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, depth: 0 };
    let operand = parser.or()?;
    if parser.token != Token::End {
        return Err(parser.lexer.syntax_error());
    }
    operand.into_filter()
}

/// An operand before its context decides whether it is allowed there.
enum Operand {
    Property(String),
    Literal(Value),
    Filter(Filter),
}

impl Operand {
    /// The type, if it is known before there is a row: the keys and Timestamp are declared, other properties are not.
    fn edm_type(&self) -> Option<EdmType> {
        match self {
            Self::Property(name) => match name.as_str() {
                "PartitionKey" | "RowKey" => Some(EdmType::String),
                "Timestamp" => Some(EdmType::DateTime),
                _ => None,
            },
            Self::Literal(value) => Some(value.as_ref().edm_type()),
            Self::Filter(_) => Some(EdmType::Boolean),
        }
    }

    fn may_be_boolean(&self) -> bool {
        self.edm_type().is_none_or(|edm_type| edm_type == EdmType::Boolean)
    }

    fn into_filter(self) -> Result<Filter, FilterError> {
        match self {
            Self::Filter(filter) => Ok(filter),
            Self::Property(name) if matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp") => {
                Err(FilterError::NotBoolean)
            }
            Self::Property(name) => Ok(Filter::Flag(name)),
            Self::Literal(Value::Boolean(value)) => Ok(Filter::Constant(value)),
            Self::Literal(_) => Err(FilterError::NotBoolean),
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Operand, FilterError> {
        self.joined(
            ("or", "Or"),
            Self::and,
            |filter| match filter {
                Filter::Or(parts) => parts,
                other => vec![other],
            },
            Filter::Or,
        )
    }

    fn and(&mut self) -> Result<Operand, FilterError> {
        self.joined(
            ("and", "And"),
            Self::unary,
            |filter| match filter {
                Filter::And(parts) => parts,
                other => vec![other],
            },
            Filter::And,
        )
    }

    /// One or more parts with a word between them, flattened into one node.
    fn joined(
        &mut self,
        (word, kind): (&str, &'static str),
        part: fn(&mut Self) -> Result<Operand, FilterError>,
        flatten: fn(Filter) -> Vec<Filter>,
        node: fn(Vec<Filter>) -> Filter,
    ) -> Result<Operand, FilterError> {
        let first = part(self)?;
        if self.token != Token::Word(word) {
            return Ok(first);
        }
        let mut first = Some(first);
        let mut parts = Vec::new();
        while self.token == Token::Word(word) {
            self.advance()?;
            let next = part(self)?;
            let is_fitting = first.as_ref().is_none_or(Operand::may_be_boolean) && next.may_be_boolean();
            if !is_fitting {
                let left = first.map_or(Some(EdmType::Boolean), |first| first.edm_type());
                return Err(mismatch(left, next.edm_type(), kind));
            }
            if let Some(first) = first.take() {
                parts = flatten(first.into_filter()?);
            }
            parts.extend(flatten(next.into_filter()?));
        }
        Ok(Operand::Filter(node(parts)))
    }

    fn unary(&mut self) -> Result<Operand, FilterError> {
        if self.token == Token::Word("not") {
            self.advance()?;
            self.deeper()?;
            let inner = self.unary()?;
            if let Some(edm_type) = inner.edm_type().filter(|_| !inner.may_be_boolean()) {
                return Err(FilterError::NotOfType(edm_type.name()));
            }
            let inner = inner.into_filter()?;
            self.depth -= 1;
            return Ok(Operand::Filter(Filter::Not(Box::new(inner))));
        }
        let left = self.operand()?;
        let Token::Word(word) = self.token else { return Ok(left) };
        if matches!(word, "add" | "sub" | "mul" | "div" | "mod" | "in" | "has") {
            return Err(FilterError::NotImplemented);
        }
        let Some(operator) = Operator::from_name(word) else { return Ok(left) };
        self.advance()?;
        compare(left, operator, self.operand()?)
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        match self.token.clone() {
            Token::Open => self.parenthesised(),
            Token::Literal(value) => {
                self.advance()?;
                Ok(Operand::Literal(value))
            }
            Token::Word("true") => self.constant(true),
            Token::Word("false") => self.constant(false),
            Token::Word("null") => Err(FilterError::Literal),
            Token::Word(word) if is_keyword(word) => Err(self.lexer.syntax_error()),
            Token::Word(name) => {
                self.advance()?;
                match self.token {
                    // A call: the grammar has functions, the service offers none.
                    Token::Open => Err(FilterError::NotImplemented),
                    _ => Ok(Operand::Property(name.to_owned())),
                }
            }
            Token::Close | Token::Comma | Token::End => Err(self.lexer.syntax_error()),
        }
    }

    fn parenthesised(&mut self) -> Result<Operand, FilterError> {
        self.deeper()?;
        self.advance()?;
        let inner = self.or()?;
        if self.token != Token::Close {
            return Err(self.lexer.syntax_error());
        }
        self.advance()?;
        self.depth -= 1;
        Ok(inner)
    }

    fn constant(&mut self, value: bool) -> Result<Operand, FilterError> {
        self.advance()?;
        Ok(Operand::Literal(Value::Boolean(value)))
    }

    fn deeper(&mut self) -> Result<(), FilterError> {
        self.depth += 1;
        if self.depth > limits::FILTER_DEPTH_MAX { Err(self.lexer.syntax_error()) } else { Ok(()) }
    }

    fn advance(&mut self) -> Result<(), FilterError> {
        self.token = self.lexer.next()?;
        Ok(())
    }
}

fn compare(left: Operand, operator: Operator, right: Operand) -> Result<Operand, FilterError> {
    let types = (left.edm_type(), right.edm_type());
    let is_of_property = matches!(left, Operand::Property(_)) != matches!(right, Operand::Property(_));
    if let (Some(one), Some(other)) = types
        && is_of_property
        && one != other
    {
        return Err(mismatch(types.0, types.1, operator.kind()));
    }
    let (property, operator, literal) = match (left, right) {
        (Operand::Property(property), Operand::Literal(literal)) => (property, operator, literal),
        (Operand::Literal(literal), Operand::Property(property)) => (property, operator.swapped(), literal),
        _ => return Err(FilterError::NotImplemented),
    };
    Ok(Operand::Filter(Filter::Compare(Comparison { property, operator, literal })))
}

fn mismatch(left: Option<EdmType>, right: Option<EdmType>, operator: &'static str) -> FilterError {
    let name = |edm_type: Option<EdmType>| edm_type.map_or("", EdmType::name);
    FilterError::Types { left: name(left), right: name(right), operator }
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "and" | "or" | "not") || Operator::from_name(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, FilterError> {
        Filter::parse(text).map(|filter| filter.to_string())
    }

    #[test]
    fn q6_operators_bind_as_the_service_binds_them() {
        for (text, out) in [
            (
                "PartitionKey eq 'foo' or RowKey eq 'bar' and X eq 'y'",
                "PartitionKey eq 'foo' or (RowKey eq 'bar' and X eq 'y')",
            ),
            ("not A eq 1 and B", "not (A eq 1) and B"),
            ("not(A eq 1)", "not (A eq 1)"),
            ("((A  eq 1))and(B ne 2)", "A eq 1 and B ne 2"),
            ("(A eq 1 and B eq 2) and C eq 3", "A eq 1 and B eq 2 and C eq 3"),
            ("IsActive", "IsActive"),
            ("true or A eq true", "true or A eq true"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn q6_every_type_has_its_literal() {
        for (text, out) in [
            ("A eq 'it''s'", "A eq 'it''s'"),
            ("A eq -5", "A eq -5"),
            ("A eq 9223372036854775807L", "A eq 9223372036854775807L"),
            ("A eq 5l", "A eq 5L"),
            ("A eq 1e10", "A eq 10000000000.0"),
            ("A eq 5.0D", "A eq 5.0"),
            ("A eq -INF", "A eq -INF"),
            ("A eq datetime'2008-07-10T00:00:00.000Z'", "A eq datetime'2008-07-10T00:00:00Z'"),
            ("A eq guid'A455C695-df98-5678-aaaa-81d3367e5a34'", "A eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'"),
            ("A eq X'62696E'", "A eq X'62696e'"),
            ("A eq binary'00ff'", "A eq X'00ff'"),
            ("3 lt A", "A gt 3"),
            ("'x' eq PartitionKey", "PartitionKey eq 'x'"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn syntax_errors_name_the_place() {
        for (text, position) in [
            ("aaa bbb ccc", 7),
            ("A eq", 4),
            ("A eq 'x", 7),
            ("(A eq 1", 7),
            ("A eq 1)", 7),
            ("and", 3),
            ("A ** 1", 2),
            ("A eq datetimex'2008'", 20),
            ("A eq 1x", 7),
            ("", 0),
        ] {
            assert_eq!(shown(text), Err(FilterError::Syntax { position }), "{text}");
        }
    }

    #[test]
    fn what_the_service_does_not_offer_is_told_apart() {
        for text in ["startswith(A,'x')", "A eq B", "1 eq 2", "A add 1 eq 2", "(A eq 1) eq true"] {
            assert_eq!(shown(text), Err(FilterError::NotImplemented), "{text}");
        }
        for text in ["1", "'x'", "PartitionKey", "(Timestamp)"] {
            assert_eq!(shown(text), Err(FilterError::NotBoolean), "{text}");
        }
        for text in [
            "A eq null",
            "A eq 4294967296",
            "A eq 99999999999999999999L",
            "A eq datetime'1600-01-01'",
            "A eq guid'x'",
            "A eq X'f'",
            "A eq 1e999",
        ] {
            assert_eq!(shown(text), Err(FilterError::Literal), "{text}");
        }
    }

    #[test]
    fn q6_types_that_are_known_must_fit() {
        let (text, time, number, flag) = ("Edm.String", "Edm.DateTime", "Edm.Int32", "Edm.Boolean");
        for (filter, left, right, operator) in [
            ("(PartitionKey ) and (RowKey ge 'x')", text, flag, "And"),
            ("A eq 1 and 2", flag, number, "And"),
            ("A eq 1 and B eq 2 and Timestamp", flag, time, "And"),
            ("A or RowKey", "", text, "Or"),
            ("PartitionKey eq 5", text, number, "Equal"),
            ("5 lt RowKey", number, text, "LessThan"),
            ("Timestamp ge '2020-01-01'", time, text, "GreaterThanOrEqual"),
            ("Timestamp ne true", time, flag, "NotEqual"),
        ] {
            assert_eq!(shown(filter), Err(FilterError::Types { left, right, operator }), "{filter}");
        }
        assert_eq!(shown("not 1"), Err(FilterError::NotOfType(number)));
        assert_eq!(shown("not (RowKey)"), Err(FilterError::NotOfType(text)));
        for filter in ["A and B", "not A", "A eq 1 and B eq 'x'", "Timestamp lt datetime'2020-01-01T00:00:00Z' or true"]
        {
            assert!(shown(filter).is_ok(), "{filter}");
        }
    }

    #[test]
    fn the_length_is_bounded() {
        let long = |bytes: usize| format!("A eq '{}'", "x".repeat(bytes - 7));
        assert!(Filter::parse(&long(limits::FILTER_BYTES_MAX)).is_ok());
        assert_eq!(Filter::parse(&long(limits::FILTER_BYTES_MAX + 1)), Err(FilterError::TooLong));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}A{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Filter::parse(&nested(100)).is_ok());
        assert!(matches!(Filter::parse(&nested(101)), Err(FilterError::Syntax { .. })));
        assert!(matches!(Filter::parse(&nested(100_000)), Err(FilterError::Syntax { .. })));
        assert!(matches!(Filter::parse(&("not ".repeat(50_000) + "A")), Err(FilterError::Syntax { .. })));
    }
}
