//! JSON pieces that answers are made of: quoted text and numbers, appended to a buffer.

use std::io::Write as _;

/// Appends a string in quotes.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends the inside of a string: everything escaped that must be.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, tail) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let [byte, tail @ ..] = tail else { return };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => write!(out, "\\u{other:04x}").expect("a vector takes all bytes"),
        }
        rest = tail;
    }
}

/// How many bytes from the start need no escape. Most texts need none, so eight are looked at together.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let whole = 8 * words.iter().take_while(|word| !has_escape(u64::from_le_bytes(**word))).count();
    let must_escape = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    bytes[whole..].iter().position(must_escape).map_or(bytes.len(), |at| whole + at)
}

/// Whether one of eight bytes is a control character, a quote or a backslash. A false alarm costs only time.
const fn has_escape(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const fn has_less_than(word: u64, bound: u8) -> u64 {
        word.wrapping_sub(ONES * bound as u64) & !word
    }
    let quote = has_less_than(word ^ (ONES * b'"' as u64), 1);
    let backslash = has_less_than(word ^ (ONES * b'\\' as u64), 1);
    (has_less_than(word, 0x20) | quote | backslash) & (ONES << 7) != 0
}

/// Appends an integer.
pub(crate) fn push_integer(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a finite double as the service writes it: shortest digits, always with a point or an exponent,
/// and with an exponent from 10^15 up and below 10^-5 (.NET's round-trip format).
pub(crate) fn push_double(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 || (1e-5..1e15).contains(&value.abs()) {
        let start = out.len();
        write!(out, "{value}").expect("a vector takes all bytes");
        if !out[start..].contains(&b'.') {
            out.extend_from_slice(b".0");
        }
        return;
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("this format has an exponent");
    let exponent: i32 = exponent.parse().expect("this format has a whole exponent");
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{digits}E{sign}{:02}", exponent.unsigned_abs()).expect("a vector takes all bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        push_double(&mut out, value);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn doubles_look_like_the_service_writes_them() {
        for (value, text) in [
            (3.0, "3.0"),
            (0.0, "0.0"),
            (-5.0, "-5.0"),
            (3.1, "3.1"),
            (1.234_567_890_123_46e24, "1.23456789012346E+24"),
            (1e15, "1E+15"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (0.00001, "0.00001"),
            (0.000_001, "1E-06"),
            (5e-324, "5E-324"),
            (f64::MAX, "1.7976931348623157E+308"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    proptest! {
        #[test]
        fn doubles_read_back(value in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO) {
            prop_assert_eq!(double(value).parse::<f64>().expect("a number").to_bits(), value.to_bits());
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&double(value)).is_ok());
        }

        #[test]
        fn strings_read_back(text: String) {
            let mut out = Vec::new();
            push_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("JSON"), text);
        }
    }
}
