//! Percent-encoding: decoding of paths and query strings, encoding for signatures and links.
//!
//! Text without escapes is borrowed. Malformed escapes and bytes that are no UTF-8 are refused, so that
//! one request has one meaning.

use percent_encoding::percent_encode_byte;
use std::borrow::Cow;

/// Why a text cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// A percent sign without two hexadecimal digits.
    #[error("expected two hexadecimal digits after each percent sign")]
    Escape,
    /// The decoded bytes are no text.
    #[error("expected escapes that decode to UTF-8")]
    Utf8,
}

/// Decodes a path or a part of one. A plus is a plus.
///
/// # Errors
/// Malformed escapes and invalid UTF-8.
pub fn decode_path(raw: &str) -> Result<Cow<'_, str>, UriError> {
    decode(raw, false)
}

/// Decodes a name or a value of a query string. A plus is a space.
///
/// # Errors
/// Malformed escapes and invalid UTF-8.
pub fn decode_query(raw: &str) -> Result<Cow<'_, str>, UriError> {
    decode(raw, true)
}

/// One parameter of a query string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryPair<'a> {
    /// The name, decoded: clients also write `%24filter`.
    pub name: Cow<'a, str>,
    /// The value as it was sent.
    pub raw_value: &'a str,
}

impl<'a> QueryPair<'a> {
    /// The value, decoded.
    ///
    /// # Errors
    /// Malformed escapes and invalid UTF-8.
    pub fn value(&self) -> Result<Cow<'a, str>, UriError> {
        decode_query(self.raw_value)
    }
}

/// The parameters of a query string (without its question mark) in order; empty ones are passed over.
#[must_use]
pub const fn query_pairs(query: &str) -> QueryPairs<'_> {
    QueryPairs { rest: Some(query) }
}

/// The iterator of [`query_pairs`].
#[derive(Clone, Debug)]
pub struct QueryPairs<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for QueryPairs<'a> {
    type Item = Result<QueryPair<'a>, UriError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.rest?;
            let (pair, tail) = match rest.split_once('&') {
                Some((pair, tail)) => (pair, Some(tail)),
                None => (rest, None),
            };
            self.rest = tail;
            if pair.is_empty() {
                continue;
            }
            let (name, raw_value) = pair.split_once('=').unwrap_or((pair, ""));
            return Some(decode_query(name).map(|name| QueryPair { name, raw_value }));
        }
    }
}

/// Appends `text` with every byte escaped that `keep` does not name.
pub fn encode(out: &mut String, text: &str, keep: impl Fn(u8) -> bool) {
    // What needs no escape, which is most, is appended at once.
    let mut kept = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii() && keep(byte) {
            continue;
        }
        out.push_str(text.get(kept..at).unwrap_or_default());
        push_byte(out, byte, false);
        kept = at + 1;
    }
    out.push_str(text.get(kept..).unwrap_or_default());
}

/// Whether RFC 3986 calls this byte unreserved.
#[must_use]
pub const fn is_unreserved(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~')
}

/// Whether RFC 3986 lets this byte stand for itself within a segment of a path.
#[must_use]
pub const fn is_path_char(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@')
}

/// Spells a raw path anew without changing what it names: escapes of bytes that `keep` names are undone,
/// all other bytes but slashes are escaped. `None` for malformed escapes.
#[must_use]
pub fn respell_path(raw: &str, keep: impl Fn(u8) -> bool) -> Option<String> {
    let mut out = String::with_capacity(raw.len() + 8);
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let decoded = hex(bytes.next()?)? << 4 | hex(bytes.next()?)?;
            push_byte(&mut out, decoded, decoded.is_ascii() && keep(decoded));
        } else {
            push_byte(&mut out, byte, byte == b'/' || byte.is_ascii() && keep(byte));
        }
    }
    Some(out)
}

fn push_byte(out: &mut String, byte: u8, plain: bool) {
    if plain {
        out.push(char::from(byte));
    } else {
        out.push_str(percent_encode_byte(byte));
    }
}

