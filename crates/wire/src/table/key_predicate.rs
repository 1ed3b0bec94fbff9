//! The last segment of a path: a name, and perhaps keys in parentheses.
//!
//! The segment is percent-decoded before it comes here, so that a quote inside a key is distinguished from the one
//! that ends it by being doubled.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use std::borrow::Cow;

/// A segment, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub(super) name: &'a str,
    pub(super) keys: Keys<'a>,
}

/// What stands in the parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keys<'a> {
    /// No parentheses, or nothing in them.
    Absent,
    /// One value without a name: `Tables('name')`.
    Unnamed(Cow<'a, str>),
    /// Names and values: `T(PartitionKey='a',RowKey='b')`.
    Named(Vec<(&'a str, Cow<'a, str>)>),
}

impl<'a> Segment<'a> {
    pub(super) fn parse(segment: &'a str) -> Result<Self, ErrorReply> {
        let Some((name, rest)) = segment.split_once('(') else { return Ok(Self { name: segment, keys: Keys::Absent }) };
        let mut reader = Reader { rest };
        let keys = reader.keys().ok_or_else(syntax_error)?;
        Ok(Self { name, keys })
    }
}

pub(super) fn syntax_error() -> ErrorReply {
    ErrorReply::with_message(ErrorCode::InvalidInput, "Bad Request - Error in query syntax.")
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn keys(&mut self) -> Option<Keys<'a>> {
        self.skip_spaces();
        if self.rest == ")" {
            return Some(Keys::Absent);
        }
        if self.rest.starts_with('\'') {
            let value = self.quoted()?;
            self.end()?;
            return Some(Keys::Unnamed(value));
        }
        let mut named = Vec::with_capacity(2);
        loop {
            named.push(self.pair()?);
            match self.take(',') {
                Some(()) => {}
                None => break,
            }
        }
        self.end()?;
        Some(Keys::Named(named))
    }

    fn pair(&mut self) -> Option<(&'a str, Cow<'a, str>)> {
        self.skip_spaces();
        let length = self.rest.find(|c: char| !c.is_ascii_alphanumeric())?;
        let (name, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.take('=')?;
        self.skip_spaces();
        let value = self.quoted()?;
        Some((name, value))
    }

    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        let text = self.rest.strip_prefix('\'')?;
        let mut from = 0;
        loop {
            let quote = from + text[from..].find('\'')?;
            if text[quote + 1..].starts_with('\'') {
                from = quote + 2;
                continue;
            }
            self.rest = &text[quote + 1..];
            let value = &text[..quote];
            return Some(if from == 0 { Cow::Borrowed(value) } else { Cow::Owned(value.replace("''", "'")) });
        }
    }

    fn end(&mut self) -> Option<()> {
        self.skip_spaces();
        (self.rest == ")").then_some(())
    }

    fn take(&mut self, expected: char) -> Option<()> {
        self.skip_spaces();
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(segment: &str) -> Option<Vec<(String, String)>> {
        match Segment::parse(segment).ok()?.keys {
            Keys::Named(keys) => Some(keys.into_iter().map(|(n, v)| (n.to_owned(), v.into_owned())).collect()),
            _ => None,
        }
    }

    #[test]
    fn keys_come_in_either_order_with_doubled_quotes() {
        for (segment, first, second) in [
            ("T(PartitionKey='a',RowKey='b')", ("PartitionKey", "a"), ("RowKey", "b")),
            ("T(RowKey='b', PartitionKey='a')", ("RowKey", "b"), ("PartitionKey", "a")),
            ("T(PartitionKey='',RowKey='')", ("PartitionKey", ""), ("RowKey", "")),
            ("T(PartitionKey='a''''b',RowKey='''')", ("PartitionKey", "a''b"), ("RowKey", "'")),
            ("T(PartitionKey='a,b)',RowKey='(c=''d''')", ("PartitionKey", "a,b)"), ("RowKey", "(c='d'")),
        ] {
            let expected = [first, second].map(|(n, v)| (n.to_owned(), v.to_owned()));
            assert_eq!(named(segment).as_deref(), Some(expected.as_slice()), "{segment}");
        }
    }

    #[test]
    fn other_forms_are_told_apart() {
        assert_eq!(Segment::parse("T").map(|s| s.keys), Ok(Keys::Absent));
        assert_eq!(Segment::parse("T()").map(|s| s.keys), Ok(Keys::Absent));
        assert_eq!(Segment::parse("Tables('a')").map(|s| s.keys), Ok(Keys::Unnamed(Cow::Borrowed("a"))));
        for segment in [
            "T(",
            "T(')",
            "T(PartitionKey=a)",
            "T(PartitionKey='a'",
            "T(PartitionKey='a')x",
            "T(PartitionKey='a',)",
            "T('a','b')",
            "T(=)",
        ] {
            assert_eq!(Segment::parse(segment).map_err(|e| e.code), Err(ErrorCode::InvalidInput), "{segment}");
        }
    }

    proptest! {
        #[test]
        fn every_pair_of_keys_survives(partition: String, row: String) {
            let quoted = |key: &str| key.replace('\'', "''");
            let segment = format!("T(PartitionKey='{}',RowKey='{}')", quoted(&partition), quoted(&row));
            prop_assert_eq!(named(&segment), Some(vec![("PartitionKey".to_owned(), partition), ("RowKey".to_owned(), row)]));
        }

        #[test]
        fn any_segment_is_read_or_refused(segment in "T?\\(?[PR=',) a]{0,12}\\)?") {
            let _ = Segment::parse(&segment);
        }
    }
}
