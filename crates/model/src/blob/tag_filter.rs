//! Conditions on a blob's tags: the `WHERE` expressions of `x-ms-if-tags` and of Find Blobs by Tags.
//!
//! ```text
//! any     = all { "OR" all }                        only in x-ms-if-tags
//! all     = part { "AND" part }
//! part    = "(" any ")" | key operator value
//! key     = '"' text '"' | word | "@container"      @container only in Find Blobs by Tags
//! operator = "=" | ">" | ">=" | "<" | "<=" | "<>"   <> only in x-ms-if-tags
//! value   = "'" text "'"
//! ```
//! A word has the characters of a tag's key except the space and `=`. Keywords are not case-sensitive; a quote inside a text
//! is doubled. Values compare as text, byte by byte.

use super::tags::Tags;
use crate::limits;

/// A condition on the tags of a blob, as `x-ms-if-tags` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCondition(Node);

/// What Find Blobs by Tags looks for: blobs that satisfy all comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagQuery {
    /// Only blobs of this container (`@container = '…'`).
    pub container: Option<String>,
    /// At least one; none is `<>`.
    pub comparisons: Vec<TagComparison>,
}

/// A comparison of a tag's value with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagComparison {
    /// The tag's key.
    pub key: String,
    /// How they are compared.
    pub operator: TagOperator,
    /// The text.
    pub value: String,
}

/// How a tag's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum TagOperator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagFilterError {
    /// The text is too long.
    #[error("expected an expression of at most {} bytes", limits::TAG_FILTER_BYTES_MAX)]
    TooLong,
    /// There are too many different tags, or comparisons.
    #[error("there can be at most {} unique tags in a query", limits::TAGS_MAX)]
    TooMany,
    /// Parentheses are nested too deeply.
    #[error("expected at most {DEPTH_MAX} levels of parentheses")]
    TooDeep,
    /// The text is not an expression; the number is where, in bytes.
    #[error("error parsing query at or near character position {}: unexpected '{found}'", .at + 1)]
    Syntax {
        /// Where, in bytes from the start.
        at: usize,
        /// What is there.
        found: String,
    },
    /// The operator exists only in `x-ms-if-tags`.
    #[error("expected AND, and no OR or <>")]
    Operator,
    /// A key starts with `@` and is not `@container`, or is not allowed here.
    #[error("unknown column '{0}'")]
    Column(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Any(Vec<Self>),
    All(Vec<Self>),
    Compare(TagComparison),
}

impl TagCondition {
    /// Reads the value of `x-ms-if-tags`.
    ///
    /// # Errors
    /// Names the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, TagFilterError> {
        let node = Parser::new(text)?.whole()?;
        match first_column(&node) {
            Some(column) => Err(TagFilterError::Column(column.to_owned())),
            None => Ok(Self(node)),
        }
    }

    /// Whether a blob with these tags satisfies the condition. A blob without tags satisfies none.
    #[must_use]
    pub fn admits(&self, tags: &Tags) -> bool {
        !tags.is_empty() && self.0.admits(tags)
    }
}

impl TagQuery {
    /// Reads the parameter `where` of Find Blobs by Tags.
    ///
    /// # Errors
    /// Names the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, TagFilterError> {
        let mut query = Self { container: None, comparisons: Vec::new() };
        query.collect(Parser::new(text)?.whole()?)?;
        if query.comparisons.is_empty() {
            // The service wants a tag besides the container.
            return Err(TagFilterError::Syntax { at: text.len(), found: String::new() });
        }
        Ok(query)
    }

    fn collect(&mut self, node: Node) -> Result<(), TagFilterError> {
        match node {
            Node::All(parts) => parts.into_iter().try_for_each(|part| self.collect(part)),
            Node::Any(_) => Err(TagFilterError::Operator),
            Node::Compare(TagComparison { operator: TagOperator::NotEqual, .. }) => Err(TagFilterError::Operator),
            Node::Compare(comparison) if comparison.key == CONTAINER => {
                if comparison.operator != TagOperator::Equal || self.container.is_some() {
                    return Err(TagFilterError::Operator);
                }
                self.container = Some(comparison.value);
                Ok(())
            }
            Node::Compare(comparison) if comparison.key.starts_with('@') => Err(TagFilterError::Column(comparison.key)),
            Node::Compare(comparison) => {
                self.comparisons.push(comparison);
                Ok(())
            }
        }
    }

    /// Whether a blob with these tags satisfies all comparisons.
    #[must_use]
    pub fn admits(&self, tags: &Tags) -> bool {
        self.comparisons.iter().all(|comparison| comparison.admits(tags))
    }
}

impl TagComparison {
    /// Whether the tag of this key compares as wanted; a missing tag equals nothing.
    #[must_use]
    pub fn admits(&self, tags: &Tags) -> bool {
        match tags.get(&self.key) {
            Some(value) => self.operator.holds(value, &self.value),
            None => self.operator == TagOperator::NotEqual,
        }
    }
}

impl TagOperator {
    /// Whether a value compares like this with another.
    #[must_use]
    pub fn holds(self, value: &str, wanted: &str) -> bool {
        match self {
            Self::Equal => value == wanted,
            Self::NotEqual => value != wanted,
            Self::Greater => value > wanted,
            Self::GreaterOrEqual => value >= wanted,
            Self::Less => value < wanted,
            Self::LessOrEqual => value <= wanted,
        }
    }
}

