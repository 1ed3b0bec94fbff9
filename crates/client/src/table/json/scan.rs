//! JSON as answers have it, read member by member and in its place.
//!
//! Nearly all of an answer is texts without escapes, and those are found here eight bytes at a time. The rest is left
//! to `serde_json`: escapes, numbers, and what is skipped.

use serde::de::IgnoredAny;
use std::borrow::Cow;

/// A place in a text of JSON.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A JSON value that is neither array nor object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads an object: `member` is called with the name of each member and reads its value.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), String>,
    ) -> Result<(), String> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.text()?;
            self.expect(b':')?;
            member(self, name)?;
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads an array: `element` reads each of its elements.
    pub(super) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads a text.
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, String> {
        self.expect(b'"')?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut end = plain_end(bytes, start);
        if bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        // The quotes of ETags are escaped in every answer; other escapes are rare.
        let (mut text, mut piece) = (String::with_capacity(64), start);
        while let (Some(b'\\'), Some(b'"')) = (bytes.get(end), bytes.get(end + 1)) {
            text.push_str(&self.text[piece..end]);
            piece = end + 1;
            end = plain_end(bytes, end + 2);
        }
        text.push_str(&self.text[piece..end]);
        if bytes.get(end) != Some(&b'"') {
            // What follows a backslash is never the end.
            while bytes.get(end) == Some(&b'\\') {
                end = plain_end(bytes, end + 2);
            }
            let quoted = self.text.get(start - 1..=end).and_then(|quoted| serde_json::from_str(quoted).ok());
            text = quoted.ok_or_else(|| self.unexpected("the rest of a text"))?;
        }
        self.at = end + 1;
        Ok(Cow::Owned(text))
    }

    /// Reads a value that is neither array nor object.
    pub(super) fn scalar(&mut self) -> Result<Scalar<'a>, String> {
        let next = self.peek();
        let (word, scalar) = match next {
            Some(b'"') => return self.text().map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b't') => ("true", Scalar::Boolean(true)),
            Some(b'f') => ("false", Scalar::Boolean(false)),
            _ => ("null", Scalar::Null),
        };
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected("the value of a property"));
        }
        self.at += word.len();
        Ok(scalar)
    }

    fn number(&mut self) -> Result<Scalar<'a>, String> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let bytes = rest.bytes().take_while(is_part).count();
        let number: Option<serde_json::Number> = serde_json::from_str(&rest[..bytes]).ok();
        let scalar = number.and_then(|number| {
            // Only a Double can be larger than the first.
            number.as_i64().map(Scalar::Integer).or_else(|| number.as_f64().map(Scalar::Number))
        });
        let scalar = scalar.ok_or_else(|| self.unexpected("a number"))?;
        self.at += bytes;
        Ok(scalar)
    }

    /// Passes over any value.
    pub(super) fn skip(&mut self) -> Result<(), String> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => self.at += values.byte_offset(),
            _ => return Err(self.unexpected("a value")),
        }
        Ok(())
    }

    /// Makes sure that nothing is left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end")),
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at).copied() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                next => return next,
            }
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        // Most answers have no white space.
        let is_next = self.text.as_bytes().get(self.at) == Some(&byte) || self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(self.unexpected(char::from(byte).encode_utf8(&mut [0; 4]))),
        }
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> String {
        format!("expected {expected} at byte {} of the answer", self.at)
    }
}

/// Where the first byte is, from `at` on, that does not stand for itself in a text of JSON: a quote, a backslash or a
/// control character; the end, if there is none.
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    while let Some((chunk, _)) = bytes.get(at..).and_then(|rest| rest.split_first_chunk()) {
        let word = u64::from_le_bytes(*chunk);
        // The high bit of each byte that is less than `bound`, and perhaps of bytes after the first such one.
        let less = |word: u64, bound: u64| word.wrapping_sub(LOW * bound) & !word & HIGH;
        // With its second bit turned, a quote comes right after the control characters.
        let found = less(word ^ (LOW * 2), 0x21) | less(word ^ (LOW * u64::from(b'\\')), 1);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole<'a, T>(json: &'a str, read: impl FnOnce(&mut Scanner<'a>) -> Result<T, String>) -> Result<T, String> {
        let mut scanner = Scanner::new(json);
        let read = read(&mut scanner)?;
        scanner.end().map(|()| read)
    }

    /// A value as `serde_json` reads it, if it is neither array nor object.
    fn by_serde(json: &str) -> Option<Scalar<'static>> {
        Some(match serde_json::from_str(json).ok()? {
            serde_json::Value::Null => Scalar::Null,
            serde_json::Value::Bool(truth) => Scalar::Boolean(truth),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => Scalar::Integer(number),
                None => Scalar::Number(number.as_f64()?),
            },
            serde_json::Value::String(text) => Scalar::Text(Cow::Owned(text)),
            _ => return None,
        })
    }

    proptest! {
        #[test]
        fn special_bytes_are_found_where_they_are(bytes in prop::collection::vec(0_u8.., 0..40), at in 0_usize..48) {
            let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
            let found = bytes.iter().skip(at).position(is_special).map_or(bytes.len().max(at), |found| at + found);
            prop_assert_eq!(plain_end(&bytes, at), found);
        }

        #[test]
        fn values_are_those_that_serde_json_reads(
            json in prop_oneof![
                any::<String>().prop_map(|text| serde_json::to_string(&text).expect("JSON")),
                any::<f64>().prop_map(|number| format!("{number:?}")),
                any::<i128>().prop_map(|number| number.to_string()),
                any::<i64>().prop_map(|number| number.to_string()),
                "[ \\n]?(\"([a-z\"\\\\\\x00-\\x20é]|\\\\[nu\"\\\\/]|\\\\u[0-9a-fD]{4}){0,12}\"|true|false|nul|null)[ \\n]?x?",
                "-?[0-9.eE+-]{0,8}",
            ],
        ) {
            prop_assert_eq!(whole(&json, Scanner::scalar).ok(), by_serde(&json), "{}", json);
            let is_json = serde_json::from_str::<IgnoredAny>(&json).is_ok();
            prop_assert_eq!(whole(&json, Scanner::skip).is_ok(), is_json, "{}", json);
        }

        #[test]
        fn objects_and_arrays_are_those_that_serde_json_reads(json in "[{\\[]([{}\\[\\],: ]|\"a\"|1){0,10}[}\\]]") {
            fn any(scanner: &mut Scanner<'_>) -> Result<(), String> {
                match scanner.peek() {
                    Some(b'{') => scanner.object(|scanner, _| any(scanner)),
                    Some(b'[') => scanner.array(any),
                    _ => scanner.scalar().map(drop),
                }
            }
            prop_assert_eq!(whole(&json, any).is_ok(), serde_json::from_str::<IgnoredAny>(&json).is_ok(), "{}", json);
        }
    }
}
