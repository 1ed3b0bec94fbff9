//! Splits a `$filter` text into tokens. The parser comes next.

use super::FilterError;
use crate::{Guid, Timestamp, Value};

/// A piece of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name: a property, a keyword, or a function.
    Word(&'a str),
    /// A literal of a property's type.
    Literal(Value),
    Open,
    Close,
    Comma,
    End,
}

/// Reads tokens from the front of a text.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// An error that names the place reached so far, in characters.
    pub(super) fn syntax_error(&self) -> FilterError {
        FilterError::Syntax { position: self.text[..self.at].chars().count() }
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, FilterError> {
        self.skip_while(char::is_whitespace);
        let Some(first) = self.rest().chars().next() else { return Ok(Token::End) };
        match first {
            '(' => Ok(self.symbol(Token::Open)),
            ')' => Ok(self.symbol(Token::Close)),
            ',' => Ok(self.symbol(Token::Comma)),
            '\'' => self.quoted().map(|text| Token::Literal(Value::String(text))),
            '-' | '0'..='9' | '.' => self.number().map(Token::Literal),
            _ if first == '_' || first.is_alphabetic() => self.word(),
            _ => Err(self.syntax_error()),
        }
    }

    fn symbol(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    /// A word, or a literal that a word introduces: `datetime'…'`.
    fn word(&mut self) -> Result<Token<'a>, FilterError> {
        let word = self.skip_while(|c| c == '_' || c.is_alphanumeric());
        if !self.rest().starts_with('\'') {
            return Ok(match word {
                "NaN" => Token::Literal(Value::Double(f64::NAN)),
                "INF" => Token::Literal(Value::Double(f64::INFINITY)),
                _ => Token::Word(word),
            });
        }
        let text = self.quoted()?;
        let literal = match word {
            "datetime" => Timestamp::parse(&text).ok().map(Value::DateTime),
            "guid" => Guid::parse(&text).map(Value::Guid),
            "X" | "x" | "binary" => binary(&text).map(Value::Binary),
            _ => return Err(self.syntax_error()),
        };
        literal.map(Token::Literal).ok_or(FilterError::Literal)
    }

    /// A text in single quotes, where two quotes stand for one.
    fn quoted(&mut self) -> Result<String, FilterError> {
        let mut text = String::new();
        self.at += 1;
        loop {
            let Some(end) = self.rest().find('\'') else {
                self.at = self.text.len();
                return Err(self.syntax_error());
            };
            text.push_str(&self.rest()[..end]);
            self.at += end + 1;
            if !self.rest().starts_with('\'') {
                return Ok(text);
            }
            text.push('\'');
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Value, FilterError> {
        let start = self.at;
        self.at += usize::from(self.rest().starts_with('-'));
        if self.rest().starts_with("INF") {
            self.at += 3;
            return Ok(Value::Double(f64::NEG_INFINITY));
        }
        self.skip_while(|c| c.is_ascii_digit() || c == '.');
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            self.at += usize::from(self.rest().starts_with(['+', '-']));
            self.skip_while(|c| c.is_ascii_digit());
        }
        let digits = &self.text[start..self.at];
        let suffix = self.skip_while(|c| c == '_' || c.is_alphanumeric());
        let is_whole = !digits.contains(['.', 'e', 'E']);
        match suffix {
            "" if is_whole => digits.parse().map(Value::Int32).map_err(|_| self.number_error(digits)),
            "L" | "l" if is_whole => digits.parse().map(Value::Int64).map_err(|_| self.number_error(digits)),
            "" | "D" | "d" => match digits.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Value::Double(value)),
                _ => Err(self.number_error(digits)),
            },
            _ => Err(self.syntax_error()),
        }
    }

    /// Digits that are not a number of the type are out of range; anything else is malformed.
    fn number_error(&self, digits: &str) -> FilterError {
        match digits.parse::<f64>() {
            Ok(_) => FilterError::Literal,
            Err(_) => self.syntax_error(),
        }
    }

    fn skip_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

fn binary(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let hex = |digit: u8| char::from(digit).to_digit(16);
    text.as_bytes().chunks_exact(2).map(|pair| Some((hex(pair[0])? << 4 | hex(pair[1])?) as u8)).collect()
}