impl Node {
    fn admits(&self, tags: &Tags) -> bool {
        match self {
            Self::Any(parts) => parts.iter().any(|part| part.admits(tags)),
            Self::All(parts) => parts.iter().all(|part| part.admits(tags)),
            Self::Compare(comparison) => comparison.admits(tags),
        }
    }
}

fn first_column(node: &Node) -> Option<&str> {
    match node {
        Node::Any(parts) | Node::All(parts) => parts.iter().find_map(first_column),
        Node::Compare(comparison) => Some(comparison.key.as_str()).filter(|key| key.starts_with('@')),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    comparisons: usize,
    /// The different keys so far.
    keys: Vec<String>,
}

impl<'a> Parser<'a> {
    const fn new(text: &'a str) -> Result<Self, TagFilterError> {
        if text.len() > limits::TAG_FILTER_BYTES_MAX {
            return Err(TagFilterError::TooLong);
        }
        Ok(Self { text, at: 0, depth: 0, comparisons: 0, keys: Vec::new() })
    }

    fn whole(&mut self) -> Result<Node, TagFilterError> {
        let node = self.any()?;
        if self.rest().is_empty() { Ok(node) } else { Err(self.unexpected()) }
    }

    fn any(&mut self) -> Result<Node, TagFilterError> {
        let mut parts = vec![self.all()?];
        while self.keyword("or") {
            parts.push(self.all()?);
        }
        Ok(joined(parts, Node::Any))
    }

    fn all(&mut self) -> Result<Node, TagFilterError> {
        let mut parts = vec![self.part()?];
        while self.keyword("and") {
            parts.push(self.part()?);
        }
        Ok(joined(parts, Node::All))
    }

    fn part(&mut self) -> Result<Node, TagFilterError> {
        if !self.take("(") {
            return self.comparison();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TagFilterError::TooDeep);
        }
        let node = self.any()?;
        self.depth -= 1;
        if self.take(")") { Ok(node) } else { Err(self.unexpected()) }
    }

    fn comparison(&mut self) -> Result<Node, TagFilterError> {
        let key = if self.rest().starts_with('"') { self.quoted('"')? } else { self.word()? };
        let operator = OPERATORS.into_iter().find(|(text, _)| self.take(text));
        let Some((_, operator)) = operator else { return Err(self.unexpected()) };
        if !self.rest().starts_with('\'') {
            return Err(self.unexpected());
        }
        let value = self.quoted('\'')?;
        self.comparisons += 1;
        if key != CONTAINER && !self.keys.contains(&key) {
            self.keys.push(key.clone());
        }
        if self.keys.len() > limits::TAGS_MAX || self.comparisons > COMPARISONS_MAX {
            return Err(TagFilterError::TooMany);
        }
        Ok(Node::Compare(TagComparison { key, operator, value }))
    }

    /// A text between quotes, where two quotes stand for one.
    fn quoted(&mut self, quote: char) -> Result<String, TagFilterError> {
        let mut text = String::new();
        let mut rest = self.rest()[1..].char_indices().peekable();
        while let Some((at, character)) = rest.next() {
            if character != quote {
                text.push(character);
            } else if rest.next_if(|(_, next)| *next == quote).is_some() {
                text.push(quote);
            } else {
                self.at += 1 + at + 1;
                return Ok(text);
            }
        }
        self.at = self.text.len();
        Err(self.unexpected())
    }

    fn word(&mut self) -> Result<String, TagFilterError> {
        let rest = self.rest();
        // What a tag's key may have, except for the characters that end a word.
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '/' | ':' | '_');
        let column = usize::from(rest.starts_with('@'));
        let end = rest[column..].find(|c| !is_key(c)).map_or(rest.len(), |end| column + end);
        if end == column {
            return Err(self.unexpected());
        }
        let word = rest[..end].to_owned();
        self.at += end;
        Ok(word)
    }

    /// What is left, from the next character that is not a space.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn keyword(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let is_next = rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        let ends = rest.get(word.len()..).is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()));
        if is_next && ends {
            self.at += word.len();
        }
        is_next && ends
    }

    fn unexpected(&mut self) -> TagFilterError {
        let found = self.rest().chars().take(20).collect();
        TagFilterError::Syntax { at: self.at, found }
    }
}

fn joined(mut parts: Vec<Node>, join: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            join(parts)
        }
    }
}

const CONTAINER: &str = "@container";
/// Longer operators come before those that they begin with.
const OPERATORS: [(&str, TagOperator); 6] = [
    ("<>", TagOperator::NotEqual),
    (">=", TagOperator::GreaterOrEqual),
    ("<=", TagOperator::LessOrEqual),
    (">", TagOperator::Greater),
    ("<", TagOperator::Less),
    ("=", TagOperator::Equal),
];
/// Levels of parentheses.
const DEPTH_MAX: usize = 16;
/// Comparisons of an expression, of at most ten different tags.
const COMPARISONS_MAX: usize = 64;

#[cfg(test)]
mod tests;
