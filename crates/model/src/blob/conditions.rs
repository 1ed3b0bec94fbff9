//! Etags of blobs and containers, and the conditions that requests put on what is there.

use crate::Timestamp;
use std::fmt;

/// The etag of a blob or a container: the time of its last change in ticks. Displays as `"0x8DC…"`, quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobETag(pub Timestamp);

impl BlobETag {
    /// The text without quotes, as listings have it.
    #[must_use]
    pub fn to_unquoted(self) -> String {
        format!("0x{:X}", self.0.ticks())
    }

    fn parse(text: &str) -> Option<Self> {
        let ticks = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
        let etag = Self(Timestamp::from_ticks(ticks));
        // Etags are opaque: another spelling of the same time is another etag.
        (etag.to_unquoted() == text).then_some(etag)
    }
}

impl fmt::Display for BlobETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.to_unquoted())
    }
}

/// The value of an `If-Match` or `If-None-Match` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ETagCondition {
    /// `*`: whatever is there.
    Any,
    /// This etag.
    Is(BlobETag),
    /// An etag that this service never gave out: nothing matches it.
    Foreign,
}

impl ETagCondition {
    /// Reads the value of a header. The service takes etags with and without quotes.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text == "*" {
            return Self::Any;
        }
        let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        BlobETag::parse(unquoted).map_or(Self::Foreign, Self::Is)
    }

    /// Whether what is there matches.
    #[must_use]
    pub fn matches(self, etag: BlobETag) -> bool {
        match self {
            Self::Any => true,
            Self::Is(wanted) => wanted == etag,
            Self::Foreign => false,
        }
    }
}

/// The conditional headers of a request, or those on the source of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`.
    pub if_match: Option<ETagCondition>,
    /// `If-None-Match`.
    pub if_none_match: Option<ETagCondition>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<Timestamp>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<Timestamp>,
}

impl Conditions {
    /// No conditions.
    pub const NONE: Self =
        Self { if_match: None, if_none_match: None, if_modified_since: None, if_unmodified_since: None };

    /// Whether there is no condition.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// The conditions of Append Block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendConditions {
    /// `x-ms-blob-condition-appendpos`: the blob is exactly this long.
    pub position: Option<u64>,
    /// `x-ms-blob-condition-maxsize`: the blob is no longer than this afterwards.
    pub size_max: Option<u64>,
}

/// The conditions of Put Page on a page blob's sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceConditions {
    /// `x-ms-if-sequence-number-le`: less than or equal.
    pub less_or_equal: Option<u64>,
    /// `x-ms-if-sequence-number-lt`: less than.
    pub less: Option<u64>,
    /// `x-ms-if-sequence-number-eq`: equal.
    pub equal: Option<u64>,
}

impl SequenceConditions {
    /// Whether a sequence number fulfils all of them.
    #[must_use]
    pub fn admit(self, number: u64) -> bool {
        self.less_or_equal.is_none_or(|most| number <= most)
            && self.less.is_none_or(|bound| number < bound)
            && self.equal.is_none_or(|wanted| number == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_the_time_in_hexadecimal() {
        let etag = BlobETag(Timestamp::parse("2022-05-06T00:31:05.0707164Z").expect("a timestamp"));
        assert_eq!(etag.to_string(), "\"0x8DA2EF7B4C134DC\"");
        for text in ["\"0x8DA2EF7B4C134DC\"", "0x8DA2EF7B4C134DC", " \"0x8DA2EF7B4C134DC\" "] {
            assert_eq!(ETagCondition::parse(text), ETagCondition::Is(etag), "{text}");
        }
    }

    #[test]
    fn other_spellings_match_nothing() {
        for text in ["", "\"", "\"\"", "0x", "0x8da2ef7b4c134dc", "W/\"0x8DA2EF7B4C134DC\"", "0x0008", "\"*\""] {
            assert_eq!(ETagCondition::parse(text), ETagCondition::Foreign, "{text}");
        }
        assert_eq!(ETagCondition::parse("*"), ETagCondition::Any);
    }

    #[test]
    fn a_sequence_number_fulfils_all_conditions_or_fails() {
        let all = SequenceConditions { less_or_equal: Some(5), less: Some(6), equal: Some(5) };
        assert!(all.admit(5) && !all.admit(4) && !all.admit(6));
        assert!(SequenceConditions::default().admit(u64::MAX));
        assert!(!SequenceConditions { less: Some(5), ..Default::default() }.admit(5));
        assert!(!SequenceConditions { less_or_equal: Some(5), ..Default::default() }.admit(6));
    }
}