fn decode(raw: &str, plus_is_space: bool) -> Result<Cow<'_, str>, UriError> {
    let bytes = raw.as_bytes();
    let first = if plus_is_space { memchr::memchr2(b'%', b'+', bytes) } else { memchr::memchr(b'%', bytes) };
    let Some(first) = first else { return Ok(Cow::Borrowed(raw)) };
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..first]);
    let mut rest = bytes[first..].iter().copied();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'%' => {
                let high = rest.next().and_then(hex).ok_or(UriError::Escape)?;
                let low = rest.next().and_then(hex).ok_or(UriError::Escape)?;
                high << 4 | low
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| UriError::Utf8)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_and_queries_decode() {
        for (raw, path, query) in [
            ("a b", "a b", "a b"),
            ("a+b", "a+b", "a b"),
            ("%41%2b%2B", "A++", "A++"),
            ("%e6%97%a5", "日", "日"),
            ("%27%27", "''", "''"),
            ("%25", "%", "%"),
        ] {
            assert_eq!(decode_path(raw).as_deref(), Ok(path), "{raw}");
            assert_eq!(decode_query(raw).as_deref(), Ok(query), "{raw}");
        }
    }

    #[test]
    fn malformed_escapes_are_refused() {
        for (raw, error) in [
            ("%", UriError::Escape),
            ("%4", UriError::Escape),
            ("%4g", UriError::Escape),
            ("a%zz", UriError::Escape),
            ("%é1", UriError::Escape),
            ("%ff", UriError::Utf8),
            ("%c3x", UriError::Utf8),
            ("%ed%a0%80", UriError::Utf8),
        ] {
            assert_eq!(decode_path(raw), Err(error), "{raw}");
            assert_eq!(decode_query(raw), Err(error), "{raw}");
        }
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        assert!(matches!(decode_path("T(PartitionKey='a+b')"), Ok(Cow::Borrowed(_))));
        assert!(matches!(decode_query("a"), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn parameters_come_in_order_with_names_decoded() {
        let pairs: Vec<_> =
            query_pairs("&%24filter=a+eq%20'b=c'&&comp&x=").map(|pair| pair.expect("well-formed")).collect();
        let found: Vec<_> =
            pairs.iter().map(|pair| (&*pair.name, pair.raw_value, pair.value().expect("well-formed"))).collect();
        assert_eq!(
            found,
            [
                ("$filter", "a+eq%20'b=c'", Cow::Borrowed("a eq 'b=c'")),
                ("comp", "", Cow::Borrowed("")),
                ("x", "", Cow::Borrowed(""))
            ]
        );
        assert_eq!(query_pairs("").count(), 0);
        assert_eq!(query_pairs("%zz=1").next(), Some(Err(UriError::Escape)));
    }

    #[test]
    fn paths_are_respelled() {
        assert_eq!(
            respell_path("/T(PartitionKey='a%27%27b',RowKey=' %2f%e6')", is_path_char).as_deref(),
            Some("/T(PartitionKey='a''b',RowKey='%20%2F%E6')")
        );
        assert_eq!(respell_path("/T('a')", is_unreserved).as_deref(), Some("/T%28%27a%27%29"));
        assert_eq!(respell_path("/%", is_unreserved), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(text: String) {
            let mut encoded = String::new();
            encode(&mut encoded, &text, is_unreserved);
            prop_assert_eq!(decode_path(&encoded), Ok(Cow::Borrowed(&*text)));
            prop_assert_eq!(decode_query(&encoded), Ok(Cow::Borrowed(&*text)));
        }

        #[test]
        fn anything_is_decoded_or_refused(raw in "[%0-9a-fA-Fé+&=/]{0,24}") {
            let _ = decode_path(&raw);
            for pair in query_pairs(&raw).flatten() {
                let _ = pair.value();
            }
        }

        #[test]
        fn a_respelled_path_names_the_same(raw in "(/|[a-z]|%2[0-9A-F]|%C3%A9|'|\\(|ü| ){0,16}") {
            for keep in [is_path_char as fn(u8) -> bool, is_unreserved] {
                let respelled = respell_path(&raw, keep).expect("well-formed escapes");
                prop_assert_eq!(decode_path(&respelled), decode_path(&raw));
                prop_assert_eq!(raw.matches('/').count(), respelled.matches('/').count());
            }
        }
    }
}
