//! The options of a query string: `$filter`, `$select`, `$top` and the continuation.

use super::continuation::decode_token;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::uri::{UriError, query_pairs};
use larimar_model::{Filter, FilterError, limits};

/// What a query asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryOptions {
    /// `$filter`, if not empty.
    pub filter: Option<Filter>,
    /// `$select`.
    pub select: Select,
    /// `$top`: entities of a page at most.
    pub top: Option<usize>,
    /// `NextPartitionKey` and `NextRowKey`, decoded.
    pub next: Option<(String, String)>,
    /// `NextTableName`, decoded.
    pub next_table: Option<String>,
}

/// The properties that a client wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// All of them.
    #[default]
    All,
    /// These, in this order.
    Names(Vec<String>),
}

/// The query string with the pieces that matter picked out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parsed {
    pub(super) options: QueryOptions,
    pub(super) format: Option<String>,
    pub(super) comp: Option<String>,
    pub(super) restype: Option<String>,
}

impl Parsed {
    pub(super) fn parse(query: &str) -> Result<Self, ErrorReply> {
        let mut parsed = Self::default();
        let (mut next_partition, mut next_row) = (None, None);
        for pair in query_pairs(query) {
            let pair = pair.map_err(malformed)?;
            let value = || pair.value().map_err(malformed);
            match pair.name.as_ref() {
                "$filter" => parsed.options.filter = parse_filter(&value()?)?,
                "$select" => parsed.options.select = Select::parse(&value()?)?,
                "$top" => parsed.options.top = parse_top(&value()?)?,
                "$format" => parsed.format = Some(value()?.into_owned()),
                "NextPartitionKey" => next_partition = Some(decode_token(&value()?)?),
                "NextRowKey" => next_row = Some(decode_token(&value()?)?),
                "NextTableName" => parsed.options.next_table = Some(decode_token(&value()?)?),
                "comp" => parsed.comp = Some(value()?.into_owned()),
                "restype" => parsed.restype = Some(value()?.into_owned()),
                name if name.starts_with('$') => return Err(ErrorReply::new(ErrorCode::NotImplemented)),
                _ => {}
            }
        }
        parsed.options.next = next_partition.map(|partition| (partition, next_row.unwrap_or_default()));
        Ok(parsed)
    }
}

impl Select {
    fn parse(text: &str) -> Result<Self, ErrorReply> {
        let names: Vec<String> = text.split(',').map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned).collect();
        if names.len() > limits::SELECT_NAMES_MAX {
            return Err(ErrorReply::new(ErrorCode::InvalidInput));
        }
        if names.is_empty() || names.iter().any(|name| name == "*") {
            return Ok(Self::All);
        }
        Ok(Self::Names(names))
    }

    /// Whether this property is to be shown.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

fn parse_top(text: &str) -> Result<Option<usize>, ErrorReply> {
    match text.trim().parse::<usize>() {
        Ok(top) if top <= limits::PAGE_ENTITIES_MAX => Ok(Some(top)),
        _ => Err(ErrorReply::new(ErrorCode::InvalidInput)),
    }
}

fn parse_filter(text: &str) -> Result<Option<Filter>, ErrorReply> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    Filter::parse(text).map(Some).map_err(|error| match error {
        FilterError::Syntax { position } => {
            let message = format!("Syntax error at position {position} in '{}'.", shortened(text));
            ErrorReply::with_message(ErrorCode::InvalidInput, message)
        }
        FilterError::NotBoolean => {
            let message = "The $filter expression must evaluate to a single boolean value.";
            ErrorReply::with_message(ErrorCode::InvalidInput, message)
        }
        FilterError::Types { left, right, operator } => {
            let message = format!(
                "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for \
                 operator kind '{operator}'."
            );
            ErrorReply::with_message(ErrorCode::InvalidInput, message)
        }
        FilterError::NotOfType(operand) => {
            let message = format!(
                "A unary operator with an incompatible type was detected. Found operand type '{operand}' for operator \
                 kind 'Not'."
            );
            ErrorReply::with_message(ErrorCode::InvalidInput, message)
        }
        FilterError::Literal | FilterError::TooLong => ErrorReply::new(ErrorCode::InvalidInput),
        FilterError::NotImplemented => ErrorReply::new(ErrorCode::NotImplemented),
    })
}

/// A text short enough to be sent back in a message.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(FILTER_SHOWN_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

fn malformed(_: UriError) -> ErrorReply {
    ErrorReply::with_message(ErrorCode::InvalidInput, "Bad Request - Error in query syntax.")
}

const FILTER_SHOWN_CHARS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Result<QueryOptions, (ErrorCode, u16)> {
        Parsed::parse(query).map(|parsed| parsed.options).map_err(|error| (error.code, error.status))
    }

    #[test]
    fn names_may_be_escaped_and_values_may_have_plus_signs() {
        let parsed =
            Parsed::parse("%24filter=A+eq%20'x'&$top=5&%24select=A,+B&$format=application%2Fjson&timeout=30&sv=1")
                .expect("options");
        assert_eq!(parsed.options.filter.map(|f| f.to_string()).as_deref(), Some("A eq 'x'"));
        assert_eq!(parsed.options.top, Some(5));
        assert_eq!(parsed.options.select, Select::Names(vec!["A".to_owned(), "B".to_owned()]));
        assert_eq!(parsed.format.as_deref(), Some("application/json"));
    }

    #[test]
    fn empty_options_are_ignored() {
        assert_eq!(options("$filter=&$select=&"), Ok(QueryOptions::default()));
    }

    #[test]
    fn q7_top_at_and_past_its_limits() {
        assert_eq!(options("$top=0").map(|o| o.top), Ok(Some(0)));
        assert_eq!(options("$top=1000").map(|o| o.top), Ok(Some(1000)));
        for top in ["1001", "-1", "x", "", "1.5"] {
            assert_eq!(options(&format!("$top={top}")), Err((ErrorCode::InvalidInput, 400)), "{top}");
        }
    }

    #[test]
    fn a_continuation_may_lack_its_row() {
        assert_eq!(options("NextPartitionKey=1!4!YQ--").map(|o| o.next), Ok(Some(("a".to_owned(), String::new()))));
        assert_eq!(
            options("NextPartitionKey=1%214%21YQ--&NextRowKey=").map(|o| o.next),
            Ok(Some(("a".to_owned(), String::new())))
        );
    }

    #[test]
    fn unknown_options_are_not_implemented() {
        for query in ["$orderby=A", "$skip=1", "%24expand=x", "$inlinecount=allpages", "$count=true"] {
            assert_eq!(options(query), Err((ErrorCode::NotImplemented, 501)), "{query}");
        }
    }
}
