//! Etags: the version of a row as clients see it, and the `If-Match` condition.

use crate::Timestamp;
use std::fmt;

/// The etag of a row, `W/"datetime'2022-05-06T00%3A31%3A05.0707164Z'"`: another spelling of its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag(pub Timestamp);

impl ETag {
    /// Appends the etag's text, as a header has it.
    pub fn write(self, out: &mut Vec<u8>) {
        self.write_with_quote(out, b"\"");
    }

    /// Appends the etag's text as part of a JSON string, where its quotes are escaped.
    pub fn write_in_json(self, out: &mut Vec<u8>) {
        self.write_with_quote(out, b"\\\"");
    }

    fn write_with_quote(self, out: &mut Vec<u8>, quote: &[u8]) {
        out.extend_from_slice(b"W/");
        out.extend_from_slice(quote);
        out.extend_from_slice(b"datetime'");
        self.0.write_escaped(out);
        out.push(b'\'');
        out.extend_from_slice(quote);
    }

    fn parse(text: &str) -> Option<Self> {
        let escaped = text.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let etag = Self(Timestamp::parse(&escaped.replace("%3A", ":")).ok()?);
        // Etags are opaque: another spelling of the same time is another etag.
        (etag.to_string() == text).then_some(etag)
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(48);
        self.write(&mut out);
        f.write_str(std::str::from_utf8(&out).expect("the text is ASCII"))
    }
}

/// The condition of a write on an existing entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: the entity exists.
    Any,
    /// The entity has this version.
    Version(Timestamp),
    /// A well-formed etag that this service never gave out: no version matches it.
    Foreign,
}

/// Why an `If-Match` value is refused: it is not a weak etag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected '*' or a weak etag, found '{0}'")]
pub struct IfMatchError(pub String);

impl IfMatch {
    /// Reads the value of an `If-Match` header.
    ///
    /// # Errors
    /// Refuses what is neither `*` nor a weak etag (`W/"…"`).
    pub fn parse(text: &str) -> Result<Self, IfMatchError> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        let is_weak = text.len() >= 4 && text.starts_with("W/\"") && text.ends_with('"');
        if !is_weak {
            return Err(IfMatchError(text.to_owned()));
        }
        Ok(ETag::parse(text).map_or(Self::Foreign, |etag| Self::Version(etag.0)))
    }
}

const PREFIX: &str = "W/\"datetime'";
const SUFFIX: &str = "'\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_spells_the_version_with_escaped_colons() {
        let version = Timestamp::parse("2022-05-06T00:31:05.0707164Z").expect("a timestamp");
        let text = ETag(version).to_string();
        assert_eq!(text, "W/\"datetime'2022-05-06T00%3A31%3A05.0707164Z'\"");
        assert_eq!(IfMatch::parse(&text), Ok(IfMatch::Version(version)));
    }

    #[test]
    fn other_weak_etags_match_nothing() {
        for text in [
            "W/\"wrong\"",
            "W/\"datetime'2022-05-06T00:31:05Z'\"",
            "W/\"datetime'2022-05-06T00%3A31%3A05.10Z'\"",
            "W/\"\"",
        ] {
            assert_eq!(IfMatch::parse(text), Ok(IfMatch::Foreign), "{text}");
        }
        assert_eq!(IfMatch::parse(" * "), Ok(IfMatch::Any));
    }

    #[test]
    fn strong_or_bare_etags_are_refused() {
        for text in ["", "\"abc\"", "foo", "W/", "W/\""] {
            assert_eq!(IfMatch::parse(text), Err(IfMatchError(text.to_owned())));
        }
    }
}
