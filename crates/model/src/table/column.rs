//! Columns of files as properties: their names, and their types from texts.

use crate::{EdmType, Guid, Timestamp};

/// The property's name for a column: characters that the service does not take become underscores.
#[must_use]
pub fn property_name(column: &str) -> String {
    let mut name: String =
        column.trim().chars().map(|char| if char == '_' || char.is_alphanumeric() { char } else { '_' }).collect();
    if !name.starts_with(|char: char| char == '_' || char.is_alphabetic()) {
        name.insert(0, '_');
    }
    name
}

/// The type of a column from all of its texts: the first of Boolean, Int32, Int64, Double, DateTime and Guid that every
/// text is of, or String. Numbers with leading zeros or a plus sign are texts, so that postal codes and telephone numbers
/// stay what they are.
#[derive(Clone, Copy, Debug)]
pub struct InferredType {
    /// A bit for each of [`TRIED`] that is still possible.
    possible: u8,
    has_seen: bool,
}

impl Default for InferredType {
    fn default() -> Self {
        Self { possible: 0b11_1111, has_seen: false }
    }
}

impl InferredType {
    /// Takes one more text into account; empty ones say nothing.
    pub fn see(&mut self, text: &str) {
        if text.is_empty() || self.possible == 0 {
            return;
        }
        self.has_seen = true;
        for (index, edm) in TRIED.iter().enumerate() {
            if self.possible >> index & 1 == 1 && !is_of(*edm, text) {
                self.possible &= !(1 << index);
            }
            // All that fits the first number type fits the wider ones, too.
            if self.possible >> index & 1 == 1 && matches!(edm, EdmType::Int32 | EdmType::Int64) {
                self.possible &= 0b00_1110;
                return;
            }
        }
    }

    /// The type.
    #[must_use]
    pub fn edm_type(self) -> EdmType {
        let first = TRIED.iter().enumerate().find(|(index, _)| self.has_seen && self.possible >> index & 1 == 1);
        first.map_or(EdmType::String, |(_, edm)| *edm)
    }
}

/// Reads a time as the service writes it, or with a space instead of the `T` as databases do.
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    match text.as_bytes().get(10) {
        Some(b' ') => Timestamp::parse(&format!("{}T{}", &text[..10], &text[11..])).ok(),
        _ => Timestamp::parse(text).ok(),
    }
}

fn is_of(edm: EdmType, text: &str) -> bool {
    match edm {
        EdmType::Int32 => is_number(text, false) && text.parse::<i32>().is_ok(),
        EdmType::Int64 => is_number(text, false) && text.parse::<i64>().is_ok(),
        EdmType::Double => is_number(text, true) && text.parse().is_ok_and(f64::is_finite),
        EdmType::Boolean => text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"),
        EdmType::DateTime => parse_time(text).is_some(),
        EdmType::Guid => Guid::parse(text).is_some(),
        EdmType::String | EdmType::Binary => true,
    }
}

/// Whether a text is a number in the form of JSON, of few enough digits to survive as Double.
fn is_number(text: &str, may_be_fraction: bool) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let has_leading_zero = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let starts_and_ends =
        digits.first().is_some_and(u8::is_ascii_digit) && digits.last().is_some_and(u8::is_ascii_digit);
    let fits = digits.iter().filter(|byte| byte.is_ascii_digit()).count() <= DOUBLE_DIGITS_MAX;
    !has_leading_zero && (is_whole && (!may_be_fraction || fits) || may_be_fraction && starts_and_ends && fits)
}

/// Types in the order in which they are tried.
const TRIED: [EdmType; 6] =
    [EdmType::Boolean, EdmType::Int32, EdmType::Int64, EdmType::Double, EdmType::DateTime, EdmType::Guid];
const DOUBLE_DIGITS_MAX: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inferred(texts: &[&str]) -> EdmType {
        let mut inferred = InferredType::default();
        texts.iter().for_each(|text| inferred.see(text));
        inferred.edm_type()
    }

    #[test]
    fn the_narrowest_type_of_all_texts_is_taken() {
        for (texts, edm) in [
            (&["1", "", "-2"][..], EdmType::Int32),
            (&["1", "5000000000"], EdmType::Int64),
            (&["1", "1.5", "-2e3"], EdmType::Double),
            (&["5000000000", "0.5"], EdmType::Double),
            (&["true", "False"], EdmType::Boolean),
            (&["true", "1"], EdmType::String),
            (&["2024-01-02", "2024-01-02T03:04:05.1234567Z", "2024-01-02 03:04:05"], EdmType::DateTime),
            (&["c9da6455-213d-42c9-9a79-3e9149a57833"], EdmType::Guid),
            (&["1", "2024-01-02"], EdmType::String),
            (&["", ""], EdmType::String),
            (&[], EdmType::String),
        ] {
            assert_eq!(inferred(texts), edm, "{texts:?}");
        }
    }

    #[test]
    fn texts_of_digits_stay_texts() {
        for text in [
            "01234",
            "+49",
            " 1",
            "1 ",
            "12345678901234567890",
            "1.",
            ".5",
            "0x1F",
            "NaN",
            "1_000",
            "-",
            "--1",
            "1e",
            "00",
            " true",
            "äääää 00:00",
        ] {
            assert_eq!(inferred(&[text]), EdmType::String, "{text}");
        }
        assert_eq!(inferred(&["0", "-0.5", "0.25"]), EdmType::Double);
    }

    #[test]
    fn columns_become_names_that_the_service_takes() {
        for (column, name) in [
            ("Name", "Name"),
            ("First Name", "First_Name"),
            ("zip-code", "zip_code"),
            ("2024", "_2024"),
            ("", "_"),
            (" größe ", "größe"),
            ("a.b", "a_b"),
        ] {
            assert_eq!(property_name(column), name);
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_type(text: String) {
            let _ = inferred(&[&text]);
        }
    }
}
